"""From single runs to the cells of a table: one per row and dataset.

A row is a method or, in an experiment, a method with certain options under a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from elugcn.evaluation.harness import Outcomes
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.statistics import (
    Difference,
    Pair,
    Summary,
    paired_difference,
    summarize,
)
from elugcn.evaluation.store import Record

REFERENCE = "gcn"


@dataclass(frozen=True)
class Published:
    """A published cell in percent.

    Attributes:
        mean: None where the method ran out of memory.
        std: Standard deviation, where one is printed.
    """

    mean: float | None
    std: float | None = None


@dataclass(frozen=True)
class Cell:
    """The runs of a row on a dataset, summed up; accuracies in percent.

    Attributes:
        method: Row of the table: a method, or a name of its own.
        dataset: Column of the table.
        summary: Of the test accuracies.
        failed: How many runs failed.
        errors: Why, each reason once.
        published: The published number, where there is one for the same task.
        difference: To the reference on the same splits and seeds.
        seconds: Mean time of a fit.
        peak_rss_mb: Highest memory of a run.
        best: Whether no row has a higher mean on the dataset.
        most: Runs of the row that has most of them on the dataset.
    """

    method: str
    dataset: str
    summary: Summary
    failed: int = 0
    errors: tuple[str, ...] = ()
    published: Published | None = None
    difference: Difference | None = None
    seconds: float | None = None
    peak_rss_mb: float | None = None
    best: bool = False
    most: int = 0


@dataclass(frozen=True)
class Comparison:
    """A table of cells, with what must be said below it."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    notes: tuple[str, ...] = ()
    reference: str = REFERENCE

    def rows(self) -> list[Cell]:
        """The cells, row by row."""
        return [self.cells[m, d] for m in self.methods for d in self.datasets]

    def only(self, methods: Sequence[str]) -> Comparison:
        """Some of the rows, as they are in the whole table."""
        return replace(self, methods=tuple(m for m in self.methods if m in methods))

    def plain(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        return {
            "methods": list(self.methods),
            "datasets": list(self.datasets),
            "reference": self.reference,
            "cells": [_plain(cell) for cell in self.rows()],
            "notes": list(self.notes),
        }


def aggregate(
    runs: Sequence[Job] | Sequence[tuple[str, Job]],
    outcomes: Outcomes,
    *,
    reference: str = REFERENCE,
    published: Callable[[str, str], Published | None] = lambda row, dataset: None,
) -> Comparison:
    """Sum up runs by row and dataset.

    Args:
        runs: The jobs; or each job with the name of the row that it counts for.
        outcomes: What the jobs gave.
        reference: The row that the others are compared with.
        published: The published number of a row on a dataset. It is asked only where
            the runs have the dataset's own labels and options.
    """
    own: dict[tuple[str, str], list[Job]] = {}
    for one in runs:
        name, job = (one.method, one) if isinstance(one, Job) else one
        own.setdefault((name, job.dataset), []).append(job)
    names = tuple(dict.fromkeys(name for name, _ in own))
    datasets = tuple(dict.fromkeys(dataset for _, dataset in own))
    cells: dict[tuple[str, str], Cell] = {}
    for dataset in datasets:
        others = _accuracies(own.get((reference, dataset), []), outcomes)
        column = []
        for name in names:
            jobs = own.get((name, dataset), [])
            as_published = all(
                job.labels_per_class is None and not job.data_options for job in jobs
            )
            theirs = published(name, dataset) if as_published else None
            column.append(_cell(name, dataset, jobs, outcomes, theirs))
        # Means that are equal in truth may differ in the last digits.
        means = {
            cell.method: round(cell.summary.mean, 9)
            for cell in column
            if cell.summary.mean is not None
        }
        most = max(cell.summary.runs for cell in column)
        for cell in column:
            mine = _accuracies(own.get((cell.method, dataset), []), outcomes)
            alone = cell.method == reference
            cells[cell.method, dataset] = replace(
                cell,
                best=bool(means) and means.get(cell.method) == max(means.values()),
                most=most,
                difference=None if alone else paired_difference(mine, others),
            )
    return Comparison(names, datasets, cells, _notes(cells, outcomes), reference)


def _cell(
    name: str,
    dataset: str,
    jobs: Sequence[Job],
    outcomes: Outcomes,
    published: Published | None,
) -> Cell:
    """A cell without what depends on the others of its column."""
    records = [outcomes.done[job] for job in jobs if job in outcomes.done]
    failures = [outcomes.failed[job] for job in jobs if job in outcomes.failed]
    seconds = [r["seconds"]["total"] for r in records if "total" in r["seconds"]]
    return Cell(
        name,
        dataset,
        summarize(list(_accuracies(jobs, outcomes).values())),
        failed=len(failures),
        errors=tuple(dict.fromkeys(str(f.get("error")) for f in failures)),
        published=published,
        seconds=sum(seconds) / len(seconds) if seconds else None,
        peak_rss_mb=max((float(r["peak_rss_mb"]) for r in records), default=None),
    )


def _accuracies(jobs: Sequence[Job], outcomes: Outcomes) -> dict[Pair, float]:
    return {
        (job.split, job.seed): float(outcomes.done[job]["test_accuracy"])
        for job in jobs
        if job in outcomes.done and outcomes.done[job]["test_accuracy"] is not None
    }


def _notes(
    cells: Mapping[tuple[str, str], Cell], outcomes: Outcomes
) -> tuple[str, ...]:
    notes = []
    for package in ("elugcn", "torch"):
        found = versions(package, list(outcomes.done.values()))
        if len(found) > 1:
            notes.append(f"the runs are of {package} {' and '.join(found)}")
    notes += [
        f"{cell.method} on {cell.dataset}: {cell.failed} failed ({error})"
        for cell in cells.values()
        for error in cell.errors
    ]
    return tuple(notes)


def versions(package: str, records: Sequence[Record]) -> list[str]:
    """The versions of a package that made some records."""
    return sorted({str(record["packages"].get(package)) for record in records})


def _plain(cell: Cell) -> dict[str, Any]:
    plain = asdict(cell)
    summary: dict[str, Any] = plain.pop("summary")
    head = {"method": plain.pop("method"), "dataset": plain.pop("dataset")}
    return head | summary | plain | {"errors": list(plain["errors"])}
