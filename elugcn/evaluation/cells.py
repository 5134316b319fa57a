"""From single runs to the cells of a table: one per method and dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
        method: row of the table.
        dataset: column of the table.
        summary: of the test accuracies.
        failed: how many runs failed.
        errors: why, each reason once.
        paper: what the paper prints, where it is the same task.
        difference: to the GCN on the same splits and seeds.
        seconds: mean time of a fit.
        peak_rss_mb: highest memory of a run.
        best: whether no method has a higher mean on the dataset.
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


@dataclass(frozen=True)
class Comparison:
    """A table of cells with what must be said below it."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    notes: tuple[str, ...] = ()

    def rows(self) -> list[Cell]:
        """The cells, method by method."""
        return [self.cells[m, d] for m in self.methods for d in self.datasets]

    def plain(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        return {
            "methods": list(self.methods),
            "datasets": list(self.datasets),
            "reference": REFERENCE,
            "cells": [_plain(cell) for cell in self.rows()],
            "notes": list(self.notes),
        }


def summarize_outcomes(jobs: Sequence[Job], outcomes: Outcomes) -> Comparison:
    """Sum up what the runs of a comparison gave."""
    methods = tuple(dict.fromkeys(job.method for job in jobs))
    datasets = tuple(dict.fromkeys(job.dataset for job in jobs))
    cells: dict[tuple[str, str], Cell] = {}
    for dataset in datasets:
        column = [
            _cell(
                method,
                dataset,
                jobs,
                outcomes,
                _accuracies((REFERENCE, dataset), outcomes),
            )
            for method in methods
        ]
        means = [c.summary.mean for c in column if c.summary.mean is not None]
        for cell in column:
            best = bool(means) and cell.summary.mean == max(means)
            cells[cell.method, dataset] = Cell(**(vars(cell) | {"best": best}))
    return Comparison(methods, datasets, cells, _notes(cells, outcomes))


def _cell(
    method: str,
    dataset: str,
    jobs: Sequence[Job],
    outcomes: Outcomes,
    reference: dict[Pair, float],
) -> Cell:
    own = [job for job in jobs if job.pair == (method, dataset)]
    records = [outcomes.done[job] for job in own if job in outcomes.done]
    failures = [outcomes.failed[job] for job in own if job in outcomes.failed]
    accuracies = _accuracies((method, dataset), outcomes)
    seconds = [r["seconds"]["total"] for r in records if "total" in r["seconds"]]
    # Other labels or another graph than the paper's: nothing to put beside it.
    as_published = own[0].labels_per_class is None and not own[0].data_options
    return Cell(
        method,
        dataset,
        summarize(list(accuracies.values())),
        failed=len(failures),
        errors=tuple(dict.fromkeys(str(f.get("error")) for f in failures)),
        paper=published(method, dataset) if as_published else None,
        difference=(
            None if method == REFERENCE else paired_difference(accuracies, reference)
        ),
        seconds=sum(seconds) / len(seconds) if seconds else None,
        peak_rss_mb=max((float(r["peak_rss_mb"]) for r in records), default=None),
    )


def _accuracies(pair: tuple[str, str], outcomes: Outcomes) -> dict[Pair, float]:
    return {
        (job.split, job.seed): float(record["test_accuracy"])
        for job, record in outcomes.done.items()
        if job.pair == pair and record["test_accuracy"] is not None
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
