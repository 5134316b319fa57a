"""The best pairs of nodes by an inner product, without the n² products at once.

Scores are made for a block of rows, looked at and forgotten: O(n²·h) time, memory for
one block and the answer. Pairs that are not wanted (a node with itself, edges there
are already) are struck out in the block.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from elugcn.core.sparse import CSR

# Scores held at once.
BLOCK = 2**20
# Columns are taken together in groups of this many for the first look.
GROUP = 32


@torch.no_grad()
def blocked_topk_similarity(
    left: Tensor,
    right: Tensor,
    k: int,
    exclude: CSR | None = None,
    exclude_self: bool = True,
) -> tuple[Tensor, Tensor]:
    """For each row u of ``left`` the k rows v of ``right`` with the largest l_u · r_v.

    Args:
        left: n×h.
        right: m×h.
        k: How many, at most m of them are given.
        exclude: n×m; the pairs it stores are struck out, whatever their values.
        exclude_self: Strike out the pairs (u, u).

    Returns:
        Indices n×k, ascending within a row, and their scores, n×k. Where a row has
        fewer than k pairs left, the rest have score −∞ (and an index without meaning).

    Cost:
        O(n·m·h) time, O(n·k) memory and a block of scores.
    """
    k = min(k, right.size(0))
    columns, values = [], []
    for rows in _row_blocks(left.size(0), right.size(0)):
        scores = left[rows] @ right.T
        if exclude is not None:
            _strike(scores, exclude, rows)
        if exclude_self:
            stop = min(rows.stop, right.size(0))
            own = torch.arange(rows.start, stop, device=scores.device)
            scores[own - rows.start, own] = -torch.inf
        index = _row_topk(scores, k).sort(dim=1).values
        columns.append(index)
        values.append(scores.gather(1, index))
    if not columns:
        empty = left.new_empty(0, k)
        return empty.long(), empty
    return torch.cat(columns), torch.cat(values)


@torch.no_grad()
def top_pairs(z: Tensor, m: int, exclude: CSR | None = None) -> Tensor:
    """The m pairs of different nodes with the largest z_i · z_j.

    Args:
        z: n×h.
        m: How many pairs; all there are if there are fewer.
        exclude: n×n; pairs that it stores in either direction are struck out.

    Returns:
        2×m, i < j in every column, in the order of i, then j.

    Cost:
        O(n²·h / 2) time, O(m) memory and a block of scores.
    """
    n = z.size(0)
    best = z.new_empty(0)
    key = torch.empty(0, dtype=torch.long, device=z.device)
    least = -torch.inf
    for rows in _row_blocks(n, n) if m > 0 else ():
        # Columns before the block belong to pairs that were seen the other way round.
        start, size = rows.start, rows.stop - rows.start
        scores = z[rows] @ z[start:].T
        done = torch.ones(size, size, dtype=torch.bool, device=z.device).tril()
        scores[:, :size].masked_fill_(done, -torch.inf)
        if exclude is not None:
            _strike(scores, exclude, rows, start)
            _strike(scores, exclude.T, rows, start)
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
    """The smallest z_i · z_j over all pairs, O(n²·h / 2); 0 without rows."""
    n = z.size(0)
    blocks = ((z[rows] @ z[rows.start :].T).min() for rows in _row_blocks(n, n))
    return min((float(low) for low in blocks), default=0.0)


def _row_blocks(n: int, m: int) -> Iterator[slice]:
    size = max(1, BLOCK // max(1, m))
    return (slice(i, min(n, i + size)) for i in range(0, n, size))


def _strike(scores: Tensor, exclude: CSR, rows: slice, first: int = 0) -> None:
    """−∞ at the stored entries of a block of rows whose first column is ``first``."""
    entries = slice(int(exclude.crow[rows.start]), int(exclude.crow[rows.stop]))
    i = exclude.row[entries] - rows.start
    j = exclude.col[entries].long() - first
    inside = j >= 0
    scores[i[inside], j[inside]] = -torch.inf


def _row_topk(scores: Tensor, k: int) -> Tensor:
    """Indices of the k largest entries of each row.

    The k largest lie in the k groups of columns with the largest maxima: looking at
    those alone takes a fraction of the time of a selection over all columns.
    """
    n, m = scores.shape
    groups = m // GROUP
    if groups <= k or k == 0:
        return scores.topk(k, dim=1, sorted=False).indices
    whole = groups * GROUP
    highest = scores[:, :whole].view(n, groups, GROUP).amax(dim=2)
    group = highest.topk(k, dim=1, sorted=False).indices
    within = torch.arange(GROUP, device=scores.device)
    columns = (group.unsqueeze(2) * GROUP + within).view(n, k * GROUP)
    if whole < m:
        rest = torch.arange(whole, m, device=scores.device).expand(n, -1)
        columns = torch.cat([columns, rest], dim=1)
    chosen = scores.gather(1, columns).topk(k, dim=1, sorted=False).indices
    return columns.gather(1, chosen)
