"""``elugcn tune``: search the options of methods on validation, resumable."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from elugcn.cli.common import console, percent, print_json, split_names
from elugcn.cli.options import RunsOptions, grouped
from elugcn.methods.registry import METHOD_NAMES
from elugcn.training.progress import default_progress
from elugcn.tuning import Search, tune, write_presets


@grouped
def run(
    how: RunsOptions,
    methods: Annotated[
        str, typer.Option(help=f"Separated by commas, of {', '.join(METHOD_NAMES)}.")
    ] = "gcn,elu-gcn",
    datasets: Annotated[
        str, typer.Option(help="Separated by commas, see `elugcn datasets`.")
    ] = "digits",
    trials: Annotated[int, typer.Option(help="Settings to try per method.")] = 10,
    runs: Annotated[int, typer.Option(help="Runs per setting.")] = 1,
    first: Annotated[
        int,
        typer.Option(help="Seed of the first run; differ from the reported seeds."),
    ] = 100,
    search_seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of runs and trials.")] = Path(
        "runs/tune"
    ),
    save_presets: Annotated[
        Path | None,
        typer.Option(help="Write the best options into this file of presets."),
    ] = None,
) -> int:
    """Search options of methods; validation accuracy decides.

    Every finished run is stored. The same command continues where it stopped. Exit
    code 1: every trial of a search failed.
    """
    searches = tune(
        split_names(methods),
        split_names(datasets),
        out,
        trials=trials,
        runs=runs,
        first=first,
        seed=search_seed,
        workers=how.jobs,
        data_dir=how.data_dir,
        n_threads=how.threads,
        device=how.device,
        progress=default_progress(how.silent),
    )
    if save_presets is not None:
        write_presets(searches, save_presets)
    if how.json_:
        budget = {"runs": runs, "first": first, "search_seed": search_seed}
        found = [
            asdict(search) | {"best": search.best and asdict(search.best)}
            for search in searches
        ]
        print_json({"searches": found, "store": str(out)} | budget)
    elif not how.quiet:
        console().print(_table(searches))
    for search in searches:
        for trial in search.trials:
            if trial.error is not None:
                where = f"{search.method} on {search.dataset}, trial {trial.number}"
                print(f"elugcn: failed: {where}: {trial.error}", file=sys.stderr)
    return 1 if any(search.best is None for search in searches) else 0


def _table(searches: list[Search]) -> Table:
    """One row per search: the best trial and its options."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("dataset", no_wrap=True)
    table.add_column("validation", justify="right", no_wrap=True)
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("options")
    for search in searches:
        best = search.best
        number = "–" if best is None else str(best.number)
        options = {} if best is None else best.options
        table.add_row(
            Text(search.method),
            Text(search.dataset),
            Text("failed" if best is None else percent(best.val_accuracy)),
            Text(f"{number} of {len(search.trials)}"),
            Text(", ".join(f"{key}={value}" for key, value in options.items())),
        )
    return table
