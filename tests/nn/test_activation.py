"""Bias, ReLU and dropout in one pass, against the three of them one by one."""

import pytest
import torch
import torch.nn.functional as F

from elugcn.core.random import dropout
from elugcn.nn.activation import activate


@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("training", [True, False])
def test_equals_the_three_steps(p: float, training: bool) -> None:
    # Columns of one matrix, as a product of several views side by side leaves them.
    wide = torch.randn(9, 10)
    weight = torch.randn(5, 3)
    results = []
    for fused in (True, False):
        leaf, bias = wide.clone().requires_grad_(), torch.linspace(-1, 1, 5)
        bias.requires_grad_()
        torch.manual_seed(3)
        views = leaf.chunk(2, dim=1)
        if fused:
            h, scale = activate(views, bias, p, training)
            out = h @ (weight * scale)
        else:
            h = dropout(F.relu(torch.cat(list(views)) + bias), p, training)
            out = h @ weight
        out.pow(2).sum().backward()
        results.append((out.detach(), leaf.grad, bias.grad))
    for ours, truth in zip(*results, strict=True):
        assert ours is not None
        assert truth is not None
        torch.testing.assert_close(ours, truth)
    assert results[0][0].abs().sum() > 0


def test_gradients_numerically() -> None:
    a, b = torch.randn(4, 3).double() + 0.1, torch.randn(2, 3).double() - 0.1
    bias = torch.randn(3).double()
    inputs = [t.requires_grad_() for t in (a, b, bias)]
    assert torch.autograd.gradcheck(
        lambda x, y, c: activate([x, y], c, 0.5, False)[0], inputs
    )


def test_mean_over_draws_is_the_relu() -> None:
    z, bias = torch.rand(40, 30), torch.zeros(30)
    total = torch.zeros(40, 30)
    for _ in range(400):
        h, scale = activate([z], bias, 0.6, True)
        total += h * scale / 400
    assert (total - z).abs().mean() < 0.06
    assert total.mean() == pytest.approx(float(z.mean()), rel=0.02)
