"""Experiments on runs that are made up."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from elugcn_reproduction.experiments import get_experiments
from elugcn_reproduction.experiments.base import Experiment, Finished, Planned, Scope
from elugcn_reproduction.page import Page

from elugcn.evaluation import Job
from tests.evaluation.records import record_of

ELUGCN = "elu-gcn"


class Made(NamedTuple):
    """A page, its CSV, and the runs behind it."""

    text: str
    rows: list[dict[str, str]]
    runs: list[Finished]

    def numbers(self, **chosen: str) -> dict[str, float]:
        """The numbers of the one row of the CSV with these values."""
        (row,) = [r for r in self.rows if chosen.items() <= r.items()]
        numbers = {}
        for key, value in row.items():
            try:
                numbers[key] = float(value)
            except ValueError:
                continue
        return numbers


def accuracy(job: Job) -> float:
    """Another one for every run, the same each time."""
    return float(np.random.default_rng(int(job.key, 16)).uniform(0.5, 0.9))


def experiment(name: str) -> Experiment:
    (found,) = get_experiments(name)
    return found


def scope(*datasets: str, seeds: int = 3, **more: Any) -> Scope:
    return Scope(False, seeds, datasets or None, **more)


def finish(plan: Iterable[Planned]) -> list[Finished]:
    return [
        Finished(
            p, record_of(p.job, accuracy(p.job), seconds={"total": 1 + p.job.seed})
        )
        for p in plan
    ]


def measured(
    plan: Iterable[Planned], of: Callable[[Job], dict[str, Any] | None]
) -> list[Finished]:
    made = [Finished(p, record_of(p.job, measured=of(p.job))) for p in plan]
    return [run for run in made if run.record["measured"] is not None]


def write(one: Experiment, runs: list[Finished], folder: Path) -> Made:
    page = Page(one.name, one.title, one.question, "command", False,
                [run.record for run in runs])  # fmt: skip
    one.write(runs, page)
    paths = page.save(folder)
    assert [p.name for p in paths][-1] == f"{one.name}.md"
    assert (folder / f"{one.name}.svg").read_text().rstrip().endswith("</svg>")
    with (folder / f"{one.name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return Made((folder / f"{one.name}.md").read_text(), rows, runs)
