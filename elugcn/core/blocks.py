"""Sums of a graph's entries over groups of nodes, without its n² entries.

For S = L Rᵀ the sum over the nodes of group a and group b is (Σ_{i∈a} l_i)·(Σ_{j∈b}
r_j): exact for B groups in O(n·c + B²·c). Stored entries are added up one by one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from elugcn.core.operators import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.core.sparse import CSR

# Dense rows of S held at once where absolute values are summed.
_ROWS = 256


def group_sums(graph: ELUGraph | CSR, group: Tensor, count: int) -> Tensor:
    """Σ of S_ij over i in group a and j in group b, count×count in float64.

    Args:
        graph: S in factors, or with stored entries.
        group: Group of each node, −1 for those left out, (n,).
        count: Number of groups.
    """
    if isinstance(graph, LowRankGraph):
        left, right = (
            _sums(factor.cpu(), group, count) for factor in (graph.left, graph.right)
        )
        return left @ right.T
    csr = graph.csr if isinstance(graph, ExplicitGraph) else graph
    assert isinstance(csr, CSR)
    row, column = group[csr.row.cpu()], group[csr.col.long().cpu()]
    kept = (row >= 0) & (column >= 0)
    return torch.bincount(
        row[kept] * count + column[kept],
        weights=csr.value.detach().cpu()[kept].double(),
        minlength=count * count,
    ).reshape(count, count)


def group_means(graph: ELUGraph | CSR, group: Tensor, count: int) -> Tensor:
    """The mean entry of S in each block, zeros counted; every group has a node."""
    size = group_sizes(group, count)
    return group_sums(graph, group, count) / torch.outer(size, size)


def group_sizes(group: Tensor, count: int) -> Tensor:
    """Nodes of each group, in float64."""
    return torch.bincount(group[group >= 0], minlength=count).double()


def class_blocks(labels: Tensor, blocks: int = 60) -> tuple[Tensor, Tensor]:
    """Labelled nodes ordered by class and cut into about ``blocks`` blocks.

    Each class gets its share of the blocks, one at least, and its blocks differ by
    one node at most.

    Returns:
        The block of each node, −1 where it has no label, (n,); and the class of each
        block, ascending.
    """
    block = torch.full_like(labels, -1)
    of_class: list[int] = []
    total = int((labels >= 0).sum())
    for c in torch.unique(labels[labels >= 0]).tolist():
        nodes = (labels == c).nonzero().squeeze(1)
        n = nodes.numel()
        number = min(n, max(1, round(blocks * n / total)))
        block[nodes] = torch.arange(n) * number // n + len(of_class)
        of_class += [int(c)] * number
    return block, torch.tensor(of_class, dtype=torch.long)


def inside_share(sums: Tensor) -> float:
    """Share of the summed entries that is inside groups; NaN where they sum to 0."""
    total = float(sums.sum())
    return float(sums.trace()) / total if total else math.nan


def sampled_inside_shares(
    graph: ELUGraph, labels: Tensor, sample: int = 1024
) -> tuple[float, float]:
    """Shares of Σ max(S_ij, 0) and of Σ|S_ij| inside classes; NaN where they are 0.

    These do not follow from the factors where signs mix, so rows are computed, at most
    ``sample`` of them, the same each time and spread evenly over the classes:
    O(sample·n·c) time. Exact where no more nodes than that are labelled.
    """
    known = (labels >= 0).nonzero().squeeze(1)
    ordered = known[torch.argsort(labels[known], stable=True)]
    m = min(sample, ordered.numel())
    chosen = ordered[torch.arange(m) * ordered.numel() // max(1, m)]
    sums = torch.zeros(2, 2, dtype=torch.float64)  # positive, absolute; inside, all
    for start in range(0, m, _ROWS):
        rows = chosen[start : start + _ROWS]
        entries = graph.rows(rows).cpu()[:, known].double()
        same = labels[rows].unsqueeze(1) == labels[known]
        for i, weight in enumerate((entries.clamp(min=0.0), entries.abs())):
            sums[i] += torch.stack([weight[same].sum(), weight.sum()])
    positive, absolute = (sums[:, 0] / sums[:, 1]).tolist()
    return float(positive), float(absolute)


def _sums(factor: Tensor, group: Tensor, count: int) -> Tensor:
    kept = group >= 0
    out = torch.zeros(count, factor.size(1), dtype=torch.float64)
    return out.index_add_(0, group[kept], factor[kept].double())
