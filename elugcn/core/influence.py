"""Who influences whom: labels on nodes (Proposition 1), and how far labels are.

Label propagation is linear in the labels it starts from. With L the labelled nodes, D_L
and D_U the diagonal masks of L and of the rest, and B = αÂ + (1−α)I, k steps give

    Y_k = T Y_0,    T = Σ_{s<k} (D_U B)^s D_L + (D_U B)^k D_L,

so that T_ij is the influence of labelled node j on node i, and the sum of T_ij over the
labels of a class is what Proposition 1 calls the influence of that class. Rows of T are
found with the transposed recursion, columns with the plain one: never all of T.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elugcn.core.direction import Coupled
from elugcn.core.propagation import normalize_rows
from elugcn.core.sparse import CSR


def influence_on(
    operator: CSR | Coupled,
    labelled: Tensor,
    nodes: Tensor,
    steps: int = 50,
    alpha: float = 0.9,
) -> Tensor:
    """Share of each labelled node in what label propagation says of ``nodes``.

    Rows of T, each scaled to sum 1: O(steps·nnz·m) time and O(n·m) memory for m nodes.

    Args:
        operator: Â, n×n, or what labels travel by instead of it.
        labelled: Mask of the training nodes, (n,).
        nodes: Nodes that are influenced, (m,).
        steps: Steps of label propagation.
        alpha: Share of the neighbours in each step.

    Returns:
        m×|L|, columns in ascending order of the labelled nodes. Rows sum to 1; a node
        that no label reaches has a zero row, a labelled node is its own influence.
    """
    n, m = labelled.numel(), nodes.numel()
    back = transposed(operator)
    free = (~labelled).unsqueeze(1)
    v = torch.zeros(n, m)
    v[nodes, torch.arange(m)] = 1.0
    total = torch.zeros_like(v)
    for _ in range(steps):
        total += v
        v = v * free
        v = torch.lerp(v, back @ v, alpha)
    total += v
    return normalize_rows(total[labelled].T)


def transposed(operator: CSR | Coupled) -> CSR | Coupled:
    """The transpose of what labels travel by; ÂÂᵀ is its own."""
    return operator if isinstance(operator, Coupled) else operator.T


def hop_distance(adj: CSR, sources: Tensor) -> Tensor:
    """Edges from the nearest source to each node, O(n + nnz) in all.

    A breadth-first search that looks at each stored entry once, in the direction in
    which labels travel: from j to i where Â_ij is stored.

    Args:
        adj: Â, n×n; loops do not matter.
        sources: Mask of the nodes to start from, (n,).

    Returns:
        int64 (n,), 0 for the sources and −1 where no path leads.
    """
    out = adj.T
    start, column = out.crow.long().cpu(), out.col.long().cpu()
    distance = torch.where(sources.cpu(), 0, -1)
    frontier = sources.cpu().nonzero().squeeze(1)
    hops = 0
    while frontier.numel():
        hops += 1
        count = start[frontier + 1] - start[frontier]
        # Entry k of a frontier row lies k places behind the row's first one.
        offset = torch.arange(int(count.sum()))
        offset -= torch.repeat_interleave(count.cumsum(0) - count, count)
        reached = column[torch.repeat_interleave(start[frontier], count) + offset]
        frontier = torch.unique(reached[distance[reached] < 0])
        distance[frontier] = hops
    return distance
