"""What commands do with the shared options: load a graph, fit a method, print."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from torch_geometric.data import Data

from elugcn.cli.options import FitOptions, GraphOptions
from elugcn.config import parse_assignments, read_yaml, resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.tables import load_tables
from elugcn.errors import InputError, shown
from elugcn.fitting import MAX_SEED, Fitted, fit_graph
from elugcn.methods.base import BaseConfig
from elugcn.storage import json_safe
from elugcn.training.progress import default_progress

DEFAULT_DATASET = "digits"
DEFAULT_METHOD = "elu-gcn"
_OF_DATASETS = ("split", "labels_per_class", "data_option")
_OF_TABLES = (
    "id_column", "label_column", "split_column", "source_column", "target_column",
    "weight_column", "val_fraction", "test_fraction",
)  # fmt: skip
# Where things are on this machine is no part of a run.
_LOCAL = ("data_dir",)


@dataclass
class LoadedGraph:
    """A checked graph and what it is called."""

    name: str
    preset: str | None
    split: int
    graph: CheckedGraph
    options: GraphOptions

    def plain_options(self) -> dict[str, Any]:
        """What the user said about the graph, as YAML holds it."""
        return _plain(replace(self.options, dataset=self.name_of_dataset))

    @property
    def name_of_dataset(self) -> str | None:
        """The dataset's name; None for tables."""
        return self.name if self.options.nodes is None else None


@dataclass
class Settings:
    """The options of a command once the file of ``--config`` has had its say."""

    graph: GraphOptions
    seed: int
    method: str


def settle(graph: GraphOptions, fit: FitOptions, method: str | None = None) -> Settings:
    """Fill what the command line leaves open from the ``config.yaml`` of a run.

    The file's graph is taken whole, and only if the command line names none.
    """
    said = {} if fit.config is None else read_yaml(fit.config)
    if "options" not in said:
        said = {}
    named = (graph.dataset, graph.nodes, graph.edges)
    if said and all(v is None for v in named):
        asked = _graph_of(said, fit.config)
        known = {f.name for f in fields(GraphOptions)}
        if not set(asked) <= known:
            wrong = min(set(asked) - known, key=str)
            raise InputError(f"--config {fit.config}: unknown key {wrong!r} in graph")
        # Where the files are is said by the command line alone.
        local = {name: getattr(graph, name) for name in _LOCAL}
        said_here = _plain(graph) | local
        graph = GraphOptions(**(_typed(asked, fit.config) | said_here))
    seed = said.get("seed", 0) if fit.seed is None else fit.seed
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise InputError(
            f"--config {fit.config}: seed must be a whole number from 0 to {MAX_SEED}; "
            f"got {seed!r}"
        )
    chosen = method or str(said.get("method", DEFAULT_METHOD))
    return Settings(graph, seed, chosen)


def _graph_of(said: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The graph of a run's file, whose head names its dataset and split, too."""
    graph: dict[str, Any] = said["graph"]
    if "nodes" in graph:
        return graph  # the head has the name of the tables
    head = {key: said[key] for key in ("dataset", "split") if said.get(key)}
    for key, value in head.items():
        if graph.get(key, value) != value:
            raise InputError(
                f"--config {file}: {key} is {value!r}, and {graph[key]!r} in graph: "
                "change both"
            )
    return head | graph


def _plain(options: GraphOptions) -> dict[str, Any]:
    """The options that differ from their defaults."""
    out: dict[str, Any] = {}
    for f in fields(GraphOptions):
        value = getattr(options, f.name)
        if value != f.default and f.name not in _LOCAL:
            # Where the tables are is the same from wherever a run is looked at.
            out[f.name] = str(value.absolute()) if isinstance(value, Path) else value
    return out


def _typed(values: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """Options of a graph as a file has them."""
    kinds = {"data_option": list, "split": int, "labels_per_class": int}
    kinds |= {"directed": bool, "val_fraction": float, "test_fraction": float}
    for key, value in values.items():
        if not isinstance(value, kinds.get(key, str)):
            raise InputError(f"--config {file}: graph {key} can't be {shown(value)}")
        if isinstance(value, list) and not all(isinstance(v, str) for v in value):
            raise InputError(f"--config {file}: graph {key} can't be {shown(value)}")
    return {
        key: Path(value) if key in ("nodes", "edges") else value
        for key, value in values.items()
    }


def load_graph(options: GraphOptions, seed: int) -> LoadedGraph:
    """The dataset or the tables that the options name, checked."""
    check_options(options)
    if options.nodes is None and options.edges is None:
        name = DEFAULT_DATASET if options.dataset is None else options.dataset
        info = dataset_info(name)
        data = read_dataset(name, options)
        graph = check_data(data, features=options.features, seed=seed)
        # The tuned values are for the dataset as published, with its own labels.
        preset = info.name if options.labels_per_class is None else None
        return LoadedGraph(info.name, preset, options.split or 0, graph, options)
    if options.dataset is not None:
        raise InputError("give --dataset, or --nodes and --edges, not both")
    if options.nodes is None or options.edges is None:
        missing = "--nodes" if options.nodes is None else "--edges"
        raise InputError(f"own tables need --nodes and --edges; {missing} is missing")
    data = read_tables(options, seed)
    graph = check_data(data, seed=seed, val_fraction=options.val_fraction)
    return LoadedGraph(options.nodes.stem, None, 0, graph, options)


def check_options(options: GraphOptions) -> None:
    """Refuse what would be ignored: options of tables without any, or of datasets."""
    tables = options.nodes is not None or options.edges is not None
    other = _OF_DATASETS if tables else _OF_TABLES
    for field in fields(GraphOptions):
        value = getattr(options, field.name)
        first = field.name == "split" and value == 0  # which tables have, too
        if field.name in other and value != field.default and not first:
            name = f"--{field.name.replace('_', '-')}"
            goes = "a --dataset" if tables else "--nodes and --edges"
            raise InputError(f"{name} goes with {goes}")


def refuse_input(out: Path, options: GraphOptions) -> None:
    """Refuse to write over the tables that are read."""
    for given in filter(None, (options.nodes, options.edges)):
        if out.exists() and given.exists() and out.samefile(given):
            raise InputError(f"--out {out}: that is a table of this graph")


def refuse_run(out: Path, run_directory: Path, own: str) -> None:
    """Refuse to write over the files of a run, but for ``own``, or over its tables."""
    if not out.exists() or not run_directory.is_dir():
        return
    for path in run_directory.iterdir():
        if path.name != own and path.samefile(out):
            raise InputError(f"--out {out}: that is a file of the run")
    try:
        said = settle(GraphOptions(), FitOptions(config=run_directory / "config.yaml"))
    except InputError:
        return  # who needs that file says what is wrong with it
    refuse_input(out, said.graph)


def read_dataset(name: str, options: GraphOptions) -> Data:
    """The dataset with the options that go with it."""
    extra = parse_assignments(options.data_option or [], "--data-option")
    info = dataset_info(name)
    for key in extra:
        if key not in info.options:
            known = ", ".join(info.options) or "none"
            raise InputError(
                f"--data-option: unknown option {key!r} for dataset {info.name}; "
                f"known: {known}"
            )
    return load_dataset(
        name,
        options.split or 0,
        options.data_dir,
        labels_per_class=options.labels_per_class,
        directed=options.directed,
        **extra,
    )


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
        directed=options.directed or None,
        features=options.features,
        val_fraction=options.val_fraction,
        test_fraction=options.test_fraction,
        seed=seed,
        schema=schema,
    )


def configure(preset: str | None, method: str, options: FitOptions) -> BaseConfig:
    """The configuration that defaults, preset, file and options give together."""
    given = parse_assignments(options.set_ or [])
    if options.graph_mode is not None:
        given["graph_mode"] = options.graph_mode
    return resolve_config(method, preset, options.config, given)


def fit_loaded(
    loaded: LoadedGraph,
    method: str,
    config: BaseConfig,
    seed: int,
    options: FitOptions,
) -> Fitted:
    """Fit a method to the graph."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        fitted = fit_graph(
            loaded.graph,
            method,
            config,
            seed=seed,
            device=options.device,
            n_threads=options.threads,
            progress=default_progress(options.quiet or options.json_),
        )
    fitted.facts["features"] = loaded.options.features
    return fitted


def names_in(text: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_given(text: str | None, option: str) -> tuple[str, ...] | None:
    """The names of an option; None if it is not given, an error if it is empty."""
    if text is None:
        return None
    names = tuple(names_in(text))
    if not names:
        raise InputError(f"{option} {text!r}: expected names separated by commas")
    return names


def check_pages(folder: Path) -> None:
    """Refuse a place for the pages before hours of work, not after."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: {place} is no directory to write to")


def console() -> Console:
    """Where people read: stdout, plain when it is not a terminal."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(json_safe(content), allow_nan=False))


def percent(value: float | None) -> str:
    """A fraction for people; a dash if there is none."""
    return "–" if value is None or value != value else f"{100 * value:.1f} %"
