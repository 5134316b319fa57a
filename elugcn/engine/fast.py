"""The operations of ``reference.py`` by the loops in C, with gradients by hand.

Each falls back to the reference where the loops do not apply: other devices and
dtypes, matrices with learned entries, gradients to X.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from elugcn.engine import compiled, reference
from elugcn.engine.compiled import NOTHING_DROPPED, Draw
from elugcn.engine.inputs import GraphInputs, LowRank, Matrix, Views
from elugcn.engine.private_torch import add_transposed_product, dense_product
from elugcn.engine.reference import LossTargets
from elugcn.engine.sparse import CSR, Features
from elugcn.engine.workspace import Workspace, current_workspace, keep_level, next_key

# Entries of X that are masked at once: a block that stays in the cache.
_BLOCK_ENTRIES = 2**18
# Rank up to which a lazy view is multiplied out row by row, when it is needed.
_MAX_RANK = 64


@overload
def dropout(x: Tensor, p: float) -> Tensor: ...
@overload
def dropout(x: CSR, p: float) -> CSR: ...
@overload
def dropout(x: Features, p: float) -> Features: ...
def dropout(x: Features, p: float) -> Features:
    """As ``reference.dropout``; the gradient draws its bits again."""
    if p == 0.0 or isinstance(x, CSR) or x.dim() != 2 or not compiled.fits(x):
        return reference.dropout(x, p)
    out: Tensor = _Dropout.apply(x, _draw(p))  # type: ignore[no-untyped-call]
    return out


class _Dropout(Function):
    """x ↦ drop(x); the gradient is dropped where x is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, draw: Draw) -> Tensor:
        ctx.draw = draw
        return compiled.mask(x.contiguous(), x.new_empty(x.shape), draw)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        out = grad.new_empty(grad.shape)
        return compiled.mask(grad.contiguous(), out, ctx.draw), None


def dropout_linear(x: Features, w: Tensor, p: float) -> Tensor:
    """As ``reference.dropout_linear``; drop(X) is never whole."""
    if not _features_fit(x, w):
        return dropout(x, p) @ w
    workspace, known = current_workspace(), None
    if p == 0.0 and workspace is not None:
        known = workspace.known_product(x, w)
    if torch.is_grad_enabled() and w.requires_grad:
        if known is not None and workspace is not None:
            workspace.forget_product()  # the caller's to overwrite
        out: Tensor = _DropoutLinear.apply(  # type: ignore[no-untyped-call]
            w, x, _draw(p), known, workspace
        )
        return out
    if known is not None:
        return known
    out = _times(x, w, _draw(p), None)
    if p == 0.0 and workspace is not None:
        workspace.remember_product(x, w, out)
    return out


class _DropoutLinear(Function):
    """W ↦ drop(X) W; the gradient is drop(X)ᵀ g."""

    @staticmethod
    def forward(
        ctx: Any,
        w: Tensor,
        x: Features,
        draw: Draw,
        known: Tensor | None,
        workspace: Workspace | None,
    ) -> Tensor:
        ctx.x, ctx.draw = x, draw
        if known is not None:
            return known.view_as(known)
        return _times(x, w, draw, workspace)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _transposed_times(ctx.x, grad, ctx.draw), None, None, None, None


@overload
def spmm(a: Matrix | None, z: Tensor, bias: Tensor | None = None) -> Tensor: ...
@overload
def spmm(a: Matrix | None, z: Views, bias: Tensor | None = None) -> Views: ...
def spmm(
    a: Matrix | None, z: Tensor | Views, bias: Tensor | None = None
) -> Tensor | Views:
    """As ``reference.spmm``; one product for all views."""
    if not isinstance(a, CSR) or a.value.requires_grad:
        return reference.spmm(a, z, bias)
    wide = z.wide() if isinstance(z, Views) else z
    if not compiled.can_multiply(a, wide):
        return reference.spmm(a, z, bias)
    if isinstance(z, Views) and bias is not None and len(z) > 1:
        bias = bias.repeat(len(z))
    workspace = current_workspace() if torch.is_grad_enabled() else None
    out: Tensor = _Spmm.apply(wide, bias, a, workspace)  # type: ignore[no-untyped-call]
    return Views.side_by_side(out, len(z)) if isinstance(z, Views) else out


class _Spmm(Function):
    """Z, b ↦ A Z + b; the gradients are Aᵀ g and the sum of g."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, bias: Tensor | None, a: CSR, workspace: Workspace | None
    ) -> Tensor:
        ctx.a, ctx.workspace = a, workspace
        out = _new(workspace, (a.shape[0], z.size(1)), z)
        return compiled.product(a, z, out, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        a: CSR = ctx.a
        grad_z = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_z = _new(ctx.workspace, (a.n_cols, grad.size(1)), grad)
            compiled.product(a.T, grad, grad_z)
        if ctx.needs_input_grad[1]:
            grad_bias = grad.sum(dim=0)
        return grad_z, grad_bias, None, None


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
    x, adj, graph = g.x, g.layer(0), g.elu_graph
    training = torch.is_grad_enabled() and w.requires_grad
    if (
        (draws > 1 or residual or drop_rows > 0.0 or g.directions == 2)
        or not (graph is None or isinstance(graph, LowRank))
        or not (adj is None or isinstance(adj, CSR))
        or (adj is not None and not compiled.can_multiply(adj, w))
        or not _features_fit(x, w)
        or (training and (adj is None or g.elu_x is not None))
    ):
        return reference.compose_views(
            dropout_linear, g, w, p, residual=residual, drop_rows=drop_rows, draws=draws
        )
    assert adj is None or isinstance(adj, CSR)
    draw, workspace = _draw(p), current_workspace()
    known = None
    if p == 0.0 and workspace is not None:
        known = workspace.known_product(x, w)
    if training:
        if known is not None and workspace is not None:
            workspace.forget_product()  # its memory is needed for a gradient
        first, right = _Propagate.apply(  # type: ignore[no-untyped-call]
            w, x, adj, graph, draw, known, workspace
        )
    else:
        z = _times(x, w, draw, None) if known is None else known
        if known is None and p == 0.0 and workspace is not None and adj is not None:
            workspace.remember_product(x, w, z)
        first = z
        if adj is not None:
            first = compiled.product(adj, z, z.new_empty(adj.shape[0], w.size(1)))
        if graph is not None:
            right = g.elu_x @ w if g.elu_x is not None else graph.right.T @ z
    if graph is None:
        return Views([first], first)
    return Views([first, LowRank(graph.left, right.T)])


class _Propagate(Function):
    """W ↦ Â Z and Rᵀ Z (c×h) for Z = drop(X) W; the gradient of Z is Âᵀ g + R g'."""

    @staticmethod
    def forward(
        ctx: Any,
        w: Tensor,
        x: Features,
        adj: CSR,
        graph: LowRank | None,
        draw: Draw,
        known: Tensor | None,
        workspace: Workspace | None,
    ) -> tuple[Tensor, Tensor | None]:
        z = _times(x, w, draw, workspace) if known is None else known
        first = _new(workspace, (adj.shape[0], w.size(1)), z)
        compiled.product(adj, z, first)
        ctx.x, ctx.adj, ctx.graph, ctx.draw, ctx.z = x, adj, graph, draw, z
        return first, None if graph is None else graph.right.T @ z

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor, grad_right: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        grad_z = compiled.product(ctx.adj.T, grad, ctx.z)  # Z is no longer needed
        if grad_right is not None:
            grad_z.addmm_(ctx.graph.right, grad_right)
        return _transposed_times(ctx.x, grad_z, ctx.draw), *[None] * 6


def relu_dropout_linear_(views: Views, bias: Tensor, w: Tensor, p: float) -> Views:
    """As ``reference.relu_dropout_linear_``; lazy views are never whole.

    The hidden layer is not stored: the gradient computes it again from Z, which the
    gradient of Z then overwrites.
    """
    wide, w = views.stored_wide, w.contiguous()
    lefts: list[Tensor | None] = [None] * len(views)
    tensors = [] if wide is None else [wide]
    for i, part in enumerate(views.parts if wide is None else []):
        if isinstance(part, LowRank) and part.left.size(1) <= _MAX_RANK:
            lefts[i] = part.left
            tensors.append(part.right.T)
        else:
            z = part.to_dense() if isinstance(part, LowRank) else part
            tensors.append(z if z.stride(1) == 1 and z.grad_fn else z.contiguous())
    if not compiled.fits(bias, w, *tensors):
        return reference.relu_dropout_linear_(views, bias, w, p)
    workspace = current_workspace() if torch.is_grad_enabled() else None
    draws = [_draw(p) for _ in lefts]
    out: Tensor = _Hidden.apply(  # type: ignore[no-untyped-call]
        bias, w, lefts, draws, [z.grad_fn is not None for z in tensors], workspace,
        *tensors,
    )  # fmt: skip
    return Views.side_by_side(out, len(views))


class _Hidden(Function):
    """b, W, Z₁ … Z_v ↦ [H₁ W … H_v W] with H = drop(ReLU(Z + b)).

    A lazy Z = L R comes as R (r×h); views that are stored side by side as one matrix.
    """

    @staticmethod
    def forward(
        ctx: Any,
        bias: Tensor,
        w: Tensor,
        lefts: list[Tensor | None],
        draws: list[Draw],
        owned: list[bool],
        workspace: Workspace | None,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.lefts, ctx.draws, ctx.owned = lefts, draws, owned
        ctx.save_for_backward(bias, w, *tensors)
        views = tensors if len(tensors) > 1 else tensors[0].chunk(len(lefts), dim=1)
        rows = views[0] if lefts[0] is None else lefts[0]
        out = _new(workspace, (rows.size(0), len(lefts) * w.size(1)), w)
        outs = out.chunk(len(lefts), dim=1)
        for z, left, part, draw in zip(views, lefts, outs, draws, strict=True):
            compiled.hidden(z, left, bias, w, part, draw)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        bias, w, *tensors = ctx.saved_tensors
        h, k = w.shape
        # Where Z is nobody else's, its gradient overwrites it.
        grads = [
            z if own else torch.empty_like(z)
            for z, own in zip(tensors, ctx.owned, strict=True)
        ]
        count, whole = len(ctx.lefts), len(tensors) == 1
        views = tensors[0].chunk(count, dim=1) if whole else tensors
        grad_views = grads[0].chunk(count, dim=1) if whole else grads
        total = w.new_zeros(k + 1, h)
        outs = grad.contiguous().chunk(count, dim=1)
        for i, (z, left, g) in enumerate(zip(views, ctx.lefts, outs, strict=True)):
            if left is None:
                compiled.hidden_back(
                    g, z, None, grad_views[i], bias, w, total, ctx.draws[i]
                )
            else:
                sums = w.new_zeros(k + 1 + z.size(0), h)
                compiled.hidden_back(g, z, left, None, bias, w, sums, ctx.draws[i])
                total += sums[: k + 1]
                grads[i] = sums[k + 1 :]
        return total[k], total[:k].T, *[None] * 4, *grads


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
    wide, c = views.wide().contiguous(), head_weight.size(0)
    if (
        contrast != "similarity"
        or c > compiled.MAX_CLASSES
        or not 0 <= targets.num_classes <= c
        or not compiled.fits(wide, head_weight, head_bias, targets.weight)
    ):
        return reference.two_view_loss(
            views, head_weight, head_bias, targets, tau=tau, eta=eta,
            contrast_weight=contrast_weight, entropy_weight=entropy_weight,
            contrast=contrast,
        )  # fmt: skip
    numbers = (tau, eta, contrast_weight, entropy_weight / max(1, wide.size(0)))
    out: Tensor = _Loss.apply(  # type: ignore[no-untyped-call]
        wide, head_weight, head_bias, targets, numbers, current_workspace()
    )
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
        workspace: Workspace | None,
    ) -> Tensor:
        grad = _new(workspace, tuple(wide.shape), wide)
        loss, *small = compiled.two_views(
            wide, grad, weight, bias, targets.target, targets.weight, targets.kind,
            *numbers,
        )  # fmt: skip
        ctx.save_for_backward(grad, *small)
        return wide.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        whole, weight, bias = ctx.saved_tensors
        if float(grad) != 1.0:  # it is, where the loss is all that is minimised
            whole, weight, bias = whole * grad, weight * grad, bias * grad
        return whole, weight, bias, None, None, None


def _draw(p: float) -> Draw:
    if p == 0.0:
        return NOTHING_DROPPED
    level = keep_level(p)
    return next_key(), level, 256 / level


def _new(workspace: Workspace | None, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Memory of this step; without a workspace just memory."""
    return like.new_empty(shape) if workspace is None else workspace.buffer(shape, like)


def _features_fit(x: Features, w: Tensor) -> bool:
    """Whether the loops can multiply X, and nobody wants a gradient of it."""
    if isinstance(x, CSR):
        return not x.value.requires_grad and compiled.can_multiply(x, w)
    return not x.requires_grad and x.is_contiguous() and compiled.fits(x, w)


def _times(x: Features, w: Tensor, draw: Draw, workspace: Workspace | None) -> Tensor:
    """drop(X) W without gradients, n×h."""
    out = _new(workspace, (x.shape[0], w.size(1)), w)
    if isinstance(x, CSR):
        return compiled.product(x, w.detach(), out, None, draw)
    for rows, block in _masked_blocks(x, draw):
        dense_product(block, w.detach(), out[rows])
    return out


def _transposed_times(x: Features, g: Tensor, draw: Draw) -> Tensor:
    """drop(X)ᵀ G without gradients, d×h."""
    if isinstance(x, CSR):
        out = g.new_zeros(x.n_cols, g.size(1))
        return compiled.product(x, g, out, None, draw, transposed=True)
    out = g.new_zeros(g.size(1), x.size(1))
    for rows, block in _masked_blocks(x, draw):
        add_transposed_product(out, block, g[rows])
    return out.T.contiguous()


def _masked_blocks(x: Tensor, draw: Draw) -> Iterator[tuple[slice, Tensor]]:
    """drop(X) by blocks of rows, each in the same memory: it stays in the cache."""
    n, d = x.shape
    if draw[1] == 256:
        yield slice(0, n), x
        return
    size = _BLOCK_ENTRIES * torch.get_num_threads() // max(1, d)
    buffer = x.new_empty(max(1, min(n, size)), d)
    for start in range(0, n, len(buffer)):
        part = x[start : start + len(buffer)]
        block = compiled.mask(part, buffer[: len(part)], draw, start)
        yield slice(start, start + len(part)), block
