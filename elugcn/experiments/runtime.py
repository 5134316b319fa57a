"""Figure 4: time against accuracy, from the runs of the two tables."""

from __future__ import annotations

from elugcn.experiments import social, table1
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.planning import datasets_of, method_rows, plan_rows
from elugcn.experiments.rows import compare_finished, write_csv, write_tables
from elugcn.report.scatter import Point, draw_scatter

METHODS = ("gcn", "gat", "elu-gcn", "elu-gcn-paper")


def plan(scope: Scope) -> list[Planned]:
    """The same runs as in the tables, so that none is done twice."""
    datasets = datasets_of(
        scope,
        (*table1.DATASETS, *social.DATASETS),
        table1.QUICK_DATASETS,
    )
    rows = method_rows(scope, METHODS)
    return [run for dataset in datasets for run in plan_rows(rows, dataset, scope)]


def write(finished: list[Finished], page: Page) -> None:
    """A panel a dataset, then the tables."""
    comparison = compare_finished(finished)
    panels = []
    for dataset in comparison.datasets:
        cells = [comparison.cells[name, dataset] for name in comparison.methods]
        points = [
            Point(c.method, c.seconds, c.summary.mean, c.summary.std)
            for c in cells
            if c.seconds is not None and c.summary.mean is not None
        ]
        panels.append((dataset, points))
    page.text(
        "Seconds are those of a whole fit: for ELU-GCN label propagation, the first "
        "GCN, the graph, and the training of every member it chooses from. Loading the "
        "data is not counted."
    )
    page.figure(
        page.experiment.name,
        draw_scatter(panels),
        "Seconds of a fit against test accuracy, by dataset",
    )
    write_tables(page, comparison)
    write_csv(page, comparison)


EXPERIMENT = Experiment(
    "runtime",
    "Time against accuracy",
    "What does the accuracy cost: seconds of a fit against test accuracy of GCN, GAT "
    "and ELU-GCN (figure 4 of the paper)?",
    plan,
    write,
)
