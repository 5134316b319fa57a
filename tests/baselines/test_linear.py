"""The linear method against scikit-learn's ridge regression and Definition 1."""

import pytest
import torch
from sklearn.linear_model import Ridge
from torch.nn.functional import one_hot

from elugcn.elu.label_propagation import propagate_labels
from elugcn.elu.utilization import definition_one
from elugcn.errors import InputError
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for
from tests.baselines.helpers import CPU, Draw, accuracy, fit


def test_the_last_iterate_is_the_ridge_solution(checked: Draw) -> None:
    graph = checked(0, n=300, n_features=8)
    data = graph.data
    data.val_mask[:] = False
    result = fit(
        graph, "linear", order=0, iterations=60, ridge=0.01, feature_norm="none"
    )
    x, Y = data.x.double(), one_hot(data.y, 3).double()
    train = data.train_mask
    prior = Y[train].mean(dim=0)
    F, T = (300 / x.square().sum()).sqrt() * x, Y - prior
    F = torch.cat([F, torch.ones(300, 1, dtype=F.dtype)], dim=1)
    # λ is a share of the first Rayleigh quotient of FᵀF/m.
    b = F[train].T @ T[train] / train.sum()
    quotient = (F[train] @ b).square().sum() / train.sum() / b.square().sum()
    alpha = float(0.01 * quotient * train.sum())
    twin = Ridge(alpha=alpha, fit_intercept=False).fit(F[train], T[train])
    expected = torch.from_numpy(twin.predict(F)) + prior
    # Random probes estimate the norm of F, so λ is a few percent off.
    scores = result.logits.double() / result.metadata["temperature"]
    torch.testing.assert_close(scores, expected, atol=0.02, rtol=0.0)


def test_a_node_without_features_and_edges_gets_what_its_like_have(
    checked: Draw,
) -> None:
    """The labels of such nodes train the intercept."""
    graph = checked(0, n=300, n_features=8)
    data = graph.data
    data.x[:90], data.y[:90] = 0.0, 2
    touched = (data.edge_index < 90).any(dim=0)
    data.edge_index = data.edge_index[:, ~touched]
    margins = []
    for intercept in (False, True):
        result = fit(graph, "linear", feature_norm="none", intercept=intercept)
        found = result.logits[:90].argmax(dim=1)
        assert bool((found == found[0]).all())
        margins.append(float(result.logits[0, 2] - result.logits[0, :2].max()))
    assert margins[1] > margins[0] + 1.0


def test_validation_chooses_the_iterate(checked: Draw) -> None:
    graph = checked(0, n=300, n_features=16)
    result = fit(graph, "linear", patience=0, iterations=30)
    found = [record["val_accuracy"] for record in result.history]
    assert len(found) == 30
    assert found[result.metadata["best_epoch"]] == max(found)
    val = graph.data.val_mask
    right = (result.logits.argmax(dim=1) == graph.data.y)[val].double().mean()
    assert float(right) == pytest.approx(max(found))


def test_elu_nodes_as_targets(checked: Draw) -> None:
    graph = checked(0, n=300, n_features=16)
    plain = fit(graph, "linear")
    problem = Problem.of(graph.data, config_for("linear", {}), CPU)
    lpa = propagate_labels(problem.label_adj, problem.train_labels, 3)
    expected = definition_one(lpa, plain.logits)
    with_targets = fit(graph, "linear", pseudo_weight=4.0)
    assert with_targets.label_utilization is not None
    assert torch.equal(with_targets.label_utilization.status, expected.status)
    # The targets pull their nodes to the class on which both agree.
    own = expected.gcn[:, None]
    before, after = (
        (r.logits / r.metadata["temperature"]).gather(1, own)[expected.elu].mean()
        for r in (plain, with_targets)
    )
    assert after > before
    assert accuracy(with_targets, graph) > 0.7


def test_edges_alone_classify(checked: Draw) -> None:
    graph = checked(0, n=300, n_features=16)
    for options in ({}, {"order": 1, "direction": "apart"}):
        result = fit(graph, "linear", inputs="edges", **options)
        assert accuracy(result, graph) > 0.6
        assert result.model is None  # a row of A is a feature of this graph only
    with pytest.raises(InputError, match="needs inputs='edges' and order=1"):
        config_for("linear", {"direction": "apart"})
