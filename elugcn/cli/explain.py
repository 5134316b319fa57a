"""``elugcn explain``: one node, the labels that reach it, its neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from elugcn.cli.common import console, percent, plain_table, print_json
from elugcn.cli.inspect import RUN_HELP, fitted_graph
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.insight import check_node, explain

# Shares that differ by less than this are equal except for rounding.
_TIE = 1e-6
_MEANING = {
    "elu": "ELU: labels and GCN agree",
    "nelu": "NELU: labels and GCN disagree",
    "unreachable": "no label reaches it",
}


@grouped
def run(
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="Id in the node table, or number in a dataset from 0."
        ),
    ],
    graph: GraphOptions,
    fit: FitOptions,
    run_directory: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help=RUN_HELP)
    ] = None,
    shown: Annotated[
        int, typer.Option(min=1, help="Number of labels and neighbours to list.")
    ] = 10,
) -> None:
    """Explain one node: which labels reach it and what follows from them.

    It shows what label propagation, a GCN and the ELU graph say. Nothing is saved.
    """
    name, seed, fitted = fitted_graph(
        graph, fit, run_directory, check=lambda data: check_node(data, node)
    )
    result = {"dataset": name, "seed": seed} | explain(fitted, node, shown)
    if fit.json_:
        print_json(result)
    elif not fit.quiet:
        show(result, console(wide=True))


def show(result: dict[str, Any], screen: Console) -> None:
    """The explanation for people."""
    screen.print(
        f"[bold]Node {escape(result['node'])}[/bold] of {escape(result['dataset'])}: "
        f"{_MEANING[result['utilization']]}"
    )
    for line in _facts(result):
        screen.print(line, markup=False)
    screen.print()
    classes = plain_table("class", "labels say", "GCN says", "neighbours", "ELU graph")
    columns = [_shares(result["influence"]), _shares(result["probabilities"])]
    columns += [
        _shares(result[side]["classes"]) if result[side] else {}
        for side in ("before", "after")
    ]
    # Every class that somebody speaks of, the first of each list first.
    for name in dict.fromkeys(name for column in columns for name in column):
        shares = [column.get(name, 0.0) for column in columns]
        if max(shares) >= 0.005:
            table_row = [_share(value) for value in shares]
            classes.add_row(escape(name), *table_row)
    screen.print(classes)
    _show_labels(result, screen)
    for side, title in (
        ("before", "neighbour on the original graph"),
        ("after", "neighbour on the ELU graph"),
    ):
        if result[side] is not None:
            _show_neighbours(result[side], title, screen)


def _facts(result: dict[str, Any]) -> list[str]:
    known = result["label"]
    own = "its class is not known" if known is None else f"its class is {known}"
    place = {None: "", "train": ", a training label", "val": ", a validation node"}
    own += place.get(result["split"], ", a test node")
    degree, distance = result["degree"], result["distance"]
    near = "; no path leads to a label"
    if distance is not None:
        # A training node is its own label, as is said before.
        away = f"; the nearest label is {_count(distance, 'edge')} away"
        near = away if distance else ""
    lpa = result["lpa"]
    heard = "labels say nothing" if lpa is None else f"the labels say {lpa}"
    shares = _shares(result["influence"])
    equal = [
        name for name, share in shares.items() if share > max(shares.values()) - _TIE
    ]
    if len(equal) > 1:
        heard = f"the labels say {' as much as '.join(equal)} and count for {lpa}"
    sure = percent(result["gcn_confidence"])
    return [
        f"{own}; {_count(degree, 'neighbour')}{near}",
        f"{heard}; the GCN says {result['gcn']} ({sure})",
    ]


def _show_labels(result: dict[str, Any], screen: Console) -> None:
    if not result["labels"]:
        return
    screen.print()
    table = plain_table("label that reaches it", "share", "edges away")
    table.add_column("class")
    for row in result["labels"]:
        away = "–" if row["distance"] is None else str(row["distance"])
        table.add_row(
            escape(row["node"]), percent(row["share"]), away, escape(row["class"])
        )
    screen.print(table)
    _rest(result["n_labels"], len(result["labels"]), screen)


def _show_neighbours(side: dict[str, Any], title: str, screen: Console) -> None:
    screen.print()
    table = plain_table(title, "share")
    table.add_column("class")
    for row in side["neighbours"]:
        kind = " (label)" if row["labelled"] else ""
        table.add_row(
            escape(row["node"]), percent(row["share"]), escape(row["class"]) + kind
        )
    screen.print(table)
    _rest(side["n_neighbours"], len(side["neighbours"]), screen)


def _rest(total: int, shown: int, screen: Console) -> None:
    if not total:
        screen.print(" none")
    elif total > shown:
        screen.print(f" and {total - shown:,} more")


def _shares(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {row["class"]: row["share"] for row in rows}


def _share(value: float) -> str:
    return percent(value) if value else "–"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
