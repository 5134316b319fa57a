"""What a run can measure on its fitted model beyond accuracy, as JSON holds it.

A job names one of ``MEASURES``; the worker applies it where the model is and keeps
the outcome in the record, so that no model has to be stored. True labels are used to
measure, never to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elugcn.core.blocks import (
    class_blocks,
    group_means,
    group_sizes,
    group_sums,
    inside_share,
    sampled_inside_shares,
)
from elugcn.core.complexity import (
    davies_bouldin,
    label_distance,
    label_distribution,
    own_class_weight,
)
from elugcn.core.direction import label_operator
from elugcn.core.operators import ELUGraph
from elugcn.core.propagation import propagate_labels
from elugcn.core.utilization import LabelUtilization, Utilization
from elugcn.errors import InputError
from elugcn.fitting import Fitted, accuracy
from elugcn.methods.base import Problem, Run, make_problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.neural import fit_network
from elugcn.training.threads import alone, threads

BLOCKS = 60
# The stage whose seed a second GCN starts from; a fit has far fewer stages.
SECOND = 1000


def utilization(fitted: Fitted) -> dict[str, Any]:
    """Definition 1: shares of ELU, NELU and unreachable nodes, accuracy on each.

    Shares are among the nodes outside the training set; accuracies, of the plain GCN,
    of the final prediction and of a second GCN, are on the test nodes of each set and
    of all of them, None where there is none.
    """
    use, data = _utilization(fitted), fitted.data
    status = use.status.cpu()
    unlabelled = ~data.train_mask
    n = int(unlabelled.sum())
    gcn, second = use.gcn.cpu(), _second_gcn(fitted)
    test = data.test_mask & (data.y >= 0)
    out: dict[str, Any] = {"nodes": n}
    everywhere = torch.ones_like(unlabelled)
    sets = {u.name.lower(): status == u for u in reversed(Utilization)}
    for name, chosen in {**sets, "all": everywhere}.items():
        count, tested = int((chosen & unlabelled).sum()), chosen & test
        out[name] = {
            "nodes": count,
            "share": count / n if n else None,
            "test_nodes": int(tested.sum()),
            "gcn_accuracy": _share(gcn == data.y, tested),
            "accuracy": accuracy(fitted.prediction.logits, data.y, tested),
            "second_accuracy": accuracy(second, data.y, tested),
        }
    return out


def heatmap(fitted: Fitted) -> dict[str, Any]:
    """Figure 3: mean entries of Â and of S* in blocks of nodes ordered by class.

    Of all nodes with a label; block means and class sums are exact, from the factors.
    ``inside`` is the share of the sum of all entries that joins nodes of one class:
    where S* has negative entries it may pass 1. ``inside_positive`` is the share of
    Σ max(S_ij, 0) and ``inside_absolute`` that of Σ|S_ij|, both on at most 1,024 rows
    spread evenly over the classes; Â has no negative entries, so all three are one.
    """
    graph, problem = _graph(fitted, "heatmap"), _problem(fitted)
    labels = problem.y
    block, of_class = class_blocks(labels, BLOCKS)
    count, classes = of_class.numel(), problem.num_classes
    size = group_sizes(labels, classes)
    out: dict[str, Any] = {
        "nodes": int((labels >= 0).sum()),
        "block_class": of_class.tolist(),
        "block_size": group_sizes(block, count).long().tolist(),
        "homophily": _homophily(fitted),
        "same_class_pairs": float((size**2).sum() / size.sum() ** 2),
    }
    positive, absolute = sampled_inside_shares(graph, labels)
    out["original"] = {
        "inside": inside_share(group_sums(problem.adj, labels, classes)),
        "means": _rounded(group_means(problem.adj, block, count)),
    }
    out["elu"] = {
        "inside": inside_share(group_sums(graph, labels, classes)),
        "inside_positive": positive,
        "inside_absolute": absolute,
        "means": _rounded(group_means(graph, block, count)),
    }
    return out


def theory(fitted: Fitted) -> dict[str, Any]:
    """Theorem 1 on the original graph and on the ELU graph, outside the training set.

    ``complexity_one`` is the Davies-Bouldin complexity after one smoothing, as in the
    proof: Â X and S* X. ``complexity_two`` is after both layers of the two views with
    weights and activation left out: Â Â X and Â S* X. X is as the method scales it.
    ``label_distance`` is ‖A Y − Y_true‖_F/√n with the rows of A Y made distributions
    (``label_distribution``), Y the training labels; for ``lpa`` A Y is the method's
    label propagation, with which the appendix states the theorem. ``reached`` and
    ``label_accuracy`` are the shares of nodes where A Y is not zero, and where its
    largest entry is the true class. ``own_class`` is the weight of a node's own class
    with all labels known.
    """
    graph, problem = _graph(fitted, "theory"), _problem(fitted)
    config = fitted.config
    assert isinstance(config, ELUGCNConfig)
    x, adj, c = problem.x, problem.adj, problem.num_classes
    truth = torch.where(problem.train_mask, -1, problem.y)
    known = problem.train_labels
    spread = label_operator(problem.spread, config.lpa_graph)
    propagated = propagate_labels(spread, known, c, config.lpa_steps, config.lpa_alpha)
    return {
        "nodes": int((truth >= 0).sum()),
        "complexity_features": davies_bouldin(x, truth),
        "original": {
            "complexity_one": davies_bouldin(x, truth, lambda z: adj @ z),
            "complexity_two": davies_bouldin(x, truth, lambda z: adj @ (adj @ z)),
            "own_class": own_class_weight(label_distribution(adj, problem.y, c), truth),
            **_spread(label_distribution(adj, known, c), truth),
        },
        "lpa": _spread(propagated, truth),
        "elu": {
            "complexity_one": davies_bouldin(x, truth, lambda z: graph @ z),
            "complexity_two": davies_bouldin(x, truth, lambda z: adj @ (graph @ z)),
            "own_class": own_class_weight(
                label_distribution(graph, problem.y, c), truth
            ),
            **_spread(label_distribution(graph, known, c), truth),
        },
    }


MEASURES: dict[str, Callable[[Fitted], dict[str, Any]]] = {
    "utilization": utilization,
    "heatmap": heatmap,
    "theory": theory,
}


def _spread(distribution: Tensor, truth: Tensor) -> dict[str, float | None]:
    nodes = truth >= 0
    right = distribution.argmax(dim=1) == truth
    reached = (distribution > 0).any(dim=1)
    return {
        "label_distance": label_distance(distribution, truth),
        "reached": _share(reached, nodes),
        "label_accuracy": _share(reached & right, nodes),
    }


def _homophily(fitted: Fitted) -> float | None:
    """Share of the edges between labelled nodes that join one class; no loops."""
    y, (source, target) = fitted.data.y, fitted.data.edge_index
    known = (y[source] >= 0) & (y[target] >= 0) & (source != target)
    return _share(y[source] == y[target], known)


def _problem(fitted: Fitted) -> Problem:
    """X and Â as the method saw them, on the CPU."""
    return make_problem(fitted.data, fitted.config, torch.device("cpu"))


def _graph(fitted: Fitted, measure: str) -> ELUGraph:
    if fitted.prediction.graph is None:
        raise InputError(
            f"measure {measure!r} needs a learned graph; method {fitted.method} learns "
            f"none"
        )
    return fitted.prediction.graph.to(torch.device("cpu"))


def _utilization(fitted: Fitted) -> LabelUtilization:
    if fitted.prediction.utilization is None:
        raise InputError(
            f"measure 'utilization' needs ELU and NELU nodes; method {fitted.method} "
            f"does not tell them apart"
        )
    return fitted.prediction.utilization


def _second_gcn(fitted: Fitted) -> Tensor:
    """Logits of the same GCN from another seed: what a mere second try changes."""
    config = fitted.config
    assert isinstance(config, ELUGCNConfig)
    run = Run(seed=fitted.seed)
    with alone(run.device), threads(fitted.threads):
        run.reseed(SECOND)
        trained, _ = fit_network(_problem(fitted), config.gcn(), run, "second GCN")
    return trained.logits


def _share(condition: Tensor, among: Tensor) -> float | None:
    if not bool(among.any()):
        return None
    return float(condition[among].double().mean())


def _rounded(matrix: Tensor) -> list[list[float]]:
    """Four digits: a picture shows no more, and a record keeps thousands of them."""
    return [[float(f"{v:.4g}") for v in row] for row in matrix.tolist()]
