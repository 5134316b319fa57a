"""``elugcn diagnose``: which nodes and classes the labels help."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from elugcn.cli.common import console, percent, plain_table, print_json
from elugcn.cli.inspect import RUN_HELP, fitted_graph
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.insight import diagnose, suggest_labels

_NAME_WIDTH = 16  # for the names on the left of a wide table
_MAX_CLASSES = 12  # a larger confusion matrix is not printed
_MEANING = {
    "elu": "ELU: labels and GCN agree",
    "nelu": "NELU: they disagree",
    "unreachable": "out of reach of the labels",
}


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    run_directory: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help=RUN_HELP)
    ] = None,
    suggest: Annotated[
        int | None,
        typer.Option(min=1, help="Name this many nodes whose labels would help most."),
    ] = None,
) -> None:
    """Show which nodes use the labels that reach them, and which do not.

    The predictions of a GCN and of label propagation are compared (Definition 1 of the
    paper). Nothing is saved.
    """
    name, seed, fitted = fitted_graph(graph, fit, run_directory)
    result = {"dataset": name, "seed": seed} | diagnose(fitted)
    if suggest is not None:
        result["suggestions"] = [asdict(s) for s in suggest_labels(fitted, suggest)]
    if fit.json_:
        print_json(result)
    elif not fit.quiet:
        show(result, console(wide=True))


def show(result: dict[str, Any], screen: Console) -> None:
    """The diagnosis for people: sentences first, then the tables behind them."""
    screen.print(f"[bold]What the labels do[/bold] on {escape(result['dataset'])}")
    for sentence in result["findings"]:
        screen.print(_wrapped(f"• {sentence}", screen), markup=False, soft_wrap=True)
    screen.print()
    overall = plain_table("nodes", "share", "GCN right", "LPA right")
    for status, row in result["overall"].items():
        overall.add_row(
            _MEANING[status],
            percent(row["share"]),
            percent(row["gcn_accuracy"]),
            percent(row["lpa_accuracy"]),
        )
    screen.print(overall)
    _show_groups(result, screen)
    if len(result["classes"]) <= _MAX_CLASSES:
        _show_confusion(result["confusion"], screen)
    _show_graphs(result["graphs"], screen)
    _show_suggestions(result.get("suggestions", []), screen)


def _show_groups(result: dict[str, Any], screen: Console) -> None:
    """Per class, per number of neighbours, per distance to a label.

    The last columns of a class tell which class label propagation predicts most often
    for its NELU nodes, and for which share of them.
    """
    columns = ("nodes", "ELU", "NELU", "no label", "GCN right")
    for title, key in (
        ("class by GCN", "classes"),
        ("neighbours", "degrees"),
        ("edges to a label", "distances"),
    ):
        classes = key == "classes"
        table = plain_table(title, *(("labels",) if classes else ()), *columns)
        if classes:
            table.add_column("NELU: LPA says", overflow="ellipsis")
            table.add_column("share", justify="right", no_wrap=True)
            table.padding = (0, 1, 0, 0)
        for row in result[key]:
            cells = [
                escape(row["name"]),
                *([f"{row['labels']:,}"] if classes else []),
                f"{row['nodes']:,}",
                *(percent(row[k]) for k in ("elu", "nelu", "unreachable", "accuracy")),
            ]
            if classes and row["pulled_to"] is not None:
                cells += [escape(row["pulled_to"]), percent(row["pulled_share"])]
            table.add_row(*cells)
        screen.print()
        screen.print(table)


def _show_confusion(confusion: dict[str, Any], screen: Console) -> None:
    screen.print()
    names = confusion["classes"]
    # Counts need four places and a gap; what is left is for the names.
    room = max(4, (screen.width - _NAME_WIDTH) // (len(names) + 1) - 2)
    heads = [escape(_cut(name, room)) for name in names]
    table = plain_table("GCN \\ LPA", *heads, "none")
    rows = zip(names, confusion["counts"], confusion["unreachable"], strict=True)
    for name, counts, none in rows:
        numbers = (f"{count:,}" for count in (*counts, none))
        table.add_row(escape(_cut(name, max(_NAME_WIDTH - 2, room))), *numbers)
    screen.print(table)


def _show_graphs(graphs: dict[str, Any], screen: Console) -> None:
    known = {k: g for k, g in graphs.items() if g and g["homophily"] is not None}
    if not known:
        return
    screen.print()
    table = plain_table("graph", "own class", "complexity")
    for key, row in known.items():
        value = row["complexity"]
        table.add_row(
            "ELU" if key == "elu" else key,
            percent(row["homophily"]),
            "–" if value is None else f"{value:.3g}",
        )
    screen.print(table)


def _show_suggestions(suggestions: list[dict[str, Any]], screen: Console) -> None:
    if not suggestions:
        return
    screen.print()
    screen.print("[bold]The next nodes to label[/bold]")
    table = plain_table("node", "helps", "confidence")
    table.add_column("GCN says")
    table.add_column("why")
    for row in suggestions:
        table.add_row(
            escape(row["node"]),
            f"{row['gain']:.1f}",
            percent(row["confidence"]),
            escape(row["gcn"]),
            row["reason"],
        )
    screen.print(table)
    screen.print("helps: number of nodes that would gain, weighted by their need")


def _wrapped(text: str, screen: Console) -> str:
    """A sentence wrapped to the terminal; a number and its % stay together."""
    if not screen.is_terminal:
        return text
    tied = text.replace(" %", "\xa0%")
    return textwrap.fill(tied, screen.width, subsequent_indent="  ")


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"
