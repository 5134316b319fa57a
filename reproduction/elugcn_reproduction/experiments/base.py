"""What an experiment is: a plan of runs, and a page that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from elugcn.data.datasets import dataset_info
from elugcn.elu.options import ELUConfig
from elugcn.evaluation import Comparison, Job, Outcomes, Published, aggregate, make_jobs
from elugcn.evaluation.store import Record, Store
from elugcn.methods.presets import preset
from elugcn.methods.registry import resolve_name

if TYPE_CHECKING:
    from elugcn_reproduction.page import Page

SEEDS = 10
QUICK_SEEDS = 2
# A fifth of what methods have by default. A quick run shows that everything works, not
# how accurate a method is.
QUICK_EPOCHS = 100
# What ``two_views`` has on a dataset beyond the backbone that was tuned for the GCN.
TWO_VIEWS: Mapping[str, Mapping[str, Any]] = {
    "chameleon": {"lpa_steps": 10, "lpa_alpha": 1.0, "eta": 0.5},
    "squirrel": {"lpa_steps": 1, "lpa_alpha": 1.0, "lpa_graph": "coupled", "eta": 0.1},
}


@dataclass(frozen=True)
class Row:
    """One line of a table, or one curve.

    Attributes:
        name: What the table prints.
        method: Name of the method.
        options: Values on top of the tuned ones of the dataset.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """A run with its place in the experiment.

    Attributes:
        row: Name of the row that it counts for.
        job: The run.
        group: What else distinguishes it, such as the labels per class.
    """

    row: str
    job: Job
    group: str = ""


@dataclass(frozen=True)
class Finished:
    """A planned run with its record."""

    planned: Planned
    record: Record


@dataclass(frozen=True)
class Scope:
    """What the user asked for; None: what the experiment has of its own.

    ``store`` is where plans find options that searches chose.
    """

    quick: bool
    seeds: int
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    store: Store | None = None


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    Attributes:
        name: What the command line calls it.
        title: Heading of its page.
        question: One sentence on what it shows, with the paper's table or figure.
        plan: The runs that it needs.
        write: Makes CSV, figures and text of the page from the finished runs, which
            may be a part of the plan.
        seeds: Runs of each cell, where the user does not say.
        search: Finds options that the plan needs; its keywords are those of ``tune``.
    """

    name: str
    title: str
    question: str
    plan: Callable[[Scope], list[Planned]]
    write: Callable[[list[Finished], Page], None]
    seeds: int = SEEDS
    search: Callable[..., None] | None = None


def datasets_of(
    scope: Scope, full: Sequence[str], quick: Sequence[str]
) -> tuple[str, ...]:
    """The datasets that the user names, else those of the experiment."""
    names = scope.datasets or (quick if scope.quick else full)
    return tuple(dict.fromkeys(dataset_info(name).name for name in names))


def method_rows(
    scope: Scope, full: Iterable[str], quick: Iterable[str] | None = None
) -> list[Row]:
    """A row for each method that the user names, else for the experiment's own."""
    names = quick if scope.quick and quick is not None else full
    chosen = map(resolve_name, scope.methods) if scope.methods else names
    return [Row(name, name) for name in dict.fromkeys(chosen)]


def only_methods(scope: Scope, rows: Iterable[Row]) -> list[Row]:
    """The rows of an experiment that are of the methods asked for."""
    wanted = [resolve_name(name) for name in scope.methods or ()]
    return [row for row in rows if not wanted or row.method in wanted]


def plan_rows(
    rows: Iterable[Row],
    dataset: str,
    scope: Scope,
    *,
    group: str = "",
    labels_per_class: int | None = None,
    measure: str | None = None,
) -> list[Planned]:
    """Every run of some rows on a dataset; ``--quick`` limits the epochs."""
    planned = []
    for row in rows:
        jobs = make_jobs(
            [row.method],
            [dataset],
            scope.seeds,
            labels_per_class=labels_per_class,
            options={row.method: row.options},
            measure=measure,
        )
        for job in jobs:
            chosen = capped(job, QUICK_EPOCHS) if scope.quick else job
            planned.append(Planned(row.name, chosen, group))
    return planned


def capped(job: Job, epochs: int) -> Job:
    """The job with at most that many epochs."""
    if "epochs" not in job.config:
        return job
    fewer = {"epochs": min(job.config["epochs"], epochs)}
    return replace(job, options=job.options | fewer)


def two_views(dataset: str) -> dict[str, Any]:
    """Options of ``elu-gcn``: two views on the backbone that was tuned for the GCN.

    Every option is given, so what was tuned for ``elu-gcn`` itself does not enter.
    """
    own = ELUConfig.model_validate({"refit_eta": False}).model_dump(mode="json")
    return own | preset("gcn", dataset) | dict(TWO_VIEWS.get(dataset, {}))


def compare_finished(
    finished: Sequence[Finished],
    published: Callable[[str, str], Published | None] = lambda row, dataset: None,
    reference: str = "gcn",
) -> Comparison:
    """The cells of the rows that have runs, in the order of the plan."""
    runs = [(f.planned.row, f.planned.job) for f in finished]
    outcomes = Outcomes(done={f.planned.job: f.record for f in finished})
    return aggregate(runs, outcomes, reference=reference, published=published)
