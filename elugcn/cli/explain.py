"""``elugcn explain``: one node, the labels that reach it, its neighbours."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from elugcn.cli.common import percent, print_table
from elugcn.cli.loading import fitted_graph
from elugcn.cli.options import SAVED_RUN, FitOptions, GraphOptions, grouped
from elugcn.insight import check_node, counted, explain

_TIE = 1e-6  # shares that differ by less are equal except for rounding
_LEAST_SHARE = 0.005  # of a class that is listed
_SPLITS = {"train": "training label", "val": "validation node", "test": "test node"}
_MEANING = {
    "elu": "ELU, label propagation and the {} agree",
    "nelu": "NELU, label propagation and the {} disagree",
    "unreachable": "no label reaches it",
}


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    node: str = typer.Argument(
        ..., metavar="NODE", help="Id in the node table, or number in a dataset from 0."
    ),
    run_directory: Path | None = SAVED_RUN,
    shown: int = typer.Option(10, min=1, help="Labels and neighbours to list."),
) -> None:
    """Explain one node: which labels reach it and what follows from them.

    It shows what label propagation, a GCN (or the linear model of auto) and the ELU
    graph say. Nothing is saved.
    """
    known = functools.partial(check_node, node=node)
    name, fitted = fitted_graph(graph, fit, run_directory, known)
    result = {"dataset": name, "seed": fitted.seed} | explain(fitted, node, shown)
    fit.show(result, lambda screen: show(result, screen))


def show(result: dict[str, Any], screen: Console) -> None:
    """The explanation for people."""
    title = f"Node {result['node']} of {result['dataset']}: "
    title += _MEANING[result["utilization"]].format(result["model"])
    screen.print(title, style="bold", markup=False)
    screen.print(f"{_about(result)}\n{_opinions(result)}", markup=False)
    before, after = result["before"], result["after"]
    columns = {
        "labels say": result["influence"],
        f"{result['model']} says": result["probabilities"],
        "neighbours": before["classes"],
        "ELU graph": after["classes"] if after else [],
    }
    # Every class that somebody speaks of, the first of each list first.
    shares: dict[str, dict[str, float]] = {}
    for column, rows in columns.items():
        for row in rows:
            shares.setdefault(row["class"], {})[column] = row["share"]
    classes = [
        [name, *(percent(share.get(column)) for column in columns)]
        for name, share in shares.items()
        if max(share.values()) >= _LEAST_SHARE
    ]
    print_table(screen, ("class", *columns), classes)
    if result["labels"]:
        head = ["label that reaches it", "share", "edges away", "<class"]
        _print_nodes(head, result["labels"], result["n_labels"], screen)
    for side, graph in ((before, "original"), (after, "ELU")):
        if side is not None:
            head = [f"neighbour on the {graph} graph", "share", "<class"]
            _print_nodes(head, side["neighbours"], side["n_neighbours"], screen)


def _about(result: dict[str, Any]) -> str:
    """What is known of the node."""
    distance, split = result["distance"], result["split"]
    known = "not known" if result["label"] is None else result["label"]
    part = "" if split is None else f", a {_SPLITS[split]}"
    neighbours = counted(result["degree"], "neighbour")
    text = f"Its class is {known}{part}. It has {neighbours}"
    if distance is None:
        return f"{text}; no path leads to a label."
    if distance == 0:  # a training node is its own label
        return f"{text}."
    return f"{text}; the nearest label is {counted(distance, 'edge')} away."


def _opinions(result: dict[str, Any]) -> str:
    """What the labels and the model say about its class."""
    labels = "say nothing" if result["lpa"] is None else f"say {result['lpa']}"
    shares = [row["share"] for row in result["influence"]]
    if len(shares) > 1 and shares[1] > shares[0] - _TIE:
        both = " and ".join(row["class"] for row in result["influence"][:2])
        labels = f"say {both} equally, which counts as {result['lpa']}"
    sure = percent(result["gcn_confidence"])
    return f"The labels {labels}; the {result['model']} says {result['gcn']} ({sure})."


def _print_nodes(
    head: Sequence[str], rows: list[dict[str, Any]], total: int, screen: Console
) -> None:
    """The strongest labels or neighbours, and how many more there are."""
    shown = []
    for row in rows:
        label = " (label)" if row.get("labelled") else ""
        away = [str(row["distance"])] if "distance" in row else []
        shown.append((row["node"], percent(row["share"]), *away, row["class"] + label))
    print_table(screen, head, shown)
    if total != len(rows) or not total:
        screen.print(f"and {total - len(rows):,} more" if total else "none")
