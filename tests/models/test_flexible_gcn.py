"""Every option of the flexible GCN against plain PyTorch; the plain one against both."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import CSR, GraphInputs, MeanPropagation, normalized_adjacency
from elugcn.models.flexible_gcn import FlexibleGCN
from elugcn.models.random_propagation import RandomPropagation
from elugcn.models.two_view_gcn import TwoViewGCN
from tests.models.conftest import HID, C, D, N, Small, close


def made(**options: Any) -> FlexibleGCN:
    """A model in evaluation mode whose biases and norms matter."""
    torch.manual_seed(0)
    model = FlexibleGCN(D, HID, C, **options)
    for bias in model.biases:
        nn.init.normal_(bias)
    for norm in model.norms:
        for p in norm.parameters():
            nn.init.normal_(p)
        if isinstance(norm, nn.BatchNorm1d):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    return model.eval()


def test_with_every_option_off_it_is_the_two_view_gcn(small: Small) -> None:
    torch.manual_seed(3)
    flexible = FlexibleGCN(D, HID, C, dropout=0.5)
    torch.manual_seed(3)
    plain = TwoViewGCN(D, HID, C, dropout=0.5)
    named = {"weights.0": "W1", "biases.0": "b1", "weights.1": "W2", "biases.1": "b2"}
    state = plain.state_dict()
    for ours_name, theirs_name in named.items():
        assert torch.equal(flexible.state_dict()[ours_name], state[theirs_name])
    for training in (False, True):
        outputs = []
        for model in (flexible, plain):
            torch.manual_seed(9)  # of dropout
            model.train(training).zero_grad()
            wide = model.views(small.inputs(), draws=1 + training).joined()
            (wide * torch.linspace(-1, 1, wide.size(1))).sum().backward()
            outputs.append(wide)
        assert torch.equal(*outputs)
        assert plain.W1.grad is not None
        assert flexible.weights[0].grad is not None
        close(flexible.weights[0].grad, plain.W1.grad)
    first = [id(flexible.weights[0]), id(flexible.biases[0])]
    assert [id(p) for p in flexible.first_layer()] == first


def test_mean_propagation_in_the_first_layer_only(small: Small) -> None:
    model = made(first_only=True, num_layers=3)
    inputs = GraphInputs(small.x, MeanPropagation(small.adj, 3), small.graph)
    a = small.adj.to_dense()
    pi = torch.stack([torch.linalg.matrix_power(a, k) for k in range(4)]).mean(dim=0)
    (w1, w2, w3), (b1, b2, b3) = model.weights, model.biases
    for matrix, view in zip(
        (pi, small.graph.to_dense()), model.views(inputs).tensors(), strict=True
    ):
        h = (matrix @ small.x @ w1 + b1).relu()
        close(view, (h @ w2 + b2).relu() @ w3 + b3)


def test_random_propagation_is_a_special_case(small: Small) -> None:
    torch.manual_seed(3)
    flexible = FlexibleGCN(D, HID, C, first_only=True, drop_node=0.3).train()
    torch.manual_seed(3)
    plain = RandomPropagation(D, HID, C, drop_node=0.3).train()
    inputs = GraphInputs(small.x, MeanPropagation(small.adj, 2), small.graph)
    outputs = []
    for model in (flexible, plain):
        torch.manual_seed(9)
        outputs.append(model.views(inputs, draws=2).joined())
    assert torch.equal(*outputs)


@pytest.mark.parametrize("norm", ["none", "layer", "batch", "l2"])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("jump", ["none", "last", "cat", "max"])
def test_norm_residual_and_jump(
    small: Small, norm: str, residual: bool, training: bool, jump: str
) -> None:
    model = made(num_layers=3, norm=norm, residual=residual, dropout=0.0, jump=jump)
    model.train(training)
    a, nodes = small.adj.to_dense(), torch.tensor([3, 22, 7])

    def normed(i: int, h: Tensor) -> Tensor:
        layer = model.norms[i]
        if norm in ("none", "l2"):
            return h
        if norm == "layer":
            mean, var = h.mean(1, keepdim=True), h.var(1, keepdim=True, correction=0)
        elif training:
            mean, var = h.mean(0), h.var(0, correction=0)
        else:
            mean, var = layer.running_mean.clone(), layer.running_var.clone()
        return (h - mean) / (var + 1e-5).sqrt() * layer.weight + layer.bias

    def layer_of(i: int, h: Tensor) -> Tensor:
        width = model.biases[i].numel()
        out = a @ h @ model.weights[i][:, :width] + model.biases[i]
        return out + h @ model.weights[i][:, width:] if residual else out

    h, kept = small.x, []
    for i in range(3 if jump != "none" else 2):
        h = normed(i, layer_of(i, h)).relu()
        h = F.normalize(h, dim=1) if norm == "l2" else h
        kept.append(h)
    if jump == "none":
        expected = layer_of(2, h)
    else:
        joined = {"last": h, "cat": torch.cat(kept, 1)}
        joined["max"] = torch.maximum(torch.maximum(*kept[:2]), kept[2])
        assert model.head is not None
        expected = joined[jump] @ model.head.weight.T + model.head.bias
    inputs = small.inputs(elu=False)
    close(model(inputs), expected)
    if not training:
        few = inputs.restrict(nodes, model.num_layers, keep_own=model.keeps_own)
        close(model(few), expected[nodes])


@pytest.mark.parametrize("residual", [False, True])
def test_directions_have_weights_of_their_own(small: Small, residual: bool) -> None:
    edges = small.edges[:, ::3]  # no longer symmetric
    model = made(directions=2, residual=residual)
    into = normalized_adjacency(edges, N).to_dense()
    out_of = normalized_adjacency(edges.flip(0), N).to_dense()
    adj = CSR.from_tensor(torch.cat([into, out_of], dim=1))
    inputs = GraphInputs(small.x, adj, small.graph)

    def propagated(i: int, h: Tensor) -> Tensor:
        parts = (h @ model.weights[i]).split(model.biases[i].numel(), dim=1)
        out = into @ parts[0] + out_of @ parts[1] + model.biases[i]
        return out + parts[2] if residual else out

    original, elu = model.views(inputs).tensors()
    close(original, propagated(1, propagated(0, small.x).relu()))
    parts = (small.x @ model.weights[0]).split(HID, dim=1)
    close(model.first_product(small.x), parts[0] + parts[1])
    product = small.graph.to_dense() @ (parts[0] + parts[1])
    first = product + model.biases[0] + (parts[2] if residual else 0)
    close(elu, propagated(1, first.relu()))
    alone = inputs.with_elu_graph(None)
    for ours, truth in zip(
        model.views_given(alone, product).tensors(), (original, elu), strict=True
    ):
        close(ours, truth)
