"""``elugcn reproduce`` and ``elugcn bench``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from elugcn.api import json_safe
from elugcn.cli.common import check_folder, console, given_names, print_json
from elugcn.cli.options import RunsOptions, grouped
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.errors import InputError
from elugcn.evaluation import Job, Outcomes, Store, run_jobs
from elugcn.methods.registry import resolve_name
from elugcn_reproduction import experiments

RESULTS, QUICK_RESULTS = Path("reproduction/results"), Path("runs/quick")
SUITES = ("step", "fit", "graph", "scale")
ALL = experiments.ALL
_TABLES = ("table1", "social")  # of the other pages, the overview shows the figure


@grouped
def reproduce(
    how: RunsOptions,
    experiment: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(experiments.NAMES)}, or {ALL}."),
    ] = ALL,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in minutes.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Runs per cell. Default: 10, or the experiment's."),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Separated by commas; else the experiment's own.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Separated by commas; else the experiment's own.")
    ] = None,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Show what the store has; run nothing.")
    ] = False,
    publish: Annotated[
        bool,
        typer.Option("--publish", help="Move new runs into the store's Parquet files."),
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder of runs; stored runs are not repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder of the pages. Default: {RESULTS} ({QUICK_RESULTS})."
        ),
    ] = None,
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

    chosen = experiments.get_experiments(experiment)
    named = (
        None if datasets is None else given_names(datasets, "--datasets"),
        None if methods is None else given_names(methods, "--methods"),
    )
    for name in named[0] or ():
        dataset_info(name)
    for name in named[1] or ():
        resolve_name(name)
    default = QUICK_RESULTS if quick else RESULTS
    folder = out or default
    check_folder(folder)
    records = Store(store or default)

    def run(jobs: Sequence[Job]) -> Outcomes:
        return run_jobs(
            jobs,
            records,
            **how.execution(),
        )

    reports: list[Report] = []
    skipped: list[str] = []
    for one in chosen:
        number = seeds or (QUICK_SEEDS if quick else one.seeds)
        scope = Scope(quick, number, *named)

        def command(
            datasets: str | None, methods: str | None, name: str = one.name
        ) -> str:
            options = {"--seeds": seeds, "--datasets": datasets, "--methods": methods}
            return _command(
                ["reproduce", name], quick, options | {"--store": store, "--out": out}
            )

        whole = None
        if out is None and any(named):
            # The page that is there is not cut down to what is asked for now.
            wide = replace(scope, datasets=None, methods=None)
            whole = wide, command(None, None)
        try:
            reports.append(
                make(
                    one,
                    scope,
                    records,
                    None if no_run else run,
                    folder,
                    command(datasets, methods),
                    data_dir=how.data_dir,
                    whole=whole,
                )
            )
        except NothingToShowError as error:
            # Of several experiments the others may have something to show.
            if len(chosen) == 1:
                raise
            skipped.append(str(error))
    if not reports:
        raise InputError(skipped[0])
    pages = [(e.name, e.title, e.question) for e in experiments.get_experiments(ALL)]
    overview = write_overview(folder, pages, _TABLES, quick)
    if publish:
        records.publish()
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
    for report in reports:
        for line in report.failed:
            print(f"elugcn: failed: {line}", file=sys.stderr)
    return 1 if any(report.failed for report in reports) else 0


def bench(
    suite: Annotated[
        str, typer.Argument(help=f"One of {', '.join(SUITES)}, or {ALL}.")
    ],
    datasets: Annotated[
        str | None,
        typer.Option(help="Separated by commas, for step and fit; else their own."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in a minute.")
    ] = False,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Measurements of each case; scale has one."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of the fits of fit and scale.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder with dataset files. Default: $ELUGCN_DATA."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the pages.")] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no summary.")
    ] = False,
) -> int:
    """Measure speed and memory beside PyG's GCN and GAT and the explicit n×n graph.

    Everything runs on one thread, and the peers in the same run, alternately: only the
    ratios matter. A part of a suite (--datasets, --repeats, --epochs) goes into the
    folder part/, unless --out names one.
    """
    from elugcn_reproduction.benchmarks.fit import FIT
    from elugcn_reproduction.benchmarks.growth import GRAPH, SCALE
    from elugcn_reproduction.benchmarks.step import STEP
    from elugcn_reproduction.benchmarks.suite import Settings, run_suite

    suites = {one.name: one for one in (STEP, FIT, GRAPH, SCALE)}
    if suite not in (*suites, ALL):
        raise InputError(f"unknown suite {suite!r}; known: {', '.join((*suites, ALL))}")
    chosen = list(suites.values()) if suite == ALL else [suites[suite]]
    folder = out or (QUICK_RESULTS if quick else RESULTS) / "bench"
    if out is None and (datasets or repeats or epochs):
        folder = folder / "part"
    check_folder(folder)

    def say(what: str) -> None:
        if sys.stderr.isatty() and not (quiet or json_):
            print(f"elugcn: {what}", file=sys.stderr)

    named = None if datasets is None else given_names(datasets, "--datasets")
    settings = Settings(quick, named, data_dir, repeats, epochs, say)
    graphs = [name for one in chosen for name in one.chosen(settings)]
    if named and not graphs:
        raise InputError(f"--datasets requires step or fit; {suite} draws its own")
    for name in dict.fromkeys(graphs):
        load_dataset(name, 0, data_dir)  # what is wrong with it is said first
    numbers: list[dict[str, Any]] = []
    for one in chosen:
        options: dict[str, Any] = {
            "--datasets": datasets if one.datasets else None,
            "--out": out,
        }
        options |= {"--repeats": repeats, "--epochs": epochs}
        command = _command(["bench", one.name], quick, options)
        outcome, files = run_suite(one, settings, folder, command)
        numbers += [asdict(number) for number in outcome.numbers]
        if not (json_ or quiet):
            said = f"{one.name}: {len(outcome.numbers)} numbers, {files[-1]}"
            console().print(said, markup=False)
    if json_:
        print_json({"numbers": json_safe(numbers)})
    return 0


def _command(words: list[str], quick: bool, options: dict[str, Any]) -> str:
    """What makes the page again, anywhere: absolute paths are not part of it."""
    words = ["elugcn", *words, *(["--quick"] if quick else [])]
    for option, value in options.items():
        if isinstance(value, Path) and value.is_absolute():
            continue
        if value is not None:
            text = value.as_posix() if isinstance(value, Path) else str(value)
            words += [option, text]
    return shlex.join(words)
