"""``elugcn graph``: learn the ELU graph and write it."""

from pathlib import Path

import typer

from elugcn.api import GRAPH_SUFFIXES, check_graph_path, write_graph
from elugcn.atomic import check_file
from elugcn.cli.loading import prepare, refuse_input
from elugcn.cli.options import FitOptions, GraphOptions, grouped
from elugcn.errors import InputError


@grouped
def run(
    graph: GraphOptions,
    fit: FitOptions,
    out: Path = typer.Option(..., help=f"File; one of {', '.join(GRAPH_SUFFIXES)}."),
    topk: int | None = typer.Option(
        None, min=1, help="Keep this many edges per node, as an edge list."
    ),
) -> None:
    """Learn the ELU graph: factors (.safetensors) or an edge list (--topk 20)."""
    if topk is not None:
        if fit.graph_mode not in (None, "topk"):
            raise InputError(f"--topk contradicts --graph-mode {fit.graph_mode}")
        fit.graph_mode = "topk"
        fit.set_ = [*(fit.set_ or []), f"topk={topk}"]
    check_file(out)
    task = prepare(graph, fit, graph_only=True)
    refuse_input(out, task.asked.graph)
    check_graph_path(out, task.config.graph_mode)  # type: ignore[attr-defined]
    fitted = task.fit(fit)
    learned = fitted.result.graph
    assert learned is not None
    entries = write_graph(learned, out, getattr(fitted.data, "node_ids", None))
    rank = learned.rank if learned.mode == "implicit" else None
    nodes = learned.shape[0]
    what = f"two factors of {nodes:,} × {rank}" if rank else f"{entries:,} edges"
    result = {
        "dataset": task.name,
        "graph_mode": learned.mode,
        "n_nodes": nodes,
        "rank": rank,
        "entries": entries,
        "seconds": fitted.result.seconds,
        "out": str(out),
    }
    fit.show(result, f"{out}: the ELU graph of {task.name}, {what}")
