"""``elugcn reproduce``: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elugcn.cli.common import check_pages, console, names_given, print_json
from elugcn.cli.options import RunsOptions, grouped
from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.evaluation.monitor import default_monitor
from elugcn.evaluation.store import Store
from elugcn.experiments.base import QUICK_SEEDS, Experiment, Scope
from elugcn.experiments.registry import ALL, NAMES, get_experiments
from elugcn.methods.registry import METHODS

if TYPE_CHECKING:
    from elugcn.experiments.runner import Report

NAME = "reproduce"
_OUT, _QUICK_OUT = Path("results"), Path("results/quick")


@grouped
def run(
    how: RunsOptions,
    experiment: Annotated[
        str, typer.Argument(help=f"One of {', '.join(NAMES)}, or {ALL}.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in minutes.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(help="Runs per row and dataset; else 10, or the experiment's."),
    ] = None,
    datasets: Annotated[
        str | None, typer.Option(help="Comma-separated; else the experiment's own.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Comma-separated; else the experiment's own.")
    ] = None,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="Show what the store has; run nothing.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Directory of runs, which are not run again; else store in "
            f"{_OUT} or {_QUICK_OUT}."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Directory of the pages; else {_OUT} or {_QUICK_OUT}."),
    ] = None,
) -> int:
    """Make a table or figure of the paper: CSV, PNG, SVG and a Markdown page.

    Every finished run is kept in the store: the same command goes on where it
    stopped. --datasets and --methods say what to run; the page also shows what the
    store has of the rest, unless --out names a place for a page of its own. Exit
    code 1: some runs failed.
    """
    # Here, as drawing takes a second to load and the other commands do not draw.
    from elugcn.experiments.overview import write_overview
    from elugcn.experiments.runner import Circumstances, NothingToShowError, reproduce

    chosen = get_experiments(experiment)
    named = names_given(datasets, "--datasets"), names_given(methods, "--methods")
    _check(seeds, *named)
    folder = out or (_QUICK_OUT if quick else _OUT)
    check_pages(folder)
    place = store or (_QUICK_OUT if quick else _OUT) / "store"
    circumstances = Circumstances(
        Store(place),
        run=not no_run,
        workers=how.jobs,
        data_dir=how.data_dir,
        n_threads=how.threads,
        device=how.device,
        monitor=default_monitor(how.silent),
    )
    reports: list[Report] = []
    skipped: list[str] = []
    for one in chosen:
        number = seeds or (QUICK_SEEDS if quick else one.seeds)
        scope = Scope(quick, number, *named)
        command = _command(one, scope, store, out)
        whole = None
        if out is None and any(named):
            # The page that is there is not cut down to what is asked for now.
            wide = replace(scope, datasets=None, methods=None)
            whole = wide, _command(one, wide, store, out)
        try:
            reports.append(reproduce(one, scope, circumstances, folder, command, whole))
        except NothingToShowError as error:
            # Of several experiments the others may well have something to show.
            if len(chosen) == 1:
                raise
            skipped.append(str(error))
            continue
        if reports[-1].files:
            write_overview(folder, get_experiments(ALL), quick)
    if not reports:
        raise InputError(skipped[0])
    _say(reports, skipped, folder, place, how)
    return 1 if any(report.failed for report in reports) else 0


def _say(
    reports: list[Report],
    skipped: list[str],
    folder: Path,
    store: Path,
    how: RunsOptions,
) -> None:
    if how.json_:
        print_json(
            {
                "experiments": [report.plain() for report in reports],
                "skipped": skipped,
                "overview": str(folder / "README.md"),
                "store": str(store),
            }
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


def _command(
    experiment: Experiment, scope: Scope, store: Path | None, out: Path | None
) -> str:
    """What makes the page again, anywhere: no path of this machine is in it."""
    words = ["elugcn", NAME, experiment.name]
    if scope.quick:
        words.append("--quick")
    if scope.seeds != (QUICK_SEEDS if scope.quick else experiment.seeds):
        words += ["--seeds", str(scope.seeds)]
    for option, names in (("--datasets", scope.datasets), ("--methods", scope.methods)):
        if names:
            words += [option, ",".join(names)]
    for option, path in (("--store", store), ("--out", out)):
        if path is not None and not path.is_absolute():
            words += [option, path.as_posix()]
    return shlex.join(words)


def _check(
    seeds: int | None,
    datasets: tuple[str, ...] | None,
    methods: tuple[str, ...] | None,
) -> None:
    """Refuse what no experiment could do, before the first one starts."""
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be at least 1; got {seeds}")
    for name in datasets or ():
        dataset_info(name)
    for name in methods or ():
        if name not in METHODS:
            raise InputError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
