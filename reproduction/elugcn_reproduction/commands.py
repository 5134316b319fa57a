"""``elugcn reproduce`` and ``elugcn bench``."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from elugcn.api import json_safe
from elugcn.cli.common import console, given_names, print_json
from elugcn.cli.options import DataDirOption, OutputOptions, RunsOptions, grouped
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.errors import InputError
from elugcn.evaluation import Job, Outcomes, Store, run_jobs
from elugcn.methods.registry import resolve_name
from elugcn.tuning import publish_trials
from elugcn_reproduction.experiments import ALL, NAMES, get_experiments

RESULTS, QUICK_RESULTS = Path("reproduction/results"), Path("runs/quick")
SUITES = ("step", "fit", "graph", "scale", "versions")
OVERVIEW_TABLES = ("table1", "social")  # of the other pages it shows the figure
_OWN = "Separated by commas; else the experiment's own."


@grouped
def reproduce(
    how: RunsOptions,
    experiment: str | None = typer.Argument(
        None, help=f"One of {', '.join(NAMES)}, or {ALL}."
    ),
    quick: bool = typer.Option(False, "--quick", help="A small version, in minutes."),
    seeds: int | None = typer.Option(
        None, min=1, help="Runs per cell. Default: 10, or the experiment's."
    ),
    datasets: str | None = typer.Option(None, help=_OWN),
    methods: str | None = typer.Option(None, help=_OWN),
    no_run: bool = typer.Option(
        False, "--no-run", help="Show what the store has; run nothing."
    ),
    publish: bool = typer.Option(
        False,
        "--publish",
        help="Move new runs and trials into the store's Parquet files.",
    ),
    store: Path | None = typer.Option(
        None, help="Folder of runs; stored runs are not repeated."
    ),
    out: Path | None = typer.Option(
        None, help=f"Folder of the pages. Default: {RESULTS} ({QUICK_RESULTS})."
    ),
) -> int:
    """Make a table or figure of the paper, with our results beside it.

    Finished runs are stored: the same command continues where it stopped. --datasets
    and --methods say what is run; the page also shows what the store has of the rest,
    unless --out names a folder. Exit code 1: some runs failed.
    """
    from elugcn_reproduction.experiments.base import QUICK_SEEDS, Scope
    from elugcn_reproduction.page import write_overview
    from elugcn_reproduction.runner import NothingToShowError, Report
    from elugcn_reproduction.runner import reproduce as make

    if experiment is None:  # all of them take days
        raise InputError(f"name an experiment, or {ALL}: {', '.join(NAMES)}")
    chosen = get_experiments(experiment)
    named = _names(datasets, "--datasets"), _names(methods, "--methods")
    for name in named[0] or ():
        dataset_info(name)
    for name in named[1] or ():
        resolve_name(name)
    default = QUICK_RESULTS if quick else RESULTS
    folder = out or default
    check_folder(folder)
    records = Store(store or default)

    def run(jobs: Sequence[Job]) -> Outcomes:
        return run_jobs(jobs, records, **how.execution())

    reports: list[Report] = []
    skipped: list[str] = []
    for one in chosen:
        count = seeds or (QUICK_SEEDS if quick else one.seeds)
        scope = Scope(quick, count, *named, store=records)
        if one.search and not no_run:
            one.search(scope, **how.execution())
        shared = {"--seeds": seeds, "--store": store, "--out": out}
        part = {"--datasets": datasets, "--methods": methods}
        command = _command("reproduce", one.name, quick, shared | part)
        whole = None
        if out is None and any(named):
            # The page that is there is not cut down to what is asked for now.
            wide = replace(scope, datasets=None, methods=None)
            whole = wide, _command("reproduce", one.name, quick, shared)
        action = None if no_run else run
        try:
            reports.append(
                make(one, scope, records, action, folder, command,
                     data_dir=how.data_dir, whole=whole)
            )  # fmt: skip
        except NothingToShowError as error:
            # Of several experiments the others may have something to show.
            if len(chosen) == 1:
                raise
            skipped.append(str(error))
    if not reports:
        raise InputError(skipped[0])
    pages = [(e.name, e.title, e.question) for e in get_experiments(ALL)]
    overview = write_overview(folder, pages, OVERVIEW_TABLES, quick)
    if publish:
        records.publish()
        publish_trials(records.folder)
    if how.json_:
        found = [report.plain() for report in reports]
        print_json(
            {"experiments": found, "skipped": skipped, "overview": str(overview)}
        )
    elif not how.quiet:
        for report in reports:
            page = [str(p) for p in report.files if p.suffix == ".md"]
            said = f"{report.name}: {report.done} of {report.planned} runs"
            console().print(", ".join([said, *page]), markup=False)
            for note in report.notes:
                console().print(f"  note: {note}", markup=False)
    for line in skipped:
        print(f"elugcn: skipped: {line}", file=sys.stderr)
    failed = [line for report in reports for line in report.failed]
    for line in failed:
        print(f"elugcn: failed: {line}", file=sys.stderr)
    return 1 if failed else 0


@grouped
def bench(
    shown: OutputOptions,
    where: DataDirOption,
    suite: str = typer.Argument(help=f"One of {', '.join(SUITES)}, or {ALL}."),
    datasets: str | None = typer.Option(
        None, help="Separated by commas, for step, fit and versions; else their own."
    ),
    quick: bool = typer.Option(False, "--quick", help="A small version, in a minute."),
    repeats: int | None = typer.Option(
        None, min=1, help="Measurements of each case; scale has one."
    ),
    epochs: int | None = typer.Option(
        None, min=1, help="Epochs of the fits of fit, scale and versions."
    ),
    other: Path | None = typer.Option(
        None, help="For versions: the Python of another environment with elugcn."
    ),
    out: Path | None = typer.Option(None, help="Folder of the pages."),
) -> int:
    """Measure speed and memory beside PyG's GCN and GAT and the explicit n×n graph.

    Everything runs on one thread, and the peers in the same run, alternately: only the
    ratios matter. A part of a suite (--datasets, --repeats, --epochs) goes into the
    folder part/, unless --out names one. ``versions`` is not part of ``all``.
    """
    from elugcn_reproduction.benchmarks.fit import FIT
    from elugcn_reproduction.benchmarks.growth import GRAPH, SCALE
    from elugcn_reproduction.benchmarks.step import STEP
    from elugcn_reproduction.benchmarks.suite import Settings, run_suite
    from elugcn_reproduction.benchmarks.versions import VERSIONS

    suites = {one.name: one for one in (STEP, FIT, GRAPH, SCALE, VERSIONS)}
    if suite not in (*suites, ALL):
        raise InputError(f"unknown suite {suite!r}; known: {', '.join((*suites, ALL))}")
    chosen = [STEP, FIT, GRAPH, SCALE] if suite == ALL else [suites[suite]]
    if (other is None) == (chosen == [VERSIONS]):
        raise InputError(
            "versions requires --other, the Python of another environment"
            if other is None
            else "--other requires the suite versions"
        )
    folder = out or (QUICK_RESULTS if quick else RESULTS) / "bench"
    if out is None and (datasets or repeats or epochs):
        folder = folder / "part"
    check_folder(folder)

    def say(what: str) -> None:
        if sys.stderr.isatty() and not (shown.quiet or shown.json_):
            print(f"elugcn: {what}", file=sys.stderr)

    named = _names(datasets, "--datasets")
    settings = Settings(quick, named, where.data_dir, repeats, epochs, other, say)
    graphs = [name for one in chosen for name in one.chosen(settings)]
    if named and not graphs:
        raise InputError(f"--datasets does not go with {suite}, which draws its own")
    for name in dict.fromkeys(graphs):
        load_dataset(name, 0, where.data_dir)  # what is wrong with it is said first
    numbers: list[dict[str, Any]] = []
    for one in chosen:
        options = {
            "--repeats": repeats,
            "--epochs": epochs,
            "--datasets": datasets if one.datasets else None,
            "--other": other and "PYTHON",
            "--out": out,
        }
        command = _command("bench", one.name, quick, options)
        outcome, files = run_suite(one, settings, folder, command)
        numbers += [asdict(number) for number in outcome.numbers]
        if not (shown.json_ or shown.quiet):
            said = f"{one.name}: {len(outcome.numbers)} numbers, {files[-1]}"
            console().print(said, markup=False)
    if shown.json_:
        print_json({"numbers": json_safe(numbers)})
    return 0


def _names(text: str | None, option: str) -> tuple[str, ...] | None:
    return None if text is None else given_names(text, option)


def _command(verb: str, name: str, quick: bool, options: dict[str, Any]) -> str:
    """What makes the page again, anywhere: absolute paths are not part of it."""
    words = ["elugcn", verb, name, *(["--quick"] if quick else [])]
    for option, value in options.items():
        absolute = isinstance(value, Path) and value.is_absolute()
        if value is not None and not absolute:
            text = value.as_posix() if isinstance(value, Path) else str(value)
            words += [option, text]
    return shlex.join(words)


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before hours of work."""
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: cannot write to {place}")
