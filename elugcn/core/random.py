"""Dropout masks at the price of random bytes.

Drawing one double per entry, as ``bernoulli_`` does on CPU, was a quarter of a
training step. A byte is enough: the probability is rounded to a multiple of 1/256 and
the scale follows the rounded value, so the expectation is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor


def keep_mask(shape: tuple[int, ...], p: float, like: Tensor) -> Tensor:
    """1/q with probability q ≈ 1 − p, else 0; from torch's default generator.

    Args:
        shape: Of the mask.
        p: Probability of dropping, in [0, 1).
        like: Gives dtype and device.
    """
    if like.device.type != "cpu":
        keep = torch.empty(shape, dtype=like.dtype, device=like.device)
        return keep.bernoulli_(1.0 - p).div_(1.0 - p)
    level = max(1, round((1.0 - p) * 256))
    if level == 256:
        return torch.ones(shape, dtype=like.dtype)
    count = 1
    for size in shape:
        count *= size
    # Whole 64-bit words are drawn, eight entries at a time.
    words = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    bytes_ = words.view(torch.uint8)[:count]
    keep = bytes_.lt(level).to(like.dtype)
    return keep.mul_(256 / level).view(shape)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Inverted dropout."""
    if not training or p == 0.0:
        return x
    return x * keep_mask(tuple(x.shape), p, x)
