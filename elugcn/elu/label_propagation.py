"""Label propagation (LPA), in which known labels stay exact.

    Y ← α Â Y + (1 − α) Y,    then the training rows are put back

By Proposition 1, the share of class l in row i is the influence that the labelled nodes
of that class have on node i.
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch.nn.functional as F
from torch import Tensor

from elugcn.engine import CSR

LabelGraph = Literal["edges", "coupled"]


class Propagation(Protocol):
    """Anything that multiplies a dense matrix of n rows: Â, S*, ``Coupled``."""

    def __matmul__(self, z: Tensor, /) -> Tensor: ...


class Coupled:
    """Â Âᵀ as an operator: nodes are coupled if they point to the same nodes.

    Where edges join unlike nodes, labels travel better along this graph.
    """

    def __init__(self, adj: CSR) -> None:
        self.adj = adj

    def __matmul__(self, z: Tensor) -> Tensor:
        return self.adj @ (self.adj.T @ z)

    @property
    def T(self) -> Coupled:
        """The operator is symmetric."""
        return self


def label_operator(adj: CSR, graph: LabelGraph) -> CSR | Coupled:
    """What labels travel by: the edges, or shared neighbours (``"coupled"``)."""
    return Coupled(adj) if graph == "coupled" else adj


def propagate_labels(
    operator: Propagation,
    labels: Tensor,
    num_classes: int,
    steps: int = 50,
    alpha: float = 0.9,
) -> Tensor:
    """The label distribution of every node, n×c, O(steps·nnz(Â)·c).

    ``labels`` are −1 except at training nodes, whose rows are one-hot after every step.
    ``alpha`` is the share of the neighbours in each step. Rows sum to 1; a node that no
    label reaches has a zero row, so that it is never mistaken for class 0.
    """
    known = labels >= 0
    Y = one_hot_rows(labels, num_classes)
    Y_known = Y[known]
    for _ in range(steps):
        Y.lerp_(operator @ Y, alpha)
        Y[known] = Y_known
    return normalize_rows(Y)


def one_hot_rows(labels: Tensor, num_classes: int) -> Tensor:
    """Y: one-hot rows where ``labels`` ≥ 0 and zero rows elsewhere, n×c."""
    y = F.one_hot(labels.clamp(min=0), num_classes).float()
    return y * (labels >= 0).unsqueeze(1)


def normalize_rows(y: Tensor) -> Tensor:
    """Rows of a non-negative matrix scaled to sum 1; zero rows stay zero."""
    total = y.sum(dim=1, keepdim=True)
    return y / total.where(total > 0, 1.0)
