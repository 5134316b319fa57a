"""``elugcn graph``: learn the ELU graph and write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elugcn.api import GRAPH_SUFFIXES, check_graph_path, write_graph
from elugcn.atomic import check_file
from elugcn.cli.common import (
    complete,
    configure,
    console,
    fit_loaded,
    load_graph,
    print_json,
    refuse_input,
)
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.errors import InputError
from elugcn.methods.registry import GRAPH_ONLY


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    out: Annotated[
        Path,
        typer.Option(
            help=f"File to write; its suffix is one of {', '.join(GRAPH_SUFFIXES)}."
        ),
    ],
    topk: Annotated[
        int | None,
        typer.Option(min=1, help="Keep this many edges per node, as an edge list."),
    ] = None,
) -> None:
    """Learn the ELU graph: factors (.safetensors) or an edge list (--topk 20)."""
    if topk is not None:
        if fit.graph_mode not in (None, "topk"):
            raise InputError(f"--topk contradicts --graph-mode {fit.graph_mode}")
        fit.graph_mode = "topk"
        fit.set_ = [*(fit.set_ or []), f"topk={topk}"]
    check_file(out)
    settings = complete(graph, fit)
    refuse_input(out, settings.graph)
    loaded = load_graph(settings.graph, settings.seed)
    config = configure(loaded.preset, GRAPH_ONLY, fit)
    check_graph_path(out, str(config.graph_mode))  # type: ignore[attr-defined]
    fitted = fit_loaded(loaded, GRAPH_ONLY, config, settings.seed, fit)
    learned = fitted.result.graph
    assert learned is not None
    written = write_graph(learned, out, getattr(fitted.data, "node_ids", None))
    factors = learned.mode == "implicit"
    summary = {
        "dataset": loaded.name,
        "graph_mode": learned.mode,
        "n_nodes": learned.shape[0],
        "rank": learned.rank if factors else None,
        "entries": written,
        "seconds": fitted.result.seconds,
        "out": str(out),
    }
    if fit.json_:
        print_json(summary)
    elif not fit.quiet:
        what = f"{written:,} weighted edges"
        if factors:
            what = f"two {learned.shape[0]:,}×{learned.rank} factors"
        console().print(f"{out}: ELU graph of {loaded.name}, {what}", markup=False)
