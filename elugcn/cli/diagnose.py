"""``elugcn diagnose``: which nodes and classes the labels help."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer
from rich.console import Console
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
from elugcn.diagnosis import diagnose_fitted
from elugcn.diagnosis.fitted import Reading
from elugcn.suggest import suggest_labels

_WIDE = 200
_FIRST = 16  # room for the names on the left of a wide table
_MOST_CLASSES = 12  # a wider table of classes against classes is no table to read
_MEANING = {
    "elu": "ELU: labels and GCN agree",
    "nelu": "NELU: they disagree",
    "unreachable": "no label reaches",
}


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    suggest: Annotated[
        int | None,
        typer.Option(min=1, help="Name this many nodes whose labels would help most."),
    ] = None,
) -> None:
    """Show which nodes use the labels that reach them, and which none reaches.

    A plain GCN and label propagation are compared (Definition 1); nothing is saved.
    """
    settings = settle(graph, fit)
    loaded = load_graph(settings.graph, settings.seed)
    config = configure(loaded.preset, "elu-graph", fit)
    fitted = fit_loaded(loaded, "elu-graph", config, settings.seed, fit)
    reading = Reading.of(fitted)
    result = {"dataset": loaded.name, "seed": settings.seed} | diagnose_fitted(reading)
    if suggest is not None:
        result["suggestions"] = [s.plain() for s in suggest_labels(reading, suggest)]
    if fit.json_:
        print_json(result)
    elif not fit.quiet:
        show(result, console())


def show(result: dict[str, Any], screen: Console) -> None:
    """The diagnosis for people: sentences first, then the tables behind them."""
    widen(screen)
    screen.print(f"[bold]What the labels do[/bold] on {escape(result['dataset'])}")
    for sentence in result["findings"]:
        screen.print(_folded(f"• {sentence}", screen), markup=False, soft_wrap=True)
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
    if len(result["classes"]) <= _MOST_CLASSES:
        _show_confusion(result["confusion"], screen)
    _show_graphs(result["graphs"], screen)
    _show_suggestions(result.get("suggestions", []), screen)


def _show_groups(result: dict[str, Any], screen: Console) -> None:
    """Per class, per number of neighbours, per distance to a label.

    ``pulled`` is the share of a class's NELU nodes that the class behind it takes.
    """
    columns = ("nodes", "ELU", "NELU", "cut off", "GCN right")
    for title, key in (
        ("class by GCN", "classes"),
        ("neighbours", "degrees"),
        ("edges to a label", "distances"),
    ):
        classes = key == "classes"
        table = plain_table(title, *(("labels",) if classes else ()), *columns)
        if classes:
            table.add_column("pulled", justify="right", no_wrap=True)
            table.add_column("to", overflow="ellipsis")
            table.padding = (0, 1, 0, 0)
        for row in result[key]:
            cells = [
                escape(row["name"]),
                *([f"{row['labels']:,}"] if classes else []),
                f"{row['nodes']:,}",
                *(percent(row[k]) for k in ("elu", "nelu", "unreachable", "accuracy")),
            ]
            if classes and row["pulled_to"] is not None:
                cells += [percent(row["pulled_share"]), escape(row["pulled_to"])]
            table.add_row(*cells)
        screen.print()
        screen.print(table)


def _show_confusion(confusion: dict[str, Any], screen: Console) -> None:
    screen.print()
    names = confusion["classes"]
    # Counts need four places and a gap; what is left is for the names.
    room = max(4, (screen.width - _FIRST) // (len(names) + 1) - 2)
    heads = [escape(_cut(name, room)) for name in names]
    table = plain_table("GCN \\ LPA", *heads, "none")
    rows = zip(names, confusion["counts"], confusion["unreachable"], strict=True)
    for name, counts, none in rows:
        numbers = (f"{count:,}" for count in (*counts, none))
        table.add_row(escape(_cut(name, max(_FIRST - 2, room))), *numbers)
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
    screen.print("helps: nodes it would tell something new, each weighed by its need")


def _folded(text: str, screen: Console) -> str:
    """A sentence in lines as wide as a terminal, a number never without its %."""
    if not screen.is_terminal:
        return text
    tied = text.replace(" %", "\xa0%")
    return textwrap.fill(tied, screen.width, subsequent_indent="  ")


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"


def widen(screen: Console) -> None:
    """Room for every name where no terminal sets the width."""
    if not screen.is_terminal:
        screen.width = max(screen.width, _WIDE)


def plain_table(first: str, *numbers: str) -> Table:
    """A table without lines: names on the left, numbers that are never cut."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first, style="bold", overflow="ellipsis")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table
