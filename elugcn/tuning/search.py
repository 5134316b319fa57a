"""The search: Optuna proposes configurations, validation accuracy judges them.

Nothing of the search itself is kept on disk. It is replayed: with the same seed the
sampler asks for the same configurations again as long as it hears the same values, and
finished runs come out of the store at once. A search that was killed therefore goes on
as if it had not been.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from elugcn.errors import InputError, MissingExtraError
from elugcn.evaluation.store import Record
from elugcn.tuning.paths import Options
from elugcn.tuning.space import Space

if TYPE_CHECKING:
    import optuna

WORST = 0.0  # the accuracy that a configuration counts with when a run of it fails
_STARTUP = 5  # trials, the given ones among them, before the sampler learns


@dataclass(frozen=True)
class Evaluation:
    """What the runs of a configuration gave.

    Attributes:
        accuracies: on validation, one a run; in [0, 1].
        seconds: time of the runs together.
        error: why it does not count, if a run failed.
        records: of the finished runs.
    """

    accuracies: tuple[float, ...] = ()
    seconds: float = 0.0
    error: str | None = None
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Trial:
    """A configuration that was tried; numbers start at 1."""

    number: int
    config: Options
    shown: dict[str, str]
    evaluation: Evaluation

    @property
    def failed(self) -> bool:
        """Whether there is no accuracy to go by."""
        return self.evaluation.error is not None

    @property
    def value(self) -> float:
        """Mean validation accuracy, the worst there is for a failure."""
        return WORST if self.failed else float(np.mean(self.evaluation.accuracies))

    @property
    def std(self) -> float | None:
        """Unbiased standard deviation over the runs; None of fewer than two."""
        values = self.evaluation.accuracies
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


@dataclass
class Search:
    """The trials of a method on a dataset so far."""

    space: Space
    total: int
    trials: list[Trial] = field(default_factory=list)

    @property
    def best(self) -> Trial | None:
        """The trial with the highest accuracy, the first of equals; None if all fail.

        What is tried first is what is known to be sound: it stays if nothing is better.
        """
        done = [trial for trial in self.trials if not trial.failed]
        return max(done, key=lambda trial: trial.value) if done else None


Evaluate = Callable[[Space, Options], Evaluation]


def run_search(
    space: Space,
    trials: int,
    seed: int,
    evaluate: Evaluate,
    before: Callable[[Search], None] = lambda search: None,
    after: Callable[[Search], None] = lambda search: None,
) -> Search:
    """Try configurations one after another.

    The starts of the space come first and count; then Optuna's TPE chooses.

    Args:
        space: what may be tried.
        trials: how many configurations.
        seed: of the search; each method and dataset has its own stream of it.
        evaluate: what a configuration is worth.
        before: told before each trial.
        after: told after each trial.
    """
    optuna = load_optuna()
    sampler = optuna.samplers.TPESampler(
        seed=stream(seed, space.method, space.dataset),
        n_startup_trials=_STARTUP,
        # Which options there are may depend on others; and defaults differ by version.
        multivariate=False,
        constant_liar=False,
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    search = Search(space, trials)
    for start in space.starts[:trials]:
        before(search)
        trial = _try(search, start, evaluate)
        study.add_trial(_told(space, start, trial.value))
        after(search)
    while len(search.trials) < trials:
        before(search)
        asked = study.ask()
        trial = _try(search, space.suggest(asked), evaluate)
        study.tell(asked, trial.value)
        after(search)
    return search


def stream(seed: int, method: str, dataset: str) -> int:
    """A seed of 32 bits for one search, the same in every process."""
    text = f"{seed}/{method}/{dataset}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")


def load_optuna() -> Any:
    """Optuna without its messages.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("optuna", "tune") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _try(search: Search, chosen: Options, evaluate: Evaluate) -> Trial:
    space = search.space
    try:
        config = space.configuration(chosen)
    except InputError as error:  # values that are right alone and not together
        config, found = space.draft(chosen), Evaluation(error=str(error))
    else:
        found = evaluate(space, config)
    number = len(search.trials) + 1
    trial = Trial(number, config, space.shown(chosen), found)
    search.trials.append(trial)
    return trial


def _told(space: Space, start: Options, value: float) -> optuna.trial.FrozenTrial:
    """A start as a trial the sampler learns from, where it lies in the space."""
    from optuna.trial import create_trial

    params, distributions = {}, {}
    for dimension in space.searched:
        try:
            place = dimension.place(space.value(start, dimension.key))
        except KeyError:
            continue
        if place is not None:
            params[dimension.key] = place
            distributions[dimension.key] = dimension.distribution()
    return create_trial(params=params, distributions=distributions, value=value)
