"""``elugcn report``: a run as one HTML page."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from elugcn.api import Fitted, attach_graph, load
from elugcn.api.runs import REPORT
from elugcn.atomic import check_file
from elugcn.cli.common import (
    complete,
    console,
    load_graph,
    print_json,
    refuse_run_file,
)
from elugcn.cli.options import FitOptions, GraphOptions
from elugcn.errors import InputError


def run(
    run_directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory of `elugcn train`.")
    ],
    out: Annotated[
        Path | None, typer.Option(help=f"HTML file to write. Default: RUN/{REPORT}.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder with dataset files. Default: $ELUGCN_DATA, else the cache."
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no summary.")] = False,
) -> None:
    """Write the HTML report of a run.

    The report is one file and needs no network. Nothing is trained again. The graph of
    the run is read again if it is still there.
    """
    from elugcn.report import write_report

    target = out or run_directory / REPORT
    if out is not None:
        check_file(out)
        refuse_run_file(out, run_directory, REPORT)
    fitted = load(run_directory)
    notes = read_graph_again(fitted, run_directory, data_dir)
    written = write_report(run_directory, fitted=fitted, out=target, notes=notes)
    size = target.stat().st_size
    if json_:
        print_json(
            {
                "run": str(run_directory),
                "out": str(target),
                "bytes": size,
                "n_nodes": written.n_nodes,
                "table_nodes": written.table_nodes,
                "map_nodes": written.map_nodes,
                "sections": written.sections,
                "notes": list(notes),
            }
        )
    elif not quiet:
        screen = console()
        for note in notes:
            screen.print(f"note: {note}", markup=False)
        screen.print(f"{target}: {size / 1e6:.2f} MB", markup=False)


def read_graph_again(
    fitted: Fitted, run_directory: Path, data_dir: Path | None = None
) -> tuple[str, ...]:
    """Give a loaded run its graph back; notes say why that was not possible.

    A run keeps its model but not its graph. The dataset, or the tables that
    ``config.yaml`` names, are read again.
    """
    config = FitOptions(config=run_directory / "config.yaml")
    try:
        settings = complete(GraphOptions(), config)
        options = replace(settings.graph, data_dir=data_dir)
        with warnings.catch_warnings():
            # The run's first reading gave the same warnings.
            warnings.simplefilter("ignore")
            data = load_graph(options, settings.seed).graph.data
    except InputError as error:
        return (f"parts that need the graph are left out: {error}",)
    if not attach_graph(fitted, data):
        return ("parts that need the graph are left out: it has changed since the run",)
    return ()
