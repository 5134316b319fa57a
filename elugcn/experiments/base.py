"""What an experiment of the paper is: a plan of runs, and a page written of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from elugcn.evaluation.jobs import Job
from elugcn.evaluation.store import Record

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

SEEDS = 10
QUICK_SEEDS = 2
# A fifth of what methods have by default: a quick run shows in minutes that everything
# works, not how accurate a method is (APPNP is not done by then).
QUICK_EPOCHS = 100


@dataclass(frozen=True)
class Row:
    """One line of a table, or one curve.

    Attributes:
        name: what the table prints.
        method: name of the method.
        options: values beyond the tuned ones of the dataset.
    """

    name: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """A run with its place in the experiment.

    Attributes:
        row: name of the row it counts for.
        job: the run.
        group: what else tells it apart, such as the labels per class.
    """

    row: str
    job: Job
    group: str = ""


@dataclass(frozen=True)
class Scope:
    """What the user asked for; None: what the experiment has of its own."""

    quick: bool
    seeds: int
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Finished:
    """A planned run with its record."""

    planned: Planned
    record: Record


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes:
        name: what the command line calls it.
        title: heading of its page.
        question: one sentence on what it shows, with the paper's table or figure.
        plan: the runs it needs.
        write: makes the CSV, the figures and the text of the page from what is
            finished, which may be a part of the plan.
        seeds: runs of each cell, where the user does not say.
    """

    name: str
    title: str
    question: str
    plan: Callable[[Scope], list[Planned]]
    write: Callable[[list[Finished], Page], None]
    seeds: int = SEEDS
