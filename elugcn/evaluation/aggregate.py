"""From single runs to the cells of a table: one per row and dataset.

A row is a method or, in an experiment, a method with certain options under a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from elugcn.evaluation import statistics
from elugcn.evaluation.harness import Outcomes, run_jobs
from elugcn.evaluation.jobs import Job, Options, make_jobs
from elugcn.evaluation.store import Record, Store

REFERENCE = "gcn"


@dataclass(frozen=True)
class Published:
    """A published cell in percent."""

    mean: float | None  # None: the method ran out of memory
    std: float | None = None


@dataclass(frozen=True)
class Cell:
    """The runs of a row on a dataset, summed up; accuracies or scores in percent."""

    method: str  # or a row's name of its own
    dataset: str
    summary: statistics.Summary  # of the test accuracies, or of another metric
    failed: int = 0  # runs
    errors: tuple[str, ...] = ()  # each once
    published: Published | None = None  # for the same task
    difference: statistics.Difference | None = None  # to the reference
    seconds: float | None = None  # mean of a fit
    peak_rss_mb: float | None = None  # highest of a run
    best: bool = False  # no row has a higher mean on the dataset
    most: int = 0  # runs of the row that has most of them on the dataset


@dataclass(frozen=True)
class Comparison:
    """A table of cells, with what must be said below it."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    notes: tuple[str, ...] = ()
    reference: str = REFERENCE
    metric: str = "accuracy"

    def rows(self) -> list[Cell]:
        """The cells, row by row."""
        return [self.cells[m, d] for m in self.methods for d in self.datasets]

    def only(self, methods: Sequence[str]) -> Comparison:
        """Some of the rows, as they are in the whole table."""
        return replace(self, methods=tuple(m for m in self.methods if m in methods))

    def plain(self) -> dict[str, Any]:
        """The comparison as JSON holds it."""
        cells = [asdict(cell) | cell.summary._asdict() for cell in self.rows()]
        for cell in cells:
            del cell["summary"]
        return asdict(replace(self, cells={})) | {"cells": cells}


def aggregate(
    runs: Sequence[Job] | Sequence[tuple[str, Job]],
    outcomes: Outcomes,
    *,
    reference: str = REFERENCE,
    published: Callable[[str, str], Published | None] = lambda row, dataset: None,
) -> Comparison:
    """Sum up runs by row and dataset.

    A run is a job, or a job with the name of the row that it counts for. Every other
    row is compared with the row ``reference``. ``published`` gives the published number
    of a row on a dataset; it is asked only where the runs have the dataset's own labels
    and options.
    """
    jobs: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for one in runs:
        name, job = (one.method, one) if isinstance(one, Job) else one
        jobs[name, job.dataset].append(job)
    names = tuple(dict.fromkeys(name for name, _ in jobs))
    datasets = tuple(dict.fromkeys(dataset for _, dataset in jobs))
    cells: dict[tuple[str, str], Cell] = {}
    finished = outcomes.done
    metric = next((job.metric for own in jobs.values() for job in own), "accuracy")
    key = "test_accuracy" if metric == "accuracy" else "test_score"
    for dataset in datasets:
        scores = {
            name: {
                (job.split, job.seed): float(finished[job][key])
                for job in jobs[name, dataset]
                if job in finished and finished[job][key] is not None
            }
            for name in names
        }
        summaries = {n: statistics.summarize(of.values()) for n, of in scores.items()}
        # Means that are equal in truth may differ in the last digits.
        means = {n: round(s.mean or 0.0, 9) for n, s in summaries.items() if s.runs}
        for name in names:
            own = jobs[name, dataset]
            records = [finished[job] for job in own if job in finished]
            failed = [outcomes.failed[job] for job in own if job in outcomes.failed]
            seconds = [float(record["seconds"]["total"]) for record in records]
            memory = [float(record["peak_rss_mb"]) for record in records]
            drawn = any(job.labels_per_class or job.data_options for job in own)
            theirs = {} if name == reference else scores.get(reference, {})
            cells[name, dataset] = Cell(
                name,
                dataset,
                summaries[name],
                failed=len(failed),
                errors=tuple(dict.fromkeys(record["error"] for record in failed)),
                seconds=statistics.summarize(seconds, scale=1.0).mean,
                peak_rss_mb=max(memory, default=None),
                published=None if drawn else published(name, dataset),
                difference=statistics.paired_difference(scores[name], theirs),
                best=name in means and means[name] == max(means.values()),
                most=max(summary.runs for summary in summaries.values()),
            )
    notes = []
    for package in ("elugcn", "torch"):
        found = versions(package, outcomes.done.values())
        if len(found) > 1:
            notes.append(f"the runs are of {package} {' and '.join(found)}")
    for cell in cells.values():
        for error in cell.errors:
            where = f"{cell.method} on {cell.dataset}"
            notes.append(f"{where}: {cell.failed} failed ({error})")
    for (name, dataset), own in jobs.items():
        collapsed = [finished[job].get("collapsed") for job in own if job in finished]
        if k := sum(map(bool, collapsed)):
            few = f"{k} of {len(collapsed)} runs predict fewer classes than have labels"
            notes.append(f"{name} on {dataset}: {few}")
    return Comparison(names, datasets, cells, tuple(notes), reference, metric)


def compare(
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: int = 10,
    store: str | Path = "runs/compare",
    *,
    labels_per_class: int | None = None,
    options: Options | None = None,
    data_options: Options | None = None,
    metric: str = "accuracy",
    class_weight: str | None = None,
    **execution: Any,
) -> Comparison:
    """Compare methods on datasets; the runs in the folder ``store`` are not repeated.

    See ``make_jobs`` for what is run and ``run_jobs`` for how (``**execution``).
    """
    jobs = make_jobs(
        methods,
        datasets,
        seeds,
        labels_per_class=labels_per_class,
        options=options,
        data_options=data_options,
        metric=metric,
        class_weight=class_weight,
    )
    return aggregate(jobs, run_jobs(jobs, Store(store), **execution))


def versions(package: str, records: Iterable[Record]) -> list[str]:
    """The versions of a package that made some records."""
    return sorted({str(record["packages"].get(package, "?")) for record in records})
