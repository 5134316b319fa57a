"""APPNP against PyG's propagation and against the closed form of PageRank."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.methods.appnp import APPNPConfig
from elugcn.nn.appnp import APPNP, personalized


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


@pytest.mark.parametrize(("steps", "alpha"), [(0, 0.1), (1, 0.3), (10, 0.1), (4, 1.0)])
def test_propagation_is_pygs(steps: int, alpha: float) -> None:
    data = draw(n=80).data
    h = torch.randn(80, 3, generator=torch.Generator().manual_seed(0))
    adj = normalized_adjacency(data.edge_index, 80)
    expected = pyg.APPNP(steps, alpha)(h, data.edge_index)
    torch.testing.assert_close(personalized(adj, h, steps, alpha, 0.0), expected)


def test_many_steps_reach_personalised_pagerank() -> None:
    data = draw(n=80).data
    h = torch.randn(80, 3, generator=torch.Generator().manual_seed(0))
    adj = normalized_adjacency(data.edge_index, 80)
    exact = 0.2 * torch.linalg.solve(torch.eye(80) - 0.8 * adj.to_dense(), h)
    z = personalized(adj, h, 100, 0.2, 0.0)
    torch.testing.assert_close(z, exact, rtol=1e-4, atol=1e-5)


def test_the_network_is_an_mlp_and_its_propagation() -> None:
    torch.manual_seed(0)
    data = draw(n=80).data
    adj = normalized_adjacency(data.edge_index, 80)
    model = APPNP(16, 5, 3, steps=3, alpha=0.2).eval()
    mlp = model.mlp
    h = mlp.out(F.relu(data.x @ mlp.weight + mlp.bias))
    expected = h
    for _ in range(3):
        expected = 0.8 * adj.to_dense() @ expected + 0.2 * h
    torch.testing.assert_close(model(data.x, adj), expected)
    assert model.first_layer() == [mlp.weight, mlp.bias]


def test_edge_dropout_draws_the_whole_graph_anew_in_each_step() -> None:
    """On the complete graph every step of independent masks averages 40 of them."""
    n = 40
    everyone = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    adj = normalized_adjacency(everyone, n, self_loops=False)
    torch.manual_seed(0)
    h = torch.ones(n, 1)
    # Were the masks to pile up, at step k a share of 2⁻ᵏ of the entries would stand,
    # 2ᵏ times as large: a mean over less than one neighbour, spread accordingly.
    z = torch.stack([personalized(adj, h, 6, 0.0, 0.5) for _ in range(200)])
    assert z.mean() == pytest.approx(1.0, abs=0.05)
    assert z.std() < 0.35


@pytest.mark.parametrize("directed", [False, True])
def test_gradients_pass_through_dropped_edges(directed: bool) -> None:
    """The same masks, densely: values and gradients agree."""
    edges = draw(n=60).data.edge_index
    if directed:
        edges = edges[:, edges[0] < edges[1]]
    adj = normalized_adjacency(edges, 60)
    assert adj.symmetric != directed
    h = torch.randn(60, 3, generator=torch.Generator().manual_seed(1))
    one, two = h.clone().requires_grad_(), h.clone().requires_grad_()
    torch.manual_seed(7)
    z = personalized(adj, one, 3, 0.1, 0.5)
    torch.manual_seed(7)
    expected = two
    for _ in range(3):
        dropped = CSR(adj.crow, adj.col, adj.value, 60).dropout(0.5).to_dense()
        expected = 0.9 * dropped @ expected + 0.1 * two
    torch.testing.assert_close(z, expected)
    (ours,) = torch.autograd.grad(z.square().sum(), one)
    (theirs,) = torch.autograd.grad(expected.square().sum(), two)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("steps", "alpha"), [(0, 0.3), (1, 0.0), (5, 0.3), (2, 1.0)])
def test_with_nothing_dropped_it_is_the_plain_propagation(
    steps: int, alpha: float
) -> None:
    """A probability that rounds to zero takes the road of dropped edges."""
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60)
    h = torch.randn(60, 3, generator=torch.Generator().manual_seed(2))
    one, two = h.clone().requires_grad_(), h.clone().requires_grad_()
    z, expected = (
        personalized(adj, one, steps, alpha, 1e-9),
        personalized(adj, two, steps, alpha, 0.0),
    )
    torch.testing.assert_close(z, expected)
    (ours,) = torch.autograd.grad(z.square().sum(), one)
    (theirs,) = torch.autograd.grad(expected.square().sum(), two)
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(one, h)


def test_edge_dropout_keeps_the_mean_and_its_gradient() -> None:
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60)
    torch.manual_seed(3)
    h = torch.rand(60, 2, requires_grad=True)
    weight = torch.randn(60, 2)

    def both(p: float) -> tuple[torch.Tensor, torch.Tensor]:
        z = personalized(adj, h, 4, 0.1, p)
        return z.detach(), torch.autograd.grad((z * weight).sum(), h)[0]

    # Z is linear in independent masks: the mean of either is what no mask gives.
    drawn = [both(0.4) for _ in range(800)]
    for i, exact in enumerate(both(0.0)):
        many = torch.stack([d[i] for d in drawn])
        error = many.std(dim=0) / len(many) ** 0.5
        assert bool(((many.mean(dim=0) - exact).abs() < 5 * error + 1e-5).all())
        assert float(error.max()) > 0


def test_edges_are_dropped_in_training_only() -> None:
    torch.manual_seed(0)
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60)
    model = APPNP(16, 4, 3, dropout=0.0, edge_dropout=0.5)
    model.train()
    assert not torch.equal(model(data.x, adj), model(data.x, adj))
    model.eval()
    assert torch.equal(model(data.x, adj), model(data.x, adj))


@pytest.mark.parametrize(
    "wrong", [{"steps": -1}, {"alpha": 1.5}, {"alpha": -0.1}, {"edge_dropout": 1.0}]
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        APPNPConfig(**wrong)
