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

import numpy as np
import torch
from scipy.sparse.csgraph import dijkstra
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

    Rows of T for m ``nodes``, scaled to sum 1: O(steps·nnz·m) time and O(n·m) memory.
    ``labelled`` is the mask of the training nodes. The result is m×|L|, its columns in
    ascending order of the labelled nodes. A node that no label reaches has a zero row;
    a labelled node is its own influence.
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
    """Edges from the nearest source to each node, (n,), O(n log n + nnz).

    0 for the sources, which are a mask, and −1 where no path leads. Labels travel from
    j to i where Â_ij is stored; self-loops do not matter.
    """
    start = sources.nonzero().squeeze(1).numpy(force=True)
    hops = dijkstra(adj.T.to_scipy(), indices=start, unweighted=True, min_only=True)
    return torch.from_numpy(np.where(np.isfinite(hops), hops, -1).astype(np.int64))
