"""``elugcn tune``: search the options of methods on validation, resumable."""

import sys
from dataclasses import asdict
from pathlib import Path

import typer

from elugcn.cli.common import given_names, percent, print_table
from elugcn.cli.options import (
    DATASETS_HELP,
    METHODS_HELP,
    RunsOptions,
    SelectionOptions,
    grouped,
)
from elugcn.tuning import Search, tune, write_presets

_COLUMNS = ("method", "<dataset", "validation", "<trial", "<options")


@grouped
def run(
    how: RunsOptions,
    selection: SelectionOptions,
    methods: str = typer.Option("gcn,elu-gcn", help=METHODS_HELP),
    datasets: str = typer.Option("digits", help=DATASETS_HELP),
    trials: int = typer.Option(10, min=1, help="Settings to try per method."),
    runs: int = typer.Option(1, min=1, help="Runs per setting."),
    first: int = typer.Option(
        100, help="Seed of the first run; differ from the reported seeds."
    ),
    search_seed: int = typer.Option(0, help="Seed of the search."),
    out: Path = typer.Option(Path("runs/tune"), help="Folder of runs and trials."),
    save_presets: Path | None = typer.Option(
        None, help="Write the best options into this file of presets."
    ),
) -> int:
    """Search options of methods; validation decides.

    Every finished run is stored. The same command continues where it stopped. Exit
    code 1: every trial of a search failed.
    """
    searches = tune(
        given_names(methods, "--methods"),
        given_names(datasets, "--datasets"),
        out,
        trials=trials,
        runs=runs,
        first=first,
        seed=search_seed,
        **selection.model_dump(),
        **how.execution(),
    )
    if save_presets is not None:
        write_presets(searches, save_presets)
    found = [
        asdict(search) | {"best": search.best and asdict(search.best)}
        for search in searches
    ]
    budget = {"runs": runs, "first": first, "search_seed": search_seed}
    result = {"searches": found, "store": str(out)} | budget
    rows = [_row(search) for search in searches]
    how.show(result, lambda screen: print_table(screen, _COLUMNS, rows))
    for search in searches:
        for trial in search.trials:
            if trial.error is not None:
                where = f"{search.method} on {search.dataset}, trial {trial.number}"
                print(f"elugcn: failed: {where}: {trial.error}", file=sys.stderr)
    return 1 if any(search.best is None for search in searches) else 0


def _row(search: Search) -> list[str]:
    """The best trial of a search and its options."""
    best, of = search.best, f"of {len(search.trials)}"
    if best is None:
        return [search.method, search.dataset, "failed", f"– {of}", ""]
    value = percent(best.value)
    options = ", ".join(f"{key}={value}" for key, value in best.options.items())
    return [search.method, search.dataset, value, f"{best.number} {of}", options]
