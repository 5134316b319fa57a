"""Bias, ReLU and dropout of a hidden layer in one pass over one buffer.

Each on its own reads and writes the whole hidden layer, forward and backward; together
they were a quarter of a training step. The scale that dropout needs is left to the
weight that follows, which is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elugcn.core.random import draw_mask


def activate(
    views: Sequence[Tensor], bias: Tensor, p: float, training: bool
) -> tuple[Tensor, float]:
    """Mask ∘ ReLU(Z + b) of every view, stacked as rows, and the scale still to apply.

    Args:
        views: Matrices n×h, before the bias.
        bias: b, (h,).
        p: Probability of dropping an entry.
        training: Nothing is dropped otherwise.

    Returns:
        (v·n)×h, and s such that s times it is the inverted dropout of the ReLU.
    """
    mask, scale = None, 1.0
    if training and p > 0.0:
        shape = sum(z.size(0) for z in views), bias.numel()
        mask, scale = draw_mask(shape, p, bias.detach())
    out: Tensor = _Activation.apply(bias, mask, *views)  # type: ignore[no-untyped-call]
    return out, scale


class _Activation(torch.autograd.Function):
    """b, Z₁ … Z_v ↦ mask ∘ ReLU(Z + b).

    The output is positive exactly where the ReLU is open and the entry is kept, so it
    is all that the backward pass needs.
    """

    @staticmethod
    def forward(ctx: Any, bias: Tensor, mask: Tensor | None, *views: Tensor) -> Tensor:
        ctx.sizes = [z.size(0) for z in views]
        out = bias.new_empty(sum(ctx.sizes), bias.numel())
        start = 0
        for z in views:
            torch.add(z, bias, out=out[start : start + z.size(0)])
            start += z.size(0)
        out.clamp_min_(0.0)
        if mask is not None:
            out.mul_(mask)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (out,) = ctx.saved_tensors
        open_ = torch.ops.aten.threshold_backward(grad, out, 0.0)
        return open_.sum(dim=0), None, *open_.split(ctx.sizes)
