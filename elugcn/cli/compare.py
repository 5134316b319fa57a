"""``elugcn compare``: methods × datasets × seeds, resumable, as a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elugcn.api import parse_assignments
from elugcn.atomic import whole_file
from elugcn.cli.common import console, print_json, split_names
from elugcn.cli.options import RunsOptions, grouped
from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation import FORMATS, Store, aggregate, make_jobs, render, run_jobs
from elugcn.evaluation.tables import terminal
from elugcn.methods.registry import METHOD_NAMES, resolve_name
from elugcn.training.progress import default_progress


@grouped
def run(
    how: RunsOptions,
    methods: Annotated[
        str, typer.Option(help=f"Separated by commas, of {', '.join(METHOD_NAMES)}.")
    ] = "auto,elu-gcn,gcn,mlp,lpa",
    datasets: Annotated[
        str, typer.Option(help="Separated by commas, see `elugcn datasets`.")
    ] = "digits",
    seeds: Annotated[int, typer.Option(help="Runs per method and dataset.")] = 10,
    store: Annotated[
        Path, typer.Option(help="Folder of runs; stored runs are not repeated.")
    ] = Path("runs/compare"),
    labels_per_class: Annotated[
        int | None, typer.Option(help="Draw this many training labels per class.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METHOD.KEY=VALUE",
            help="One option of a method; repeatable.",
        ),
    ] = None,
    data_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET.KEY=VALUE",
            help="Option of a synthetic dataset, e.g. sbm.n=100000; repeatable.",
        ),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")
    ] = "terminal",
    out: Annotated[
        Path | None, typer.Option(help="Write the table to this file.")
    ] = None,
) -> int:
    """Compare methods on datasets: mean ± std, differences, time, memory.

    Every finished run is stored. The same command continues where it stopped, and
    several may share a store. Exit code 1: some runs failed.
    """
    if format_ not in FORMATS:
        raise InputError(f"--format {format_}: expected one of {', '.join(FORMATS)}")
    if out is not None and (out.is_dir() or not out.resolve().parent.is_dir()):
        raise InputError(f"--out {out}: expected a file in an existing folder")
    options = _by_name(set_, "--set", "METHOD")
    data_options = _by_name(data_option, "--data-option", "DATASET")
    jobs = make_jobs(
        split_names(methods),
        split_names(datasets),
        seeds,
        labels_per_class=labels_per_class,
        options={resolve_name(name): given for name, given in options.items()},
        data_options={
            dataset_info(name).name: given for name, given in data_options.items()
        },
    )
    outcomes = run_jobs(
        jobs,
        Store(store),
        workers=how.jobs,
        data_dir=how.data_dir,
        n_threads=how.threads,
        device=how.device,
        progress=default_progress(how.silent),
    )
    comparison = aggregate(jobs, outcomes)
    if out is not None:
        with whole_file(out) as file:
            file.write(render(comparison, format_))
    if how.json_:
        runs = {"done": len(outcomes.done), "failed": len(outcomes.failed)}
        print_json(comparison.plain() | {"runs": runs, "store": str(store)})
    elif out is None and not how.quiet:
        if format_ == "terminal":
            console().print(terminal(comparison))
        else:
            sys.stdout.write(render(comparison, format_))
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
