import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from elugcn.evaluation.store import Store
from elugcn.experiments.base import Finished, Planned, Scope
from tests.evaluation.conftest import record_of

Accuracy = Callable[[Planned], float]


def finish(
    plan: Sequence[Planned], accuracy: Accuracy, **more: object
) -> list[Finished]:
    """The runs of a plan, as if they had been done."""
    about = {"threads": 1, "date": "2026-01-02T03:04:05+0000"}
    return [Finished(p, record_of(p.job, accuracy(p), **(about | more))) for p in plan]


def fill(store: Store, plan: Sequence[Planned], accuracy: Accuracy) -> None:
    """Put the results of a plan into a store without running it."""
    for one in finish(plan, accuracy):
        path = store.path(one.planned.job)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(one.record))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def scope() -> Callable[..., Scope]:
    def make(
        *datasets: str,
        seeds: int = 2,
        methods: tuple[str, ...] | None = None,
        quick: bool = False,
    ) -> Scope:
        return Scope(quick, seeds, datasets or None, methods)

    return make
