"""``elugcn compare``: methods × datasets × seeds, resumable, as a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from elugcn.atomic import whole_path
from elugcn.cli.common import console, names_in, print_json
from elugcn.cli.options import RunsOptions, grouped
from elugcn.config import parse_assignments
from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation import Store, make_jobs, render, run_jobs, summarize_outcomes
from elugcn.evaluation.monitor import default_monitor
from elugcn.evaluation.tables import FORMATS, terminal
from elugcn.methods.registry import METHODS


@grouped
def run(
    how: RunsOptions,
    methods: Annotated[
        str, typer.Option(help=f"Comma-separated, of {', '.join(METHODS)}.")
    ] = "elu-gcn,gcn,mlp,lpa",
    datasets: Annotated[
        str, typer.Option(help="Comma-separated names (see `elugcn datasets`).")
    ] = "digits",
    seeds: Annotated[int, typer.Option(help="Runs per method and dataset.")] = 10,
    store: Annotated[
        Path,
        typer.Option(help="Directory of results; what it has is not run again."),
    ] = Path("results/store"),
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
        Path | None, typer.Option(help="Write the table to this file instead.")
    ] = None,
) -> int:
    """Run methods on datasets and show mean ± std, differences, time and memory.

    Every finished run is kept in the store: the same command goes on where it
    stopped, and several may share a store. Exit code 1: some runs failed.
    """
    if format_ not in FORMATS:
        raise InputError(f"unknown --format {format_!r}; known: {', '.join(FORMATS)}")
    if out is not None:
        _check_out(out)
    plan = make_jobs(
        names_in(methods),
        names_in(datasets),
        seeds,
        labels_per_class=labels_per_class,
        options=_per_name(set_, "--set METHOD.key=value"),
        data_options={
            dataset_info(name).name: options
            for name, options in _per_name(
                data_option, "--data-option DATASET.key=value"
            ).items()
        },
    )
    outcomes = run_jobs(
        plan,
        Store(store),
        workers=how.jobs,
        data_dir=how.data_dir,
        n_threads=how.threads,
        device=how.device,
        monitor=default_monitor(how.silent),
    )
    comparison = summarize_outcomes(plan, outcomes)
    if out is not None:
        text = render(comparison, format_)
        with whole_path(out) as work:
            work.write_text(text, encoding="utf-8")
    if how.json_:
        failed = len(outcomes.failed)
        runs = {"done": len(outcomes.done), "failed": failed}
        print_json(comparison.plain() | {"runs": runs, "store": str(store)})
    elif out is None and not how.quiet:
        if format_ == "terminal":
            console().print(terminal(comparison))
        else:
            sys.stdout.write(render(comparison, format_))
    for job, record in outcomes.failed.items():
        print(f"elugcn: failed: {job.title}: {record['error']}", file=sys.stderr)
    return 1 if outcomes.failed else 0


def _per_name(pairs: list[str] | None, form: str) -> dict[str, dict[str, Any]]:
    """``["gcn.epochs=3"]`` as ``{"gcn": {"epochs": 3}}``."""
    option = form.split()[0]
    out: dict[str, dict[str, Any]] = {}
    for key, value in parse_assignments(pairs or [], option).items():
        name, dot, rest = key.partition(".")
        if not dot or not name or not rest:
            raise InputError(f"{option} {key}: expected {form}")
        out.setdefault(name, {})[rest] = value
    return out


def _check_out(out: Path) -> None:
    """Refuse the file before hours of work, not after."""
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise InputError(f"--out {out}: expected a file in an existing directory")
