"""Options that several commands share, declared once.

A command takes a group of options as one dataclass parameter. ``grouped`` spreads the
fields of the group into the single options that Typer shows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import typer

from elugcn.api import MAX_SEED
from elugcn.methods.registry import METHOD_NAMES
from elugcn.training.progress import Progress, default_progress

MAX_THREADS = 1024
DATASET, TABLES, FIT = "A dataset", "Your own tables", "How it is fitted"
RUN_HELP = "A run directory of `elugcn train`."
SAVED_RUN_HELP = "Look at this run of `elugcn train`; nothing is trained."
METHODS_HELP = f"Separated by commas, of {', '.join(METHOD_NAMES)}."
DATASETS_HELP = "Separated by commas; see `elugcn datasets`."
LABELS_HELP = "Draw this many training labels per class."


def _option(
    help: str, *names: str, panel: str | None = None, default: Any = None, **given: Any
) -> Any:
    """A field of a group with the option that Typer shows for it."""
    option = typer.Option(default, *names, help=help, rich_help_panel=panel, **given)
    return field(default=default, metadata={"option": option})


_dataset = functools.partial(_option, panel=DATASET)
_table = functools.partial(_option, panel=TABLES)
_fit = functools.partial(_option, panel=FIT)


@dataclass(kw_only=True)
class OutputOptions:
    """What is printed."""

    json_: bool = _option("Print one JSON object on stdout.", "--json", default=False)
    quiet: bool = _option("Print less, and no progress.", "--quiet", default=False)

    def progress(self) -> Progress:
        """Bars on a terminal unless less was asked for."""
        return default_progress(self.quiet or self.json_)


@dataclass(kw_only=True)
class DataDirOption:
    """Where dataset files are."""

    data_dir: Path | None = _option(
        "Folder of dataset files. Default: $ELUGCN_DATA, else the cache."
    )


@dataclass(kw_only=True)
class GraphOptions(DataDirOption):
    """Which graph: a dataset by name, or the user's own tables."""

    directed: bool = _option("Treat edges as directed.", "--directed", default=False)
    features: str | None = _option("Make features instead: identity or degree.")
    dataset: str | None = _dataset("Name; see `elugcn datasets`. Default: digits.")
    split: int | None = _dataset("Number of its split. Default: 0.")
    labels_per_class: int | None = _dataset(LABELS_HELP)
    data_option: list[str] | None = _dataset(
        "Option of a synthetic dataset, e.g. n=100000 for sbm.", metavar="KEY=VALUE"
    )
    nodes: Path | None = _table("Node table (CSV or Parquet), one row per node.")
    edges: Path | None = _table("Edge table (CSV or Parquet), one row per edge.")
    id_column: str | None = _table("Node ids. Default: id.")
    label_column: str | None = _table("Labels, empty if unknown. Default: label.")
    split_column: str | None = _table("train, val or test. Default: split, if any.")
    source_column: str | None = _table("Where edges start. Default: source, src, …")
    target_column: str | None = _table("Where edges end. Default: target, dst, …")
    weight_column: str | None = _table("Edge weights. Default: weight, if any.")
    val_fraction: float = _table("Share of the labels, if not split.", default=0.2)
    test_fraction: float = _table("Share of the labels, if not split.", default=0.2)

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, except ``data_dir``."""
        default = vars(GraphOptions())
        given = {k: v for k, v in vars(self).items() if v != default[k]}
        return {k: v for k, v in given.items() if k in PANELS}


# Where `--help` shows each option of a graph: DATASET, TABLES or None.
PANELS = {
    f.name: f.metadata["option"].rich_help_panel
    for f in fields(GraphOptions)
    if f.name != "data_dir"  # a place on this computer is not part of a graph
}


@dataclass(kw_only=True)
class FitOptions(OutputOptions):
    """How a method is fitted."""

    seed: int | None = _fit("Random seed. Default: 0.", min=0, max=MAX_SEED)
    device: str = _fit("auto, cpu or cuda.", default="auto")
    threads: int | None = _fit(
        "Default: by the size of the graph.", min=1, max=MAX_THREADS
    )
    config: Path | None = _fit("YAML file of options, or the config.yaml of a run.")
    set_: list[str] | None = _fit(
        "One option of the method; repeatable.", "--set", metavar="KEY=VALUE"
    )
    graph_mode: str | None = _fit("Form of the ELU graph: implicit, topk or paper.")


@dataclass(kw_only=True)
class RunsOptions(OutputOptions, DataDirOption):
    """How the commands that do many runs execute them."""

    device: str = _option("auto, cpu or cuda.", default="auto")
    threads: int = _option("Threads per run.", default=1, min=1, max=MAX_THREADS)
    jobs: int = _option("Runs at the same time.", default=1, min=1)

    def execution(self) -> dict[str, Any]:
        """The same as arguments of ``run_jobs`` and ``tune``."""
        return {
            "workers": self.jobs,
            "data_dir": self.data_dir,
            "n_threads": self.threads,
            "device": self.device,
            "progress": self.progress(),
        }


def flag_of(name: str) -> str:
    """The command-line name of an option: ``id_column`` is ``--id-column``."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def argument_names() -> set[str]:
    """The names that the library has for what these options set."""
    groups = (GraphOptions, FitOptions, RunsOptions)
    return {f.name for group in groups for f in fields(group)}


def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Spread the dataclass parameters of a command into single options."""
    hints = get_type_hints(function, include_extras=True)
    own, shared = [], []
    groups: dict[str, type[Any]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if not is_dataclass(hints[name]):
            own.append((name, hints[name], parameter.default))
            continue
        groups[name] = kind = hints[name]
        types = get_type_hints(kind)
        shared += [(f.name, types[f.name], f.metadata["option"]) for f in fields(kind)]
    options = own + shared

    def command(**given: Any) -> Any:
        for name, kind in groups.items():
            given[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
        return function(**given)

    command.__doc__ = function.__doc__
    command.__annotations__ = {name: kind for name, kind, _ in options}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default
            )
            for name, kind, default in options
        ]
    )
    return command
