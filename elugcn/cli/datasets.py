"""``elugcn datasets``: what can be loaded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from elugcn.cli.common import console, print_json
from elugcn.data.datasets import is_on_disk, list_datasets


def run(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder with dataset files. Default: $ELUGCN_DATA, else the cache."
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the names alone.")
    ] = False,
) -> None:
    """List the datasets: size, homophily, splits, and what is on disk."""
    rows = [(info, is_on_disk(info.name, data_dir)) for info in list_datasets()]
    if json_:
        print_json({"datasets": [asdict(i) | {"on_disk": here} for i, here in rows]})
        return
    if quiet:
        print("\n".join(info.name for info, _ in rows))
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    for column in ("nodes", "edges", "features", "classes", "homophily", "splits"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("on disk", no_wrap=True)
    for info, here in rows:
        sizes = (info.n_nodes, info.n_edges, info.n_features, info.n_classes)
        table.add_row(
            info.name,
            *("–" if s is None else f"{s:,}" for s in sizes),
            "–" if info.homophily is None else f"{info.homophily:.2f}",
            str(info.n_splits),
            "built in" if not info.files else ("yes" if here else "no"),
        )
    console().print(table)
