"""``elugcn report``: a run as one HTML page."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch_geometric.data import Data

from elugcn.atomic import check_file
from elugcn.cli.common import console, load_graph, print_json, refuse_run, settle
from elugcn.cli.options import FitOptions, GraphOptions
from elugcn.data.digest import graph_digest
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.report.page.html import sections, write_page
from elugcn.runs import REPORT
from elugcn.storage import load_fitted


def run(
    run_directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run directory of `elugcn train`.")
    ],
    out: Annotated[
        Path | None, typer.Option(help=f"HTML file to write; else RUN/{REPORT}.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where dataset files are; else $ELUGCN_DATA, else the cache."
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No summary.")] = False,
) -> None:
    """Write the page of a run: what it can, for whom, and what to label next.

    One file, no network: it opens from disk. Nothing of the run is trained again; the
    graph it was trained on is read again where it still is.
    """
    target = out or run_directory / REPORT
    if out is not None:
        check_file(out)
        refuse_run(out, run_directory, REPORT)
    fitted = load_fitted(run_directory)
    notes = attach_graph(fitted, run_directory, data_dir)
    content = write_page(run_directory, fitted, target, notes)
    size = target.stat().st_size
    summary = {
        "run": str(run_directory),
        "out": str(target),
        "bytes": size,
        "n_nodes": content.nodes_total,
        "table_nodes": len(content.nodes.table),
        "map_nodes": len(content.nodes.mapped),
        "sections": list(sections(content)),
        "notes": list(notes),
    }
    if json_:
        print_json(summary)
    elif not quiet:
        screen = console()
        for note in notes:
            screen.print(f"note: {note}", markup=False)
        screen.print(f"{target}: {size / 1e6:.2f} MB", markup=False)


def attach_graph(
    fitted: Fitted, run_directory: Path, data_dir: Path | None = None
) -> tuple[str, ...]:
    """Give a loaded run its graph back; the reason, if that can't be done.

    A run keeps its model and not its graph: the dataset, or the tables that its
    ``config.yaml`` names, are read again.
    """
    left_out = "what needs the graph itself is left out"
    config = FitOptions(config=run_directory / "config.yaml")
    try:
        settings = settle(GraphOptions(), config)
        options = replace(settings.graph, data_dir=data_dir)
        with warnings.catch_warnings():
            # They were said when the run was made.
            warnings.simplefilter("ignore")
            data = load_graph(options, settings.seed).graph.data
    except InputError as error:
        return (f"{left_out}: {error}",)
    if not _is_graph_of(fitted, data):
        return (f"the graph has changed since the run was made; {left_out}",)
    fitted.data = data
    return ()


def _is_graph_of(fitted: Fitted, data: Data) -> bool:
    known = fitted.data
    tensors = ("y", "train_mask", "val_mask", "test_mask")
    return (
        all(torch.equal(known[name], data[name]) for name in tensors)
        and known.saved_num_edges == data.edge_index.size(1)
        and known.saved_num_features == data.x.size(1)
        and known.saved_digest in (None, graph_digest(data))
    )
