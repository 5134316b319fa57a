"""The two-view GCN against PyG's GCNConv, dense S and plain PyTorch."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from elugcn.engine import (
    GraphInputs,
    as_features,
    normalized_adjacency,
)
from elugcn.models.two_view_gcn import TwoViewGCN
from tests.models.conftest import HID, C, D, N, Small, close


def made(**options: float) -> TwoViewGCN:
    """A model in evaluation mode with biases that matter."""
    torch.manual_seed(0)
    model = TwoViewGCN(D, HID, C, **options)
    nn.init.normal_(model.b1)
    nn.init.normal_(model.b2)
    return model.eval()


def conv(weight: Tensor, bias: Tensor, loops: bool = True) -> GCNConv:
    """PyG's layer with the same weights."""
    out = GCNConv(*weight.shape, add_self_loops=loops)
    with torch.no_grad():
        out.lin.weight.copy_(weight.T)
        out.bias.copy_(bias)
    return out


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_both_views_are_those_of_pyg(small: Small, sparse: bool, loops: bool) -> None:
    model = made()
    adj = normalized_adjacency(small.edges, N, self_loops=loops)
    x = as_features(small.x) if sparse else small.x
    views = model.views(GraphInputs(x, adj, small.graph)).tensors()
    second = conv(model.W2, model.b2, loops)
    hidden = conv(model.W1, model.b1, loops)(small.x, small.edges).relu()
    close(views[0], second(hidden, small.edges))
    s = small.graph.left @ small.graph.right.T
    hidden = (s @ (small.x @ model.W1) + model.b1).relu()
    close(views[1], second(hidden, small.edges))
    # Without S* there is the original view only, and it is what forward gives.
    alone = GraphInputs(x, adj)
    assert len(model.views(alone)) == 1
    close(model(alone), views[0])


def test_gradients_are_those_of_the_dense_model(small: Small) -> None:
    model, a, s = made(), small.adj.to_dense(), small.graph.to_dense()
    weight = torch.randn(2, N, C)
    views = model.views(small.inputs()).tensors()
    (weight[0] * views[0] + weight[1] * views[1]).sum().backward()
    twin = copy.deepcopy(model)
    twin.zero_grad()
    first = a @ ((a @ (small.x @ twin.W1) + twin.b1).relu() @ twin.W2) + twin.b2
    second = a @ ((s @ (small.x @ twin.W1) + twin.b1).relu() @ twin.W2) + twin.b2
    (weight[0] * first + weight[1] * second).sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        close(ours.grad, theirs.grad)


def test_views_given_the_first_product_of_the_elu_view(small: Small) -> None:
    model, inputs = made(), small.inputs()
    product = small.graph.to_dense() @ model.first_product(inputs.x)
    given = model.views_given(inputs.with_elu_graph(None), product).tensors()
    for ours, truth in zip(given, model.views(inputs).tensors(), strict=True):
        close(ours, truth)


# --- randomness ------------------------------------------------------------------------


def test_dropout_is_before_both_weights() -> None:
    # Â = I and one hidden unit: an entry survives with 1/4 and is scaled by 2 twice.
    model = TwoViewGCN(1, 1, 1, dropout=0.5).train()
    adj = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 2000)
    with torch.no_grad():
        model.W1.fill_(1)
        model.W2.fill_(1)
        out = model(GraphInputs(torch.ones(2000, 1), adj))
    assert set(out.unique().tolist()) == {0.0, 4.0}
    assert 0.2 < (out == 4).float().mean() < 0.3


def test_draws_differ_and_the_elu_view_comes_last(small: Small) -> None:
    model, inputs = made(dropout=0.5).train(), small.inputs()
    views = model.views(inputs, draws=3).tensors()
    assert len(views) == 4
    assert not torch.equal(views[0], views[1])
    assert not torch.equal(views[1], views[2])
    model.dropout = model.input_dropout = 0.0
    views, plain = model.views(inputs, draws=2).tensors(), model.eval().views(inputs)
    close(views[0], plain.tensors()[0])
    close(views[1], plain.tensors()[0])
    close(views[2], plain.tensors()[1])


def test_weights_start_as_glorot_and_biases_as_zero() -> None:
    model = TwoViewGCN(200, 300, C)
    bound = (6 / 500) ** 0.5
    assert 0.99 * bound < model.W1.abs().max() <= bound
    assert not model.b1.any()
    assert not model.b2.any()
    assert [id(p) for p in model.first_layer()] == [id(model.W1), id(model.b1)]
