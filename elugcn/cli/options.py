"""Options that several commands share, declared once.

A command takes a group of options as one parameter. ``grouped`` spreads the fields of
the group into the single options that Typer shows.
"""

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo
from rich.console import Console

from elugcn.api import MAX_SEED
from elugcn.cli.common import console, print_json
from elugcn.methods.metrics import METRICS
from elugcn.methods.registry import METHOD_NAMES
from elugcn.training.progress import Progress, default_progress

_THREADS: Any = {"min": 1, "max": 1024}
DATASET, TABLES, FIT = "A dataset", "Your own tables", "How it is fitted"
RUN: Any = typer.Argument(..., metavar="RUN", help="A run directory of `elugcn train`.")
SAVED_RUN: Any = typer.Option(
    None, "--run", metavar="RUN", help="Look at this run; nothing is trained."
)
METHODS_HELP = f"Separated by commas, of {', '.join(METHOD_NAMES)}."
DATASETS_HELP = "Separated by commas; see `elugcn datasets`."
LABELS_HELP = "Draw this many training labels per class."


def _option(
    help: str, *names: str, panel: str | None = None, default: Any = None, **given: Any
) -> Any:
    """A field of a group with the option that Typer shows for it."""
    option = typer.Option(default, *names, help=help, rich_help_panel=panel, **given)
    return Field(default, json_schema_extra={"option": option})


def _shown(one: FieldInfo) -> Any:
    """The option that Typer shows for a field."""
    extra: Any = one.json_schema_extra
    return extra["option"]


_dataset = functools.partial(_option, panel=DATASET)
_table = functools.partial(_option, panel=TABLES)
_fit = functools.partial(_option, panel=FIT)


class OutputOptions(BaseModel):
    """What is printed."""

    json_: bool = _option("Print one JSON object on stdout.", "--json", default=False)
    quiet: bool = _option("Print less, and no progress.", "--quiet", default=False)

    def show(
        self, content: dict[str, Any], people: str | Callable[[Console], None]
    ) -> None:
        """Print a result: as JSON, or for people, a text or what draws on a screen."""
        if self.json_:
            print_json(content)
        elif self.quiet:
            return
        elif isinstance(people, str):
            console().print(people, markup=False, soft_wrap=True)
        else:
            people(console())

    def progress(self) -> Progress:
        """Bars on a terminal unless less was asked for."""
        return default_progress(self.quiet or self.json_)


class DataDirOption(BaseModel):
    """Where dataset files are."""

    data_dir: Path | None = _option(
        "Folder of dataset files. Default: $ELUGCN_DATA, else the cache."
    )


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
        return self.model_dump(exclude_defaults=True, exclude={"data_dir"})


# Where `--help` shows each option of a graph: DATASET, TABLES or None.
PANELS = {
    name: _shown(one).rich_help_panel
    for name, one in GraphOptions.model_fields.items()
    if name != "data_dir"  # a place on this computer is not part of a graph
}


class FitOptions(OutputOptions):
    """How a method is fitted."""

    seed: int | None = _fit("Random seed. Default: 0.", min=0, max=MAX_SEED)
    device: str = _fit("auto, cpu or cuda.", default="auto")
    threads: int | None = _fit("Default: by the size of the graph.", **_THREADS)
    config: Path | None = _fit("YAML file of options, or the config.yaml of a run.")
    set_: list[str] | None = _fit(
        "One option of the method; repeatable.", "--set", metavar="KEY=VALUE"
    )
    effort: str | None = _fit("quick (closed form only), normal or thorough.")
    time_limit: float | None = _fit(
        "Seconds for the default; what is done by then is the answer."
    )
    metric: str | None = _fit(f"{', '.join(METRICS)}. Default: accuracy.")
    class_weight: str | None = _fit("balanced: every class weighs the same.")
    graph_mode: str | None = _fit("Form of the ELU graph: implicit, topk or paper.")


class SelectionOptions(BaseModel):
    """What validation selects by where many runs are compared."""

    metric: str = _option(f"{', '.join(METRICS)}.", default="accuracy")
    class_weight: str | None = _option("balanced: every class weighs the same.")


class RunsOptions(OutputOptions, DataDirOption):
    """How the commands that do many runs execute them."""

    device: str = _option("auto, cpu or cuda.", default="auto")
    threads: int = _option("Threads per run.", default=1, **_THREADS)
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


# Arguments of the library whose options have another name.
_RENAMED = {"workers": "jobs", "n_threads": "threads"}


def with_option_names(message: str) -> str:
    """The library names arguments: ``val_fraction=2`` is ``--val-fraction 2`` here."""
    for name in (*GraphOptions.model_fields, *FitOptions.model_fields, *_RENAMED):
        flag = flag_of(_RENAMED.get(name, name))
        value = "" if "_" in name else "(?==| must be)"  # a short name is also a word
        message = re.sub(rf"(?<![\w/.'-]){name}\b{value}", flag, message)
        message = message.replace(f"{flag}=True", flag).replace(f"{flag}=", f"{flag} ")
    return message


def grouped(function: Callable[..., Any]) -> Callable[..., Any]:
    """Spread the groups of options that a command takes into single options."""
    own = inspect.signature(function, eval_str=True)
    groups: dict[str, type[BaseModel]] = {}
    options: list[inspect.Parameter] = []
    for name, one in own.parameters.items():
        if isinstance(one.annotation, type) and issubclass(one.annotation, BaseModel):
            groups[name] = one.annotation
        else:
            options.append(one.replace(kind=one.KEYWORD_ONLY))
    for group in groups.values():
        for name, field in group.model_fields.items():
            option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
            shown, kind = _shown(field), field.annotation
            options.append(option.replace(default=shown, annotation=kind))

    def command(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{key: given.pop(key) for key in group.model_fields})
        return function(**given)

    command.__doc__ = function.__doc__
    # What Typer reads.
    command.__signature__ = own.replace(parameters=options)  # type: ignore[attr-defined]
    return command
