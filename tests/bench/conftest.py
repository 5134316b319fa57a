from collections.abc import Iterator

import pytest

from elugcn.bench import children
from elugcn.training.threads import threads


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threads(1):
        yield


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children of this process itself: no second one has to load PyTorch."""
    monkeypatch.setattr(children, "START_METHOD", "fork")
