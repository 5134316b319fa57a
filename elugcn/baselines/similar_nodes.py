"""The best pairs of nodes by an inner product, without n² products in memory.

Scores are computed for a block of rows, examined and discarded: O(n²·h) time, and
memory for one block and the answer. Unwanted pairs (a node with itself, existing
edges) get a score of −∞ in the block.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from elugcn.engine import CSR

# Scores in memory at once.
BLOCK = 2**20


@torch.no_grad()
def best_partners(
    left: Tensor, right: Tensor, k: int, exclude: CSR
) -> tuple[Tensor, Tensor]:
    """For each node u the k other nodes v with the largest l_u · r_v.

    Pairs that ``exclude`` stores are left out. Indices, n×k, ascend within a row. If a
    row has fewer than k pairs left, the rest have score −∞ and indices without meaning.
    """
    n = left.size(0)
    index = torch.empty(n, min(k, n), dtype=torch.long, device=left.device)
    value = left.new_empty(index.shape)
    for rows in _row_blocks(n):
        scores = left[rows] @ right.T
        _leave_out(scores, exclude, rows)
        scores.diagonal(rows.start).fill_(-torch.inf)
        best = scores.topk(index.size(1), dim=1, sorted=False).indices
        index[rows] = best.sort(dim=1).values
        value[rows] = scores.gather(1, index[rows])
    return index, value


@torch.no_grad()
def best_pairs(z: Tensor, m: int, exclude: CSR) -> Tensor:
    """The m pairs i < j with the largest z_i · z_j, 2×m, ordered by i, then j.

    Pairs that the symmetric matrix ``exclude`` stores are left out.
    """
    n = z.size(0)
    best = z.new_empty(0)
    key = torch.empty(0, dtype=torch.long, device=z.device)
    least = -torch.inf
    for rows in _row_blocks(n) if m > 0 else ():
        # Pairs in the columns before the block were seen the other way round.
        start, size = rows.start, rows.stop - rows.start
        scores = z[rows] @ z[start:].T
        seen = torch.ones(size, size, dtype=torch.bool, device=z.device).tril()
        scores[:, :size].masked_fill_(seen, -torch.inf)
        _leave_out(scores, exclude, rows, start)
        i, j = (scores > least).nonzero(as_tuple=True)
        best = torch.cat([best, scores[i, j]])
        key = torch.cat([key, (i + start) * n + j + start])
        if best.numel() > m:
            best, kept = best.topk(m, sorted=False)
            key = key[kept]
            least = float(best.min())
    key = key.sort().values
    return torch.stack([key // n, key % n]) if n else key.new_empty(2, 0)


@torch.no_grad()
def least_similarity(z: Tensor) -> float:
    """The smallest z_i · z_j over all pairs; 0 without rows."""
    blocks = ((z[rows] @ z[rows.start :].T).min() for rows in _row_blocks(z.size(0)))
    return min((float(low) for low in blocks), default=0.0)


def _row_blocks(n: int) -> Iterator[slice]:
    size = max(1, BLOCK // max(1, n))
    return (slice(i, min(n, i + size)) for i in range(0, n, size))


def _leave_out(scores: Tensor, exclude: CSR, rows: slice, first: int = 0) -> None:
    """−∞ at the stored entries of a block of rows whose first column is ``first``."""
    entries = slice(int(exclude.crow[rows.start]), int(exclude.crow[rows.stop]))
    i = exclude.row[entries] - rows.start
    j = exclude.col[entries].long() - first
    inside = j >= 0
    scores[i[inside], j[inside]] = -torch.inf
