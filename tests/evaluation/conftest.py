from pathlib import Path
from typing import Any

import pytest

from elugcn.evaluation import Job, Store, make_jobs
from tests.evaluation.records import Jobs


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(scope="session")
def jobs() -> Jobs:
    def make(seeds: int = 3, **options: Any) -> list[Job]:
        return make_jobs(["lpa"], ["karate"], seeds, options={"lpa": options})

    return make
