"""``elugcn graph``: learn the ELU graph and write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elugcn.atomic import check_file
from elugcn.cli.common import (
    configure,
    console,
    fit_loaded,
    load_graph,
    print_json,
    refuse_input,
    settle,
)
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.errors import InputError
from elugcn.export import SUFFIXES, check_suffix, write_graph
from elugcn.methods.elu_config import ELUGCNConfig


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
    check_file(out)
    settings = settle(graph, fit)
    refuse_input(out, settings.graph)
    loaded = load_graph(settings.graph, settings.seed)
    config = configure(loaded.preset, "elu-graph", fit)
    assert isinstance(config, ELUGCNConfig)
    check_suffix(out, config.members()[0][1].graph_mode)
    fitted = fit_loaded(loaded, "elu-graph", config, settings.seed, fit)
    learned = fitted.prediction.graph
    assert learned is not None
    ids = getattr(fitted.data, "node_ids", None)
    written = write_graph(learned, out, ids)
    summary = {
        "dataset": loaded.name,
        "graph_mode": learned.mode,
        "n_nodes": learned.shape[0],
        "rank": learned.rank if learned.mode == "implicit" else None,
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
        said = f"ELU graph of {loaded.name}: {what} in {out}"
        console().print(said, markup=False)
