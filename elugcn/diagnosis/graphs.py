"""The original graph and the ELU graph side by side: do they join nodes of a class?"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from elugcn.core.complexity import (
    Operator,
    davies_bouldin,
    label_distribution,
    own_class_weight,
)
from elugcn.core.operators import ELUGraph
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.diagnosis.shares import share
from elugcn.methods.base import Problem


def compare_graphs(problem: Problem, graph: ELUGraph | None) -> dict[str, Any]:
    """Homophily and complexity of both graphs; None where no label can tell.

    ``homophily`` is the mean share of a node's neighbours, by weight, that are of its
    own class, over the labelled nodes outside the training set and among neighbours
    whose class is known. Weights are summed by class: where that is below zero, as it
    can be in S*, it counts as zero. Â has no loops here. ``complexity`` is the
    Davies-Bouldin index of the classes after one smoothing of the features, ÂX or S*X
    (lower is better separated). O(nnz·d) and O(n·c·d).
    """
    data = problem.data
    y, train = data.y, data.train_mask
    truth = torch.where(train, -1, y)
    weight = getattr(data, "edge_weight", None)
    n = int(data.num_nodes)
    edges = normalized_adjacency(data.edge_index, n, weight, False, "row")
    source, target = data.edge_index
    known = (y[source] >= 0) & (y[target] >= 0) & (source != target)
    original = _measure(edges, problem.spread, problem, truth)
    original["edge_homophily"] = share(y[source] == y[target], known)
    out: dict[str, Any] = {"original": original, "elu": None}
    if graph is not None:
        out["elu"] = _measure(graph, graph, problem, truth)
    return out


def _measure(
    operator: Operator, smoothing: Operator, problem: Problem, truth: Tensor
) -> dict[str, Any]:
    labels = problem.data.y
    weights = label_distribution(operator, labels, problem.num_classes)
    # A node none of whose neighbours has a known class says nothing.
    heard = torch.where(weights.sum(dim=1) > 0, truth, -1)
    return {
        "homophily": _number(own_class_weight(weights, heard)),
        "complexity": _number(
            davies_bouldin(_plain(problem.x), truth, lambda z: smoothing @ z)
        ),
    }


def _plain(x: CSR | Tensor) -> CSR | Tensor:
    return x.cpu() if isinstance(x, Tensor) else x


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
