"""Where the entries of a CSR matrix stand in its transpose, found once.

A product with Aᵀ gathers rows of the other factor in the order of A's rows, and for a
tall A those rows do not fit a cache. In blocks of rows they do: the entries are put in
order of (block, column), every block gives a product of its own, and the products are
added up. The sums are the same, in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# Rows of a block: 1024 rows of 64 floats are a quarter of a megabyte.
ROWS = 1024
# The gathered matrix has to outgrow a cache for blocks to win, and a block needs some
# entries a column, or the partial products cost more than they save (both measured).
_CACHE_BYTES = 2**21
_ENTRIES = 8


@dataclass(frozen=True, eq=False)
class Pattern:
    """Transposed indices, and where each entry of the one stands in the other.

    Attributes:
        crow_t: Row pointers of Aᵀ, (m+1,).
        col_t: Row in A of each entry of Aᵀ, ascending within a column of A.
        perm: Place in A of each entry of Aᵀ.
        inverse: Place in Aᵀ of each entry of A.
    """

    crow_t: Tensor
    col_t: Tensor
    perm: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, row: Tensor, col: Tensor, n_cols: int, index: torch.dtype) -> Pattern:
        """From the row and column of every entry, O(nnz log nnz)."""
        # Rows ascend within a column because the sort is stable.
        perm = torch.argsort(col, stable=True)
        inverse = torch.empty_like(perm)
        inverse[perm] = torch.arange(perm.numel(), device=perm.device)
        crow_t = _pointers(col.long(), n_cols, index)
        return cls(crow_t, row[perm].to(col.dtype), perm, inverse)

    @cached_property
    def blocked(self) -> Blocked:
        """The entries of Aᵀ in order of (block of A's rows, column of A)."""
        m = self.crow_t.numel() - 1
        sizes = (self.crow_t[1:] - self.crow_t[:-1]).long()
        columns = torch.arange(m, device=sizes.device)
        block = self.col_t.long() // ROWS
        blocks = int(block.max()) + 1
        key = block * m + torch.repeat_interleave(columns, sizes)
        order = torch.argsort(key, stable=True)
        crow = _pointers(key, blocks * m, self.crow_t.dtype)
        return Blocked(crow, self.col_t[order], self.perm[order], blocks)

    def worth_blocking(self, z: Tensor) -> bool:
        """Whether blocks pay for a product of Aᵀ with this matrix."""
        m, blocks = self.crow_t.numel() - 1, -(-z.size(0) // ROWS)
        large = z.numel() * z.element_size() > _CACHE_BYTES
        return large and self.perm.numel() >= _ENTRIES * blocks * m


@dataclass(frozen=True, eq=False)
class Blocked:
    """Entries in order of (block, column): pointers, rows, places in A."""

    crow: Tensor
    col: Tensor
    perm: Tensor
    blocks: int


def _pointers(key: Tensor, size: int, index: torch.dtype) -> Tensor:
    out = torch.zeros(size + 1, dtype=index, device=key.device)
    out[1:] = torch.bincount(key, minlength=size).cumsum(0)
    return out
