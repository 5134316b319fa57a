"""Searches whose runs are made up, and one whose runs are real."""

import copy
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
import yaml

from elugcn.data import datasets
from elugcn.errors import InputError, MissingExtraError
from elugcn.evaluation import Job, Store
from elugcn.evaluation import run as runs
from elugcn.evaluation.jobs import differing
from elugcn.methods.presets import presets_file
from elugcn.methods.problem import GraphTraits
from elugcn.methods.registry import get_method
from elugcn.tuning import (
    Search,
    Trial,
    publish_trials,
    read_trials,
    tune,
    write_presets,
)
from elugcn.tuning.search import run_search
from tests.evaluation.records import record_of


class Made(Executor):
    """Gives each job a made-up record at once, in this process."""

    def __init__(self, make: Callable[[Job], dict[str, Any]]) -> None:
        self.make = make

    def submit(self, run: object, job: Job, *rest: object) -> Future:  # type: ignore[override]
        future: Future = Future()
        future.set_result(self.make(job))
        return future


def peaked(job: Job) -> dict[str, Any]:
    """Best on validation where the test is worst: lpa_alpha = 0.5."""
    distance = abs(job.config["lpa_alpha"] - 0.5)
    value = 0.9 - distance + 0.01 * (job.seed % 2)
    return record_of(job, test=distance, val_accuracy=value)


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., Search]:
    def go(make: Callable[[Job], dict[str, Any]] = peaked, **options: Any) -> Search:
        options = {"trials": 8, "runs": 2} | options
        where = options.pop("folder", tmp_path / "tune")
        (found,) = tune(["lpa"], ["karate"], where, executor=Made(make), **options)
        return found

    return go


def test_a_search_by_hand(search: Callable[..., Search], tmp_path: Path) -> None:
    found = search()
    assert [t.number for t in found.trials] == list(range(1, 9))
    # The defaults come first, then the starting points of the method.
    defaults = get_method("lpa").Config()
    assert found.trials[0].options == {}
    for trial in found.trials:
        alpha = trial.options.get("lpa_alpha", defaults.lpa_alpha)  # type: ignore[attr-defined]
        expected = [0.9 - abs(alpha - 0.5) + 0.01 * bonus for bonus in (0, 1)]
        assert trial.val_accuracy == pytest.approx(sum(expected) / 2)
        # Two numbers that differ by 0.01 have a spread of 0.01 / √2.
        assert trial.std == pytest.approx(0.01 / 2**0.5)
        assert (trial.seconds, trial.version, trial.error) == (5.0, "0.2.0", None)
    scores = [t.val_accuracy for t in found.trials]
    assert found.best is found.trials[scores.index(max(scores))]  # type: ignore[type-var]
    # Runs are of the seeds asked for, away from those that are reported.
    assert {r["seed"] for r in Store(tmp_path / "tune").records()} == {100, 101}
    rows = read_trials(tmp_path / "tune")
    assert [row["options"] for row in rows] == [t.options for t in found.trials]
    about = {"method": "lpa", "search_seed": 0, "runs": 2, "first": 100}
    assert all(about.items() <= row.items() for row in rows)


def test_another_metric_judges(search: Callable[..., Search], tmp_path: Path) -> None:
    def made(job: Job) -> dict[str, Any]:
        assert job.metric == "f1_macro"
        own = peaked(job)
        return own | {"val_score": 1.0 - own["val_accuracy"]}

    found = search(made, metric="f1_macro")
    assert found.best is not None
    assert found.best.val_accuracy == min(t.val_accuracy or 1 for t in found.trials)
    assert found.best.value == pytest.approx(1.0 - (found.best.val_accuracy or 0.0))
    assert {row["metric"] for row in read_trials(tmp_path / "tune")} == {"f1_macro"}


def test_a_search_goes_on_where_it_stopped(
    search: Callable[..., Search], tmp_path: Path
) -> None:
    whole = search(folder=tmp_path / "whole")
    count = 0

    def interrupted(job: Job) -> dict[str, Any]:
        nonlocal count
        count += 1
        if count == 8:
            raise KeyboardInterrupt
        return peaked(job)

    with pytest.raises(KeyboardInterrupt):
        search(interrupted)
    assert len(list(Store(tmp_path / "tune").records())) == 7
    assert search().trials == whole.trials
    different = {str(t.options) for t in whole.trials}
    lines = (tmp_path / "tune" / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 2 * len(different)  # no run was done twice
    # Once more, with another number of workers: nothing is run, all trials are there.
    assert search(lambda job: {}, workers=2).trials == whole.trials
    assert len(read_trials(tmp_path / "tune")) == 8
    publish_trials(tmp_path / "tune")
    assert not (tmp_path / "tune" / "trials.jsonl").exists()
    assert search(lambda job: {}, seed=1, trials=1).trials == whole.trials[:1]
    assert len(read_trials(tmp_path / "tune")) == 9


def test_starts_are_tried_as_they_are_though_the_space_does_not_have_them() -> None:
    # Few ones, many edges and many labels: no "auto" scaling and no eight layers.
    traits = GraphTraits(100, 3_000, 50, 2, True, False, 0.8, 300)
    search = Search("gcn", "karate", 6)

    def evaluate(search: Search, number: int, options: dict[str, Any]) -> Trial:
        return Trial(number, options, 0.5)

    tried = [t.options for t in run_search(search, {}, traits, 0, evaluate)]
    starts = get_method("gcn").starting_points(traits)
    assert starts[0] == {}
    assert {"num_layers": 8}.items() <= starts[2].items()
    assert tried[:5] == [differing("gcn", start) for start in starts]
    assert tried[5]["feature_norm"] in ("row", "none")


def test_failures_do_not_stop_a_search(search: Callable[..., Search]) -> None:
    def fails(job: Job) -> dict[str, Any]:
        if job.config["lpa_alpha"] == 0.9:
            return record_of(job, status="failed", error=f"no luck {job.seed}")
        return peaked(job)

    found = search(fails)
    first = found.trials[0]
    assert (first.val_accuracy, first.error) == (None, "no luck 100; no luck 101")
    assert found.best is not None
    assert found.best.number > 1
    blind = search(lambda job: record_of(job, val_accuracy=None), first=0, trials=1)
    assert blind.best is None
    assert blind.trials[0].error == "there are no validation nodes to judge by"


def test_labels_of_the_test_set_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = datasets.load_dataset

    def scrambled(*args: Any, **options: Any) -> Any:
        data = copy.copy(load(*args, **options))
        data.y = data.y.clone()
        data.y[data.test_mask] = data.y[data.test_mask].flip(0)
        return data

    def real(job: Job) -> dict[str, Any]:
        return runs.execute(job, runs.Settings()) | {"process_seconds": 0.0}

    def go(name: str) -> tuple[list[Trial], list[float]]:
        (found,) = tune(
            ["lpa"], ["digits"], tmp_path / name, trials=4, executor=Made(real)
        )
        records = Store(tmp_path / name).records()
        return found.trials, [record["test_accuracy"] for record in records]

    trials, accuracies = go("plain")
    monkeypatch.setattr(runs, "load_dataset", scrambled)
    module = sys.modules["elugcn.tuning.tune"]  # the name is also a function
    monkeypatch.setattr(module, "load_dataset", scrambled)
    other, other_accuracies = go("scrambled")
    assert accuracies != other_accuracies
    assert trials == other
    assert len({t.val_accuracy for t in trials}) > 1


def test_best_options_become_presets(tmp_path: Path) -> None:
    path = tmp_path / "presets.yaml"
    path.write_text(presets_file().read_text())
    before = yaml.safe_load(path.read_text())
    common = {"feature_norm": "row"}  # of every method on cora
    assert before["cora"]["common"].items() >= common.items()
    best = Trial(1, common | {"lr": 0.5}, val_accuracy=0.8)
    write_presets(
        [
            Search("gcn", "cora", 1, [best]),
            Search("lpa", "cora", 1, [Trial(1, common, val_accuracy=0.7)]),
            Search("mlp", "cora", 1, [Trial(1, {"lr": 0.1}, error="no")]),
            Search("gcn", "karate", 1, [best]),
        ],
        path,
    )
    assert path.read_text().startswith(presets_file().read_text().partition("\n")[0])
    written = yaml.safe_load(path.read_text())
    # What the dataset's common options say is not said again, and elsewhere it is.
    assert written["cora"]["gcn"] == {"lr": 0.5}
    assert written["karate"]["gcn"] == {"lr": 0.5, "feature_norm": "row"}
    assert "lpa" not in written["cora"]
    assert written["cora"]["mlp"] == before["cora"]["mlp"]
    assert written["pubmed"] == before["pubmed"]


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "trials": ({"trials": 0}, "trials must be at least 1; got 0"),
    "runs": ({"runs": 0}, "runs must be at least 1; got 0"),
    "methods": ({"methods": []}, "at least one method and one dataset"),
    "method": ({"methods": ["nope"]}, "unknown method 'nope'"),
    "dataset": ({"datasets": ["koala"]}, "unknown dataset 'koala'"),
    "folder": ({"folder": __file__}, "is not a writable directory"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, tmp_path: Path) -> None:
    given, says = REFUSALS[name]
    arguments = {"methods": ["lpa"], "datasets": ["karate"], "folder": tmp_path / "x"}
    with pytest.raises(InputError, match=says):
        tune(**(arguments | given))  # type: ignore[arg-type]


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"elugcn\[tune\]"):
        tune(["lpa"], ["karate"], tmp_path)
