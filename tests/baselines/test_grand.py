"""GRAND against its equations written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.grand import GRAND, GRANDConfig, grand_loss
from elugcn.engine import GraphInputs, MeanPropagation, normalized_adjacency
from elugcn.methods.problem import Shapes
from elugcn.models.random_propagation import RandomPropagation
from tests.baselines.helpers import Draw, accuracy, fit


def network(**options: Any) -> RandomPropagation:
    built = GRAND().build(GRANDConfig(hidden_channels=6, **options), Shapes(4, 3))
    assert isinstance(built, RandomPropagation)
    return built


def graph(order: int, n: int = 60) -> tuple[GraphInputs, Tensor]:
    """X and Π; Π as a dense matrix."""
    torch.manual_seed(order)
    edges = torch.randint(0, n, (2, 2 * n))
    adj = normalized_adjacency(torch.cat([edges, edges.flip(0)], dim=1), n)
    a = adj.to_dense()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    inputs = GraphInputs(torch.rand(n, 4) + 0.1, MeanPropagation(adj, order))
    return inputs, torch.stack(powers).mean(dim=0)


@pytest.mark.parametrize("order", [1, 4, 8])
def test_the_network_is_an_mlp_on_propagated_features(order: int) -> None:
    """The paper's order, propagation first, where ours multiplies first."""
    g, mean = graph(order)
    m = network(order=order).eval()
    expected = F.relu((mean @ g.x) @ m.W1 + m.b1) @ m.W2 + m.b2
    torch.testing.assert_close(m(g), expected)


def test_dropped_nodes_are_rows_of_the_features() -> None:
    """Without edges a dropped node's row is zero; others are twice as large."""
    no_edges = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 400)
    g = GraphInputs(torch.rand(400, 4) + 0.1, MeanPropagation(no_edges, 2))
    m = network(order=2, dropout=0.0, drop_node=0.5).train()
    dropped = F.relu(m.b1) @ m.W2 + m.b2
    kept = F.relu(2 * g.x @ m.W1 + m.b1) @ m.W2 + m.b2
    z = m(g)
    is_kept = torch.isclose(z, kept, atol=1e-5).all(dim=1)
    is_dropped = torch.isclose(z, dropped.expand_as(z), atol=1e-5).all(dim=1)
    assert bool((is_kept | is_dropped).all())
    assert 140 < int(is_kept.sum()) < 260


@pytest.mark.parametrize(("draws", "weight", "t"), [(1, 1.0, 0.5), (4, 0.7, 0.3)])
def test_loss(draws: int, weight: float, t: float) -> None:
    torch.manual_seed(draws)
    outputs = [torch.randn(9, 3) for _ in range(draws)]
    nodes, target = torch.tensor([0, 4, 5]), torch.tensor([2, 0, 1])
    p = torch.stack(outputs).softmax(dim=2)  # draws × n × c
    mean = p.mean(dim=0)
    sharp = mean ** (1 / t) / (mean ** (1 / t)).sum(dim=1, keepdim=True)
    supervised = consistency = 0.0
    for s in range(draws):
        supervised -= float(p[s, nodes, target].log().mean()) / draws
        consistency += float((sharp - p[s]).square().sum() / 9) / draws
    config = GRANDConfig(lambda_cons=weight, sharpening=t)
    loss = grand_loss(outputs, nodes, target, config)
    assert float(loss) == pytest.approx(supervised + weight * consistency, rel=1e-5)
    alone = grand_loss(outputs, nodes, target, GRANDConfig(lambda_cons=0.0))
    assert float(alone) == pytest.approx(supervised, rel=1e-5)


def test_no_gradient_through_the_sharpened_mean() -> None:
    """At T = 1 and one draw the target is the output: nothing is left to learn."""
    z = torch.randn(5, 3, requires_grad=True)
    nodes, target = torch.tensor([0]), torch.tensor([1])
    loss = grand_loss([z], nodes, target, GRANDConfig(sharpening=1.0))
    (gradient,) = torch.autograd.grad(loss, z)
    torch.testing.assert_close(gradient[1:], torch.zeros(4, 3))


def test_unlabelled_nodes_teach_where_draws_disagree() -> None:
    a, b = (torch.randn(5, 3, requires_grad=True) for _ in range(2))
    nodes, target = torch.tensor([0]), torch.tensor([1])
    (gradient,) = torch.autograd.grad(
        grand_loss([a, b], nodes, target, GRANDConfig()), a
    )
    assert (gradient.abs().sum(dim=1) > 0).all()


def test_consistency_changes_what_is_learned(checked: Draw) -> None:
    data = checked(0)
    none, some = (fit(data, "grand", epochs=5, lambda_cons=w) for w in (0.0, 1.0))
    assert not torch.equal(none.logits, some.logits)
    layer = fit(data, "grand", epochs=30, norm="layer", draws=1)
    assert accuracy(layer, data) > 0.6


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_it_learns_on_samples(checked: Draw, norm: str) -> None:
    graph = checked(0, n=300, n_features=16)
    options = {"order": 3, "draws": 2, "sample": 60, "norm": norm}
    assert accuracy(fit(graph, "grand", epochs=40, **options), graph) > 0.75
