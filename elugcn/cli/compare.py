"""``elugcn compare``: methods × datasets × seeds, resumable, as a table."""

import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from elugcn.api import parse_assignments
from elugcn.atomic import atomic_file, check_file
from elugcn.cli.common import given_names
from elugcn.cli.options import (
    DATASETS_HELP,
    LABELS_HELP,
    METHODS_HELP,
    RunsOptions,
    SelectionOptions,
    grouped,
)
from elugcn.errors import InputError
from elugcn.evaluation import FORMATS, Store, aggregate, make_jobs, render, run_jobs
from elugcn.evaluation.tables import terminal


@grouped
def run(
    how: RunsOptions,
    selection: SelectionOptions,
    methods: str = typer.Option("auto,elu-gcn,gcn,mlp,lpa", help=METHODS_HELP),
    datasets: str = typer.Option("digits", help=DATASETS_HELP),
    seeds: int = typer.Option(10, min=1, help="Runs per method and dataset."),
    store: Path = typer.Option(
        Path("runs/compare"), help="Folder of runs; stored runs are not repeated."
    ),
    labels_per_class: int | None = typer.Option(None, help=LABELS_HELP),
    set_: list[str] | None = typer.Option(
        None, "--set", metavar="METHOD.KEY=VALUE", help="One option of a method."
    ),
    data_option: list[str] | None = typer.Option(
        None, metavar="DATASET.KEY=VALUE", help="One option of a synthetic dataset."
    ),
    format_: str = typer.Option("terminal", "--format", help=f"{', '.join(FORMATS)}."),
    out: Path | None = typer.Option(None, help="Write the table to this file."),
) -> int:
    """Compare methods on datasets: mean ± std, differences, time, memory.

    Every finished run is stored. The same command continues where it stopped, and
    several may share a store. Exit code 1: some runs failed.
    """
    if format_ not in FORMATS:
        raise InputError(f"--format {format_}: expected one of {', '.join(FORMATS)}")
    if out is not None:
        check_file(out)
    jobs = make_jobs(
        given_names(methods, "--methods"),
        given_names(datasets, "--datasets"),
        seeds,
        labels_per_class=labels_per_class,
        options=_by_name(set_, "--set", "METHOD"),
        data_options=_by_name(data_option, "--data-option", "DATASET"),
        **selection.model_dump(),
    )
    outcomes = run_jobs(jobs, Store(store), **how.execution())
    comparison = aggregate(jobs, outcomes)
    if out is not None:
        with atomic_file(out) as file:
            file.write(render(comparison, format_))

    def show(screen: Console) -> None:
        if format_ == "terminal":
            screen.print(terminal(comparison))
        else:
            sys.stdout.write(render(comparison, format_))

    runs = {"done": len(outcomes.done), "failed": len(outcomes.failed)}
    if out is None or how.json_:
        how.show(comparison.plain() | {"runs": runs, "store": str(store)}, show)
    for job, record in outcomes.failed.items():
        print(f"elugcn: failed: {job.title}: {record['error']}", file=sys.stderr)
    return 1 if outcomes.failed else 0


def _by_name(
    pairs: list[str] | None, option: str, kind: str
) -> dict[str, dict[str, Any]]:
    """``["gcn.epochs=3"]`` as ``{"gcn": {"epochs": 3}}``."""
    out: dict[str, dict[str, Any]] = {}
    for key, value in parse_assignments(pairs or [], option).items():
        name, _, rest = key.partition(".")
        if not name or not rest:
            raise InputError(f"{option} {key}: expected {kind}.KEY=VALUE")
        out.setdefault(name, {})[rest] = value
    return out
