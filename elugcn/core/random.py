"""Dropout masks at the price of random bytes.

Drawing one double per entry, as ``bernoulli_`` does on CPU, was a quarter of a
training step. A byte is enough: the probability is rounded to a multiple of 1/256 and
the scale follows the rounded value, so the expectation is exact.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elugcn import compiled
from elugcn.core.places import NOWHERE, Places


def draw_mask(shape: tuple[int, ...], p: float, like: Tensor) -> tuple[Tensor, float]:
    """1 with probability q ≈ 1 − p, else 0; and 1/q, which makes up for the zeros.

    Where the masked entries meet a linear map next, scaling the map is cheaper than
    scaling them.

    Args:
        shape: Of the mask.
        p: Probability of dropping, in [0, 1).
        like: Gives dtype and device; torch's default generator of the device is used.
    """
    keep = torch.empty(shape, dtype=like.dtype, device=like.device)
    if like.device.type != "cpu":
        return keep.bernoulli_(1.0 - p), 1.0 / (1.0 - p)
    drawn, level = draw_bytes(shape, p)
    return kept(drawn, level, keep), 256 / level


def drop_scale(p: float, like: Tensor) -> float:
    """The 1/q that ``draw_mask`` gives with a mask."""
    return 256 / _level(p) if like.device.type == "cpu" else 1.0 / (1.0 - p)


def draw_bytes(
    shape: tuple[int, ...], p: float, places: Places = NOWHERE
) -> tuple[Tensor, int]:
    """Random bytes on the CPU, and the level q·256 below which an entry is kept."""
    level = _level(p)
    if level == 256:
        return torch.zeros(shape, dtype=torch.uint8), level
    count = math.prod(shape)
    # Whole 64-bit words are drawn, eight entries at a time.
    size = (count + 7) // 8
    words = places.get("mask", (size,), torch.int64)
    if words is None:
        words = torch.empty(size, dtype=torch.int64)
    compiled.draw_words(words)
    return words.view(torch.uint8)[:count].view(shape), level


def _level(p: float) -> int:
    """The kept share q of 256, at least one."""
    return max(1, round((1.0 - p) * 256))


def kept(drawn: Tensor, level: int, out: Tensor) -> Tensor:
    """1 where a byte is below the level, else 0, into ``out``."""
    # Written as floats at once: a mask of booleans would have to be cast. The level
    # may be 256, which is no byte; the number before it is.
    return torch.le(drawn, level - 1, out=out)


def keep_mask(shape: tuple[int, ...], p: float, like: Tensor) -> Tensor:
    """1/q with probability q ≈ 1 − p, else 0; arguments as ``draw_mask``."""
    keep, scale = draw_mask(shape, p, like)
    return keep.mul_(scale)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Inverted dropout."""
    if not training or p == 0.0:
        return x
    return x * keep_mask(tuple(x.shape), p, x)
