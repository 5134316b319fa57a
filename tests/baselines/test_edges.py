"""The GCN over learned weights against PyG's layers, values and gradients."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from elugcn.baselines.common import InputDropoutConfig
from elugcn.baselines.edges import Propagation, WeightedGCN, off_diagonal
from elugcn.baselines.neuralsparse import PairScorer
from elugcn.baselines.ptdnet import EndScorer
from elugcn.engine import CSR, normalized_adjacency
from elugcn.methods.problem import Shapes


def directed_edges(n: int = 30, count: int = 120) -> Tensor:
    """Random edges without loops or repeats; the last node has none."""
    edges = torch.randint(0, n - 1, (2, count))
    return torch.unique(edges[:, edges[0] != edges[1]], dim=1)


def network(
    d: int, h: int, c: int, dropout: float = 0.5, input_dropout: float = 0.5
) -> WeightedGCN:
    config = InputDropoutConfig(hidden_channels=h, dropout=dropout)
    return WeightedGCN(config, Shapes(d, c), input_dropout)


def pattern_of(edges: Tensor, n: int = 30) -> CSR:
    return off_diagonal(normalized_adjacency(edges, n))


def test_pattern_is_the_edges_without_the_diagonal() -> None:
    torch.manual_seed(1)
    edges = directed_edges()
    expected = torch.zeros(30, 30)
    expected[edges[1], edges[0]] = 1.0
    for loops in (True, False):
        adj = normalized_adjacency(edges, 30, self_loops=loops)
        assert torch.equal((off_diagonal(adj).to_dense() > 0).float(), expected)


@pytest.mark.parametrize("loops", [True, False])
def test_values_and_gradients_are_pygs(loops: bool) -> None:
    torch.manual_seed(0)
    edges = directed_edges()
    pattern = pattern_of(edges)
    x, dense = torch.randn(30, 6), torch.rand(30, 30) + 0.1
    ours = dense[pattern.row, pattern.col.long()].requires_grad_()
    theirs = dense[edges[1], edges[0]].requires_grad_()
    model = network(6, 5, 3).eval()
    layers = [GCNConv(*w.shape, add_self_loops=loops) for w in model.weights]
    for layer, w, b in zip(layers, model.weights, model.biases, strict=True):
        torch.nn.init.normal_(b)
        layer.lin.weight.data = w.detach().T.clone()
        layer.bias.data = b.detach().clone()
    a = model(x, Propagation(pattern, ours, loops))
    hidden = F.relu(layers[0](x, edges, theirs))
    b = layers[1](hidden, edges, theirs)
    torch.testing.assert_close(a, b)
    along = torch.randn_like(a)
    torch.autograd.backward([a, b], [along, along])
    one, two = torch.zeros(30, 30), torch.zeros(30, 30)
    assert ours.grad is not None
    assert theirs.grad is not None
    one[pattern.row, pattern.col.long()] = ours.grad
    two[edges[1], edges[0]] = theirs.grad
    torch.testing.assert_close(one, two)
    for layer, w, bias in zip(layers, model.weights, model.biases, strict=True):
        torch.testing.assert_close(w.grad, layer.lin.weight.grad.T)
        torch.testing.assert_close(bias.grad, layer.bias.grad)


def test_edges_of_weight_zero_stay_finite_without_loops() -> None:
    """A degree of zero, or nearly zero, does not divide."""
    pattern = pattern_of(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    # Row 0 gathers node 2 with weight 1, row 1 node 0 with 0, row 2 node 1 with 1e-9.
    weight = torch.tensor([1.0, 0.0, 1e-9], requires_grad=True)
    out = Propagation(pattern, weight, False) @ torch.ones(3, 1)
    # D^-½ is at most 10: row 2 is 1e-9 · 10 · 10, row 0 is 1 · 1 · 10.
    assert out.flatten().tolist() == pytest.approx([10.0, 0.0, 1e-7])
    (gradient,) = torch.autograd.grad(out.sum(), weight)
    assert bool(gradient.isfinite().all())


def test_sparse_features_and_dropout() -> None:
    torch.manual_seed(5)
    pattern = pattern_of(directed_edges())
    graph = Propagation(pattern, torch.rand(pattern.nnz))
    x = torch.randn(30, 6) * (torch.rand(30, 6) < 0.2)
    for dropout in ((0.5, 0.0), (0.0, 0.5)):
        model = network(6, 5, 3, *dropout).eval()
        dense = model(x, graph)
        torch.testing.assert_close(model(CSR.from_tensor(x), graph), dense)
        assert not torch.equal(model.train()(x, graph), dense)


@pytest.mark.parametrize(
    ("scorer", "fan_in"), [(PairScorer, 600), (EndScorer, 300)], ids=["pair", "end"]
)
def test_scorers_start_with_glorots_weights(scorer: Any, fan_in: int) -> None:
    """Uniform within the limits of one linear map; a large sample nearly reaches them."""
    torch.manual_seed(0)
    weight = scorer(300, 200).weight.detach()
    limit = (6 / (fan_in + 200)) ** 0.5
    assert float(weight.abs().max()) == pytest.approx(limit, rel=0.01)
    assert float(weight.std()) == pytest.approx(limit / 3**0.5, rel=0.05)
