"""From single runs to the cells of a table: one per row and dataset.

A row is a method, or in an experiment a method with certain options under a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from elugcn.evaluation.harness import Outcomes
from elugcn.evaluation.jobs import Job
from elugcn.evaluation.paper import NOTES, Published, published
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
class Cell:
    """The runs of a method on a dataset, summed up; accuracies in percent.

    Attributes:
        method: row of the table; its method, or a name of its own.
        dataset: column of the table.
        summary: of the test accuracies.
        failed: how many runs failed.
        errors: why, each reason once.
        paper: what the paper prints, where it is the same task.
        difference: to the reference on the same splits and seeds.
        seconds: mean time of a fit.
        peak_rss_mb: highest memory of a run.
        best: whether no method has a higher mean on the dataset.
        most: how many runs the methods with most of them have on the dataset.
    """

    method: str
    dataset: str
    summary: Summary
    failed: int = 0
    errors: tuple[str, ...] = ()
    paper: Published | None = None
    difference: Difference | None = None
    seconds: float | None = None
    peak_rss_mb: float | None = None
    best: bool = False
    most: int = 0


@dataclass(frozen=True)
class Comparison:
    """A table of cells with what must be said below it."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    notes: tuple[str, ...] = ()
    reference: str = REFERENCE

    def rows(self) -> list[Cell]:
        """The cells, method by method."""
        return [self.cells[m, d] for m in self.methods for d in self.datasets]

    def only(self, methods: Sequence[str]) -> Comparison:
        """A part of the rows, as they are in the whole table."""
        kept = tuple(m for m in self.methods if m in methods)
        return replace(self, methods=kept)

    def plain(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        return {
            "methods": list(self.methods),
            "datasets": list(self.datasets),
            "reference": self.reference,
            "cells": [_plain(cell) for cell in self.rows()],
            "notes": list(self.notes),
        }


def summarize_outcomes(jobs: Sequence[Job], outcomes: Outcomes) -> Comparison:
    """Sum up what the runs of a comparison gave; each method is a row."""
    papers = {job.method: job.method for job in jobs}
    return summarize_rows([(job.method, job) for job in jobs], outcomes, papers)


def summarize_rows(
    runs: Sequence[tuple[str, Job]],
    outcomes: Outcomes,
    papers: Mapping[str, str],
    reference: str = REFERENCE,
) -> Comparison:
    """Sum up runs by the name of their row and by dataset.

    Args:
        runs: each run with the name of the row it counts for; a run may count for
            several rows.
        outcomes: what the runs gave.
        papers: per row, the method whose published number is to stand beside it; rows
            that are not in it have none.
        reference: the row that the others are compared with.
    """
    names = tuple(dict.fromkeys(name for name, _ in runs))
    datasets = tuple(dict.fromkeys(job.dataset for _, job in runs))
    own: dict[tuple[str, str], list[Job]] = {
        (name, dataset): [] for name in names for dataset in datasets
    }
    for name, job in runs:
        own[name, job.dataset].append(job)
    cells: dict[tuple[str, str], Cell] = {}
    for dataset in datasets:
        others = _accuracies(own.get((reference, dataset), []), outcomes)
        column = [
            _cell(name, dataset, own[name, dataset], outcomes, papers.get(name))
            for name in names
        ]
        # Means that are equal in truth may differ in the last digits.
        rounded = {c.method: _rounded(c.summary.mean) for c in column}
        means = [mean for mean in rounded.values() if mean is not None]
        most = max(c.summary.runs for c in column)
        for cell in column:
            mine = _accuracies(own[cell.method, dataset], outcomes)
            alone = cell.method == reference
            cells[cell.method, dataset] = replace(
                cell,
                best=bool(means) and rounded[cell.method] == max(means),
                most=most,
                difference=None if alone else paired_difference(mine, others),
            )
    return Comparison(names, datasets, cells, _notes(cells, outcomes), reference)


def _cell(
    name: str,
    dataset: str,
    jobs: Sequence[Job],
    outcomes: Outcomes,
    paper: str | None,
) -> Cell:
    """A cell without what takes the others of its column to know."""
    records = [outcomes.done[job] for job in jobs if job in outcomes.done]
    failures = [outcomes.failed[job] for job in jobs if job in outcomes.failed]
    seconds = [r["seconds"]["total"] for r in records if "total" in r["seconds"]]
    # Other labels or another graph than the paper's: nothing to put beside it.
    as_published = all(
        job.labels_per_class is None and not job.data_options for job in jobs
    )
    return Cell(
        name,
        dataset,
        summarize(list(_accuracies(jobs, outcomes).values())),
        failed=len(failures),
        errors=tuple(dict.fromkeys(str(f.get("error")) for f in failures)),
        paper=published(paper, dataset) if paper and as_published else None,
        seconds=sum(seconds) / len(seconds) if seconds else None,
        peak_rss_mb=max((float(r["peak_rss_mb"]) for r in records), default=None),
    )


def _rounded(mean: float | None) -> float | None:
    return None if mean is None else round(mean, 9)


def _accuracies(jobs: Sequence[Job], outcomes: Outcomes) -> dict[Pair, float]:
    return {
        (job.split, job.seed): float(outcomes.done[job]["test_accuracy"])
        for job in jobs
        if job in outcomes.done and outcomes.done[job]["test_accuracy"] is not None
    }


def _notes(cells: dict[tuple[str, str], Cell], outcomes: Outcomes) -> tuple[str, ...]:
    notes = [
        f"{dataset}: {note}"
        for dataset, note in NOTES.items()
        if any(c.dataset == dataset and c.paper is not None for c in cells.values())
    ]
    for name in ("elugcn", "torch"):
        versions = _versions(name, list(outcomes.done.values()))
        if len(versions) > 1:
            notes.append(f"the runs are of {name} {' and '.join(versions)}")
    for cell in cells.values():
        for error in cell.errors:
            notes.append(
                f"{cell.method} on {cell.dataset}: {cell.failed} failed ({error})"
            )
    return tuple(notes)


def _versions(package: str, records: Sequence[Record]) -> list[str]:
    return sorted({str(record["packages"].get(package)) for record in records})


def _plain(cell: Cell) -> dict[str, Any]:
    plain = asdict(cell)
    summary: dict[str, Any] = plain.pop("summary")
    errors = plain.pop("errors")
    head = {"method": plain.pop("method"), "dataset": plain.pop("dataset")}
    return head | summary | plain | {"errors": list(errors)}
