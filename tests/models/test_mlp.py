"""The MLP against torch.nn.Sequential with the same weights."""

import pytest
import torch
from torch import nn

from elugcn.engine import CSR
from elugcn.models.mlp import MLP
from elugcn.models.random_propagation import SampledPropagation
from tests.models.conftest import HID, C, D, Small, close


def twin(model: MLP) -> nn.Sequential:
    first, last = nn.Linear(D, HID), nn.Linear(HID, C)
    with torch.no_grad():
        first.weight.copy_(model.W1.T)
        first.bias.copy_(model.b1)
        last.weight.copy_(model.W2.T)
        last.bias.copy_(model.b2)
    return nn.Sequential(first, nn.Identity() if model.linear else nn.ReLU(), last)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_equals_sequential(small: Small, sparse: bool, linear: bool) -> None:
    model = MLP(D, HID, C, linear=linear).eval()
    nn.init.normal_(model.b1)
    nn.init.normal_(model.b2)
    other, weight = twin(model), torch.randn(24, C)
    out, expected = model(small.inputs(sparse)), other(small.x)
    close(out, expected)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    assert model.W1.grad is not None
    assert model.W2.grad is not None
    close(model.W1.grad, other[0].weight.grad.T)
    close(model.b1.grad, other[0].bias.grad)
    close(model.W2.grad, other[2].weight.grad.T)
    close(model.b2.grad, other[2].bias.grad)
    close(model.rows(small.x[[3, 5]]), expected[[3, 5]])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_the_mean_over_dropout_is_the_output_without(
    small: Small, sparse: bool, linear: bool
) -> None:
    # Non-negative weights: ReLU does nothing, so the mean passes through.
    model = MLP(D, HID, C, dropout=0.4, linear=linear)
    x = CSR.from_tensor(small.x) if sparse else small.x
    with torch.no_grad():
        model.W1.abs_()
        model.W2.abs_()
        expected = model.eval().rows(x)
        model.train()
        draws = torch.stack([model.rows(x) for _ in range(1500)])
    assert draws.std(dim=0).max() > 0.05
    error = (draws.mean(dim=0) - expected) / (draws.std(dim=0) / 1500**0.5 + 1e-9)
    assert float(error.abs().max()) < 5


@pytest.mark.parametrize("network", [MLP, SampledPropagation])
def test_each_layer_has_dropout_of_its_own(
    small: Small, network: type[MLP | SampledPropagation]
) -> None:
    for hidden, of_input, random in ((0.0, 0.5, True), (0.5, 0, True), (0, 0, False)):
        model = network(D, HID, C, hidden, of_input).train()
        assert torch.equal(model.rows(small.x), model.rows(small.x)) != random
