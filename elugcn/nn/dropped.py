"""dropout(X) W for a dense X: the largest array of a training step, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from elugcn import compiled
from elugcn.core.dense import add_transposed_product, dense_product
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

    A masked copy of X would be written to memory and read back twice. The random bytes
    are kept instead, and the backward pass masks each block again.
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
        ctx.x, ctx.drawn, ctx.level, ctx.zeros = x, drawn, level, zeros
        scaled = weight * (256 / level)
        out = places.new("product", (x.size(0), weight.size(1)), x)
        for rows, block in _blocks(x):
            masked = _masked(x, drawn, level, zeros, rows, block)
            dense_product(masked, scaled, out[rows])
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, out = ctx.x, grad.new_zeros(grad.size(1), ctx.x.size(1))
        for rows, block in _blocks(x):
            masked = _masked(x, ctx.drawn, ctx.level, ctx.zeros, rows, block)
            add_transposed_product(out, masked, grad[rows])
        return out.mul_(256 / ctx.level).T.contiguous(), *[None] * 5


def _blocks(x: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """X by blocks of rows, and room for each, the same every time."""
    n, d = x.shape
    size = max(1, min(n, _BLOCK_ENTRIES // max(1, d)))
    buffer = x.new_empty(size, d)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield rows, buffer[: rows.stop - start]


def _masked(
    x: Tensor,
    drawn: Tensor,
    level: int,
    zeros: Tensor | None,
    rows: slice,
    out: Tensor,
) -> Tensor:
    """X ∘ mask of some rows; where ``zeros`` are known X itself is not read."""
    some = drawn[rows]
    if zeros is None:
        if compiled.usable(out) and x.is_contiguous():
            compiled.keep(x[rows], some, level, out)
            return out
        return kept(some, level, out).mul_(x[rows])
    if compiled.usable(out):
        compiled.ones(some, zeros[rows], level, out)
        return out
    return kept(some | zeros[rows], level, out)


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
