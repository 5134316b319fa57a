"""``elugcn diagnose``: which nodes and classes the labels help."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from elugcn.cli.common import (
    configure,
    console,
    fit_loaded,
    load_graph,
    percent,
    print_json,
    settle,
)
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.diagnosis import diagnose
from elugcn.runs import class_names

NAME = "diagnose"


@grouped
def run(graph: GraphOptions, fit: FitOptions) -> None:
    """Show which nodes use the labels that reach them, and which none reaches.

    A plain GCN and label propagation are compared (Definition 1); nothing is saved.
    """
    settings = settle(graph, fit)
    loaded = load_graph(settings.graph, settings.seed)
    config = configure(loaded.preset, "elu-graph", fit)
    fitted = fit_loaded(loaded, "elu-graph", config, settings.seed, fit)
    use = fitted.prediction.utilization
    assert use is not None
    result = diagnose(use, fitted.data, class_names(fitted))
    result = {"dataset": loaded.name, "seed": settings.seed} | result
    if fit.json_:
        print_json(result)
    elif not fit.quiet:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    screen = console()
    screen.print(f"[bold]What the labels do[/bold] on {escape(result['dataset'])}")
    table = Table(box=None, padding=(0, 1, 0, 1))
    table.add_column("nodes")
    for column in ("share", "GCN right", "LPA right"):
        table.add_column(column, justify="right")
    meaning = {
        "elu": "ELU: labels and GCN agree",
        "nelu": "NELU: they disagree",
        "unreachable": "no label reaches",
    }
    for status, row in result["overall"].items():
        table.add_row(
            meaning[status],
            percent(row["share"]),
            percent(row["gcn_accuracy"]),
            percent(row["lpa_accuracy"]),
        )
    screen.print(table)
    screen.print()
    classes = Table(box=None, padding=(0, 1, 0, 1))
    classes.add_column("predicted class", style="bold")
    for column in ("labels", "nodes", "ELU", "NELU", "unreachable"):
        classes.add_column(column, justify="right")
    for row in result["classes"]:
        classes.add_row(
            escape(row["name"]),
            f"{row['labels']:,}",
            f"{row['nodes']:,}",
            percent(row["elu"]),
            percent(row["nelu"]),
            percent(row["unreachable"]),
        )
    screen.print(classes)
    for note in result["notes"]:
        screen.print(f"note: {note}", markup=False)
