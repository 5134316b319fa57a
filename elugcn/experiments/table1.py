"""Table 1: accuracy of every method on the seven datasets, and two filtered ones."""

from __future__ import annotations

from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.planning import datasets_of, method_rows, plan_rows
from elugcn.experiments.rows import (
    compare_finished,
    draw_comparison,
    trained_to_the_end,
    write_csv,
    write_deviations,
    write_tables,
)
from elugcn.methods.registry import METHODS

DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "chameleon",
    "squirrel",
    "chameleon_filtered",
    "squirrel_filtered",
)
QUICK_DATASETS = ("cora", "citeseer", "photo", "chameleon")
_FIRST = ("elu-gcn", "elu-gcn-paper", "gcn", "gat", "appnp", "sgc", "mlp", "lpa", "cs")
QUICK_METHODS = ("elu-gcn", "elu-gcn-paper", "gcn", "appnp", "lpa")


def methods() -> tuple[str, ...]:
    """Every classifier there is, ours and the paper's first."""
    return tuple(dict.fromkeys([*(m for m in _FIRST if m in METHODS), *METHODS]))


def plan(scope: Scope) -> list[Planned]:
    """Each method, as tuned for each dataset."""
    datasets = datasets_of(scope, DATASETS, QUICK_DATASETS)
    rows = method_rows(scope, methods(), QUICK_METHODS)
    return [run for dataset in datasets for run in plan_rows(rows, dataset, scope)]


def write(finished: list[Finished], page: Page) -> None:
    """Dots by dataset, then the tables."""
    comparison = compare_finished(finished)
    page.figure(
        page.experiment.name,
        draw_comparison(comparison),
        "Test accuracy of each method, mean and standard deviation, by dataset",
    )
    write_tables(page, comparison)
    if ended := trained_to_the_end(finished):
        page.note(ended)
    write_deviations(page, comparison)
    write_csv(page, comparison)


EXPERIMENT = Experiment(
    "table1",
    "Table 1: node classification",
    "How accurate is each method on the paper's seven datasets, and on the two of them "
    "without repeated pages (table 1 of the paper)?",
    plan,
    write,
)
