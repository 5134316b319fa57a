"""GCN-LPA against its equations written out densely, and whose labels it reads."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.edge_weights import Weighted
from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import Problem, make_problem
from elugcn.methods.gcn_lpa import GCNLPAConfig, GCNLPAPredictor, gcn_lpa_loss
from elugcn.nn.gcn_lpa import GCNLPA, label_loss, spread

CPU = torch.device("cpu")


def draw(split: int = 0, n: int = 120) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, **options: Any) -> Fitted:
    return fit_graph(graph, "gcn-lpa", resolve_config("gcn-lpa", options=options))


def network(adj: CSR, num_layers: int = 2) -> GCNLPA:
    model = GCNLPA(
        16, 5, 3, dropout=0.0, num_layers=num_layers,
        num_nodes=adj.shape[0], num_entries=adj.nnz,
    )  # fmt: skip
    model.learn_on(adj)
    return model


def dense_p(adj: CSR, score: Tensor) -> Tensor:
    """Softmax over each row with non-neighbours struck."""
    struck = torch.full(adj.shape, -torch.inf)
    return struck.index_put((adj.row, adj.col.long()), score).softmax(dim=1)


@pytest.fixture
def problem() -> Problem:
    return make_problem(draw(n=60).data, GCNLPAConfig(feature_norm="none"), CPU)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_the_network_is_a_gcn_on_the_softmax_of_its_scores(
    num_layers: int, problem: Problem
) -> None:
    torch.manual_seed(num_layers)
    model = network(problem.adj, num_layers)
    torch.nn.init.normal_(model.score)
    h = problem.data.x
    p = dense_p(problem.adj, model.score)
    for i, weight in enumerate(model.weights):
        h = p @ (F.relu(h) if i else h) @ weight
    torch.testing.assert_close(model(problem.x, problem.adj), h)
    assert len(model.weights) == num_layers


def test_hidden_units_are_dropped_before_every_layer(problem: Problem) -> None:
    torch.manual_seed(0)
    model = network(problem.adj, num_layers=3).train()
    model.dropout = 0.4
    p = dense_p(problem.adj, model.score)
    torch.manual_seed(1)
    out = model(problem.x, problem.adj)
    torch.manual_seed(1)
    h = p @ problem.data.x @ model.weights[0]
    for weight in list(model.weights)[1:]:
        h = p @ (F.relu(h) * keep_mask((60, 5), 0.4, h)) @ weight
    torch.testing.assert_close(out, h)


@pytest.mark.parametrize("kind", ["softmax", "share"])
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_loss_and_its_gradients(kind: str, weight: float, problem: Problem) -> None:
    torch.manual_seed(0)
    model = network(problem.adj)
    torch.nn.init.normal_(model.score)
    config = GCNLPAConfig(lambda_lpa=weight, lpa_steps=3, lpa_loss=kind, dropout=0.0)
    loss = gcn_lpa_loss(model, problem, config)
    parameters = [model.score, *model.weights]
    gradients = torch.autograd.grad(loss, parameters)
    data = problem.data
    known = data.train_mask
    p = dense_p(problem.adj, model.score)
    z = p @ F.relu(p @ data.x @ model.weights[0]) @ model.weights[1]
    expected = -z.log_softmax(dim=1)[known, data.y[known]].mean()
    labels = torch.eye(3)[data.y] * known[:, None]
    q = (p @ p @ p @ labels)[known]
    q = q.softmax(dim=1) if kind == "softmax" else q / q.sum(dim=1, keepdim=True)
    expected = expected - weight * q[range(len(q)), data.y[known]].log().mean()
    torch.testing.assert_close(loss, expected)
    wanted = torch.autograd.grad(expected, parameters)
    for ours, theirs in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def test_the_labels_teach_the_edges(problem: Problem) -> None:
    """Without the GCN: a step down the gradient brings more of the right label."""
    torch.manual_seed(0)
    model = network(problem.adj)
    nodes = problem.train_index
    labels = torch.eye(3)[problem.y] * problem.train_mask[:, None]

    def loss() -> Tensor:
        q = spread(model.edges(problem.adj), labels, 2)
        return label_loss(q, nodes, problem.y[nodes], "softmax")

    before = loss()
    (gradient,) = torch.autograd.grad(before, model.score)
    with torch.no_grad():
        model.score.sub_(gradient / gradient.abs().max())
    assert float(loss().detach()) < float(before.detach()) - 1e-3


@pytest.mark.parametrize("kind", ["softmax", "share"])
def test_neighbours_of_the_same_class_are_worth_more(kind: str) -> None:
    """Node 0 hears 1, of its own class, 2, of the other, and 3, which has no label."""
    adj = normalized_adjacency(
        torch.tensor([[1, 2, 3], [0, 0, 0]]), 4, self_loops=False
    )
    model = GCNLPA(2, 2, 2, num_nodes=4, num_entries=3)
    model.learn_on(adj)
    torch.nn.init.zeros_(model.score)
    labels = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    q = spread(model.edges(adj), labels, 1)
    loss = label_loss(q, torch.tensor([0]), torch.tensor([0]), kind)
    same, other, none = torch.autograd.grad(loss, model.score)[0].tolist()
    assert same < 0 < other
    assert none == pytest.approx(0.0, abs=1e-6)


def test_a_path_by_hand() -> None:
    """0 – 1 – 2 with equal weights; node 0 is of class 0, node 2 of class 1."""
    adj = normalized_adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    model = GCNLPA(2, 2, 2, num_nodes=3, num_entries=adj.nnz)
    model.learn_on(adj)
    torch.nn.init.zeros_(model.score)
    labels = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    q = spread(model.edges(adj), labels, 2)
    # One step: (½, 0), (⅓, ⅓), (0, ½); a second one:
    expected = torch.tensor([[5 / 12, 1 / 6], [5 / 18, 5 / 18], [1 / 6, 5 / 12]])
    torch.testing.assert_close(q, expected)
    nodes, target = torch.tensor([0, 2]), torch.tensor([0, 1])
    share = label_loss(q.detach(), nodes, target, "share")
    assert float(share) == pytest.approx(-torch.tensor(5 / 7).log())
    softmax = label_loss(q.detach(), nodes, target, "softmax")
    assert float(softmax) == pytest.approx(torch.tensor(-0.25).exp().log1p())


def test_no_label_in_reach_is_a_large_loss_and_no_nan() -> None:
    q = torch.zeros(2, 3, requires_grad=True)
    loss = label_loss(q, torch.tensor([0]), torch.tensor([1]), "share")
    assert 10 < float(loss.detach()) < 30
    (gradient,) = torch.autograd.grad(loss, q)
    assert torch.isfinite(gradient).all()


def test_labels_of_other_nodes_are_not_used() -> None:
    """With one epoch validation has nothing to choose: no other label matters."""
    graph = draw()
    other = replace(graph, data=graph.data.clone())
    hidden = ~other.data.train_mask
    other.data.y = torch.where(hidden, (other.data.y + 1) % 3, other.data.y)
    options = {"epochs": 1, "lambda_lpa": 10.0}
    one, two = (fit(g, **options).prediction.logits for g in (graph, other))
    assert torch.equal(one, two)
    seen = replace(graph, data=graph.data.clone())
    seen.data.y = (seen.data.y + 1) % 3
    assert not torch.equal(one, fit(seen, **options).prediction.logits)


def test_edges_are_known_on_their_own_graph_and_alike_on_others() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=10, lr=0.1)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, GCNLPAPredictor)
    model = predictor.model
    assert isinstance(model, GCNLPA)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    mine = normalized_adjacency(graph.data.edge_index, 120)
    theirs = normalized_adjacency(other.data.edge_index, 90)
    assert model.knows(mine)
    assert not model.knows(theirs)
    p = model.edges(mine).matrix.to_dense()
    torch.testing.assert_close(p, dense_p(mine, model.score.detach()))
    spread_of_weights = p[mine.row, mine.col.long()] * (p > 0).sum(dim=1)[mine.row]
    assert float(spread_of_weights.std()) > 0.05
    alike = model.edges(theirs).matrix.to_dense()
    mean = (theirs.to_dense() > 0).float()
    torch.testing.assert_close(alike, mean / mean.sum(dim=1, keepdim=True))
    # As many nodes and entries, in other places.
    shifted = (graph.data.edge_index + 1) % 120
    assert not model.knows(normalized_adjacency(shifted, 120))


def test_weights_start_nearly_alike() -> None:
    torch.manual_seed(0)
    model = GCNLPA(2, 2, 2, num_nodes=10, num_entries=60_000)
    assert float(model.score.detach().abs().max()) == pytest.approx(0.01, rel=0.01)


def test_a_node_without_neighbours_gathers_nothing() -> None:
    adj = normalized_adjacency(torch.tensor([[0], [1]]), 3, self_loops=False)
    model = GCNLPA(2, 2, 2, num_nodes=3, num_entries=1)
    model.learn_on(adj)
    out = model.eval()(torch.rand(3, 2), adj)
    assert torch.equal(out[[0, 2]], torch.zeros(2, 2))
    edges = model.edges(adj)
    assert isinstance(edges, Weighted)
    torch.testing.assert_close(edges.value, torch.ones(1))


def test_the_first_layer_alone_can_be_decayed() -> None:
    model = GCNLPA(4, 3, 2, num_layers=3)
    (first,) = model.first_layer()
    assert first is model.weights[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_layers": 0},
        {"lpa_steps": 0},
        {"lambda_lpa": -1.0},
        {"lpa_loss": "l2"},
        {"input_dropout": 1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GCNLPAConfig(**wrong)
