"""Memory that is kept, and when it is not."""

import pytest
import torch

from elugcn.core import places
from elugcn.core.places import NOWHERE, Places


def test_the_same_memory_for_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "LARGE", 0)
    kept, like = Places(), torch.empty(0)
    one = kept.new("one", (3, 2), like).fill_(1.0)
    two = kept.new("two", (3, 2), like).fill_(2.0)
    assert bool((one == 1.0).all()), "two names, two places"
    again = kept.get("one", (3, 2), like)
    assert again is not None
    assert again is not one, "autograd must not find the last step's tensor"
    assert again.data_ptr() == one.data_ptr()
    assert two.data_ptr() != one.data_ptr()


def test_another_shape_or_type_is_another_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "LARGE", 0)
    kept = Places()
    first = kept.get("a", (4,), torch.float32)
    other = kept.get("a", (5,), torch.float32)
    third = kept.get("a", (5,), torch.int64)
    assert first is not None
    assert other is not None
    assert third is not None
    assert (first.shape, other.shape, third.dtype) == ((4,), (5,), torch.int64)


def test_none_where_a_new_array_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = places.LARGE // 4
    assert Places().get("a", (entries,), torch.float32) is None
    assert Places().get("a", (entries + 1,), torch.float32) is not None
    assert NOWHERE.get("a", (entries + 1,), torch.float32) is None
    monkeypatch.setattr(places, "LARGE", 0)
    meta = torch.empty(0, device="meta")
    assert Places().get("a", (4,), meta) is None
    assert Places().new("a", (4,), meta).device.type == "meta"


def test_clear_gives_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "LARGE", 0)
    kept = Places()
    first = kept.get("a", (4,), torch.float32)
    assert first is not None
    kept.clear()
    second = kept.get("a", (4,), torch.float32)
    assert second is not None
    assert second.data_ptr() != first.data_ptr()
