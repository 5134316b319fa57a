"""Personalised PageRank as an explicit sparse graph: the largest entries of each row.

    Π = α (I − (1 − α) Â)⁻¹,    Π ← (1 − α) Π Â + α I,  started at I

Rows are computed in blocks, so that nothing n×n is held, and cut to their k largest
entries before the next block.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elugcn.core.sparse import CSR

# Numbers of a dense block of rows.
BLOCK = 2**21


def topk_pagerank(adj: CSR, alpha: float, k: int, steps: int = 10) -> CSR:
    """The k largest entries of each row of Π, as they are; zeros are not stored.

    Args:
        adj: Â, n×n.
        alpha: Probability of a restart, in (0, 1].
        k: Entries a row.
        steps: Products with Â: how far a walk may lead. What is missing of Π after
            them is at most of the size (1 − α)^steps.

    Cost:
        O(steps·n·nnz(Â)) time, O(n·k) memory.
    """
    n = adj.shape[0]
    k = min(k, n)
    turned = adj.T
    size = max(1, BLOCK // max(1, n))
    # Before the blocks: small results kept between large ones that go would leave
    # holes in memory, as many as blocks.
    column = torch.empty(n, k, dtype=torch.long, device=adj.col.device)
    value = torch.empty(n, k, device=adj.col.device)
    for start in range(0, n, size):
        rows = torch.arange(start, min(start + size, n), device=adj.col.device)
        largest, at = torch.topk(_rows(turned, rows, alpha, steps), k, dim=1)
        column[rows], order = at.sort(dim=1)
        value[rows] = largest.gather(1, order)
    stored = value > 0
    crow = torch.zeros(n + 1, dtype=adj.crow.dtype, device=adj.col.device)
    crow[1:] = stored.sum(dim=1).cumsum(0)
    return CSR(crow, column[stored].to(adj.col.dtype), value[stored], n)


def _rows(turned: CSR, rows: Tensor, alpha: float, steps: int) -> Tensor:
    """Dense rows of Π from Âᵀ, one column a row while they are computed."""
    n = turned.shape[0]
    restart = torch.zeros(n, rows.numel(), device=rows.device)
    restart[rows, torch.arange(rows.numel(), device=rows.device)] = 1.0
    z = restart
    for _ in range(steps):
        z = (turned @ z).mul_(1.0 - alpha).add_(restart, alpha=alpha)
    return z.T
