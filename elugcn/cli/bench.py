"""``elugcn bench``: speed, memory and scaling against the peers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elugcn.bench.names import ALL, NAMES
from elugcn.cli.common import check_pages, console, names_given
from elugcn.data.datasets import dataset_info, load_dataset
from elugcn.errors import InputError
from elugcn.storage import json_safe

if TYPE_CHECKING:
    from elugcn.bench.base import Settings, Suite

NAME = "bench"
_OUT, _QUICK_OUT = Path("results/bench"), Path("results/quick/bench")
_PART = "part"


def run(
    suite: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}, or {ALL}.")],
    datasets: Annotated[
        str | None,
        typer.Option(help="Comma-separated, for step and fit; else the suite's own."),
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
        typer.Option(help="Where dataset files are; else $ELUGCN_DATA, else the cache"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Directory of the pages; else {_OUT} or {_QUICK_OUT}."),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="A list of records on stdout, nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no text.")] = (
        False
    ),
) -> int:
    """Measure speed and memory beside PyG's GCN and GAT and beside the n×n way.

    Everything runs on one thread, and the peers in the same run, alternately: the
    ratios are what counts. Writes CSV, PNG, SVG and a Markdown page for each suite;
    with --datasets, --repeats or --epochs into part/ if there is a page already.
    """
    # Here, as PyG and drawing take seconds to load.
    from elugcn.bench.base import Settings
    from elugcn.bench.runner import get_suites, run_suite

    chosen = get_suites(suite)
    folder = out or (_QUICK_OUT if quick else _OUT)
    check_pages(folder)
    say = _say if sys.stderr.isatty() and not (quiet or json_) else _ignore
    named = names_given(datasets, "--datasets")
    settings = Settings(quick, named, data_dir, repeats, epochs, say)
    _check_datasets(chosen, settings)
    records = []
    for one in chosen:
        command = _command(one, settings, out)
        place = folder if out is not None else _place(folder, one, settings)
        outcome, files = run_suite(one, settings, place, command)
        records += [record.plain() for record in outcome.records]
        if not (json_ or quiet):
            (page,) = (str(path) for path in files if path.suffix == ".md")
            said = f"{one.name}: {len(outcome.records)} numbers, {page}"
            console().print(said, markup=False)
    if json_:
        print(json.dumps(json_safe(records), allow_nan=False))
    return 0


def _place(folder: Path, suite: Suite, settings: Settings) -> Path:
    """Where a page goes: one of a part does not take the place of the whole."""
    part = settings.datasets or settings.repeats or settings.epochs
    whole = folder / f"{suite.name}.md"
    return folder / _PART if part and whole.exists() else folder


def _check_datasets(suites: list[Suite], settings: Settings) -> None:
    """Refuse a graph that can't be measured before anything is."""
    for name in settings.datasets or ():
        dataset_info(name)
    names = dict.fromkeys(name for one in suites for name in one.chosen(settings))
    if settings.datasets and not names:
        raise InputError(
            f"--datasets goes with step and fit; {suites[0].name} draws its own graphs"
        )
    for name in names:
        load_dataset(name, 0, settings.data_dir)


def _command(suite: Suite, settings: Settings, out: Path | None) -> str:
    """What makes the page again, anywhere: no path of this machine is in it."""
    words = ["elugcn", NAME, suite.name]
    if settings.quick:
        words.append("--quick")
    if settings.datasets and suite.datasets:
        words += ["--datasets", ",".join(settings.datasets)]
    for option, number in (
        ("--repeats", settings.repeats),
        ("--epochs", settings.epochs),
    ):
        if number is not None:
            words += [option, str(number)]
    if out is not None and not out.is_absolute():
        words += ["--out", out.as_posix()]
    return shlex.join(words)


def _say(what: str) -> None:
    print(f"elugcn: {what}", file=sys.stderr)


def _ignore(what: str) -> None:
    """Nobody watches."""
