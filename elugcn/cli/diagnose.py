"""``elugcn diagnose``: which nodes and classes the labels help."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from elugcn.cli.common import percent, print_table
from elugcn.cli.loading import fitted_graph
from elugcn.cli.options import SAVED_RUN, FitOptions, GraphOptions, grouped
from elugcn.insight import diagnose, suggest_labels

_GRAPHS = {"original": "original", "elu": "ELU"}
_MEANING = {
    "elu": "ELU: label propagation and {} agree",
    "nelu": "NELU: they disagree",
    "unreachable": "no label reaches them",
}


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    run_directory: Path | None = SAVED_RUN,
    suggest: int | None = typer.Option(
        None, min=1, help="Name this many nodes whose labels would help most."
    ),
) -> None:
    """Show which nodes use the labels that reach them, and which do not.

    The predictions of a GCN, or of the linear model of auto, are compared with those of
    label propagation (Definition 1 of the paper). Nothing is saved.
    """
    name, fitted = fitted_graph(graph, fit, run_directory)
    result = {"dataset": name, "seed": fitted.seed} | diagnose(fitted)
    if suggest is not None:
        result["suggestions"] = [asdict(s) for s in suggest_labels(fitted, suggest)]
    fit.show(result, lambda screen: show(result, screen))


def show(result: dict[str, Any], screen: Console) -> None:
    """The diagnosis for people: sentences first, then the tables behind them."""
    title = f"What the labels do on {result['dataset']}"
    screen.print(title, style="bold", markup=False)
    for sentence in result["findings"]:
        text = f"• {sentence}"
        if screen.is_terminal:
            text = textwrap.fill(text, screen.width, subsequent_indent="  ")
        screen.print(text, markup=False, soft_wrap=True)
    keys = ("share", "gcn_accuracy", "lpa_accuracy")
    model = result["model"]
    overall = [
        (_MEANING[status].format(model), *(percent(row[key]) for key in keys))
        for status, row in result["overall"].items()
    ]
    print_table(screen, ("nodes", "share", f"{model} right", "LPA right"), overall)
    columns = ("nodes", "ELU", "NELU", "no label", f"{model} right")
    # The last columns: what label propagation predicts most often for the NELU nodes.
    head = [f"class by {model}", "labels", *columns, "<NELU by LPA", "share"]
    rows = []
    for row in result["classes"]:
        pulled = [row["pulled_to"] or "–", percent(row["pulled_share"])]
        rows.append([row["name"], f"{row['labels']:,}", *_group(row), *pulled])
    print_table(screen, head, rows)
    for title, key in (("neighbours", "degrees"), ("edges to a label", "distances")):
        rows = [[row["name"], *_group(row)] for row in result[key]]
        print_table(screen, (title, *columns), rows)
    rows = []
    for name, row in result["graphs"].items():
        if row and row["homophily"] is not None:
            value = row["complexity"]
            complexity = "–" if value is None else f"{value:.3g}"
            rows.append([_GRAPHS[name], percent(row["homophily"]), complexity])
    if rows:
        print_table(screen, ("graph", "own class", "complexity"), rows)
    if "suggestions" in result:
        rows = []
        for one in result["suggestions"]:
            said = [f"{one['gain']:.1f}", one["gcn"], percent(one["confidence"])]
            rows.append([one["node"], *said, one["reason"]])
        head = ["node to label", "helps", f"<{model} says", "confidence", "<why"]
        print_table(screen, head, rows)
        screen.print("helps: number of nodes that would gain, weighted by their need")


def _group(row: dict[str, Any]) -> list[str]:
    """Size, shares and accuracy of a group of nodes."""
    keys = ("elu", "nelu", "unreachable", "accuracy")
    return [f"{row['nodes']:,}", *(percent(row[key]) for key in keys)]
