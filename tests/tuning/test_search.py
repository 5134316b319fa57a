"""The search itself, on functions whose best point is known."""

import hashlib
import sys
from typing import Any

import numpy as np
import optuna
import pytest

from elugcn.errors import MissingExtraError
from elugcn.tuning.search import (
    Evaluation,
    Search,
    Trial,
    load_optuna,
    run_search,
    stream,
)
from elugcn.tuning.space import Space, make_space

VALUES = {
    "dropout": {"low": 0.1, "high": 0.9, "step": 0.1},
    "hidden_channels": [4, 8, 16],
    "order": {"low": 0, "high": 6},
    "lr": {"low": 0.001, "high": 1.0, "log": True},
}


def space_of(starts: list[dict[str, Any]], dataset: str = "karate") -> Space:
    return make_space("gcn", dataset, {}, VALUES, starts)  # type: ignore[arg-type]


def worth(space: Space, config: dict[str, Any]) -> Evaluation:
    value = 0.9 - abs(config["dropout"] - 0.4) - 0.02 * config["order"]
    return Evaluation((value, value + 0.02), seconds=1.0)


def tried(search: Search) -> list[dict[str, str]]:
    return [trial.shown for trial in search.trials]


def test_the_same_as_optuna_alone() -> None:
    """A study written out here asks for the same, told the same."""
    sampler = optuna.samplers.TPESampler(
        seed=stream(3, "gcn", "karate"), n_startup_trials=5, multivariate=False
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        dropout = trial.suggest_float("dropout", 0.1, 0.9, step=0.1)
        trial.suggest_categorical("hidden_channels", ["4", "8", "16"])
        order = trial.suggest_int("order", 0, 6)
        trial.suggest_float("lr", 0.001, 1.0, log=True)
        return 0.91 - abs(dropout - 0.4) - 0.02 * order

    study.optimize(objective, n_trials=15)
    search = run_search(space_of([]), 15, 3, worth)
    for ours, theirs in zip(search.trials, study.trials, strict=True):
        assert ours.shown["hidden_channels"] == theirs.params["hidden_channels"]
        assert ours.config["order"] == theirs.params["order"]
        assert ours.config["dropout"] == pytest.approx(theirs.params["dropout"])
        assert ours.config["lr"] == pytest.approx(theirs.params["lr"], rel=5e-3)
        assert ours.value == pytest.approx(theirs.value)
    assert search.best is not None
    assert search.best.number == study.best_trial.number + 1


def test_starts_come_first_and_count() -> None:
    starts = [{}, {"dropout": 0.4, "order": 0, "epochs": 5}]
    search = run_search(space_of(starts), 8, 0, worth)
    assert [t.number for t in search.trials] == list(range(1, 9))
    assert search.trials[0].config["dropout"] == 0.8  # the method's default
    assert search.trials[1].config["epochs"] == 5
    assert search.trials[2].config["epochs"] == 500
    best = search.best
    assert best is not None
    assert best is search.trials[1]  # nothing is better than 0.9
    assert best.value == pytest.approx(0.91)
    assert best.std == pytest.approx(np.std([0.9, 0.92], ddof=1))
    # A budget smaller than the list of starts is kept too.
    assert len(run_search(space_of(starts), 1, 0, worth).trials) == 1


def test_the_sampler_hears_of_the_starts() -> None:
    """With five starts told it learns at once: their values change what it asks."""
    starts = [{"dropout": d} for d in (0.1, 0.3, 0.5, 0.7, 0.9)]

    def other(space: Space, config: dict[str, Any]) -> Evaluation:
        return Evaluation((1.0 - worth(space, config).accuracies[0],))

    one = tried(run_search(space_of(starts), 12, 0, worth))
    two = tried(run_search(space_of(starts), 12, 0, other))
    assert one[:5] == two[:5]
    assert one[5:] != two[5:]


def test_starts_outside_of_the_space_are_no_trouble() -> None:
    starts = [{"dropout": 0.95, "hidden_channels": 5, "lr": 2.0}]
    search = run_search(space_of(starts), 8, 0, worth)
    assert search.trials[0].config["hidden_channels"] == 5
    assert {t.config["hidden_channels"] for t in search.trials[1:]} <= {4, 8, 16}


def test_starts_without_the_variant_that_is_searched() -> None:
    one, two = [{"name": "a"}], [{"name": "a"}, {"name": "b"}]
    values = {
        "variants": {"options": {"one": one, "two": two}},
        "variants.b.eta": {"low": 0.1, "high": 0.9, "step": 0.1},
    }
    starts = [{"variants": "one"}, {"variants": "two", "variants.b.eta": 0.5}]
    space = make_space("elu-gcn", "karate", {}, values, starts)  # type: ignore[arg-type]

    def with_b(space: Space, config: dict[str, Any]) -> Evaluation:
        return Evaluation((0.1 + 0.5 * (len(config["variants"]) == 2),))

    search = run_search(space, 10, 0, with_b)
    assert tried(search)[:2] == [
        {"variants": "one"}, {"variants": "two", "variants.b.eta": "0.5"},
    ]  # fmt: skip
    for trial in search.trials:
        has_b = len(trial.config["variants"]) == 2
        assert ("variants.b.eta" in trial.shown) == has_b
    assert search.best is search.trials[1]


def test_searches_are_repeatable_and_apart() -> None:
    one = tried(run_search(space_of([]), 9, 0, worth))
    assert tried(run_search(space_of([]), 9, 0, worth)) == one
    assert tried(run_search(space_of([]), 12, 0, worth))[:9] == one
    assert tried(run_search(space_of([]), 9, 1, worth)) != one
    assert tried(run_search(space_of([], "cora"), 9, 0, worth)) != one
    digest = hashlib.sha256(b"7/gcn/cora").hexdigest()
    assert stream(7, "gcn", "cora") == int(digest[:8], 16)


def test_failures_count_as_the_worst_and_the_search_goes_on() -> None:
    def fails(space: Space, config: dict[str, Any]) -> Evaluation:
        if config["hidden_channels"] == 4:
            return Evaluation(error="no luck")
        return worth(space, config)

    search = run_search(space_of([]), 12, 0, fails)
    assert len(search.trials) == 12
    failed = [t for t in search.trials if t.failed]
    assert 1 <= len(failed) < 12
    for trial in failed:
        assert (trial.value, trial.std, trial.evaluation.error) == (
            0.0,
            None,
            "no luck",
        )
    assert search.best not in failed


def test_values_that_do_not_go_together_are_a_failure() -> None:
    variants = [{"name": "a"}, {"name": "b"}]
    values = {
        "variants": {"options": {"two": variants, "one": variants[:1]}},
        "order": [1, 2],
    }
    space = make_space("elu-gcn", "karate", {}, values, [])  # type: ignore[arg-type]
    space.searched[0].values["two"][1]["name"] = "a"  # type: ignore[union-attr]
    seen = []

    def never(space: Space, config: dict[str, Any]) -> Evaluation:
        seen.append(config)
        return Evaluation((0.5,))

    search = run_search(space, 8, 0, never)
    failed = [t for t in search.trials if t.failed]
    assert failed
    assert len(seen) == 8 - len(failed)
    assert "names of their own" in str(failed[0].evaluation.error)


def test_the_first_of_equals_is_the_best_and_none_of_failures() -> None:
    space = space_of([])

    def trial(number: int, value: float | None) -> Trial:
        found = Evaluation(error="x") if value is None else Evaluation((value,))
        return Trial(number, {}, {}, found)

    search = Search(space, 4, [trial(1, None), trial(2, 0.5), trial(3, 0.5)])
    assert search.best is search.trials[1]
    # An honest accuracy of 0 is still better than a failure.
    assert Search(space, 2, [trial(1, None), trial(2, 0.0)]).best is not None
    assert Search(space, 1, [trial(1, None)]).best is None


def test_told_before_and_after(capfd: pytest.CaptureFixture[str]) -> None:
    counts: list[tuple[str, int]] = []
    run_search(
        space_of([{}]),
        3,
        0,
        worth,
        before=lambda s: counts.append(("before", len(s.trials))),
        after=lambda s: counts.append(("after", len(s.trials))),
    )
    assert counts == [
        ("before", 0), ("after", 1), ("before", 1), ("after", 2),
        ("before", 2), ("after", 3),
    ]  # fmt: skip
    assert capfd.readouterr() == ("", "")  # Optuna keeps quiet


def test_optuna_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"optuna .*elugcn\[tune\]"):
        load_optuna()


def test_the_sampler_is_told_of_the_starts() -> None:
    """A study written out here, told of the starts, asks for the same."""
    sampler = optuna.samplers.TPESampler(
        seed=stream(3, "gcn", "karate"), n_startup_trials=5, multivariate=False
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = {
        "dropout": optuna.distributions.FloatDistribution(0.1, 0.9, step=0.1),
        "hidden_channels": optuna.distributions.CategoricalDistribution(
            ["4", "8", "16"]
        ),
        "order": optuna.distributions.IntDistribution(0, 6),
        "lr": optuna.distributions.FloatDistribution(0.001, 1.0, log=True),
    }
    starts: list[dict[str, Any]] = [
        {"dropout": d, "hidden_channels": 8, "order": 1, "lr": 0.01}
        for d in (0.1, 0.3, 0.5, 0.7, 0.9)
    ]

    def value(given: dict[str, Any]) -> float:
        return 0.91 - abs(given["dropout"] - 0.4) - 0.02 * given["order"]

    for start in starts:
        params = start | {"hidden_channels": "8"}
        told = optuna.trial.create_trial(
            params=params, distributions=space, value=value(start)
        )
        study.add_trial(told)
    study.optimize(
        lambda t: value({k: t._suggest(k, d) for k, d in space.items()}), n_trials=4
    )
    search = run_search(space_of(starts), 9, 3, worth)
    for ours, theirs in zip(search.trials, study.trials, strict=True):
        assert ours.shown["hidden_channels"] == theirs.params["hidden_channels"]
        assert ours.config["order"] == theirs.params["order"]
        assert ours.config["dropout"] == pytest.approx(theirs.params["dropout"])
