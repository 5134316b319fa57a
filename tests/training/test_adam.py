"""The same numbers as PyTorch's own Adam, bit for bit."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from elugcn.training.adam import Adam


def groups(model: nn.Module) -> list[dict]:
    first, second = model.children()
    return [
        {"params": list(first.parameters()), "weight_decay": 0.1},
        {"params": list(second.parameters()), "weight_decay": 0.0, "lr": 0.3},
    ]


def every(model: nn.Module, epoch: int, x: Tensor) -> Tensor:
    return model(x).square().mean()


def late(model: nn.Module, epoch: int, x: Tensor) -> Tensor:
    """The second layer has no gradient at first, nor in between."""
    return (model if epoch in (3, 4, 6) else model[0])(x).square().mean()


@pytest.mark.parametrize("loss", [every, late])
def test_steps_are_those_of_pytorch(loss: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    theirs = copy.deepcopy(ours)
    mine = Adam(groups(ours), lr=0.02)
    other = torch.optim.Adam(groups(theirs), lr=0.02, fused=True)
    for epoch in range(9):
        x = torch.randn(7, 5)
        mine.forget()
        assert all(p.grad is None for p in ours.parameters())
        loss(ours, epoch, x).backward()
        mine.advance()
        other.zero_grad()
        loss(theirs, epoch, x).backward()
        other.step()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b), epoch


def test_steps_do_not_ask_pytorch_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    optimizer = Adam(groups(model), lr=0.02)
    calls = 0
    step = optimizer.step

    def counted() -> None:
        nonlocal calls
        calls += 1
        step()

    monkeypatch.setattr(optimizer, "step", counted)
    for _ in range(5):
        optimizer.forget()
        model(torch.randn(7, 5)).sum().backward()
        optimizer.advance()
    assert calls == 1
