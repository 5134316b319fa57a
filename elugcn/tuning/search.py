"""The search for options: Optuna proposes, validation judges.

The state of a search is not stored. It is replayed: with the same seed and the same
scores the sampler proposes the same options again, and finished runs come out of
the store at once. A search that was interrupted therefore continues where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from elugcn.errors import InputError, MissingExtraError
from elugcn.evaluation.jobs import differing
from elugcn.methods.contract import Method
from elugcn.methods.problem import GraphTraits
from elugcn.methods.registry import get_method

WORST = 0.0  # what the sampler is told where a run fails
STARTUP_TRIALS = 5  # the sampler learns from then on


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and what came of them."""

    number: int  # counts from 1
    options: dict[str, Any]  # what differs from the method's defaults
    val_accuracy: float | None = None  # mean over the runs; None: one failed
    std: float | None = None  # of what judges, unbiased; None: fewer than two runs
    seconds: float = 0.0  # of the runs together
    error: str | None = None  # why the trial does not count
    version: str | None = None  # of the package that made the runs
    val_score: float | None = None  # mean of the metric that judges, if not accuracy

    @property
    def value(self) -> float | None:
        """What judges the trial."""
        return self.val_accuracy if self.val_score is None else self.val_score


@dataclass
class Search:
    """The trials of a method on a dataset so far."""

    method: str
    dataset: str
    total: int
    trials: list[Trial] = field(default_factory=list)

    @property
    def best(self) -> Trial | None:
        """The trial with the highest value, the first of equals; None if all fail.

        The first trials are known to be sound. They stay if nothing is better.
        """
        done = [trial for trial in self.trials if trial.value is not None]
        return max(done, key=lambda t: t.value or 0.0) if done else None


# Runs a trial, given its search, its number and its options.
Evaluate = Callable[[Search, int, dict[str, Any]], Trial]


def run_search(
    search: Search,
    common: Mapping[str, Any],
    traits: GraphTraits,
    seed: int,
    evaluate: Evaluate,
) -> Iterator[Trial]:
    """Try options one after another and yield each trial when it is finished.

    The method's defaults come first, then the settings of its authors; then Optuna's
    TPE sampler chooses. Every trial has the ``common`` options unless its space says
    otherwise.
    """
    optuna = load_optuna()
    method = get_method(search.method)
    # Each method and dataset has its own random numbers, the same in every process.
    text = f"{seed}/{search.method}/{search.dataset}".encode()
    own = int.from_bytes(hashlib.sha256(text).digest()[:4], "big")
    sampler = optuna.samplers.TPESampler(seed=own, n_startup_trials=STARTUP_TRIALS)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    defaults = method.Config().model_dump(mode="json")
    starts = [{}, *(one for one in method.starting_points(traits) if one)]
    choices = _choices(method, traits)
    for i, start in enumerate(starts):
        known = _flat(defaults | dict(common) | dict(start))
        # Optuna refuses a value that a list does not have.
        known = {k: v for k, v in known.items() if v in choices.get(k, [v])}
        study.enqueue_trial(known, user_attrs={"start": i})
    for number in range(1, search.total + 1):
        asked = study.ask()
        suggested = method.space(asked, traits)
        # A start is exactly what it says, in the space or not.
        start = asked.user_attrs.get("start")
        chosen = dict(common) | dict(suggested if start is None else starts[start])
        try:
            options = differing(search.method, chosen)
        except InputError as error:  # values that are right alone and not together
            trial = Trial(number, chosen, error=str(error))
        else:
            trial = evaluate(search, number, options)
        study.tell(asked, WORST if trial.value is None else trial.value)
        search.trials.append(trial)
        yield trial


def _choices(method: Method[Any], traits: GraphTraits) -> dict[str, Any]:
    """The values of every option that has a list of them."""
    trial = load_optuna().create_study().ask()
    method.space(trial, traits)
    return {
        name: distribution.choices
        for name, distribution in trial.distributions.items()
        if hasattr(distribution, "choices")
    }


def load_optuna() -> Any:
    """Optuna without its messages."""
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that spaces give them: ``variants.0.order``."""
    flat: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, list | tuple):
            for i, one in enumerate(value):
                flat |= {f"{key}.{i}.{name}": v for name, v in one.items()}
        else:
            flat[key] = value
    return flat
