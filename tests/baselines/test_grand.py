"""GRAND against its equations written out densely."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.grand import GRAND, GRANDConfig
from elugcn.engine import GraphInputs, MeanPropagation, normalized_adjacency
from elugcn.methods.problem import Shapes
from elugcn.models.random_propagation import RandomPropagation
from tests.baselines.helpers import Draw, accuracy, fit, objective


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
def test_loss(checked: Draw, draws: int, weight: float, t: float) -> None:
    options = {"draws": draws, "lambda_cons": weight, "sharpening": t}
    loss, _, _ = objective(checked(n=90), "grand", **options)
    outputs = [torch.randn(90, 3, requires_grad=True) for _ in range(draws)]
    drawn = SimpleNamespace(tensors=lambda: outputs)
    loss.model = SimpleNamespace(views=lambda *_, **__: drawn)
    p = torch.stack(outputs).softmax(dim=2)  # draws × n × c
    mean = p.mean(dim=0).detach()  # no gradient through what draws have to agree with
    sharp = mean ** (1 / t) / (mean ** (1 / t)).sum(dim=1, keepdim=True)
    expected = -p[:, loss.train_index, loss.target].log().mean()
    expected = expected + weight * (sharp - p).square().sum(dim=2).mean()
    ours = loss.loss(0)
    torch.testing.assert_close(ours, expected)
    gradients = (torch.autograd.grad(x, outputs[0])[0] for x in (ours, expected))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


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
