"""Options that several commands share, declared once.

A command takes a group of options as one dataclass parameter. ``grouped`` spreads the
fields of the group into the single options that Typer shows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from elugcn.api import MAX_SEED

MAX_THREADS = 1024


def _option(*names: str, panel: str | None = None, **given: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **given)


_graph = functools.partial(_option, panel="Which graph")
_table = functools.partial(_option, panel="Own tables")
_fit = functools.partial(_option, panel="How it is fitted")
_DATA_DIR_HELP = "Folder with dataset files. Default: $ELUGCN_DATA, else the cache."


@dataclass(kw_only=True)
class GraphOptions:
    """Which graph: a dataset by name, or the user's own tables."""

    dataset: Annotated[
        str | None,
        _graph(help="Dataset name, see `elugcn datasets`. Default: digits."),
    ] = None
    split: Annotated[
        int | None, _graph(help="Number of the dataset's split. Default: 0.")
    ] = None
    labels_per_class: Annotated[
        int | None, _graph(help="Draw this many training labels per class.")
    ] = None
    data_option: Annotated[
        list[str] | None,
        _graph(
            metavar="KEY=VALUE",
            help="Option of a synthetic dataset, e.g. n=100000 for sbm.",
        ),
    ] = None
    data_dir: Annotated[Path | None, _graph(help=_DATA_DIR_HELP)] = None
    nodes: Annotated[
        Path | None, _table(help="Node table (CSV or Parquet), one row per node.")
    ] = None
    edges: Annotated[
        Path | None, _table(help="Edge table (CSV or Parquet), one row per edge.")
    ] = None
    id_column: Annotated[
        str | None, _table(help="Column of node ids. Default: id.")
    ] = None
    label_column: Annotated[
        str | None,
        _table(help="Column of labels; an empty label is unknown. Default: label."),
    ] = None
    split_column: Annotated[
        str | None,
        _table(help="Column of train, val and test. Default: split, if there is one."),
    ] = None
    source_column: Annotated[
        str | None, _table(help="Column of the nodes where edges start.")
    ] = None
    target_column: Annotated[
        str | None, _table(help="Column of the nodes where edges end.")
    ] = None
    weight_column: Annotated[
        str | None,
        _table(help="Column of edge weights. Default: weight, if there is one."),
    ] = None
    directed: Annotated[bool, _table("--directed", help="Treat edges as directed.")] = (
        False
    )
    features: Annotated[
        str | None,
        _table(help="For nodes without feature columns: identity or degree."),
    ] = None
    val_fraction: Annotated[
        float,
        _table(help="Share of the labels for validation if there is no split column."),
    ] = 0.2
    test_fraction: Annotated[
        float,
        _table(help="Share of the labels for testing if there is no split column."),
    ] = 0.2


@dataclass(kw_only=True)
class FitOptions:
    """How a method is fitted and where its output goes."""

    seed: Annotated[
        int | None, _fit(min=0, max=MAX_SEED, help="Random seed. Default: 0.")
    ] = None
    device: Annotated[str, _fit(help="auto, cpu or cuda.")] = "auto"
    threads: Annotated[
        int | None,
        _fit(
            min=1,
            max=MAX_THREADS,
            help="Number of threads. Default: by the size of the graph.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        _fit(help="YAML file of method options, or the config.yaml of a run."),
    ] = None
    set_: Annotated[
        list[str] | None,
        _fit(
            "--set", metavar="KEY=VALUE", help="One option of the method; repeatable."
        ),
    ] = None
    graph_mode: Annotated[
        str | None, _fit(help="Form of the ELU graph: implicit, topk or paper.")
    ] = None
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no summary.")
    ] = False


@dataclass(kw_only=True)
class RunsOptions:
    """How the commands that do many runs execute them."""

    data_dir: Annotated[Path | None, typer.Option(help=_DATA_DIR_HELP)] = None
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto"
    threads: Annotated[int, typer.Option(max=MAX_THREADS, help="Threads per run.")] = 1
    jobs: Annotated[int, typer.Option(help="Number of runs at the same time.")] = 1
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no summary.")
    ] = False

    @property
    def silent(self) -> bool:
        """Whether no progress is shown."""
        return self.quiet or self.json_


def flag_of(field: str) -> str:
    """The command-line name of an option: ``id_column`` is ``--id-column``."""
    return f"--{field.rstrip('_').replace('_', '-')}"


def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Spread the dataclass parameters of a command into single options."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type[Any], list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=kind))
            continue
        types = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [f.name for f in fields(kind)]
        parameters += [
            inspect.Parameter(
                f.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=f.default,
                annotation=types[f.name],
            )
            for f in fields(kind)
        ]
    parameters.sort(key=lambda p: p.kind)

    @functools.wraps(function)
    def command(*args: Any, **given: Any) -> Any:
        for name, (kind, members) in groups.items():
            given[name] = kind(**{m: given.pop(m) for m in members})
        return function(*args, **given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    del command.__wrapped__  # Typer would look through it to the ungrouped function
    return command
