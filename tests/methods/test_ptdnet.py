"""PTDNet: the gates, every term of the loss, and what it keeps."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.core.singular import SingularSum
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.ptdnet import (
    Draw,
    PTDNet,
    PTDNetConfig,
    PTDNetPredictor,
    ptdnet_loss,
)
from elugcn.nn.edges import hard_concrete, open_probability

LIMITS = (-0.1, 1.1)


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("ptdnet", options=options)
    return fit_graph(graph, "ptdnet", config, seed=seed)


def adjacency(data: Data) -> CSR:
    return normalized_adjacency(data.edge_index, data.num_nodes)


def network(self_loops: bool = True) -> PTDNet:
    model = PTDNet(16, 8, 3, 0.0, 4, *LIMITS, self_loops)
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model


# --- gates -------------------------------------------------------------------------


def test_gates_without_noise_by_hand() -> None:
    """σ(ln 3) = 3/4 and σ(−ln 3) = 1/4, stretched from [0, 1] to [−0.1, 1.1]."""
    alpha = torch.tensor([0.0, math.log(3), -math.log(3), 9.0, -9.0])
    gates = hard_concrete(alpha, None, *LIMITS)
    assert gates.tolist() == pytest.approx([0.5, 0.8, 0.2, 1.0, 0.0])
    assert torch.equal(gates, hard_concrete(alpha, None, *LIMITS))


def test_gates_of_large_scores_are_shut_or_open() -> None:
    torch.manual_seed(0)
    alpha = torch.tensor([-60.0, 60.0]).repeat(1000)
    assert hard_concrete(alpha, 2.0, *LIMITS).view(-1, 2).unique(dim=0).tolist() == [
        [0.0, 1.0]
    ]


def test_cold_gates_are_coins() -> None:
    """As τ falls, the gate is 1 with probability σ(α) and else 0."""
    torch.manual_seed(0)
    alpha = torch.full((100_000,), 0.7)
    gates = hard_concrete(alpha, 1e-4, *LIMITS)
    between = float(((gates > 0) & (gates < 1)).float().mean())
    assert between < 1e-3
    assert float(gates.mean()) == pytest.approx(1 / (1 + math.exp(-0.7)), abs=0.01)


@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("score", [-2.0, 0.0, 1.5])
def test_open_probability_is_the_share_of_open_gates(score: float, tau: float) -> None:
    torch.manual_seed(0)
    alpha = torch.full((40_000,), score)
    share = float((hard_concrete(alpha, tau, *LIMITS) > 0).float().mean())
    expected = 1 / (1 + math.exp(-(score - tau * math.log(0.1 / 1.1))))
    assert float(open_probability(alpha, tau, *LIMITS)[0]) == pytest.approx(expected)
    assert share == pytest.approx(expected, abs=0.012)


# --- the network -------------------------------------------------------------------


def dense_layer(scorer: Any, h: Tensor, linked: Tensor, loops: bool) -> Tensor:
    """Â of the gated edges, every pair scored."""
    u, v = scorer.weight.chunk(2, dim=1)
    b, d = scorer.bias.chunk(2)
    w, y = scorer.head.chunk(2)
    alpha = (F.relu(h @ u + b) @ w)[:, None] + (F.relu(h @ v + d) @ y)[None, :]
    gates = torch.sigmoid(alpha + scorer.offset) * 1.2 - 0.1
    a = gates.clamp(0, 1) * linked + torch.eye(len(h)) * loops
    scale = a.sum(dim=1).rsqrt().clamp(max=10)
    return scale[:, None] * a * scale[None, :]


@pytest.mark.parametrize("loops", [True, False])
def test_equations(loops: bool) -> None:
    torch.manual_seed(1)
    data = draw(n=60).data
    model = network(self_loops=loops).eval()
    linked = torch.zeros(60, 60)
    linked[data.edge_index[1], data.edge_index[0]] = 1.0
    (w1, w2), (b1, b2) = model.gcn.weights, model.gcn.biases
    h = F.relu(dense_layer(model.scorers[0], data.x, linked, loops) @ data.x @ w1 + b1)
    expected = dense_layer(model.scorers[1], h, linked, loops) @ h @ w2 + b2
    ours = model(data.x, adjacency(data))
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


def test_draws_differ_and_evaluation_does_not() -> None:
    torch.manual_seed(2)
    data = draw(n=60).data
    adj = adjacency(data)
    model = network().train()
    one, two = model.draws(data.x, adj, 1.0, 2)
    assert not torch.equal(one.logits, two.logits)
    assert one.scores[0] is two.scores[0]
    assert torch.equal(model(data.x, adj), model(data.x, adj))


# --- the loss ----------------------------------------------------------------------


def parts(**weights: float) -> PTDNetConfig:
    off = {"lambda_edges": 0.0, "lambda_rank": 0.0, "lambda_cons": 0.0}
    return PTDNetConfig(**(off | weights))  # type: ignore[arg-type]


@pytest.fixture
def drawn() -> list[Draw]:
    torch.manual_seed(3)
    data = draw(n=60).data
    return network().train().draws(data.x, adjacency(data), 0.7, 3)


def term(drawn: list[Draw], steps: int = 2, **weights: float) -> Tensor:
    """One term, the cross-entropy taken off."""
    nodes, target = torch.tensor([0, 4, 5]), torch.tensor([2, 0, 1])
    singular = [SingularSum(1, steps), SingularSum(1, steps)]
    with_it, without = (
        ptdnet_loss(drawn, nodes, target, 0.7, config, singular)
        for config in (parts(**weights), parts())
    )
    return with_it - without


def test_cross_entropy_is_that_of_the_mean_logits(drawn: list[Draw]) -> None:
    nodes, target = torch.tensor([0, 4, 5]), torch.tensor([2, 0, 1])
    loss = ptdnet_loss(drawn, nodes, target, 0.7, parts(), []).detach()
    mean = torch.stack([d.logits.detach().double() for d in drawn]).mean(dim=0)
    p = mean.softmax(dim=1)
    assert float(loss) == pytest.approx(-float(p[nodes, target].log().mean()))


def test_edge_term_closed_form_and_gradient(drawn: list[Draw]) -> None:
    expected = 0.0
    for alpha in (a for d in drawn for a in d.scores):
        z = alpha.detach().double() - 0.7 * math.log(0.1 / 1.1)
        expected += float((1 / (1 + (-z).exp())).mean())
    ours = term(drawn, lambda_edges=2.0)
    assert float(ours.detach()) == pytest.approx(2 * expected, rel=1e-4)
    # The last layer's scores are not read by anything else.
    z = drawn[0].scores[1]
    (gradient,) = torch.autograd.grad(ours, z)
    p = (z.detach() - 0.7 * math.log(0.1 / 1.1)).sigmoid()
    torch.testing.assert_close(gradient, 2 * p * (1 - p) / z.numel())


def test_rank_term_is_the_largest_singular_value(drawn: list[Draw]) -> None:
    expected = 0.0
    for graph in drawn[-1].graphs:
        expected += float(torch.linalg.svdvals(graph.weights.matrix.to_dense())[0])
    ours = term(drawn, steps=100, lambda_rank=0.5)
    assert float(ours.detach()) == pytest.approx(expected / 2, rel=1e-4)
    (gradient,) = torch.autograd.grad(ours, drawn[-1].scores[1])
    assert bool((gradient != 0).any())


def test_consistency_term(drawn: list[Draw]) -> None:
    z = torch.stack([d.logits.detach().double() for d in drawn])
    expected = 0.0
    for i in range(60):
        expected += float((z[:, i] - z[:, i].mean(dim=0)).square().sum()) / 2 / 60
    assert float(term(drawn, lambda_cons=3.0).detach()) == pytest.approx(
        3 * expected, rel=1e-4
    )


def test_temperature_by_hand() -> None:
    config = PTDNetConfig()
    assert config.temperature(0) == 2.0
    assert config.temperature(2) == pytest.approx(1.9602)
    assert config.temperature(5000) == 0.05


# --- the method --------------------------------------------------------------------


def test_a_high_price_of_edges_shuts_gates() -> None:
    graph = draw(n=150)
    data, adj = graph.data, adjacency(graph.data)

    def open_share(price: float) -> float:
        off = {"lambda_rank": 0.0, "lambda_cons": 0.0, "draws": 1}
        options = off | {"epochs": 30, "lr": 0.05, "lambda_edges": price}
        fitted = fit(graph, 0, select="loss", **options)
        model = fitted.prediction.predictor.model  # type: ignore[union-attr]
        gates = model.draws(data.x, adj, None)[0].graphs[0].weights.value
        return float(gates.detach().mean())

    assert open_share(5.0) < 0.5 * open_share(0.0)


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=4, draws=2, gamma=-0.2, zeta=1.3)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, PTDNetPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = PTDNetPredictor.restore(*predictor.state())
    assert isinstance(again.model, PTDNet)
    assert again.model.limits == (-0.2, 1.3)
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_only_the_first_layer_can_be_decayed() -> None:
    model = network()
    first = {id(p) for p in model.first_layer()}
    names = {k for k, p in model.named_parameters() if id(p) in first}
    assert names == {"gcn.weights.0", "gcn.biases.0"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"scorer_channels": 0},
        {"input_dropout": 1.0},
        {"draws": 0},
        {"rank": 0},
        {"lambda_edges": -1.0},
        {"lambda_rank": -1.0},
        {"lambda_cons": -1.0},
        {"gamma": 0.0},
        {"zeta": 1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        PTDNetConfig(**wrong)
