"""The fitted graph that ``diagnose`` and ``explain`` look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from elugcn.api import Fitted, load
from elugcn.cli.common import complete, configure, fit_loaded, load_graph
from elugcn.cli.options import FitOptions, GraphOptions, flag_of
from elugcn.cli.report import read_graph_again
from elugcn.errors import InputError
from elugcn.methods.registry import GRAPH_ONLY

RUN_HELP = "Look at this run of `elugcn train`; nothing is trained."


def fitted_graph(
    graph: GraphOptions,
    fit: FitOptions,
    run_directory: Path | None,
    check: Callable[[Data], Any] | None = None,
) -> tuple[str, int, Fitted]:
    """Name, seed and fit: of a saved run, or trained now on the named graph.

    Args:
        graph: Which graph, unless a run is given.
        fit: How the ELU graph is learned, unless a run is given.
        run_directory: A saved run.
        check: Looks at the graph before anything is trained.
    """
    if run_directory is None:
        settings = complete(graph, fit)
        loaded = load_graph(settings.graph, settings.seed)
        if check is not None:
            check(loaded.graph.data)
        config = configure(loaded.preset, GRAPH_ONLY, fit)
        fitted = fit_loaded(loaded, GRAPH_ONLY, config, settings.seed, fit)
        return loaded.name, settings.seed, fitted
    for field in fields(GraphOptions):
        if getattr(graph, field.name) != field.default and field.name != "data_dir":
            raise InputError(f"{flag_of(field.name)} does not go with --run")
    fitted = load(run_directory)
    notes = read_graph_again(fitted, run_directory, graph.data_dir)
    if notes:
        raise InputError(f"--run {run_directory}: {notes[0]}")
    if fitted.result.label_utilization is None:
        raise InputError(
            f"--run {run_directory}: method {fitted.method} has no label utilization; "
            "use a run of auto or elu-gcn"
        )
    name = str(getattr(fitted.data, "name", None) or run_directory.name)
    return name, fitted.seed, fitted
