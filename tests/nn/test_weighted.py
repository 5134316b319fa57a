"""The GCN over learned weights against PyG's layers, values and gradients."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.nn.weighted import Edges, Propagation, WeightedGCN


def directed_edges(n: int = 30, count: int = 120) -> Tensor:
    """Random edges without loops or repeats, in no order; the last node has none."""
    edges = torch.randint(0, n - 1, (2, count))
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    order = torch.randperm(edges.size(1))
    return torch.index_select(edges, 1, order)


def pyg_logits(
    model: WeightedGCN, x: Tensor, edges: Tensor, weight: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """The same network of two ``GCNConv``, and its parameters in our order."""
    layers = []
    for w, b in zip(model.weights, model.biases, strict=True):
        layer = GCNConv(*w.shape, add_self_loops=model.self_loops)
        layer.lin.weight.data = w.detach().T.clone()
        layer.bias.data = b.detach().clone()
        layers.append(layer)
    first, second = layers
    logits = second(F.relu(first(x, edges, weight)), edges, weight)
    return logits, [first.lin.weight, second.lin.weight, first.bias, second.bias]


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("laid_out", [False, True])
def test_values_and_gradients_are_pygs(laid_out: bool, loops: bool) -> None:
    torch.manual_seed(0)
    edges = directed_edges()
    x = torch.randn(30, 6)
    weight = (torch.rand(edges.size(1)) + 0.1).requires_grad_()
    model = WeightedGCN(6, 5, 3, dropout=0.5, self_loops=loops).eval()
    torch.nn.init.normal_(model.biases[0])
    torch.nn.init.normal_(model.biases[1])
    given = Edges.of_index(edges, 30) if laid_out else edges
    ours = model(x, given, weight)
    other = weight.detach().clone().requires_grad_()
    theirs, parameters = pyg_logits(model, x, edges, other)
    torch.testing.assert_close(ours, theirs)
    along = torch.randn_like(ours)
    torch.autograd.backward([ours, theirs], [along, along])
    torch.testing.assert_close(weight.grad, other.grad)
    grads = [p.grad for p in (*model.weights, *model.biases)]
    for i, (mine, p) in enumerate(zip(grads, parameters, strict=True)):
        expected = p.grad
        assert expected is not None
        torch.testing.assert_close(mine, expected.T if i < 2 else expected)


def test_the_pattern_of_a_matrix_leaves_its_diagonal_out() -> None:
    torch.manual_seed(1)
    edges = directed_edges()
    for loops in (True, False):
        adj = normalized_adjacency(edges, 30, self_loops=loops)
        at = Edges.of(adj)
        assert Edges.of(adj) is at
        expected = torch.zeros(30, 30)
        expected[edges[1], edges[0]] = 1.0
        assert torch.equal(at.pattern.to_dense(), expected)
    gone = weakref.ref(at)
    del at, adj
    gc.collect()
    assert gone() is None


def test_some_edges_are_the_rest_with_weight_zero() -> None:
    torch.manual_seed(2)
    edges = directed_edges()
    weight = torch.rand(edges.size(1))
    all_of = Edges.of_index(edges, 30)
    keep = torch.rand(edges.size(1)) < 0.5
    assert all_of.order is not None
    places = keep[all_of.order].nonzero().squeeze(1)
    z = torch.randn(30, 4)
    some = Propagation(all_of.kept(places), weight) @ z
    torch.testing.assert_close(some, Propagation(all_of, weight * keep) @ z)


def test_without_edges_it_is_an_mlp() -> None:
    torch.manual_seed(4)
    model = WeightedGCN(4, 3, 2, dropout=0.0)
    x = torch.randn(6, 4)
    weight = torch.empty(0, requires_grad=True)
    logits = model(x, torch.empty(2, 0, dtype=torch.long), weight)
    hidden = F.relu(x @ model.weights[0] + model.biases[0])
    torch.testing.assert_close(logits, hidden @ model.weights[1] + model.biases[1])
    (gradient,) = torch.autograd.grad(logits.sum(), weight)
    assert gradient.shape == (0,)


def test_shut_edges_without_loops_stay_finite() -> None:
    """A degree of zero, or nearly, does not divide."""
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    weight = torch.tensor([0.0, 1e-9, 1.0], requires_grad=True)
    out = Propagation(Edges.of_index(edges, 3), weight, False) @ torch.ones(3, 1)
    # Row 2 weighs 1e-9 · 10 · 10; row 0 is 1 · 1 · 10.
    assert out.flatten().tolist() == pytest.approx([10.0, 0.0, 1e-7])
    (gradient,) = torch.autograd.grad(out.sum(), weight)
    assert bool(gradient.isfinite().all())


def test_sparse_features_and_dropout() -> None:
    torch.manual_seed(5)
    edges = directed_edges()
    weight = torch.rand(edges.size(1))
    x = torch.randn(30, 6) * (torch.rand(30, 6) < 0.2)
    model = WeightedGCN(6, 5, 3, dropout=0.5).eval()
    dense = model(x, edges, weight)
    torch.testing.assert_close(model(CSR.from_tensor(x), edges, weight), dense)
    assert not torch.equal(model.train()(x, edges, weight), dense)


def test_only_the_first_layer_can_be_decayed() -> None:
    model = WeightedGCN(4, 3, 2)
    first = {id(p) for p in model.first_layer()}
    rest = {k for k, p in model.named_parameters() if id(p) not in first}
    assert rest == {"weights.1", "biases.1"}
