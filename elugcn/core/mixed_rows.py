"""The largest entries of every row of Π = (I + Â + … + Âᴷ) / (K + 1).

Random propagation needs, for some nodes at a time, their rows of Π drop(X). Most of a
row's weight is in a few entries (Feng et al., "GRAND+", WWW 2022); with these alone a
row of the product is a weighted bag of a few rows of X, whatever the size of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from elugcn.core.sparse import CSR

# Rows that walk at a time, and the share of 1/k below which an entry is let go on the
# way: a hub would drag along its thousands of neighbours.
BLOCK = 1024
NEGLIGIBLE = 0.05


def largest_mixed(
    adj: CSR, order: int, k: int, negligible: float = NEGLIGIBLE
) -> tuple[Tensor, Tensor]:
    """Columns and values of the k largest entries of every row of Π, each n×k.

    Rows with fewer entries are filled up with zeros at column 0.

    Args:
        adj: Â, n×n, without negative entries.
        order: K.
        k: Entries kept of a row.
        negligible: Entries of a power of Â below ``negligible / k`` are let go before
            the next product; 0 keeps all.

    Cost:
        O(n·K·m·deg) time for m ≤ k/negligible entries that a row holds on the way,
        O(n·k) memory.
    """
    n = adj.shape[0]
    k = min(k, n)
    a = sp.csr_array(adj.to_scipy())
    column, value = np.zeros((n, k), np.int64), np.zeros((n, k), np.float32)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        walk = sp.eye_array(stop - start, n, k=start, format="csr", dtype=np.float32)
        total = walk
        for _ in range(order):
            walk = _without_small(walk @ a, negligible / k)
            total = total + walk
        row, at, rank, entry = _ranked(sp.csr_array(total))
        kept = rank < k
        column[start + row[kept], rank[kept]] = at[kept]
        value[start + row[kept], rank[kept]] = entry[kept] / (order + 1)
    device = adj.value.device
    return torch.from_numpy(column).to(device), torch.from_numpy(value).to(device)


def _without_small(matrix: Any, least: float) -> Any:
    if least > 0:
        matrix.data[matrix.data < least] = 0.0
        matrix.eliminate_zeros()
    return matrix


def _ranked(matrix: Any) -> tuple[Any, Any, Any, Any]:
    """Row, column, rank within the row and value of every entry."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    # Of equals the lower column first: the result does not depend on the blocks.
    order = np.lexsort((matrix.indices, -matrix.data, row))
    rank = np.arange(matrix.nnz) - matrix.indptr[row]
    return row, matrix.indices[order], rank, matrix.data[order]
