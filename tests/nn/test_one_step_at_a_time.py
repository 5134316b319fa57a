"""Training in kept memory is training, and leaves nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elugcn import compiled
from elugcn.core import places, products
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.nn import GCN

pytestmark = pytest.mark.usefixtures("either_way")

N, D, C = 30, 11, 3


def graph(symmetric: bool = True) -> CSR:
    torch.manual_seed(3)
    edges = torch.randint(0, N, (2, 60))
    if symmetric:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return normalized_adjacency(edges, N)


def trained(
    kept: bool, views: int, symmetric: bool = True, **options: object
) -> list[Tensor]:
    """All gradients and outputs of three steps, with an evaluation between them."""
    torch.manual_seed(0)
    x, adj = torch.randn(N, D), graph(symmetric)
    second = LowRankGraph(torch.rand(N, C), torch.rand(N, C)) if views == 2 else None
    model = GCN(D, 8, C, **options)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen: list[Tensor] = []

    def steps() -> None:
        for _ in range(3):
            model.train()
            optimizer.zero_grad()
            outputs = model(x, adj, second)
            seen.extend(z.detach().clone() for z in outputs)
            sum((z.square().sum() for z in outputs), torch.zeros(())).backward()
            seen.extend(p.grad.clone() for p in model.parameters())
            optimizer.step()
            model.eval()
            with torch.no_grad():
                seen.extend(model(x, adj, second))

    if kept:
        with model.one_step_at_a_time():
            steps()
    else:
        steps()
    return seen


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 3},
        {"input_dropout": 0.0},
        {"norm": "batch"},
        {"residual": True},
        {"order": 2},
        {"jump": "cat"},
        {"symmetric": False},
    ],
    ids=str,
)
def test_the_same_numbers(
    views: int, options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled.use(512) == 128:
        # Large sparse products are then rounded after every multiplication, and
        # PyTorch's smaller ones may not be: one kernel for both.
        monkeypatch.setattr(products, "_reads_far", lambda *_: False)
    wanted = trained(False, views, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(places, "LARGE", 0)
    found = trained(True, views, **options)  # type: ignore[arg-type]
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[int]]:
    """Where the arrays are that were asked for since the last look."""
    monkeypatch.setattr(places, "LARGE", 0)
    found: set[int] = set()
    get = places.Places.get

    def noted(self: places.Places, *args: object) -> Tensor | None:
        out = get(self, *args)  # type: ignore[arg-type]
        if out is not None:
            found.add(out.data_ptr())
        return out

    monkeypatch.setattr(places.Places, "get", noted)

    def look() -> set[int]:
        seen = set(found)
        found.clear()
        return seen

    return look


def test_every_step_uses_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    look = watched(monkeypatch)
    x, adj, model = torch.randn(N, D), graph(), GCN(D, 8, C)
    with model.one_step_at_a_time():
        model.train()
        model(x, adj)[0].sum().backward()
        first = look()
        model(x, adj)[0].sum().backward()
        assert look() == first
        assert len(first) == 5, "mask, X W₁, its product, times W₂, its product"
    model(x, adj)[0].sum().backward()
    assert look() == set()


def test_a_step_before_the_last_is_over_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "LARGE", 0)
    x, adj, model = torch.randn(N, D), graph(), GCN(D, 8, C)
    with model.one_step_at_a_time():
        model.train()
        both = model(x, adj)[0].sum() + model(x, adj)[0].sum()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            both.backward()


@pytest.mark.parametrize("views", [1, 2])
def test_nothing_is_left(views: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No large array outlives the training, not even until the next collection."""
    monkeypatch.setattr(places, "LARGE", 0)
    n = 5003
    edges = torch.randint(0, n, (2, 9000))
    adj, x = normalized_adjacency(edges, n), torch.randn(n, D)
    second = LowRankGraph(torch.rand(n, C), torch.rand(n, C)) if views == 2 else None
    model = GCN(D, 8, C)
    gc.collect()
    gc.disable()
    try:
        before = count(n)
        with model.one_step_at_a_time():
            model.train()
            sum(z.sum() for z in model(x, adj, second)).backward()  # type: ignore[union-attr]
            assert count(n) > before, "the places"
            model.eval()
            with torch.no_grad():
                model(x, adj, second)
            assert count(n) == before, "an evaluation of all nodes has their room"
        assert count(n) == before
    finally:
        gc.enable()


def count(n: int) -> int:
    """Arrays with a row for every node."""
    alive = (o for o in gc.get_objects() if type(o) is Tensor)
    return len({o.data_ptr() for o in alive if o.dim() == 2 and o.size(0) == n})
