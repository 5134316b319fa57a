"""The citation graphs with other labels than those of their one public split."""

from __future__ import annotations

from dataclasses import replace

from elugcn.config import as_plain, resolve_config
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.planning import datasets_of, method_rows, plan_rows
from elugcn.experiments.rows import (
    compare_finished,
    draw_comparison,
    write_csv,
    write_tables,
)

DATASETS = ("cora", "citeseer", "pubmed")
QUICK_DATASETS = ("cora",)
METHODS = ("elu-gcn", "grand", "gcn")
# The best published figures on these graphs are its.
REFERENCE = "grand"
LABELS = 20


def plan(scope: Scope) -> list[Planned]:
    """Each method as tuned for the public split, on draws of as many labels."""
    planned = []
    for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS):
        # Where labels are drawn, the tuned values are left aside unless they are given.
        rows = [
            replace(row, options=as_plain(resolve_config(row.method, dataset)))
            for row in method_rows(scope, METHODS)
        ]
        planned += plan_rows(rows, dataset, scope, labels_per_class=LABELS)
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """Dots by dataset, then the tables, with differences to GRAND."""
    comparison = compare_finished(finished, {}, REFERENCE)
    page.text(
        f"In each run {LABELS} training labels a class are drawn anew; validation and "
        "test nodes are those of the public split, and so are the tuned values. Among "
        "seeds of one split only the methods' own luck varies; here that of the labels "
        "does too."
    )
    page.figure(
        page.experiment.name,
        draw_comparison(comparison, with_paper=False),
        "Test accuracy of each method, mean and standard deviation, by dataset",
    )
    write_tables(page, comparison)
    write_csv(page, comparison)


EXPERIMENT = Experiment(
    "draws",
    "Other labels",
    "Is ELU-GCN ahead of GRAND and GCN on the citation graphs when their 20 labels a "
    "class are drawn anew (the paper has the public split alone)?",
    plan,
    write,
)
