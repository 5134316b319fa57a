"""The two quantities of Theorem 1, measured on any graph.

The proof judges a graph A by the Davies-Bouldin complexity of the smoothed features
O = A X: with μ_a the centroid of class a,

    S_a = (mean over i in a of ‖o_i − μ_a‖^q)^(1/q),    M_ab = ‖μ_a − μ_b‖,
    C = mean over a of max over b ≠ a of (S_a + S_b) / M_ab,    q = 2,

and the theorem says that the bound on it is best where A Y = Y_true, so the second
quantity is how far A Y, the training labels spread by the graph, is from the truth.
Lower is better for both. True labels are used: these measure, they do not select.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from elugcn.core.propagation import normalize_rows, one_hot_rows
from elugcn.core.sparse import CSR

# Columns of the features held dense at a time: n×256 instead of n×d.
_COLUMNS = 256


class Operator(Protocol):
    """Anything that multiplies a dense matrix: Â, S*, a tensor."""

    def __matmul__(self, z: Tensor, /) -> Tensor:
        """Operator @ z."""
        ...


def davies_bouldin(
    x: CSR | Tensor,
    labels: Tensor,
    propagate: Callable[[Tensor], Tensor] | None = None,
    power: float = 2.0,
) -> float:
    """C of the classes in the rows of ``propagate(x)``; lower is better separated.

    Distances add up over columns, so the features are densified and propagated 256
    columns at a time: O(n·256) memory, and the time of the propagation plus O(n·d).

    Args:
        x: Features, n×d.
        labels: Class of each node that counts, −1 for those left out, (n,).
        propagate: A linear map of n×k to n×k, such as Z ↦ Â(ÂZ); None: X itself.
        power: q of the spread of a class: 2 is the paper's (root mean square), 1 is
            that of ``sklearn.metrics.davies_bouldin_score``.

    Returns:
        The index; ``inf`` where two classes share a centroid, NaN below two classes.
    """
    nodes = (labels >= 0).nonzero().squeeze(1)
    classes, group = torch.unique(labels[nodes], return_inverse=True)
    k = classes.numel()
    if k < 2:
        return math.nan
    count = torch.bincount(group, minlength=k).double().unsqueeze(1)
    squared = torch.zeros(nodes.numel(), dtype=torch.float64)
    between = torch.zeros(k, k, dtype=torch.float64)
    for block in _columns(x):
        rows = (block if propagate is None else propagate(block))[nodes].double()
        total = torch.zeros(k, rows.size(1), dtype=torch.float64)
        centroid = total.index_add_(0, group, rows) / count
        squared += (rows - centroid[group]).square().sum(dim=1)
        between += (centroid.unsqueeze(1) - centroid).square().sum(dim=2)
    spread = torch.zeros(k, dtype=torch.float64)
    spread.index_add_(0, group, squared ** (power / 2))
    spread = (spread / count.squeeze(1)) ** (1 / power)
    ratio = (spread.unsqueeze(1) + spread) / between.sqrt()
    # 0/0: two classes that are the same single point can't be told apart either.
    ratio = ratio.nan_to_num(nan=math.inf, posinf=math.inf)
    ratio.fill_diagonal_(-math.inf)
    return float(ratio.max(dim=1).values.mean())


def label_distribution(operator: Operator, labels: Tensor, num_classes: int) -> Tensor:
    """A Y as a distribution over classes in each row, n×c.

    Graphs differ in scale and S* has negative entries, so that rows are made
    comparable as label propagation does it: what is below zero counts as zero, and
    rows are divided by their sum. A row that no label reaches stays zero.

    Args:
        operator: The graph A, n×n.
        labels: Known class of each node, −1 elsewhere, (n,).
        num_classes: c.
    """
    spread = operator @ one_hot_rows(labels, num_classes)
    return normalize_rows(spread.clamp(min=0.0))


def label_distance(distribution: Tensor, truth: Tensor) -> float:
    """‖P − Y_true‖_F / √m over the m nodes whose ``truth`` is not −1.

    0 where every row is one-hot and right, 1 for a row of zeros, √2 for a one-hot row
    that is wrong; NaN without nodes.
    """
    nodes = truth >= 0
    if not bool(nodes.any()):
        return math.nan
    right = one_hot_rows(truth, distribution.size(1))
    squared = (distribution - right)[nodes].double().square().sum(dim=1)
    return math.sqrt(float(squared.mean()))


def own_class_weight(distribution: Tensor, truth: Tensor) -> float:
    """Mean share of a node's weight that comes from its own class.

    The proof's term I₀P₀ + I₁P₁, for a distribution made from all labels; NaN without
    nodes.
    """
    nodes = (truth >= 0).nonzero().squeeze(1)
    return float(distribution[nodes, truth[nodes]].double().mean())


def _columns(x: CSR | Tensor) -> Iterator[Tensor]:
    """The features as dense float32 blocks of columns, on the CPU."""
    sparse = x.to_scipy().tocsc() if isinstance(x, CSR) else None
    for start in range(0, x.shape[1], _COLUMNS):
        chosen = slice(start, start + _COLUMNS)
        if sparse is not None:
            yield torch.from_numpy(sparse[:, chosen].toarray()).float()
        else:
            yield x[:, chosen].float().cpu().contiguous()  # type: ignore[index]
