"""Options that several commands share, declared once.

A command takes a whole group as one parameter; ``grouped`` spreads the group's fields
into the options Typer shows.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from elugcn.fitting import MAX_SEED

MOST_THREADS = 1024

_SOURCE, _TABLES, _FIT = "Which graph", "Own tables", "How it is fitted"


@dataclass(kw_only=True)
class GraphOptions:
    """Which graph: a dataset by name, or the user's own tables."""

    dataset: Annotated[
        str | None,
        typer.Option(
            help="Name (see `elugcn datasets`); digits if no tables are given.",
            rich_help_panel=_SOURCE,
        ),
    ] = None
    split: Annotated[
        int | None,
        typer.Option(
            help="Which split of the dataset; 0 if not given.", rich_help_panel=_SOURCE
        ),
    ] = None
    labels_per_class: Annotated[
        int | None,
        typer.Option(
            help="Draw this many training labels per class.", rich_help_panel=_SOURCE
        ),
    ] = None
    data_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Option of a synthetic dataset, e.g. n=100000 for sbm.",
            rich_help_panel=_SOURCE,
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where dataset files are; else $ELUGCN_DATA, else the cache.",
            rich_help_panel=_SOURCE,
        ),
    ] = None
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="Your nodes: CSV or Parquet, one row a node.", rich_help_panel=_TABLES
        ),
    ] = None
    edges: Annotated[
        Path | None,
        typer.Option(
            help="Your edges: CSV or Parquet, one row an edge.", rich_help_panel=_TABLES
        ),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(help="Column of node ids; else id.", rich_help_panel=_TABLES),
    ] = None
    label_column: Annotated[
        str | None,
        typer.Option(
            help="Column of labels, else label; empty = unlabelled.",
            rich_help_panel=_TABLES,
        ),
    ] = None
    split_column: Annotated[
        str | None,
        typer.Option(
            help="Column of train/val/test; else 'split' if there is one.",
            rich_help_panel=_TABLES,
        ),
    ] = None
    source_column: Annotated[
        str | None, typer.Option(help="Start of an edge.", rich_help_panel=_TABLES)
    ] = None
    target_column: Annotated[
        str | None, typer.Option(help="End of an edge.", rich_help_panel=_TABLES)
    ] = None
    weight_column: Annotated[
        str | None,
        typer.Option(
            help="Weight of an edge; else 'weight' if there is one.",
            rich_help_panel=_TABLES,
        ),
    ] = None
    directed: Annotated[
        bool,
        typer.Option("--directed", help="Keep direction.", rich_help_panel=_TABLES),
    ] = False
    features: Annotated[
        str | None,
        typer.Option(
            help="identity or degree, for nodes without feature columns.",
            rich_help_panel=_TABLES,
        ),
    ] = None
    val_fraction: Annotated[
        float,
        typer.Option(
            help="Share of labels for validation if there is no split column.",
            rich_help_panel=_TABLES,
        ),
    ] = 0.2
    test_fraction: Annotated[
        float,
        typer.Option(
            help="Share of labels for testing if there is no split column.",
            rich_help_panel=_TABLES,
        ),
    ] = 0.2


@dataclass(kw_only=True)
class FitOptions:
    """How a method is fitted and where its output goes."""

    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_SEED,
            help="Seed of everything random; 0 if not given.",
            rich_help_panel=_FIT,
        ),
    ] = None
    device: Annotated[
        str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=_FIT)
    ] = "auto"
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_THREADS,
            help="Threads; chosen by the graph's size.",
            rich_help_panel=_FIT,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML with options of the method, or the config.yaml of a run to "
            "repeat.",
            rich_help_panel=_FIT,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One option of the method; repeatable.",
            rich_help_panel=_FIT,
        ),
    ] = None
    graph_mode: Annotated[
        str | None,
        typer.Option(help="implicit, topk or paper.", rich_help_panel=_FIT),
    ] = None
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = (
        False
    )


@dataclass(kw_only=True)
class RunsOptions:
    """How many runs are done, by the commands that keep them in a store."""

    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where dataset files are; else $ELUGCN_DATA, else the cache."
        ),
    ] = None
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto"
    threads: Annotated[
        int, typer.Option(max=MOST_THREADS, help="Threads of each run.")
    ] = 1
    jobs: Annotated[int, typer.Option(help="Runs at once.")] = 1
    json_: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = (
        False
    )

    @property
    def silent(self) -> bool:
        """No progress is shown."""
        return self.quiet or self.json_


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
    del command.__wrapped__  # Typer would look through to the ungrouped function
    return command
