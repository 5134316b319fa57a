"""APPNP against PyG's propagation."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor

from elugcn.baselines.appnp import APPNP, APPNPConfig, APPNPNetwork, pagerank
from elugcn.engine import CSR, GraphInputs, Workspace, dropout, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import gradient


def graph(directed: bool = False, n: int = 60) -> tuple[Tensor, CSR, Tensor]:
    """Edges, Â and H."""
    torch.manual_seed(0)
    edges = torch.randint(0, n, (2, 3 * n))
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    edges = torch.unique(edges, dim=1)
    return edges, normalized_adjacency(edges, n), torch.randn(n, 3)


def network(**options: Any) -> APPNPNetwork:
    config = APPNPConfig(hidden_channels=5, **options)
    return APPNP().build(config, Shapes(4, 3))


@pytest.mark.parametrize(("steps", "alpha"), [(0, 0.1), (1, 0.3), (10, 0.1), (4, 1.0)])
def test_propagation_is_pygs(steps: int, alpha: float) -> None:
    edges, adj, h = graph()
    expected = pyg.APPNP(steps, alpha)(h, edges)
    torch.testing.assert_close(pagerank(adj, h, steps, alpha), expected)


def test_the_network_is_an_mlp_and_its_propagation() -> None:
    _, adj, _ = graph()
    model, x = network(steps=3, alpha=0.2).eval(), torch.randn(60, 4)
    mlp = model.mlp
    h = F.relu(x @ mlp.W1 + mlp.b1) @ mlp.W2 + mlp.b2
    expected = h
    for _ in range(3):
        expected = 0.8 * adj.to_dense() @ expected + 0.2 * h
    torch.testing.assert_close(model(GraphInputs(x, adj)), expected)
    assert model.first_layer() == [mlp.W1, mlp.b1]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("steps", [0, 3])
def test_gradients_pass_through_dropped_edges(directed: bool, steps: int) -> None:
    """The same masks, densely: values and gradients agree."""
    _, adj, h = graph(directed)
    assert adj.symmetric != directed
    one, two = h.clone().requires_grad_(), h.clone().requires_grad_()
    with Workspace(7) as workspace:
        workspace.begin_step(0)
        z = pagerank(adj, one, steps, 0.1, 0.5)
    with Workspace(7) as workspace:
        workspace.begin_step(0)
        values = dropout(adj.value.expand(steps, -1), 0.5)
    expected = two
    for value in values:
        masked = adj.with_values(value).to_dense()
        expected = 0.9 * masked @ expected + 0.1 * two
    torch.testing.assert_close(z, expected)
    torch.testing.assert_close(gradient(z, one), gradient(expected, two))
    assert torch.equal(one, h)


def test_edges_are_dropped_in_training_only() -> None:
    _, adj, _ = graph()
    inputs = GraphInputs(torch.randn(60, 4), adj)
    model = network(dropout=0.0, edge_dropout=0.5)
    assert not torch.equal(model.train()(inputs), model(inputs))
    assert torch.equal(model.eval()(inputs), model(inputs))
