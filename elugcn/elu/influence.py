"""Which labels influence a node (Proposition 1), and how far away they are.

Label propagation is linear in the labels it starts from. Let D_L and D_U be the
diagonal masks of the labelled nodes L and of the rest, and M = αÂ + (1−α)I. Then s
steps give

    Y_s = T Y_0,    T = Σ_{t<s} (D_U M)^t D_L + (D_U M)^s D_L

T_ij is the influence of labelled node j on node i. Its sum over the labels of a class
is the influence of that class. Rows of T come from the transposed recursion: T is never
built.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elugcn.elu.label_propagation import Coupled, normalize_rows
from elugcn.engine import CSR


def influence_on(
    operator: CSR | Coupled,
    labelled: Tensor,
    nodes: Tensor,
    steps: int = 50,
    alpha: float = 0.9,
) -> Tensor:
    """Share of each labelled node in what label propagation gives ``nodes``.

    Rows of T, scaled to sum 1: O(steps·nnz·m) time and O(n·m) memory for m nodes.

    Args:
        operator: Â, n×n, or another operator that labels travel by.
        labelled: Mask of the training nodes, (n,).
        nodes: Nodes that are influenced, (m,).
        steps: Steps of label propagation.
        alpha: Share of the neighbours in each step.

    Returns:
        m×|L|, columns in ascending order of the labelled nodes. A node that no label
        reaches has a zero row; a labelled node is its own influence.
    """
    free = (~labelled).unsqueeze(1)
    v = torch.zeros(labelled.numel(), nodes.numel())
    v[nodes, torch.arange(nodes.numel())] = 1.0
    total = torch.zeros_like(v)
    for _ in range(steps):
        total += v
        v = v * free
        v = torch.lerp(v, operator.T @ v, alpha)
    total += v
    return normalize_rows(total[labelled].T)


def hop_distance(adj: CSR, sources: Tensor) -> Tensor:
    """Edges from the nearest source to each node, O(n + nnz).

    A breadth-first search in the direction in which labels travel: from j to i where
    Â_ij is stored.

    Args:
        adj: Â, n×n; self-loops do not matter.
        sources: Mask of the nodes to start from, (n,).

    Returns:
        int64 (n,): 0 for the sources and −1 where no path leads.
    """
    out = adj.T
    start, column = out.crow.long().cpu(), out.col.long().cpu()
    distance = torch.where(sources.cpu(), 0, -1)
    frontier = sources.cpu().nonzero().squeeze(1)
    hops = 0
    while frontier.numel():
        hops += 1
        count = start[frontier + 1] - start[frontier]
        # Entry k of a frontier row is k places behind the first entry of the row.
        offset = torch.arange(int(count.sum()))
        offset -= torch.repeat_interleave(count.cumsum(0) - count, count)
        reached = column[torch.repeat_interleave(start[frontier], count) + offset]
        frontier = torch.unique(reached[distance[reached] < 0])
        distance[frontier] = hops
    return distance
