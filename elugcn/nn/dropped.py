"""dropout(X) W for a dense X: the largest array of a training step, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from elugcn.core.places import NOWHERE, Places
from elugcn.core.random import draw_bytes, kept

# Entries of X that are masked at once: a block that stays in the cache.
_BLOCK_ENTRIES = 2**18
_NEVER = 255  # a byte that no level below 256 keeps


def dropped_product(
    x: Tensor, weight: Tensor, p: float, places: Places = NOWHERE
) -> Tensor:
    """(X ∘ mask) W / q with gradients to W, on the CPU: O(n·d·h), n·d bytes kept.

    Args:
        x: X, n×d, without gradients.
        weight: W, d×h.
        p: Probability of dropping an entry; q is what is kept of it.
        places: For the product and the mask, until the next call.
    """
    drawn, level = draw_bytes(tuple(x.shape), p, places)
    # Where X has zeros and ones alone, a zero is an entry that is never kept, and
    # X ∘ mask is the mask: X itself, four times the size, is not read.
    zeros = _zeros_of(x) if level <= _NEVER else None
    out: Tensor = _Dropped.apply(  # type: ignore[no-untyped-call]
        weight, x, drawn, level, zeros, places
    )
    return out


class _Dropped(torch.autograd.Function):
    """W ↦ (X ∘ mask) W / q, in blocks of rows, X ∘ mask never whole.

    A masked copy of X would be written to memory and read back twice. One byte an
    entry, which the forward pass turns from a random one into 0 or 1, is kept instead,
    and the backward pass masks each block again.
    """

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        x: Tensor,
        drawn: Tensor,
        level: int,
        zeros: Tensor | None,
        places: Places,
    ) -> Tensor:
        ctx.x, ctx.mask, ctx.level, ctx.multiply = x, drawn, level, zeros is None
        scaled = weight * (256 / level)
        out = places.new("product", (x.size(0), weight.size(1)), x)
        for rows, block in _blocks(x):
            mask = drawn[rows]
            if zeros is not None:
                mask |= zeros[rows]
            kept(mask, level, mask)
            torch.mm(_masked(x[rows], mask, ctx.multiply, block), scaled, out=out[rows])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        out = grad.new_zeros(ctx.x.size(1), grad.size(1))
        for rows, block in _blocks(ctx.x):
            masked = _masked(ctx.x[rows], ctx.mask[rows], ctx.multiply, block)
            out.addmm_(masked.T, grad[rows])
        return out.mul_(256 / ctx.level), *[None] * 5


def _blocks(x: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """X by blocks of rows, and room for each, the same every time."""
    n, d = x.shape
    size = max(1, min(n, _BLOCK_ENTRIES // max(1, d)))
    buffer = x.new_empty(size, d)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield rows, buffer[: rows.stop - start]


def _masked(x: Tensor, mask: Tensor, multiply: bool, out: Tensor) -> Tensor:
    """X ∘ mask; without ``multiply`` the mask says it all."""
    out.copy_(mask)
    return out.mul_(x) if multiply else out


def _zeros_of(x: Tensor) -> Tensor | None:
    """``_NEVER`` where a matrix of zeros and ones is zero, else 0; None for others."""
    version, zeros = _KEPT.get(x, (None, None))
    if version != x._version:
        zeros = (x == 0).to(torch.uint8).mul_(_NEVER) if _is_binary(x) else None
        _KEPT[x] = x._version, zeros
    return zeros


def _is_binary(x: Tensor) -> bool:
    """Whether all entries are 0 or 1; a block that has another ends the search."""
    size = max(1, _BLOCK_ENTRIES // max(1, x.size(1)))
    return all(bool(((b == 0) | (b == 1)).all()) for b in torch.split(x, size))


# By matrix: its version (changes of its entries raise it) and what it came to.
_KEPT: MutableMapping[Tensor, tuple[int, Tensor | None]] = WeakIdKeyDictionary()
