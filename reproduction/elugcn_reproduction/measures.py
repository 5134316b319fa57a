"""What a run can measure on its fitted model beyond accuracy, as JSON holds it.

A job names a function of this module; the run keeps what it returns in its record, so
no model has to be stored. True labels are used to measure, never to choose.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from elugcn.api import Fitted, fit
from elugcn.data.validation import CheckedGraph
from elugcn.elu.label_propagation import one_hot_rows, propagate_labels
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.insight.graphs import (
    block_means,
    block_sums,
    class_blocks,
    davies_bouldin,
    label_distribution,
    own_class_weight,
)
from elugcn.methods.problem import Problem
from elugcn.methods.registry import get_method

BLOCKS = 60
_SAMPLE, _ROWS = 1024, 256  # rows of S* whose entries are looked at, and at a time
_SECOND = 1_000_000  # added to the seed of the second GCN


def utilization(fitted: Fitted) -> dict[str, Any]:
    """Definition 1: shares of ELU, NELU and unreachable nodes, accuracy on each.

    Shares are among the nodes outside the training set. Accuracies, of the plain GCN,
    of the final prediction and of a second GCN, are on the test nodes of each set and
    on all of them, None where there are none.
    """
    use, data = _utilization(fitted), fitted.data
    status = use.status.cpu()
    unlabelled = ~data.train_mask
    n = int(unlabelled.sum())
    test = data.test_mask & (data.y >= 0)
    right = {
        "gcn_accuracy": use.gcn.cpu() == data.y,
        "accuracy": fitted.result.logits.argmax(dim=1) == data.y,
        "second_accuracy": _second_gcn(fitted).argmax(dim=1) == data.y,
    }
    sets = {u.name.lower(): status == u for u in reversed(Utilization)}
    out: dict[str, Any] = {"nodes": n}
    for name, chosen in {**sets, "all": torch.ones_like(test)}.items():
        count, tested = int((chosen & unlabelled).sum()), chosen & test
        out[name] = {
            "nodes": count,
            "share": count / n if n else None,
            "test_nodes": int(tested.sum()),
            **{key: _share(of, tested) for key, of in right.items()},
        }
    return out


def heatmap(fitted: Fitted) -> dict[str, Any]:
    """Figure 3: mean entries of Â and of S* in blocks of nodes ordered by class.

    Of all nodes with a label; block means and class sums are exact. ``inside`` is the
    share of the sum of all entries that joins nodes of one class: where S* has negative
    entries it may exceed 1. ``inside_positive`` is the share of Σ max(S_ij, 0) and
    ``inside_absolute`` that of Σ|S_ij|, on at most 1,024 rows spread evenly over the
    classes. Â has no negative entries.
    """
    graph, problem = _graph(fitted), _problem(fitted)
    labels, classes = problem.y, problem.num_classes
    block, block_class = class_blocks(labels, BLOCKS)
    count = block_class.numel()
    size = torch.bincount(labels[labels >= 0], minlength=classes).double()
    positive, absolute = sampled_inside_shares(graph, labels)
    y, (source, target) = fitted.data.y, fitted.data.edge_index
    known = (y[source] >= 0) & (y[target] >= 0) & (source != target)
    return {
        "nodes": int((labels >= 0).sum()),
        "block_class": block_class.tolist(),
        "block_size": torch.bincount(block[block >= 0], minlength=count).tolist(),
        "homophily": _share(y[source] == y[target], known),
        "same_class_pairs": float((size**2).sum() / size.sum() ** 2),
        "original": {
            "inside": _inside(problem.label_adj, labels, classes),
            "means": _rounded(block_means(problem.label_adj, block, count)),
        },
        "elu": {
            "inside": _inside(graph, labels, classes),
            "inside_positive": positive,
            "inside_absolute": absolute,
            "means": _rounded(block_means(graph, block, count)),
        },
    }


def theory(fitted: Fitted) -> dict[str, Any]:
    """Theorem 1 on the original graph and on the ELU graph, outside the training set.

    ``complexity_one`` is the Davies-Bouldin complexity after one smoothing, as in the
    proof: ÂX and S*X. ``complexity_two`` is after both layers of the two views without
    weights and activation: ÂÂX and ÂS*X. X is as the method scales it.
    ``label_distance`` is ‖AY − Y_true‖_F/√n with the rows of AY made distributions, Y
    the training labels; for ``lpa`` AY is the method's label propagation, with which
    the appendix states the theorem. ``reached`` and ``label_accuracy`` are the shares
    of nodes where AY is not zero, and where its largest entry is the true class.
    ``own_class`` is the weight of a node's own class with all labels known.
    """
    graph, problem = _graph(fitted), _problem(fitted)
    config: Any = fitted.config
    x, adj, c = problem.x, problem.label_adj, problem.num_classes
    truth = torch.where(problem.train_mask, -1, problem.y)
    known = problem.train_labels

    def both(operator: ELUGraph | CSR) -> dict[str, float | None]:
        return {
            "complexity_one": davies_bouldin(x, truth, lambda z: operator @ z),
            "complexity_two": davies_bouldin(x, truth, lambda z: adj @ (operator @ z)),
            "own_class": own_class_weight(
                label_distribution(operator, problem.y, c), truth
            ),
            **_nearness(label_distribution(operator, known, c), truth),
        }

    propagated = _utilization(fitted).lpa_proba
    if propagated is None:
        propagated = propagate_labels(adj, known, c, config.lpa_steps, config.lpa_alpha)
    return {
        "nodes": int((truth >= 0).sum()),
        "complexity_features": davies_bouldin(x, truth),
        "original": both(adj),
        "lpa": _nearness(propagated.cpu(), truth),
        "elu": both(graph),
    }


def sampled_inside_shares(
    graph: ELUGraph, labels: Tensor, sample: int = _SAMPLE
) -> tuple[float, float]:
    """Shares of Σ max(S_ij, 0) and of Σ|S_ij| inside classes; NaN where they are 0.

    These do not follow from the factors where signs mix. Rows are computed, at most
    ``sample`` of them, the same each time and spread evenly over the classes:
    O(sample·n·c) time. Exact where no more nodes than that are labelled.
    """
    known = (labels >= 0).nonzero().squeeze(1)
    ordered = known[torch.argsort(labels[known], stable=True)]
    m = min(sample, ordered.numel())
    chosen = ordered[torch.arange(m) * ordered.numel() // max(1, m)]
    sums = torch.zeros(2, 2, dtype=torch.float64)  # positive, absolute; inside, all
    for rows in torch.split(chosen, _ROWS):
        entries = graph.rows(rows)[:, known].double()
        same = labels[rows].unsqueeze(1) == labels[known]
        for i, weight in enumerate((entries.clamp(min=0.0), entries.abs())):
            sums[i] += torch.stack([weight[same].sum(), weight.sum()])
    positive, absolute = (sums[:, 0] / sums[:, 1]).tolist()
    return float(positive), float(absolute)


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


def _nearness(distribution: Tensor, truth: Tensor) -> dict[str, float | None]:
    nodes = truth >= 0
    right = distribution.argmax(dim=1) == truth
    reached = (distribution > 0).any(dim=1)
    return {
        "label_distance": label_distance(distribution, truth),
        "reached": _share(reached, nodes),
        "label_accuracy": _share(reached & right, nodes),
    }


def _inside(graph: ELUGraph | CSR, labels: Tensor, classes: int) -> float:
    sums = block_sums(graph, labels, classes)
    total = float(sums.sum())
    return float(sums.trace()) / total if total else math.nan


def _problem(fitted: Fitted) -> Problem:
    """X and Â as the method saw them, on the CPU."""
    return Problem.of(fitted.data, fitted.config, torch.device("cpu"))


def _graph(fitted: Fitted) -> ELUGraph:
    if fitted.result.graph is None:
        raise InputError(f"method {fitted.method} learns no graph to measure")
    return fitted.result.graph.to(torch.device("cpu"))


def _utilization(fitted: Fitted) -> LabelUtilization:
    if fitted.result.label_utilization is None:
        raise InputError(
            f"method {fitted.method} does not tell ELU and NELU nodes apart"
        )
    return fitted.result.label_utilization


def _second_gcn(fitted: Fitted) -> Tensor:
    """Logits of the same GCN from another seed: what a mere second try changes."""
    known = get_method("gcn").Config.model_fields
    shared = {k: v for k, v in fitted.config.model_dump().items() if k in known}
    again = fit(
        CheckedGraph(fitted.data, ()),
        "gcn",
        shared,
        seed=_SECOND + fitted.seed,
        device=fitted.device,
        n_threads=fitted.threads,
    )
    return again.result.logits


def _share(condition: Tensor, among: Tensor) -> float | None:
    if not bool(among.any()):
        return None
    return float(condition[among].double().mean())


def _rounded(matrix: Tensor) -> list[list[float]]:
    """Four digits: a picture shows no more, and a record keeps thousands of them."""
    return [[float(f"{v:.4g}") for v in row] for row in matrix.tolist()]
