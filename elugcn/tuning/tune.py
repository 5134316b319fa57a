"""All searches of a command, one after another, each with the same budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from elugcn.data.datasets import dataset_info
from elugcn.errors import InputError
from elugcn.methods.registry import get_method
from elugcn.tuning.presets import (
    check_presets,
    package_presets,
    preset_source,
    write_preset,
)
from elugcn.tuning.progress import SILENT, TuneMonitor
from elugcn.tuning.results import check_out, write_best, write_trials
from elugcn.tuning.runner import Runner
from elugcn.tuning.search import Search, load_optuna, run_search
from elugcn.tuning.searchfile import Budget, SearchFile
from elugcn.tuning.space import Space


def tune(
    methods: Sequence[str],
    datasets: Sequence[str],
    file: SearchFile,
    budget: Budget,
    runner: Runner,
    out: Path,
    *,
    presets: Path | None = None,
    write: bool = False,
    monitor: TuneMonitor = SILENT,
) -> list[Search]:
    """Search the best options of every method on every dataset.

    The trials are written to ``out`` after each one, the best options after the last.
    Everything is checked before the first run.

    Args:
        methods: names of methods.
        datasets: names of datasets.
        file: the search spaces.
        budget: trials and seeds; the runner has the runs from it.
        runner: does the runs.
        out: directory of CSV and YAML files.
        presets: directory of tuned values instead of the package's.
        write: whether the best options become the tuned values.
        monitor: is told how far it is.

    Raises:
        InputError: a name, a space, a directory or a dataset is wrong.
        MissingExtraError: Optuna is not installed.
    """
    load_optuna()
    names = [dataset_info(name).name for name in dict.fromkeys(datasets)]
    chosen = [get_method(name).name for name in dict.fromkeys(methods)]
    if not names or not chosen:
        raise InputError("a search needs at least one method and one dataset")
    folder = presets or package_presets()
    check_presets(folder)
    check_out(out)
    runner.store.check_place()
    runner = replace(runner, runs=budget.runs, first=budget.first, monitor=monitor)

    def space_of(method: str, dataset: str) -> Space:
        return file.space(method, dataset, preset_source(dataset, folder))

    order = [
        (method, dataset)
        for dataset in dict.fromkeys(names)
        for method in in_order(chosen, partial(file.starts_from, dataset=dataset))
    ]
    for pair in order:
        space_of(*pair)
    plan = {pair: budget.trials_for(pair[0]) for pair in order}
    searches = []
    with monitor.showing(plan, min(runner.workers, budget.runs)):
        for method, dataset in order:
            search = run_search(
                # Made again: the methods before it may have been written since.
                space_of(method, dataset),
                plan[method, dataset],
                budget.search_seed,
                runner,
                before=monitor.trial,
                after=lambda search: write_trials(search, out),
            )
            write_best(search, out, budget, None if file.own else file.name)
            if write and search.best is not None:
                note = note_of(search, budget)
                write_preset(method, dataset, search.best.config, folder, note)
            searches.append(search)
    return searches


def in_order(
    methods: Sequence[str], starts_from: Callable[[str], Sequence[str]]
) -> list[str]:
    """The methods, each after those whose tuned values it starts from."""
    ordered: list[str] = []

    def add(method: str, waiting: tuple[str, ...]) -> None:
        if method in waiting:
            circle = " → ".join([*waiting, method])
            raise InputError(f"like goes round in a circle: {circle}")
        for before in starts_from(method):
            if before in methods:
                add(before, (*waiting, method))
        if method not in ordered:
            ordered.append(method)

    for method in methods:
        add(method, ())
    return ordered


def note_of(search: Search, budget: Budget) -> str:
    """Where tuned values come from, in a line."""
    return (
        f"best of {len(search.trials)} on validation; --runs {budget.runs} "
        f"--first {budget.first} --search-seed {budget.search_seed}"
    )
