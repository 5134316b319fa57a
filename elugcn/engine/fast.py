"""The operations of ``reference.py`` by the loops in C, with gradients by hand.

Each falls back to the reference where the loops do not apply: other devices and
dtypes, matrices with learned entries, gradients to X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version

from elugcn.engine import reference
from elugcn.engine.compiled import MAX_CLASSES, NOTHING_DROPPED, Draw, loops
from elugcn.engine.inputs import GraphInputs, LowRank, Views
from elugcn.engine.private_torch import add_transposed_product, dense_product
from elugcn.engine.reference import LossTargets
from elugcn.engine.sparse import CSR, Features
from elugcn.engine.workspace import LARGE_BYTES, current, next_draws

# Entries of X that are masked at once: a block that stays in the cache.
_BLOCK_ENTRIES = 2**18
# Rank up to which a lazy view is multiplied out row by row, when it is needed.
_MAX_RANK = 64


def dropout(x: Features, p: float) -> Features:
    """As ``reference.dropout``; the gradient draws its bits again."""
    if p == 0.0 or isinstance(x, CSR) or x.dim() != 2 or not _fits(x):
        return reference.dropout(x, p)
    out: Tensor = _Dropout.apply(x, *next_draws(p))  # type: ignore[no-untyped-call]
    return out


class _Dropout(Function):
    """x ↦ drop(x); the gradient is dropped where x is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, draw: Draw) -> Tensor:
        ctx.draw = draw
        out = x.new_empty(x.shape)
        loops.mask(x.contiguous(), out, 0, draw)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _Dropout.forward(ctx, grad, ctx.draw), None


def dropout_linear(x: Features, w: Tensor, p: float) -> Tensor:
    """As ``reference.dropout_linear``; drop(X) is never whole."""
    if not _fits_product(x, w):
        return dropout(x, p) @ w
    return _products(x, w, p)[0]


def propagate_linear(
    g: GraphInputs,
    w: Tensor,
    p: float,
    *,
    residual: bool = False,
    drop_rows: float = 0.0,
    draws: int = 1,
) -> Views:
    """As ``reference.propagate_linear``; S* stays in factors."""
    adj, graph = g.layer(0), g.elu_graph
    training = torch.is_grad_enabled() and w.requires_grad
    if (
        (draws > 1 or residual or drop_rows > 0.0 or g.directions == 2)
        or not (graph is None or isinstance(graph, LowRank))
        or not (isinstance(adj, CSR) and adj.fits_loops)
        or adj.value.requires_grad
        or not _fits_product(g.x, w)
        or (training and g.elu_x is not None)
    ):
        return reference.propagate_linear(
            g, w, p, residual=residual, drop_rows=drop_rows, draws=draws,
            product=dropout_linear,
        )  # fmt: skip
    first, right = _products(g.x, w, p, adj, graph, g.elu_x)
    if graph is None or right is None:
        return Views([first])
    return Views([first, LowRank(graph.left, right.T)])


def _products(
    x: Features,
    w: Tensor,
    p: float,
    adj: CSR | None = None,
    graph: LowRank | None = None,
    elu_x: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Â Z and Rᵀ Z (c×h) for Z = drop(X) W; without Â it is Z itself."""
    [draw] = next_draws(p)
    if torch.is_grad_enabled() and w.requires_grad:
        out: tuple[Tensor, Tensor | None] = _Products.apply(w, x, adj, graph, draw)  # type: ignore[no-untyped-call]
        return out
    z = _times(x, w, draw, w.new_empty(x.shape[0], w.size(1)))
    workspace = current.get()
    if p == 0.0 and workspace is not None and workspace.wanted is x:
        workspace.remember_product(x, w, z)
    first = z if adj is None else _product(adj, z, z.new_empty(adj.shape[0], w.size(1)))
    if graph is None:
        return first, None
    return first, graph.right.T @ z if elu_x is None else elu_x @ w


class _Products(Function):
    """W ↦ Â Z and Rᵀ Z; the gradient of Z is Âᵀ g + R g'."""

    @staticmethod
    def forward(
        ctx: Any,
        w: Tensor,
        x: Features,
        adj: CSR | None,
        graph: LowRank | None,
        draw: Draw,
    ) -> tuple[Tensor, Tensor | None]:
        workspace, z = current.get(), None
        if draw is NOTHING_DROPPED and workspace is not None:
            z = workspace.take_product(x, w)
        if z is None:
            z = _times(x, w, draw, _new((x.shape[0], w.size(1)), w))
        ctx.x, ctx.adj, ctx.graph, ctx.draw = x, adj, graph, draw
        right = None if graph is None else graph.right.T @ z
        if adj is None:
            return z, right
        ctx.z = z
        return _product(adj, z, _new((adj.shape[0], w.size(1)), z)), right

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_z: Tensor, grad_right: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        if ctx.adj is not None:
            # Z is not needed again.
            grad_z = _product(ctx.adj.T, grad_z.contiguous(), ctx.z)
        if grad_right is not None:
            grad_z.addmm_(ctx.graph.right, grad_right)
        return _transposed_times(ctx.x, grad_z, ctx.draw), None, None, None, None


def relu_dropout_linear_(views: Views, bias: Tensor, w: Tensor, p: float) -> Views:
    """As ``reference.relu_dropout_linear_``; lazy views are never whole.

    The hidden layer is not stored: the gradient computes it again from Z, which the
    gradient of Z then overwrites.
    """
    lefts: list[Tensor | None] = []
    tensors: list[Tensor] = []
    for view in views:
        lazy = isinstance(view, LowRank)
        lefts.append(
            view.left.contiguous() if lazy and view.left.size(1) <= _MAX_RANK else None
        )
        if lefts[-1] is not None:
            tensors.append(view.right.T.contiguous())
        else:
            z = view.to_dense() if lazy else view
            tensors.append(z if z.stride(1) == 1 and z.grad_fn else z.contiguous())
    w = w.contiguous()
    if not _fits(bias, w, *tensors):
        return reference.relu_dropout_linear_(views, bias, w, p)
    draws = next_draws(p, len(views))
    owned = [z.grad_fn is not None for z in tensors]
    out: Tensor = _Hidden.apply(bias, w, lefts, draws, owned, *tensors)  # type: ignore[no-untyped-call]
    return Views.side_by_side(out, len(views))


class _Hidden(Function):
    """b, W, Z₁ … Z_v ↦ [H₁ W … H_v W] with H = drop(ReLU(Z + b)).

    A lazy Z = L R comes as R (r×h).
    """

    @staticmethod
    def forward(
        ctx: Any,
        bias: Tensor,
        w: Tensor,
        lefts: list[Tensor | None],
        draws: list[Draw],
        owned: list[bool],
        *tensors: Tensor,
    ) -> Tensor:
        ctx.lefts, ctx.draws, ctx.owned = lefts, draws, owned
        ctx.save_for_backward(bias, w, *tensors)
        rows = tensors[0] if lefts[0] is None else lefts[0]
        out = w.new_empty(rows.size(0), len(lefts) * w.size(1))
        outs = out.chunk(len(lefts), dim=1)
        for z, left, part, draw in zip(tensors, lefts, outs, draws, strict=True):
            loops.hidden(z, left, bias, w, part, draw)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        bias, w, *tensors = ctx.saved_tensors
        h, k = w.shape
        total, grads = w.new_zeros(k + 1, h), []
        outs = grad.contiguous().chunk(len(tensors), dim=1)
        for z, left, g, draw, own in zip(
            tensors, ctx.lefts, outs, ctx.draws, ctx.owned, strict=True
        ):
            if left is None:
                # Where Z is nobody else's, its gradient overwrites it.
                grads.append(z if own else torch.empty_like(z))
                loops.hidden_back(g, z, None, grads[-1], bias, w, total, draw)
                if own:
                    increment_version(z)
            else:
                sums = w.new_zeros(k + 1 + z.size(0), h)
                loops.hidden_back(g, z, left, None, bias, w, sums, draw)
                total += sums[: k + 1]
                grads.append(sums[k + 1 :])
        return total[k], total[:k].T, None, None, None, *grads


def two_view_loss(
    views: Views,
    head_weight: Tensor,
    head_bias: Tensor,
    targets: LossTargets,
    *,
    tau: float,
    eta: float,
    contrast_weight: float,
    entropy_weight: float,
    contrast: str = "similarity",
) -> Tensor:
    """As ``reference.two_view_loss``: value and gradients in two passes over nodes."""
    wide = views.joined().contiguous()
    if (
        contrast != "similarity"
        or head_bias.numel() > MAX_CLASSES
        or not _fits(wide, head_weight, head_bias, targets.weight)
    ):
        return reference.two_view_loss(
            views, head_weight, head_bias, targets, tau=tau, eta=eta,
            contrast_weight=contrast_weight, entropy_weight=entropy_weight,
            contrast=contrast,
        )  # fmt: skip
    numbers = (tau, eta, contrast_weight, entropy_weight / max(1, wide.size(0)))
    out: Tensor = _Loss.apply(wide, head_weight, head_bias, targets, numbers)  # type: ignore[no-untyped-call]
    return out


class _Loss(Function):
    """[H̄ H̃], W, b ↦ L, with the gradients computed beside the value."""

    @staticmethod
    def forward(
        ctx: Any,
        wide: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: LossTargets,
        numbers: tuple[float, ...],
    ) -> Tensor:
        grad, c = torch.empty_like(wide), bias.numel()
        sums = torch.zeros(c + 1, c, dtype=torch.float64)
        loss = loops.two_views(
            wide, grad, weight, bias, targets.target, targets.weight, targets.kind,
            sums, *numbers,
        )  # fmt: skip
        ctx.save_for_backward(grad, sums.float())
        return wide.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        of_views, sums = ctx.saved_tensors
        if float(grad) != 1.0:  # it is, where the loss is all that is minimised
            of_views, sums = of_views * grad, sums * grad
        return of_views, sums[:-1], sums[-1], None, None


def _fits(*tensors: Tensor) -> bool:
    """Whether the loops are there, and for tensors like these."""
    for x in tensors:
        if loops is None or x.dtype != torch.float32 or not x.is_cpu:
            return False
    return True


def _fits_product(x: Features, w: Tensor) -> bool:
    """Whether the loops can multiply X, and nobody wants a gradient of it."""
    if isinstance(x, CSR):
        return x.fits_loops and w.dtype == torch.float32 and not x.value.requires_grad
    return not x.requires_grad and x.is_contiguous() and _fits(x, w)


def _new(shape: tuple[int, int], like: Tensor) -> Tensor:
    """Memory of a training step; a large array is kept for the next one."""
    workspace = current.get()
    if workspace is None or math.prod(shape) * like.element_size() <= LARGE_BYTES:
        return like.new_empty(shape)
    return workspace.buffer(shape, like)


def _times(x: Features, w: Tensor, draw: Draw, out: Tensor) -> Tensor:
    """``out`` = drop(X) W without gradients, n×h."""
    if isinstance(x, CSR):
        return _product(x, w.contiguous(), out, draw)
    for rows, block in _masked_blocks(x, draw):
        dense_product(block, w.detach(), out[rows])
    return out


def _product(a: CSR, z: Tensor, out: Tensor, draw: Draw = NOTHING_DROPPED) -> Tensor:
    """``out`` = drop(A) Z, without gradients."""
    loops.product(a.crow, a.col, a.value, z, None, out, a.n_cols, False, draw)
    return out


def _transposed_times(x: Features, g: Tensor, draw: Draw) -> Tensor:
    """drop(X)ᵀ G without gradients, d×h."""
    if isinstance(x, CSR):
        out = g.new_zeros(x.n_cols, g.size(1))
        g = g.contiguous()
        loops.product(x.crow, x.col, x.value, g, None, out, x.n_cols, True, draw)
        return out
    out = g.new_zeros(g.size(1), x.size(1))
    for rows, block in _masked_blocks(x, draw):
        add_transposed_product(out, block, g[rows])
    return out.T.contiguous()


def _masked_blocks(x: Tensor, draw: Draw) -> Iterator[tuple[slice, Tensor]]:
    """drop(X) by blocks of rows, each in the same memory: it stays in the cache."""
    n, d = x.shape
    if draw is NOTHING_DROPPED:
        yield slice(0, n), x
        return
    size = _BLOCK_ENTRIES * torch.get_num_threads() // max(1, d)
    buffer = x.new_empty(max(1, min(n, size)), d)
    for start in range(0, n, len(buffer)):
        part = x[start : start + len(buffer)]
        block = buffer[: len(part)]
        loops.mask(part, block, start, draw)
        yield slice(start, start + len(part)), block
