"""What commands do with the shared options: load a graph, fit a method, print."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from torch_geometric.data import Data

from elugcn.cli.options import FitOptions, GraphOptions
from elugcn.config import parse_assignments, resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.tables import load_tables
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.storage import json_safe
from elugcn.training.progress import default_progress

DEFAULT_DATASET = "digits"


@dataclass
class LoadedGraph:
    """A checked graph and what it is called."""

    name: str
    preset: str | None
    split: int
    graph: CheckedGraph


def load_graph(options: GraphOptions, seed: int) -> LoadedGraph:
    """The dataset or the tables that the options name, checked."""
    if options.nodes is None and options.edges is None:
        name = options.dataset or DEFAULT_DATASET
        info = dataset_info(name)
        extra = parse_assignments(options.data_option or [])
        data = load_dataset(
            name,
            options.split,
            options.data_dir,
            labels_per_class=options.labels_per_class,
            directed=options.directed,
            **extra,
        )
        graph = check_data(data, features=options.features, seed=seed)
        # The tuned values are for the dataset as published, with its own labels.
        preset = info.name if options.labels_per_class is None else None
        return LoadedGraph(info.name, preset, options.split, graph)
    if options.dataset is not None:
        raise InputError("give --dataset, or --nodes and --edges, not both")
    if options.nodes is None or options.edges is None:
        missing = "--nodes" if options.nodes is None else "--edges"
        raise InputError(f"own tables need --nodes and --edges; {missing} is missing")
    data = read_tables(options, seed)
    return LoadedGraph(options.nodes.stem, None, 0, check_data(data, seed=seed))


def read_tables(
    options: GraphOptions, seed: int = 0, schema: dict[str, Any] | None = None
) -> Data:
    """The user's two tables as a graph."""
    assert options.nodes is not None
    assert options.edges is not None
    return load_tables(
        options.nodes,
        options.edges,
        id_column=options.id_column,
        label_column=options.label_column,
        split_column=options.split_column,
        source_column=options.source_column,
        target_column=options.target_column,
        weight_column=options.weight_column,
        directed=options.directed,
        features=options.features,
        val_fraction=options.val_fraction,
        test_fraction=options.test_fraction,
        seed=seed,
        schema=schema,
    )


def fit_loaded(loaded: LoadedGraph, method: str, options: FitOptions) -> Fitted:
    """Fit a method with the resolved configuration."""
    given = parse_assignments(options.set_ or [])
    if options.graph_mode is not None:
        given["graph_mode"] = options.graph_mode
    config = resolve_config(method, loaded.preset, options.config, given)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return fit_graph(
            loaded.graph,
            method,
            config,
            seed=options.seed,
            device=options.device,
            n_threads=options.threads,
            progress=default_progress(options.quiet or options.json_),
        )


def console() -> Console:
    """Where people read: stdout, plain when it is not a terminal."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(json_safe(content), allow_nan=False))


def percent(value: float | None) -> str:
    """A fraction for people; a dash if there is none."""
    return "–" if value is None or value != value else f"{100 * value:.1f} %"
