"""Kept buffers, and the product that validation computes for the next step."""

import pytest
import torch
from torch import Tensor

from elugcn.engine import Workspace, compiled, dropout_linear, fast, propagate_linear
from tests.engine.conftest import drawn, inputs, sparse

compiled_only = pytest.mark.skipif(
    compiled.loops is None, reason="only the loops in C use buffers"
)


def trained(
    large: bool, monkeypatch: pytest.MonkeyPatch, epochs: int = 4
) -> list[Tensor]:
    """Weights of a few steps by plain gradient descent, with their validations."""
    if large:  # every array counts as large
        monkeypatch.setattr(fast, "LARGE_BYTES", 0)
    g, w, seen = inputs(50), drawn(9, 5).requires_grad_(), []
    with Workspace(1) as workspace:
        for epoch in range(epochs):
            workspace.begin_step(epoch)
            original, elu = propagate_linear(g, w, 0.3).tensors()
            (original.square().mean() + elu.square().mean()).backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
                seen.append(torch.cat(propagate_linear(g, w, 0.0).tensors()))
    return [*seen, w.detach()]


def test_kept_buffers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = trained(False, monkeypatch)
    for a, b in zip(plain, trained(True, monkeypatch), strict=True):
        assert torch.equal(a, b)


@compiled_only
def test_large_buffers_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "LARGE_BYTES", 0)
    x, w, places = sparse(30, 9), drawn(9, 5).requires_grad_(), []
    with Workspace(1) as workspace:
        for epoch in range(3):
            workspace.begin_step(epoch)
            one, two = (dropout_linear(x, w, 0.3) for _ in range(2))
            places.append((one.data_ptr(), two.data_ptr()))
    assert places[0] == places[1] == places[2]
    assert places[0][0] != places[0][1]


@compiled_only
def test_gradients_of_an_overwritten_step_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fast, "LARGE_BYTES", 0)
    x, w = sparse(30, 9), drawn(9, 5).requires_grad_()
    with Workspace(1) as workspace:
        kept = dropout_linear(x, w, 0.3).square().sum()
        workspace.begin_step(1)
        dropout_linear(x, w, 0.3)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            kept.backward()


def validated(w: Tensor, x: Tensor) -> Tensor:
    with torch.no_grad():
        return dropout_linear(x, w, 0.0)


def test_training_starts_from_the_product_of_validation() -> None:
    x, w = drawn(30, 9), drawn(9, 5).requires_grad_()
    with Workspace(1):
        dropout_linear(x, w, 0.0)  # training asks for it
        first = validated(w, x)
        again = dropout_linear(x, w, 0.0)
        if compiled.loops is not None:
            assert again.data_ptr() == first.data_ptr()
        (grad,) = torch.autograd.grad(again.square().sum(), w)
    torch.testing.assert_close(grad, 2 * x.T @ (x @ w.detach()))


@pytest.mark.parametrize("changed", ["weights", "features", "product", "another X"])
def test_what_changed_since_is_computed_again(changed: str) -> None:
    x, w = drawn(30, 9), drawn(9, 5).requires_grad_()
    with Workspace(1):
        dropout_linear(x, w, 0.0)
        product = validated(w, x)
        with torch.no_grad():
            if changed == "weights":
                w.data += 1  # no version is counted
            elif changed == "features":
                x += 1
            elif changed == "product":
                product += 1
            else:
                x = x + 1
        torch.testing.assert_close(dropout_linear(x, w, 0.0).detach(), x @ w.detach())


def test_workspaces_nest() -> None:
    x = torch.ones(20, 20)
    with Workspace(1) as outer:
        one = fast.dropout(x, 0.5)
        with Workspace(1), outer, Workspace(1):
            assert torch.equal(fast.dropout(x, 0.5), one)
        assert not torch.equal(fast.dropout(x, 0.5), one)
