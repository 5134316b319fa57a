"""What follows a propagation: bias, ReLU, dropout and the next weight, in one pass.

Each on its own reads and writes the whole hidden layer, forward and backward: on a
graph of a million nodes half a gigabyte every time. Here blocks of rows that stay in
the cache go through all of them, and the hidden layer is written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from elugcn.core.random import draw_mask

# Entries of the hidden layer that are worked on at once: a megabyte.
BLOCK_ENTRIES = 2**18


def activated_product(
    views: Sequence[Tensor], bias: Tensor, weight: Tensor, p: float, training: bool
) -> Tensor:
    """dropout(ReLU(Z + b)) W of every view, stacked as rows, O(v·n·h·k).

    Views that are results of an operation with gradients are overwritten, first with
    the hidden layer and then with their gradients: new arrays of that size cost more
    than the sums. (Whoever else needs them for a gradient gets an error from autograd,
    and so does a second backward pass.)

    Args:
        views: Matrices n×h, before the bias.
        bias: b, (h,).
        weight: W, h×k.
        p: Probability of dropping an entry.
        training: Nothing is dropped otherwise.

    Returns:
        (v·n)×k.
    """
    keep = torch.is_grad_enabled()
    reuse = keep and all(z.grad_fn is not None for z in views)
    out: Tensor = _Product.apply(  # type: ignore[no-untyped-call]
        bias, weight, p if training else 0.0, keep, reuse, *views
    )
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
        *views: Tensor,
    ) -> Tensor:
        ctx.scale, ctx.reuse = 1.0, reuse
        scaled = weight
        out = bias.new_empty(sum(z.size(0) for z in views), weight.size(1))
        # Detached: parts of one matrix must not be written to under autograd's eyes.
        hidden = [z.detach() if reuse else torch.empty_like(z) for z in views if keep]
        for view, part, rows in _blocks(views):
            z = views[view][part]
            # Without gradients nobody asks for H again: a block of it is enough.
            block = hidden[view][part] if keep else torch.empty_like(z)
            torch.add(z, bias, out=block)
            block.clamp_min_(0.0)
            if p > 0.0:
                ctx.scale = _drop(block, p)
                scaled = weight * ctx.scale if scaled is weight else scaled
            torch.mm(block, scaled, out=out[rows])
        if keep:
            ctx.save_for_backward(weight, *hidden)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *hidden = ctx.saved_tensors
        back = (weight * ctx.scale).T.contiguous()
        grads = [h.detach() if ctx.reuse else torch.empty_like(h) for h in hidden]
        grad_bias = weight.new_zeros(weight.size(0))
        grad_weight = torch.zeros_like(weight)
        for view, part, rows in _blocks(hidden):
            h, g = hidden[view][part], grad[rows]
            grad_weight.addmm_(h.T, g)
            out = grads[view][part]
            torch.ops.aten.threshold_backward.grad_input(
                g @ back, h, 0.0, grad_input=out
            )
            grad_bias += out.sum(dim=0)
        return grad_bias, grad_weight.mul_(ctx.scale), None, None, None, *grads


def _drop(block: Tensor, p: float) -> float:
    """Zero entries with probability p, in place; the scale that makes up for them."""
    mask, scale = draw_mask(tuple(block.shape), p, block)
    block.mul_(mask)
    return scale


def _blocks(views: Sequence[Tensor]) -> Iterator[tuple[int, slice, slice]]:
    """Views by blocks of rows: the view, the rows in it, and those in the stack."""
    start = 0
    for view, z in enumerate(views):
        n, width = z.shape
        size = max(1, BLOCK_ENTRIES // max(1, width)) if z.device.type == "cpu" else n
        for first in range(0, n, max(1, size)):
            last = min(first + size, n)
            yield view, slice(first, last), slice(start + first, start + last)
        start += n
