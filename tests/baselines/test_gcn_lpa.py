"""GCN-LPA against its equations written out densely, and whose labels it reads."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.gcn_lpa import (
    GCNLPAConfig,
    GCNLPANetwork,
    GCNLPAObjective,
    label_loss,
)
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Problem, Shapes
from tests.baselines.helpers import CPU, Draw, fit


def network(adj: CSR, **options: Any) -> GCNLPANetwork:
    """Eight features and three classes, random scores."""
    config = GCNLPAConfig(**({"hidden_channels": 5, "dropout": 0.0} | options))
    model = GCNLPANetwork(config, Shapes(8, 3))
    model.learn_on(adj)
    torch.nn.init.normal_(model.score)
    return model


def dense_p(adj: CSR, score: Tensor) -> Tensor:
    """Softmax over each row; pairs without an edge have no share."""
    struck = torch.full(adj.shape, -torch.inf)
    return struck.index_put((adj.row, adj.col.long()), score).softmax(dim=1)


@pytest.fixture
def problem(checked: Draw) -> Problem:
    torch.manual_seed(0)
    return Problem.of(checked(n=60).data, GCNLPAConfig(feature_norm="none"), CPU)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_network_is_a_gcn_on_the_softmax_of_its_scores(
    num_layers: int, problem: Problem
) -> None:
    model = network(problem.adj, num_layers=num_layers)
    h, p = problem.data.x, dense_p(problem.adj, model.score)
    for i, weight in enumerate(model.weights):
        h = p @ (F.relu(h) if i else h) @ weight
    torch.testing.assert_close(model(problem.inputs), h)
    assert len(model.weights) == num_layers


@pytest.mark.parametrize("dropped", [{"dropout": 0.5}, {"input_dropout": 0.5}, {}])
def test_dropout(dropped: dict[str, float], problem: Problem) -> None:
    options = {"dropout": 0.0, "input_dropout": 0.0} | dropped
    model = network(problem.adj, **options).train()
    assert torch.equal(model(problem.inputs), model(problem.inputs)) == (not dropped)


@pytest.mark.parametrize("kind", ["softmax", "share"])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_loss_and_its_gradients(kind: str, weight: float, problem: Problem) -> None:
    model = network(problem.adj)
    options = {"lambda_lpa": weight, "lpa_steps": 3, "lpa_loss": kind}
    objective = GCNLPAObjective(model, problem, GCNLPAConfig(**options))  # type: ignore[arg-type]
    parameters = [model.score, *model.weights]
    loss = objective.loss(0)
    data, known = problem.data, problem.train_mask
    p = dense_p(problem.adj, model.score)
    z = p @ F.relu(p @ data.x @ model.weights[0]) @ model.weights[1]
    expected = -z.log_softmax(dim=1)[known, data.y[known]].mean()
    labels = torch.eye(3)[data.y] * known[:, None]
    q = (p @ p @ p @ labels)[known]
    q = q.softmax(dim=1) if kind == "softmax" else q / q.sum(dim=1, keepdim=True)
    expected = expected - weight * q[range(len(q)), data.y[known]].log().mean()
    torch.testing.assert_close(loss, expected)
    gradients = torch.autograd.grad(loss, parameters)
    wanted = torch.autograd.grad(expected, parameters)
    for ours, theirs in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def test_no_label_in_reach_is_a_large_loss_and_no_nan() -> None:
    q = torch.zeros(1, 3, requires_grad=True)
    loss = label_loss(q, torch.tensor([1]), "share")
    assert 10 < float(loss.detach()) < 30
    (gradient,) = torch.autograd.grad(loss, q)
    assert torch.isfinite(gradient).all()


def test_edges_keep_their_weights_and_those_of_other_graphs_are_equal(
    checked: Draw,
) -> None:
    graph, other = checked(n=60), checked(1, n=90)
    model: Any = fit(graph, "gcn-lpa", epochs=10, lr=0.1).model
    mine, theirs, shifted = (
        GraphInputs(torch.zeros(n, 8), normalized_adjacency(edges, n))
        for edges, n in (
            (graph.data.edge_index, 60),
            (other.data.edge_index, 90),
            ((graph.data.edge_index + 1) % 60, 60),  # as many entries, elsewhere
        )
    )
    score = model.network.score.detach()
    p = model.network.edges(mine).to_dense()
    torch.testing.assert_close(p, dense_p(mine.adj, score))  # type: ignore[arg-type]
    for inputs in (theirs, shifted):
        there = (inputs.adj.to_dense() > 0).float()  # type: ignore[union-attr]
        equal = there / there.sum(dim=1, keepdim=True)
        torch.testing.assert_close(model.network.edges(inputs).to_dense(), equal)


def test_weights_start_nearly_equal() -> None:
    torch.manual_seed(0)
    adj = CSR.from_tensor(torch.ones(245, 245))
    model = GCNLPANetwork(GCNLPAConfig(), Shapes(2, 2))
    model.learn_on(adj)
    assert float(model.score.detach().abs().max()) == pytest.approx(0.01, rel=0.01)
