"""What follows a propagation: bias, ReLU, dropout and the next weight, in one pass.

Each on its own reads and writes the whole hidden layer, forward and backward: on a
graph of a million nodes half a gigabyte every time. Here blocks of rows that stay in
the cache go through all of them, and the hidden layer is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elugcn import compiled
from elugcn.core.dense import dense_product
from elugcn.core.places import NOWHERE, Places
from elugcn.core.products import narrow_product
from elugcn.core.random import draw_bytes, draw_mask, drop_scale
from elugcn.nn.propagate import Factored

# Entries of the hidden layer that are worked on at once: a megabyte.
BLOCK_ENTRIES = 2**18


def activated_product(
    views: Sequence[Tensor | Factored],
    bias: Tensor,
    weight: Tensor,
    p: float,
    training: bool,
    beside: bool = False,
    places: Places = NOWHERE,
    name: str = "",
) -> Tensor:
    """dropout(ReLU(Z + b)) W of every view, stacked as rows, O(v·n·h·k).

    Views that are results of an operation with gradients are overwritten, first with
    the hidden layer and then with their gradients: new arrays of that size cost more
    than the sums. (Whoever else needs them for a gradient gets an error from autograd,
    and so does a second backward pass.) Views in factors are multiplied out block by
    block.

    Args:
        views: Matrices n×h, before the bias.
        bias: b, (h,).
        weight: W, h×k.
        p: Probability of dropping an entry.
        training: Nothing is dropped otherwise.
        beside: Put the views side by side instead, for one product with all of them.
        places: Where the output may go.
        name: Its name there.

    Returns:
        (v·n)×k, or n×(v·k).
    """
    keep = torch.is_grad_enabled()
    factored = [z if isinstance(z, Factored) else None for z in views]
    given = [z.right if isinstance(z, Factored) else z for z in views]
    whole = [z for z in views if isinstance(z, Tensor)]
    reuse = keep and all(z.grad_fn is not None for z in whole)
    out: Tensor = _Product.apply(  # type: ignore[no-untyped-call]
        bias, weight, p if training else 0.0, keep, reuse, beside,
        lambda shape: places.new(name, shape, bias), factored, *given,
    )  # fmt: skip
    return out


class _Product(torch.autograd.Function):
    """b, W, Z₁ … Z_v ↦ H W with H = mask ∘ ReLU(Z + b) / q.

    H is positive exactly where the ReLU is open and the entry is kept, so it is all
    that the backward pass needs. The scale 1/q is left to W, which is small.
    """

    @staticmethod
    def forward(
        ctx: Any,
        bias: Tensor,
        weight: Tensor,
        p: float,
        keep: bool,
        reuse: bool,
        beside: bool,
        new: Callable[[tuple[int, int]], Tensor],
        factored: list[Factored | None],
        *views: Tensor,
    ) -> Tensor:
        lefts = [None if f is None else f.left for f in factored]
        ctx.scale = drop_scale(p, weight) if p > 0.0 else 1.0
        ctx.reuse, ctx.beside, ctx.lefts = reuse, beside, lefts
        width, k = weight.shape
        scaled = weight * ctx.scale if p > 0.0 else weight
        heights = [
            z.size(0) if left is None else left.size(0)
            for z, left in zip(views, lefts, strict=True)
        ]
        shape = (heights[0], k * len(views)) if beside else (sum(heights), k)
        out = new(shape)
        hidden: list[Tensor] = []
        for z, f, n in zip(views, factored, heights, strict=True):
            # Detached: parts of a matrix must not be written to under autograd's eyes.
            own = z.detach() if reuse else None
            free = own if f is None else f.spare
            if keep:
                hidden.append(z.new_empty(n, width) if free is None else free)
        spare = bias.new_empty(0 if keep else _height(bias, max(heights)), width)
        widths = [0 if left is None else left.size(1) for left in lefts]
        by_hand = _by_hand(views, bias, k)
        scaled, ctx.by_hand = compiled.filled(scaled) if by_hand else scaled, by_hand
        through = _compiled_block if by_hand else _block
        for at in _blocks(heights, bias, k, beside, widths):
            z, left = views[at.view], lefts[at.view]
            # Without gradients nobody asks for H again: a block of it is enough.
            block = hidden[at.view][at.rows] if keep else spare[: at.height]
            if left is not None:  # multiplied out where H will be
                before = dense_product(left[at.rows], z, block)
            else:
                before = z[at.rows]
            through(before, bias, p, block, scaled, out[at.target])
        if keep:
            ctx.save_for_backward(weight, *hidden)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *hidden = ctx.saved_tensors
        lefts: list[Tensor | None] = ctx.lefts
        back = (weight * ctx.scale).T.contiguous()
        grads = [
            _grad_of(h, left, ctx.reuse) for h, left in zip(hidden, lefts, strict=True)
        ]
        grad_bias = weight.new_zeros(weight.size(0))
        # Its transpose: a product with few rows is faster than one with few columns.
        grad_weight = torch.zeros_like(back)
        heights = [len(h) for h in hidden]
        by_hand = ctx.by_hand
        grad = grad.contiguous() if by_hand else grad  # it may be one row, repeated
        spare = grad.new_empty(2, _height(grad_bias, max(heights)), weight.size(0))
        none = [0] * len(heights)
        for at in _blocks(heights, grad_bias, weight.size(1), ctx.beside, none):
            h, g, left = hidden[at.view][at.rows], grad[at.target], lefts[at.view]
            whole = left is None
            out = grads[at.view][at.rows] if whole else spare[1, : at.height]
            if by_hand:
                # A sum over very many rows loses digits: every block has its own.
                sums, bias = torch.zeros_like(back), torch.zeros_like(grad_bias)
                compiled.activated_backward(g, back, h, out, sums, bias)
                grad_weight += sums
                grad_bias += bias
            else:
                dropped = spare[0, : at.height]
                _block_backward(g, back, h, out, grad_weight, grad_bias, dropped)
            if left is not None:
                grads[at.view].addmm_(left[at.rows].T, out)
        grad_weight.mul_(ctx.scale)
        return grad_bias, grad_weight.T, *[None] * 6, *grads


def _grad_of(hidden: Tensor, left: Tensor | None, reuse: bool) -> Tensor:
    """Where the gradient of a view goes: the view's own place, if it may be reused."""
    if left is not None:
        return hidden.new_zeros(left.size(1), hidden.size(1))
    return hidden.detach() if reuse else torch.empty_like(hidden)


def _by_hand(views: Sequence[Tensor], bias: Tensor, k: int) -> bool:
    """Whether the compiled loops can do it."""
    return (
        k <= compiled.MAX_CLASSES
        and bias.numel() % compiled.WIDTHS == 0
        and compiled.usable(bias)
        and all(z.is_contiguous() for z in views)
    )


def _block(
    z: Tensor, bias: Tensor, p: float, h: Tensor, weight: Tensor, out: Tensor
) -> None:
    """H = ReLU(Z + b), of which entries are zeroed with probability p, and H W."""
    torch.add(z, bias, out=h).clamp_min_(0.0)
    if p > 0.0:
        h.mul_(draw_mask(tuple(h.shape), p, h)[0])
    narrow_product(h, weight, out)


def _block_backward(
    grad: Tensor,
    weight: Tensor,
    h: Tensor,
    out: Tensor,
    sums: Tensor,
    bias: Tensor,
    spare: Tensor,
) -> None:
    """``compiled.activated_backward``, which says what these are; ``spare`` is n×h."""
    sums.addmm_(grad.T, h)
    torch.mm(grad, weight, out=spare)
    torch.ops.aten.threshold_backward.grad_input(spare, h, 0.0, grad_input=out)
    bias += out.sum(dim=0)


def _compiled_block(
    z: Tensor, bias: Tensor, p: float, h: Tensor, weight: Tensor, out: Tensor
) -> None:
    """The same in one pass, for W as ``compiled.filled`` gives it."""
    drawn, level = draw_bytes(tuple(h.shape), p) if p > 0.0 else (None, 256)
    compiled.activated_product(z, bias, drawn, level, h, weight, out)


class _Block(NamedTuple):
    """Some rows of a view, and where their output goes."""

    view: int
    rows: slice
    target: tuple[slice, slice]

    @property
    def height(self) -> int:
        return int(self.rows.stop - self.rows.start)


def _blocks(
    heights: Sequence[int], like: Tensor, k: int, beside: bool, widths: Sequence[int]
) -> Iterator[_Block]:
    """Views by blocks of rows.

    Args:
        heights: Rows of each view.
        like: A row of them.
        k: Columns of the output of each.
        beside: Whether the outputs lie side by side, else below each other.
        widths: Columns of each view's left factor, a block of which is to stay in the
            cache, too.
    """
    start = 0
    for view, (n, width) in enumerate(zip(heights, widths, strict=True)):
        size = _height(like, n, width)
        columns = slice(view * k, view * k + k) if beside else slice(k)
        for first in range(0, n, size):
            rows = slice(first, min(first + size, n))
            below = slice(start + rows.start, start + rows.stop)
            yield _Block(view, rows, (below, columns))
        start += 0 if beside else n


def _height(row: Tensor, n: int, width: int = 0) -> int:
    """Rows of a block of a matrix of n rows; elsewhere than on a CPU all of them."""
    if row.device.type == "cpu":
        n = min(n, BLOCK_ENTRIES // max(1, row.numel(), width))
    return max(1, n)
