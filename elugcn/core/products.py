"""Products of a CSR matrix, or of its transpose, with a dense one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from elugcn import compiled
from elugcn.core.places import is_large

if TYPE_CHECKING:
    from elugcn.core.sparse import CSR

# Entries of a product that are computed at once on the way to a given place.
_BLOCK_ENTRIES = 2**18
# Columns from which on a dense product is as fast as its transpose.
_NARROW = 16
# Columns up to which rows are asked for early.
_FAR = 64


def multiply(
    crow: Tensor,
    col: Tensor,
    value: Tensor,
    n_cols: int,
    z: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """A z for the parts of a CSR matrix, without gradients, O(nnz·k).

    Args:
        crow: Row pointers, (n+1,).
        col: Columns of the entries.
        value: The entries.
        n_cols: Columns of A.
        z: m×k.
        out: n×k, where the product is to go; not z.
    """
    if _reads_far(crow, value, z):
        out = z.new_empty(crow.numel() - 1, z.size(1)) if out is None else out
        compiled.sparse_product(crow, col, value.detach(), z.detach().contiguous(), out)
        return out
    if out is not None:
        return _in_blocks(crow, col, value, n_cols, z, out)
    if z.dtype == torch.float32 and z.device.type == "cpu" and col.numel():
        # A CSR product is a weighted bag of rows of z. PyTorch's kernel for bags is
        # about twice as fast as its CSR product for 16 to 128 columns on CPU.
        return torch.embedding_bag(
            z.detach().contiguous(), col, crow, mode=0, per_sample_weights=value,
            include_last_offset=True,
        )[0]  # fmt: skip
    matrix = torch.sparse_csr_tensor(
        crow, col, value.to(z.dtype), size=(crow.numel() - 1, n_cols),
        check_invariants=False,
    )  # fmt: skip
    return matrix @ z


def _reads_far(crow: Tensor, value: Tensor, z: Tensor) -> bool:
    """Whether rows of z come from memory, and the compiled loop can ask for them early.

    Where a cache holds them PyTorch's kernel is as fast, and where they are long.
    """
    return (
        is_large(z.shape, z.dtype)
        and compiled.available()
        and z.device.type == "cpu"
        and z.dtype == value.dtype == torch.float32
        and crow.dtype == torch.int32
        and compiled.LEAST_COLUMNS <= z.size(1) <= _FAR
    )


def _in_blocks(
    crow: Tensor, col: Tensor, value: Tensor, n_cols: int, z: Tensor, out: Tensor
) -> Tensor:
    """``multiply`` by blocks of rows: its kernel has no output of ours to write to."""
    n = crow.numel() - 1
    size = max(1, _BLOCK_ENTRIES // max(1, z.size(1)))
    z = z.contiguous()
    for start in range(0, n, size):
        pointers = crow[start : start + size + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        out[start : start + size] = multiply(
            pointers - first, col[first:last], value[first:last], n_cols, z
        )
    return out


def narrow_product(h: Tensor, weight: Tensor, out: Tensor | None = None) -> Tensor:
    """H W for a W of few columns, without gradients, O(n·h·k).

    The library's product is slow where the result has fewer than sixteen columns, as
    classes often are: Wᵀ Hᵀ, turned back, is faster.

    Args:
        h: n×h.
        weight: h×k.
        out: n×k, where the product is to go.
    """
    if weight.size(1) >= _NARROW or h.device.type != "cpu":
        return torch.mm(h, weight, out=out)
    turned = torch.mm(weight.T.contiguous(), h.T).T
    return turned.contiguous() if out is None else out.copy_(turned)


def transposed_product(
    a: CSR, value: Tensor, z: Tensor, out: Tensor | None = None
) -> Tensor:
    """Aᵀ z for the pattern of A with these values, without gradients, O(nnz·k)."""
    if a.symmetric:
        return multiply(a.crow, a.col, value, a.n_cols, z, out)
    p = a.pattern
    n, m = a.shape
    # index_select is three times as fast as value[perm].
    if not p.worth_blocking(z):
        return multiply(p.crow_t, p.col_t, value.index_select(0, p.perm), n, z, out)
    b = p.blocked
    parts = multiply(b.crow, b.col, value.index_select(0, b.perm), n, z)
    return torch.sum(parts.view(b.blocks, m, -1), dim=0, out=out)
