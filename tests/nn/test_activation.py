"""Bias, ReLU, dropout and product in one pass, against the four of them one by one."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.random import dropout
from elugcn.nn import activation
from elugcn.nn.activation import activated_product
from elugcn.nn.propagate import Factored

pytestmark = pytest.mark.usefixtures("either_way")


def results(
    p: float, training: bool, fused: bool, width: int = 8
) -> tuple[Tensor, ...]:
    """The product of two views, and the gradients of a loss on it."""
    # Columns of one matrix, as a product of several views side by side leaves them.
    torch.manual_seed(1)
    wide, weight = torch.randn(9, 2 * width), torch.randn(width, 3)
    bias = torch.linspace(-1, 1, width)
    leaves = [t.requires_grad_() for t in (wide, weight, bias)]
    views = wide.chunk(2, dim=1)
    torch.manual_seed(3)
    if fused:
        out = activated_product(views, bias, weight, p, training)
    else:
        out = dropout(F.relu(torch.cat(list(views)) + bias), p, training) @ weight
    out.pow(2).sum().backward()
    return out.detach(), *(t.grad for t in leaves if t.grad is not None)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("block", [8, 32, 10**6], ids=lambda b: f"{b} entries")
def test_equals_the_four_steps(
    p: float, training: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight entries are one drawn word: blocks see the same noise as the whole.
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", block)
    ours, truth = (results(p, training, fused) for fused in (True, False))
    assert len(ours) == len(truth) == 4
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b)
        assert a.abs().sum() > 0


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_views_side_by_side(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", 16)
    views = [2 * torch.randn(9, 8, requires_grad=True) for _ in range(2)]
    bias, weight = torch.randn(8), torch.randn(8, 3)
    torch.manual_seed(4)
    below = activated_product([z.clone() for z in views], bias, weight, p, True)
    torch.manual_seed(4)
    beside = activated_product([z.clone() for z in views], bias, weight, p, True, True)
    assert torch.equal(beside, torch.cat(below.chunk(2), dim=1))
    # A loss that tells the places apart; the order of columns is all that differs.
    scores = torch.randn(9, 6)
    kept = [torch.autograd.grad((beside * scores).sum(), views)]
    torch.manual_seed(4)
    below = activated_product([z.clone() for z in views], bias, weight, p, True)
    stacked = torch.cat(scores.chunk(2, dim=1))
    kept.append(torch.autograd.grad((below * stacked).sum(), views))
    for a, b in zip(*kept, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("beside", [False, True])
def test_a_view_in_factors_is_the_view_multiplied_out(
    beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", 16)
    left, leaf = torch.randn(9, 2), torch.randn(9, 8)
    bias, weight, right = torch.randn(8), torch.randn(8, 3), torch.randn(2, 8)
    scores = torch.randn(9, 6) if beside else torch.randn(18, 3)
    found = []
    for factored in (True, False):
        inputs = [t.clone().requires_grad_() for t in (leaf, right, bias, weight)]
        z, m, b, w = inputs
        second = Factored(left, m * 1) if factored else left @ m
        torch.manual_seed(4)
        out = activated_product([z * 1, second], b, w, 0.5, True, beside)
        grads = torch.autograd.grad((out * scores).sum(), inputs)
        with torch.no_grad():
            again = Factored(left, m) if factored else left @ m
            still = activated_product([z, again], b, w, 0.5, False, beside)
        found.append((out.detach(), still, *grads))
    for ours, truth in zip(*found, strict=True):
        torch.testing.assert_close(ours, truth)
        assert truth.abs().sum() > 0


@pytest.mark.parametrize("entries", [1, 30, 60, 10**6])
def test_a_left_factor_wider_than_the_layer(
    entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of one row, one, two and all of them, beside a view that is whole."""
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", entries)
    left, right = torch.randn(9, 30), torch.randn(30, 4)
    bias, weight, whole = torch.randn(4), torch.randn(4, 3), torch.randn(9, 4)
    with torch.no_grad():
        out = activated_product(
            [whole, Factored(left, right)], bias, weight, 0.0, False, beside=True
        )
    views = [(z + bias).relu() @ weight for z in (whole, left @ right)]
    torch.testing.assert_close(out, torch.cat(views, dim=1))


def test_without_gradients_it_is_the_same() -> None:
    with_them = results(0.5, False, True)[0]
    torch.manual_seed(1)
    wide, weight = torch.randn(9, 16), torch.randn(8, 3)
    with torch.no_grad():
        views = wide.chunk(2, dim=1)
        out = activated_product(views, torch.linspace(-1, 1, 8), weight, 0.5, False)
    assert torch.equal(out, with_them)


def test_a_second_backward_pass_is_refused_not_wrong() -> None:
    wide, weight = torch.randn(9, 16, requires_grad=True), torch.randn(8, 3)
    views = (2 * wide).chunk(2, dim=1)
    out = activated_product(views, torch.zeros(8), weight, 0.0, True)
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_what_somebody_else_needs_is_not_overwritten_silently() -> None:
    z = torch.randn(9, 8, requires_grad=True).exp()  # its gradient is its value
    out = activated_product([z], torch.zeros(8), torch.randn(8, 3), 0.0, True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_gradients_numerically(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", 6)
    a, b = torch.randn(4, 3).double() + 0.1, torch.randn(2, 3).double() - 0.1
    bias, weight = torch.randn(3).double(), torch.randn(3, 2).double()
    inputs = [t.requires_grad_() for t in (a, b, bias, weight)]
    assert torch.autograd.gradcheck(
        lambda x, y, c, w: activated_product([x, y], c, w, 0.5, False), inputs
    )
    left = torch.randn(7, 2).double()
    assert torch.autograd.gradcheck(
        lambda x, m, c, w: activated_product([x, Factored(left, m)], c, w, 0.5, False),
        inputs,
    )


def test_mean_over_draws_is_the_relu() -> None:
    z, bias, eye = torch.rand(40, 30), torch.zeros(30), torch.eye(30)
    total = torch.zeros(40, 30)
    for _ in range(400):
        total += activated_product([z], bias, eye, 0.6, True) / 400
    assert (total - z).abs().mean() < 0.06
    assert total.mean() == pytest.approx(float(z.mean()), rel=0.02)


def test_a_spare_place_is_used_and_changes_nothing() -> None:
    left, weight, bias = torch.randn(9, 2), torch.randn(8, 3), torch.randn(8)
    z, m = torch.randn(9, 8, requires_grad=True), torch.randn(2, 8, requires_grad=True)
    found = []
    for spare in (None, torch.full((9, 8), 7.0)):
        view = Factored(left, m * 1, spare)
        torch.manual_seed(2)
        out = activated_product([z * 1, view], bias, weight, 0.5, True)
        found.append([out.detach(), *torch.autograd.grad(out.square().sum(), [z, m])])
    for ours, truth in zip(*found, strict=True):
        assert torch.equal(ours, truth)
    assert spare is not None
    assert not (spare == 7.0).any()


@pytest.mark.parametrize("beside", [False, True])
def test_elsewhere_than_on_a_cpu_a_view_is_one_block(
    beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Shapes only: there is no such device here.
    monkeypatch.setattr(activation, "BLOCK_ENTRIES", 16)
    with torch.device("meta"):
        z, left, m = torch.empty(9, 8), torch.empty(9, 2), torch.empty(2, 8)
        weight, bias = torch.empty(8, 3), torch.empty(8)
    inputs = [t.requires_grad_() for t in (z, m, weight, bias)]
    views = [z * 1, Factored(left, m * 1)]
    out = activated_product(views, bias, weight, 0.5, True, beside)
    assert out.shape == ((9, 6) if beside else (18, 3))
    grads = torch.autograd.grad(out.sum(), inputs)
    assert [g.shape for g in grads] == [t.shape for t in inputs]
    with torch.no_grad():
        again = activated_product(views, bias, weight, 0.5, False, beside)
    assert again.shape == out.shape


def test_gradients_that_are_one_row_repeated() -> None:
    z, bias, weight = torch.randn(9, 8), torch.randn(8), torch.randn(8, 3)
    leaves = [t.requires_grad_() for t in (z, bias, weight)]
    row = torch.randn(3)
    ours = activated_product([1 * z], bias, weight, 0.0, True).sum(dim=0) @ row
    theirs = (F.relu(z + bias) @ weight).sum(dim=0) @ row
    kept = [torch.autograd.grad(loss, leaves) for loss in (ours, theirs)]
    for a, b in zip(*kept, strict=True):
        torch.testing.assert_close(a, b)
