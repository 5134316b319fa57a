"""From single runs to the cells of a table: one per row and dataset.

A row is a method or, in an experiment, a method with certain options under a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from elugcn.evaluation.harness import Outcomes, run_jobs
from elugcn.evaluation.jobs import Job, Options, make_jobs
from elugcn.evaluation.statistics import (
    Difference,
    Pair,
    Summary,
    paired_difference,
    summarize,
)
from elugcn.evaluation.store import Record, Store

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

    def plain(self) -> dict[str, Any]:
        """The cell as JSON holds it."""
        out = asdict(self)
        out |= out.pop("summary")._asdict()
        return out | {"errors": list(self.errors)}


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
            "cells": [cell.plain() for cell in self.rows()],
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
    jobs: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for one in runs:
        name, job = (one.method, one) if isinstance(one, Job) else one
        jobs[name, job.dataset].append(job)
    names = tuple(dict.fromkeys(name for name, _ in jobs))
    datasets = tuple(dict.fromkeys(dataset for _, dataset in jobs))
    cells: dict[tuple[str, str], Cell] = {}
    for dataset in datasets:
        accuracies = {
            name: _accuracies(jobs[name, dataset], outcomes) for name in names
        }
        summaries = {name: summarize(of.values()) for name, of in accuracies.items()}
        # Means that are equal in truth may differ in the last digits.
        means = {
            n: round(s.mean, 9) for n, s in summaries.items() if s.mean is not None
        }
        for name in names:
            own = jobs[name, dataset]
            drawn = any(job.labels_per_class or job.data_options for job in own)
            cells[name, dataset] = Cell(
                name,
                dataset,
                summaries[name],
                **_cost(own, outcomes),
                published=None if drawn else published(name, dataset),
                difference=None
                if name == reference
                else paired_difference(accuracies[name], accuracies.get(reference, {})),
                best=name in means and means[name] == max(means.values()),
                most=max(summary.runs for summary in summaries.values()),
            )
    return Comparison(names, datasets, cells, _notes(cells, outcomes), reference)


def compare(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: int = 10,
    store: str | Path = "runs/compare",
    *,
    labels_per_class: int | None = None,
    options: Options | None = None,
    data_options: Options | None = None,
    **execution: Any,
) -> Comparison:
    """Compare methods on datasets; stored runs are not repeated.

    Args:
        methods: Names of methods; the rows of the table.
        datasets: Names of datasets; the columns.
        seeds: Runs per method and dataset.
        store: Folder of runs.
        labels_per_class: Draw this many training labels.
        options: Per method, options that differ from the tuned ones.
        data_options: Per dataset, further options of its loader.
        **execution: How runs are done: ``workers``, ``data_dir``, ``n_threads``,
            ``device``, ``timeout``, ``executor`` and ``progress`` of ``run_jobs``.
    """
    jobs = make_jobs(
        methods,
        datasets,
        seeds,
        labels_per_class=labels_per_class,
        options=options,
        data_options=data_options,
    )
    return aggregate(jobs, run_jobs(jobs, Store(store), **execution))


def _accuracies(jobs: Sequence[Job], outcomes: Outcomes) -> dict[Pair, float]:
    found = {(j.split, j.seed): outcomes.done[j] for j in jobs if j in outcomes.done}
    scores = {pair: record["test_accuracy"] for pair, record in found.items()}
    return {pair: float(score) for pair, score in scores.items() if score is not None}


def _cost(jobs: Sequence[Job], outcomes: Outcomes) -> dict[str, Any]:
    """Failures, time and memory of a cell."""
    records = [outcomes.done[job] for job in jobs if job in outcomes.done]
    errors = [outcomes.failed[job]["error"] for job in jobs if job in outcomes.failed]
    return {
        "failed": len(errors),
        "errors": tuple(dict.fromkeys(errors)),
        "seconds": summarize((r["seconds"]["total"] for r in records), 1.0).mean,
        "peak_rss_mb": max((float(r["peak_rss_mb"]) for r in records), default=None),
    }


def _notes(
    cells: Mapping[tuple[str, str], Cell], outcomes: Outcomes
) -> tuple[str, ...]:
    found = {p: versions(p, outcomes.done.values()) for p in ("elugcn", "torch")}
    return (
        *(
            f"the runs are of {package} {' and '.join(of)}"
            for package, of in found.items()
            if len(of) > 1
        ),
        *(
            f"{cell.method} on {cell.dataset}: {cell.failed} failed ({error})"
            for cell in cells.values()
            for error in cell.errors
        ),
    )


def versions(package: str, records: Iterable[Record]) -> list[str]:
    """The versions of a package that made some records."""
    return sorted({str(record["packages"].get(package, "?")) for record in records})
