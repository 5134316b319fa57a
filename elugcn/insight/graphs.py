"""How well a graph fits the classes: homophily, complexity, sums over blocks of nodes.

Every function takes any n×n operator (Â, S* in factors, S* with stored entries) and
none of them builds its n² entries.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from elugcn.elu.label_propagation import Propagation, normalize_rows, one_hot_rows
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.engine import Features, normalized_adjacency
from elugcn.methods.problem import Problem

_COLUMNS = 256  # of X, dense at a time: n×256 instead of n×d
MAX_ENTRIES = 500_000_000  # of X, dense, above which complexity takes minutes


def compare_graphs(problem: Problem, graph: ELUGraph | None) -> dict[str, Any]:
    """Homophily and complexity of the original and the ELU graph, O(nnz·d + n·c·d).

    ``homophily`` is the mean share of a node's edge weight that leads to its own class,
    over labelled nodes outside the training set and neighbours of known class. Weights
    are summed per class; a negative sum, possible in S*, counts as zero. Self-loops do
    not count. ``complexity`` is the Davies-Bouldin index of the classes in ÂX or S*X.
    Both are None if too few labels are known.
    """
    data, n = problem.data, problem.num_nodes
    weight = getattr(data, "edge_weight", None)
    edges = normalized_adjacency(data.edge_index, n, weight, False, "row")
    elu = None if graph is None else _measure(graph, graph, problem)
    return {"original": _measure(edges, problem.label_adj, problem), "elu": elu}


def _measure(edges: Propagation, smoothing: Propagation, problem: Problem) -> Any:
    truth = torch.where(problem.data.train_mask, -1, problem.data.y)
    weights = label_distribution(edges, problem.data.y, problem.num_classes)
    # A node without a neighbour of known class says nothing.
    heard = torch.where(weights.sum(dim=1) > 0, truth, -1)
    found = {"homophily": own_class_weight(weights, heard), "complexity": math.nan}
    if math.prod(problem.x.shape) <= MAX_ENTRIES:
        found["complexity"] = davies_bouldin(problem.x, truth, lambda z: smoothing @ z)
    return {name: v if math.isfinite(v) else None for name, v in found.items()}


def label_distribution(
    operator: Propagation | Tensor, labels: Tensor, num_classes: int
) -> Tensor:
    """A Y as a distribution over classes per row, n×c, Y from labels (−1: unknown).

    Negative sums count as zero. A row that no label reaches stays zero.
    """
    summed = operator @ one_hot_rows(labels, num_classes)
    return normalize_rows(summed.clamp(min=0.0))


def own_class_weight(distribution: Tensor, truth: Tensor) -> float:
    """Mean weight of a node's own class over nodes whose ``truth`` is not −1, or NaN.

    The proof's term I₀P₀ + I₁P₁, if the distribution was made from all labels.
    """
    nodes = (truth >= 0).nonzero().squeeze(1)
    return float(distribution[nodes, truth[nodes]].double().mean())


def davies_bouldin(
    x: Features, labels: Tensor, propagate: Callable[[Tensor], Tensor] = lambda z: z
) -> float:
    """Complexity of the classes in ``propagate(x)`` (Theorem 1); lower is better.

    With μ_a the centroid of class a and n_a its nodes,

        S_a = √(1/n_a Σ ‖o_i − μ_a‖²),    M_ab = ‖μ_a − μ_b‖,
        C = mean over a of max over b ≠ a of (S_a + S_b) / M_ab.

    Nodes with label −1 do not count. ``propagate`` is a linear map such as Z ↦ ÂZ.
    Distances add up over columns, so X is propagated 256 columns at a time. C is
    ``inf`` if two classes share a centroid and NaN for fewer than two classes.
    """
    nodes = (labels >= 0).nonzero().squeeze(1)
    classes, group = torch.unique(labels[nodes], return_inverse=True)
    k = classes.numel()
    if k < 2:
        return math.nan
    count = torch.bincount(group, minlength=k).double()
    squared = torch.zeros(nodes.numel(), dtype=torch.float64)
    between = torch.zeros(k, k, dtype=torch.float64)
    for block in _columns(x):
        rows = propagate(block)[nodes].double()
        total = torch.zeros(k, rows.size(1), dtype=torch.float64)
        centroid = total.index_add_(0, group, rows) / count.unsqueeze(1)
        squared += (rows - centroid[group]).square().sum(dim=1)
        between += (centroid.unsqueeze(1) - centroid).square().sum(dim=2)
    spread = (torch.bincount(group, squared, k) / count).sqrt()
    ratio = (spread.unsqueeze(1) + spread) / between.sqrt()
    # 0/0: two classes that are the same single point can't be told apart either.
    ratio = ratio.nan_to_num(nan=math.inf, posinf=math.inf)
    ratio.fill_diagonal_(-math.inf)
    return float(ratio.max(dim=1).values.mean())


def class_blocks(labels: Tensor, blocks: int = 48) -> tuple[Tensor, Tensor]:
    """Nodes ordered by class and cut into about ``blocks`` blocks.

    Each class gets its share of the blocks, at least one. Blocks of a class differ by
    at most one node. Returned are the block of each node, −1 for nodes without a
    class, and the class of each block, ascending.
    """
    block, known = torch.full_like(labels, -1), labels[labels >= 0]
    block_class: list[int] = []
    for c, n in zip(*torch.unique(known, return_counts=True), strict=True):
        number = min(int(n), max(1, round(blocks * int(n) / len(known))))
        block[labels == c] = torch.arange(int(n)) * number // n + len(block_class)
        block_class += [int(c)] * number
    return block, torch.tensor(block_class, dtype=torch.long)


def block_sums(operator: Propagation | Tensor, block: Tensor, count: int) -> Tensor:
    """Σ A_ij over i in block a and j in block b, count×count in float64.

    Bᵀ(AB) with B the n×count indicator: one product, exact. A block of −1 is left out.
    """
    member = one_hot_rows(block, count)
    return member.double().T @ (operator @ member).double()


def block_means(operator: Propagation | Tensor, block: Tensor, count: int) -> Tensor:
    """The mean entry of each block, zeros included; every block needs a node."""
    size = torch.bincount(block[block >= 0], minlength=count).double()
    return block_sums(operator, block, count) / torch.outer(size, size)


def _columns(x: Features) -> Iterator[Tensor]:
    """X as dense float32 blocks of columns."""
    if isinstance(x, Tensor):
        yield from (part.float().contiguous() for part in torch.split(x, _COLUMNS, 1))
        return
    matrix = x.to_scipy().tocsc()
    for start in range(0, x.shape[1], _COLUMNS):
        part = matrix[:, start : start + _COLUMNS]
        yield torch.from_numpy(part.toarray()).float()
