"""``elugcn tune``: search the options of methods on validation, resumable."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from elugcn.cli.common import console, names_in, percent, print_json
from elugcn.cli.options import RunsOptions, grouped
from elugcn.evaluation import Store
from elugcn.methods.registry import METHODS
from elugcn.tuning.progress import default_monitor
from elugcn.tuning.results import summary_of
from elugcn.tuning.runner import Runner
from elugcn.tuning.search import Search
from elugcn.tuning.searchfile import read_search
from elugcn.tuning.tune import tune


@grouped
def run(
    how: RunsOptions,
    methods: Annotated[
        str, typer.Option(help=f"Comma-separated, of {', '.join(METHODS)}.")
    ] = "gcn,elu-gcn",
    datasets: Annotated[
        str, typer.Option(help="Comma-separated names (see `elugcn datasets`).")
    ] = "digits",
    trials: Annotated[
        int | None,
        typer.Option(help="Configurations of every method; else the file's budget."),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs per configuration.")] = None,
    first: Annotated[
        int | None,
        typer.Option(help="Seed of the first run; keep away from reported seeds."),
    ] = None,
    search_seed: Annotated[int | None, typer.Option(help="Seed of the search.")] = None,
    space: Annotated[
        Path | None,
        typer.Option(help="File of search spaces; else the package's search.yaml."),
    ] = None,
    store: Annotated[
        Path,
        typer.Option(help="Directory of runs; what it has is not run again."),
    ] = Path("results/tuning/store"),
    out: Annotated[
        Path, typer.Option(help="Directory of the trials and the best options.")
    ] = Path("results/tuning"),
    write_presets: Annotated[
        bool,
        typer.Option("--write-presets", help="Make the best options the tuned values."),
    ] = False,
    presets: Annotated[
        Path | None,
        typer.Option(help="Directory of tuned values; else the package's own."),
    ] = None,
) -> int:
    """Try configurations and keep the one with the best validation accuracy.

    Every finished run is kept in the store: the same command goes on where it
    stopped and comes to the same end. Exit code 1: a search in which all failed.
    """
    file = read_search(space)
    budget = file.budget.but(
        trials=trials, runs=runs, first=first, search_seed=search_seed
    )
    runner = Runner(
        Store(store),
        budget.runs,
        budget.first,
        workers=how.jobs,
        n_threads=how.threads,
        data_dir=how.data_dir,
        device=how.device,
    )
    searches = tune(
        names_in(methods),
        names_in(datasets),
        file,
        budget,
        runner,
        out,
        presets=presets,
        write=write_presets,
        monitor=default_monitor(how.silent),
    )
    if how.json_:
        spent = {"runs": budget.runs, "first": budget.first}
        spent |= {"search_seed": budget.search_seed}
        found = [summary_of(search, out) for search in searches]
        print_json({"searches": found} | spent | {"store": str(store)})
    elif not how.quiet:
        console().print(_table(searches))
    for search in searches:
        for trial in search.trials:
            if trial.failed:
                _say_failed(search, trial.number, str(trial.evaluation.error))
    return 1 if any(search.best is None for search in searches) else 0


def _say_failed(search: Search, number: int, error: str) -> None:
    where = f"{search.space.method} on {search.space.dataset}, trial {number}"
    print(f"elugcn: failed: {where}: {error}", file=sys.stderr)


def _table(searches: list[Search]) -> Table:
    """A row a search: what won, by how much, with which options."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("dataset", no_wrap=True)
    table.add_column("validation", justify="right", no_wrap=True)
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("options")
    for search in searches:
        best = search.best
        shown = {} if best is None else best.shown
        table.add_row(
            Text(search.space.method),
            Text(search.space.dataset),
            Text("failed" if best is None else percent(best.value)),
            Text(f"{'–' if best is None else best.number} of {len(search.trials)}"),
            Text(", ".join(f"{key}={value}" for key, value in shown.items())),
        )
    return table
