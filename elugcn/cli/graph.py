"""``elugcn graph``: learn the ELU graph and write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elugcn.cli.common import console, fit_loaded, load_graph, print_json
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.errors import InputError
from elugcn.export import SUFFIXES, check_suffix, write_graph

NAME = "graph"


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    out: Annotated[
        Path,
        typer.Option(help=f"File to write: {', '.join(SUFFIXES)}; the suffix decides."),
    ],
    topk: Annotated[
        int | None,
        typer.Option(min=1, help="Keep this many edges per node, as an edge list."),
    ] = None,
) -> None:
    """Learn the ELU graph: factors (.safetensors) or an edge list (--topk 20)."""
    if topk is not None:
        if fit.graph_mode not in (None, "topk"):
            raise InputError(f"--topk and --graph-mode {fit.graph_mode} contradict")
        fit.graph_mode = "topk"
        fit.set_ = [*(fit.set_ or []), f"topk={topk}"]
    check_suffix(out, fit.graph_mode or "implicit")
    loaded = load_graph(graph, fit.seed)
    fitted = fit_loaded(loaded, "elu-graph", fit)
    learned = fitted.prediction.graph
    assert learned is not None
    ids = getattr(fitted.data, "node_ids", None)
    written = write_graph(learned, out, ids)
    summary = {
        "dataset": loaded.name,
        "graph_mode": learned.mode,
        "n_nodes": learned.shape[0],
        "rank": learned.rank,
        "entries": written,
        "seconds": fitted.prediction.seconds,
        "out": str(out),
    }
    if fit.json_:
        print_json(summary)
    elif not fit.quiet:
        what = (
            f"two {learned.shape[0]:,}×{learned.rank} factors"
            if learned.mode == "implicit"
            else f"{written:,} weighted edges"
        )
        console().print(f"ELU graph of {loaded.name}: {what} in {out}")
