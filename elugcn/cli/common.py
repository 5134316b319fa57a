"""What several commands do with the shared options: load a graph, fit, print."""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from elugcn.api import (
    MAX_SEED,
    Fitted,
    fit,
    json_safe,
    parse_assignments,
    read_config_file,
    resolve_config,
)
from elugcn.cli.options import FitOptions, GraphOptions, flag_of
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.data.tables import load_tables
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.errors import InputError, shown
from elugcn.methods.options import MethodConfig
from elugcn.methods.registry import DEFAULT_METHOD, resolve_name
from elugcn.training.progress import default_progress

DEFAULT_DATASET = "digits"
_DATASET_ONLY = ("split", "labels_per_class", "data_option")
_TABLES_ONLY = (
    "id_column", "label_column", "split_column", "source_column", "target_column",
    "weight_column", "val_fraction", "test_fraction",
)  # fmt: skip
# Places on this machine are not part of a run.
_NOT_RECORDED = ("data_dir",)
_WIDE = 200


@dataclass
class Settings:
    """The options of a command, completed by the file of ``--config``."""

    graph: GraphOptions
    seed: int
    method: str


def complete(
    graph: GraphOptions, fit_options: FitOptions, method: str | None = None
) -> Settings:
    """Fill what the command line leaves open from the ``config.yaml`` of a run.

    The graph of the file is used only if the command line names none.
    """
    file = fit_options.config
    run = {} if file is None else read_config_file(file)
    if "options" not in run:
        run = {}  # a flat file of method options says nothing else
    if run and graph.dataset is None and graph.nodes is None and graph.edges is None:
        recorded = _graph_of(run, file)
        given = recorded_options(graph) | {n: getattr(graph, n) for n in _NOT_RECORDED}
        graph = GraphOptions(**(recorded | given))
    seed = run.get("seed", 0) if fit_options.seed is None else fit_options.seed
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise InputError(
            f"{file}: seed must be a whole number from 0 to {MAX_SEED}; got {seed!r}"
        )
    return Settings(graph, seed, method or str(run.get("method", DEFAULT_METHOD)))


def _graph_of(run: dict[str, Any], file: Path | None) -> dict[str, Any]:
    """The options of the graph that a run's file records, checked."""
    recorded: dict[str, Any] = dict(run["graph"])
    if "nodes" not in recorded:
        for key in ("dataset", "split"):
            value = run.get(key)
            if value and recorded.setdefault(key, value) != value:
                raise InputError(
                    f"{file}: {key} is {value!r} at the top but "
                    f"{recorded[key]!r} under graph"
                )
    kinds = {"data_option": list, "split": int, "labels_per_class": int}
    kinds |= {"directed": bool, "val_fraction": float, "test_fraction": float}
    known = {f.name for f in fields(GraphOptions)}
    for key, value in recorded.items():
        if key not in known:
            raise InputError(f"{file}: unknown key {key!r} under graph")
        items = value if isinstance(value, list) else []
        if not isinstance(value, kinds.get(key, str)) or not all(
            isinstance(item, str) for item in items
        ):
            raise InputError(f"{file}: graph {key} must not be {shown(value)}")
    return {
        key: Path(value) if key in ("nodes", "edges") else value
        for key, value in recorded.items()
    }


def recorded_options(options: GraphOptions) -> dict[str, Any]:
    """The options that differ from their defaults, as ``config.yaml`` records them."""
    out: dict[str, Any] = {}
    for f in fields(GraphOptions):
        value = getattr(options, f.name)
        if value != f.default and f.name not in _NOT_RECORDED:
            # A run may be looked at from another folder.
            out[f.name] = str(value.absolute()) if isinstance(value, Path) else value
    return out


@dataclass
class LoadedGraph:
    """A checked graph, its name, and how it was asked for."""

    name: str
    preset: str | None
    split: int
    graph: CheckedGraph
    options: GraphOptions

    def recorded(self) -> dict[str, Any]:
        """What ``config.yaml`` records about the graph."""
        dataset = self.name if self.options.nodes is None else None
        return recorded_options(replace(self.options, dataset=dataset))


def load_graph(options: GraphOptions, seed: int) -> LoadedGraph:
    """The dataset or the tables that the options name, checked."""
    check_options(options)
    if options.nodes is None and options.edges is None:
        name = DEFAULT_DATASET if options.dataset is None else options.dataset
        info = dataset_info(name)
        data = read_dataset(name, options)
        graph = check_data(data, features=options.features, seed=seed)
        # Presets are tuned for the dataset as published, with its own labels.
        preset = info.name if options.labels_per_class is None else None
        return LoadedGraph(info.name, preset, options.split or 0, graph, options)
    graph = check_data(
        read_tables(options),
        seed=seed,
        val_fraction=options.val_fraction,
        test_fraction=options.test_fraction,
    )
    assert options.nodes is not None
    return LoadedGraph(options.nodes.stem, None, 0, graph, options)


def check_options(options: GraphOptions) -> None:
    """Refuse options of tables for a dataset, and the other way round."""
    tables = options.nodes is not None or options.edges is not None
    if tables and options.dataset is not None:
        raise InputError("give --dataset, or --nodes and --edges, not both")
    if tables and (options.nodes is None or options.edges is None):
        missing = "--nodes" if options.nodes is None else "--edges"
        raise InputError(
            f"own tables require --nodes and --edges; {missing} is missing"
        )
    for field in fields(GraphOptions):
        value = getattr(options, field.name)
        if field.name not in (_DATASET_ONLY if tables else _TABLES_ONLY):
            continue
        first = field.name == "split" and value == 0  # tables have a split 0, too
        if value != field.default and not first:
            requires = "--dataset" if tables else "--nodes and --edges"
            raise InputError(f"{flag_of(field.name)} requires {requires}")


def read_dataset(name: str, options: GraphOptions) -> Data:
    """The dataset, with the options that belong to it."""
    extra = parse_assignments(options.data_option or [], "--data-option")
    info = dataset_info(name)
    for key in extra:
        if key not in info.options:
            known = ", ".join(info.options) or "none"
            raise InputError(
                f"--data-option: unknown option {key!r} of dataset {info.name}; "
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


def read_tables(options: GraphOptions, schema: Any = None) -> Data:
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
        schema=schema,
    )


def configure(preset: str | None, method: str, options: FitOptions) -> MethodConfig:
    """Defaults, preset, file and single options as one configuration."""
    given = parse_assignments(options.set_ or [], "--set")
    if options.graph_mode is not None:
        given["graph_mode"] = options.graph_mode
    return resolve_config(method, preset, options.config, given)


def fit_loaded(
    loaded: LoadedGraph,
    method: str,
    config: MethodConfig,
    seed: int,
    options: FitOptions,
    with_baselines: bool = False,
) -> Fitted:
    """Fit a method to the loaded graph."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return fit(
            loaded.graph,
            method,
            config,
            seed=seed,
            device=options.device,
            n_threads=options.threads,
            progress=default_progress(options.quiet or options.json_),
            with_baselines=with_baselines,
        )


def refuse_input(out: Path, options: GraphOptions) -> None:
    """Refuse to write over the tables that are read."""
    for given in filter(None, (options.nodes, options.edges)):
        if out.exists() and given.exists() and out.samefile(given):
            raise InputError(f"--out {out}: this file is a table of the graph")


def refuse_run_file(out: Path, run_directory: Path, own: str) -> None:
    """Refuse to write over the files of a run, except ``own``, or over its tables."""
    if not out.exists() or not run_directory.is_dir():
        return
    for path in run_directory.iterdir():
        if path.name != own and path.samefile(out):
            raise InputError(f"--out {out}: this file belongs to the run")
    try:
        run = complete(GraphOptions(), FitOptions(config=run_directory / "config.yaml"))
    except InputError:
        return  # the command that needs this file reports what is wrong with it
    refuse_input(out, run.graph)


def split_names(text: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def given_names(text: str | None, option: str) -> tuple[str, ...] | None:
    """The names of an option; None if it is not given, an error if it is empty."""
    if text is None:
        return None
    names = tuple(split_names(text))
    if not names:
        raise InputError(f"{option} {text!r}: expected names separated by commas")
    return names


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before hours of work."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: cannot write to {place}")


def classifier_name(name: str) -> str:
    """The current name of a classifier; a stage that is none is refused."""
    from elugcn.methods.registry import METHOD_NAMES

    resolved = resolve_name(name)
    if resolved not in METHOD_NAMES:
        raise InputError(f"{name} is not a classifier; use `elugcn graph`")
    return resolved


def console(wide: bool = False) -> Console:
    """Stdout for people; plain text where it is not a terminal.

    Args:
        wide: Leave room for long names where no terminal sets the width.
    """
    screen = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    if wide and not screen.is_terminal:
        screen.width = max(screen.width, _WIDE)
    return screen


def plain_table(first: str, *numbers: str) -> Table:
    """A table without lines: names on the left, numbers that are never cut."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column(first, style="bold", overflow="ellipsis")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(json_safe(content), allow_nan=False))


def percent(value: float | None) -> str:
    """A fraction for people; a dash where there is none."""
    return "–" if value is None or value != value else f"{100 * value:.1f} %"
