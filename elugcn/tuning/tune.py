"""Search the best options of methods on datasets, each with the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from elugcn.api.fitting import check_selection
from elugcn.atomic import atomic_file
from elugcn.data.datasets import DatasetInfo, dataset_info, load_dataset
from elugcn.data.validation import check_data
from elugcn.errors import InputError
from elugcn.evaluation.harness import Outcomes, run_jobs
from elugcn.evaluation.jobs import Job, pairs
from elugcn.evaluation.statistics import summarize
from elugcn.evaluation.store import Store
from elugcn.methods.presets import COMMON, all_presets, presets_file
from elugcn.methods.problem import GraphTraits, Problem
from elugcn.methods.registry import get_method, resolve_name
from elugcn.training.progress import SILENT, Progress
from elugcn.tuning.search import Search, Trial, load_optuna, run_search
from elugcn.tuning.trials import add_trial


def tune(
    methods: Sequence[str],
    datasets: Sequence[str],
    folder: str | Path,
    *,
    trials: int = 10,
    runs: int = 1,
    first: int = 100,
    seed: int = 0,
    data_dir: str | Path | None = None,
    progress: Progress = SILENT,
    metric: str = "accuracy",
    class_weight: str | None = None,
    **execution: Any,
) -> list[Search]:
    """Search the best options of every method on every dataset, on validation only.

    Runs and trials are kept in ``folder``; the same call continues where it stopped.

    Args:
        methods: Names of methods.
        datasets: Names of datasets.
        folder: Where runs and trials go.
        trials: Options to try for each method and dataset.
        runs: Runs of each trial.
        first: Seed of the first run; choose it away from the seeds that are reported.
        seed: Of the search.
        data_dir: Where dataset files are.
        progress: Shows how many trials of a search are finished.
        metric: What judges a trial, and selects within its runs.
        class_weight: ``"balanced"``, or None.
        **execution: Further arguments of ``elugcn.evaluation.run_jobs``.
    """
    load_optuna()
    names = list(dict.fromkeys(map(resolve_name, methods)))
    infos = list(dict.fromkeys(map(dataset_info, datasets)))
    if not names or not infos:
        raise InputError("a search needs at least one method and one dataset")
    for name, number in (("trials", trials), ("runs", runs)):
        if number < 1:
            raise InputError(f"{name} must be at least 1; got {number}")
    for name in names:
        check_selection(name, metric, class_weight)
    store = Store(folder)
    store.check_writable()
    about: dict[str, Any] = {"search_seed": seed, "runs": runs, "first": first}
    selection: dict[str, Any] = {"metric": metric, "class_weight": class_weight}
    if selection != {"metric": "accuracy", "class_weight": None}:
        about |= selection

    def evaluate(search: Search, number: int, options: dict[str, Any]) -> Trial:
        info = dataset_info(search.dataset)
        chosen = [
            Job(search.method, search.dataset, split, run_seed, options, **selection)
            for split, run_seed in pairs(info, runs, None, first)
        ]
        outcomes = run_jobs(chosen, store, data_dir=data_dir, **execution)
        return trial_of(number, options, outcomes, metric)

    searches = []
    for info in infos:
        traits = traits_of(info, first, data_dir)
        for method in names:
            search = Search(method, info.name, trials)
            common = common_options(method, info.name)
            with progress.stage(f"{method} on {info.name}", trials) as advance:
                for trial in run_search(search, common, traits, seed, evaluate):
                    add_trial(store.folder, search, trial, **about)
                    best = search.best
                    known = None if best is None else best.value
                    advance({} if known is None else {"val_score": known})
            searches.append(search)
    return searches


def trial_of(
    number: int, options: dict[str, Any], outcomes: Outcomes, metric: str = "accuracy"
) -> Trial:
    """Sum up the runs of a trial; one that failed spoils it.

    Only validation is read: the search never sees a test score.
    """
    records = list(outcomes.done.values())
    errors = [record["error"] for record in outcomes.failed.values()]
    accuracies = [record["val_accuracy"] for record in records]
    if not errors and None in accuracies:
        errors = ["there are no validation nodes to judge by"]
    seconds = sum(float(record["process_seconds"]) for record in records)
    if errors:
        error = "; ".join(dict.fromkeys(errors))
        return Trial(number, options, seconds=seconds, error=error)
    mean, std, _ = summarize(accuracies, scale=1.0)
    score = None
    if metric != "accuracy":
        score, std, _ = summarize([r["val_score"] for r in records], scale=1.0)
    version = records[-1]["version"]
    return Trial(number, options, mean, std, seconds, version=version, val_score=score)


def traits_of(
    info: DatasetInfo, first: int, data_dir: str | Path | None
) -> GraphTraits:
    """What search spaces may know of a dataset."""
    [(split, seed)] = pairs(info, 1, None, first)
    data = check_data(load_dataset(info.name, split, data_dir), seed=seed).data
    config = get_method("gcn").Config()
    return Problem.of(data, config, torch.device("cpu")).traits


def common_options(method: str, dataset: str) -> dict[str, Any]:
    """The tuned options of a dataset that hold for every method."""
    known = get_method(method).Config.model_fields
    common = all_presets().get(dataset, {}).get(COMMON, {})
    return {key: value for key, value in common.items() if key in known}


def write_presets(searches: Sequence[Search], path: Path | None = None) -> None:
    """Make the best options of searches the tuned ones.

    ``path`` is the file of presets; None: the package's own.
    """
    path = path or presets_file()
    text = path.read_text(encoding="utf-8")
    header = [line for line in text.splitlines(True) if line.startswith("#")]
    content: dict[str, Any] = yaml.safe_load(text)
    for search in searches:
        if search.best is None:
            continue
        default = get_method(search.method).Config().model_dump(mode="json")
        before = default | common_options(search.method, search.dataset)
        chosen = default | search.best.options
        own = {key: value for key, value in chosen.items() if value != before[key]}
        sections = content.setdefault(search.dataset, {})
        sections.pop(search.method, None)
        if own:
            sections[search.method] = own
    with atomic_file(path) as file:
        file.writelines(header)
        for dataset, sections in content.items():
            text = yaml.safe_dump(
                {dataset: sections}, sort_keys=False, default_flow_style=None, width=88
            )
            file.write(f"\n{text}")
    all_presets.cache_clear()
