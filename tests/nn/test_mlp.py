"""The MLP against torch.nn.Sequential with the same weights."""

import pytest
import torch
from torch import Tensor, nn

from elugcn.core.sparse import CSR
from elugcn.nn import MLP
from elugcn.nn.layers import drop_matmul


def twin(model: MLP, linear: bool) -> nn.Sequential:
    d, h = model.weight.shape
    layers = [
        nn.Linear(d, h),
        nn.Identity() if linear else nn.ReLU(),
        nn.Linear(h, model.out.out_features),
    ]
    first, last = layers[0], layers[2]
    with torch.no_grad():
        first.weight.copy_(model.weight.T)
        first.bias.copy_(model.bias)
        last.weight.copy_(model.out.weight)
        last.bias.copy_(model.out.bias)
    return nn.Sequential(*layers)


def inputs() -> Tensor:
    x = torch.rand(20, 7)
    return torch.where(x > 0.6, x, 0.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_equals_sequential(sparse: bool, linear: bool) -> None:
    model = MLP(7, 5, 3, linear=linear).eval()
    nn.init.normal_(model.bias)
    nn.init.normal_(model.out.bias)
    x, weight = inputs(), torch.randn(20, 3)
    expected = twin(model, linear)
    out = model(CSR.from_tensor(x) if sparse else x)
    torch.testing.assert_close(out, expected(x))
    (out * weight).sum().backward()
    (expected(x) * weight).sum().backward()
    torch.testing.assert_close(model.weight.grad, expected[0].weight.grad.T)
    torch.testing.assert_close(model.bias.grad, expected[0].bias.grad)
    torch.testing.assert_close(model.out.weight.grad, expected[2].weight.grad)


def test_linear_is_the_product_of_the_paper() -> None:
    model = MLP(7, 5, 3, linear=True).eval()
    x = inputs()
    # Biases start at zero: H = X Θ₁ Θ₂.
    torch.testing.assert_close(model(x), x @ model.weight @ model.out.weight.T)


@pytest.mark.parametrize("sparse", [False, True])
def test_dropout_mean_is_the_output_without(sparse: bool) -> None:
    # Non-negative weights: ReLU does nothing, so the mean passes through.
    model = MLP(7, 5, 3, dropout=0.4)
    with torch.no_grad():
        model.weight.abs_()
        model.out.weight.abs_()
        x: CSR | Tensor = CSR.from_tensor(inputs()) if sparse else inputs()
        expected = model.eval()(x)
        model.train()
        draws = torch.stack([model(x) for _ in range(2000)])
    assert draws.std(dim=0).max() > 0.05
    error = (draws.mean(dim=0) - expected) / (draws.std(dim=0) / 2000**0.5 + 1e-9)
    assert float(error.abs().max()) < 5


@pytest.mark.parametrize("sparse", [False, True])
def test_drop_matmul(sparse: bool) -> None:
    # With W = I the dropped matrix itself is seen.
    x = inputs()
    given = CSR.from_tensor(x) if sparse else x
    torch.testing.assert_close(drop_matmul(given, torch.eye(7), 0.5, training=False), x)
    out = drop_matmul(given, torch.eye(7), 0.75, training=True)
    kept = out != 0
    torch.testing.assert_close(out[kept], 4 * x[kept])
    assert 0 < int(kept.sum()) < int((x != 0).sum())


def test_first_layer() -> None:
    model = MLP(7, 5, 3)
    assert [id(p) for p in model.first_layer()] == [id(model.weight), id(model.bias)]
