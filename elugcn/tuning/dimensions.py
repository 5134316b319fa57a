"""One option of a search space: choices, choices with names, or a range."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elugcn.config import as_plain, make_config
from elugcn.errors import InputError
from elugcn.tuning.paths import option_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

_RANGE = ("low", "high", "step", "log")
_DIGITS = 3  # of a number drawn from a range without steps: more say nothing


@dataclass(frozen=True)
class Choices:
    """Values by their labels; the search sees the labels."""

    key: str
    values: dict[str, Any]

    def suggest(self, trial: Trial) -> Any:
        """The value that a trial is to have."""
        label = trial.suggest_categorical(self.key, list(self.values))
        return copy.deepcopy(self.values[str(label)])

    def place(self, value: Any) -> str | None:
        """What the search calls a value; None if it is none of the choices."""
        found = (k for k, v in self.values.items() if _same(v, value))
        return next(found, None)

    def distribution(self) -> BaseDistribution:
        """The dimension as Optuna has it."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(list(self.values))

    def extremes(self) -> list[Any]:
        """The values that must all be allowed."""
        return list(self.values.values())

    def show(self, value: Any) -> str:
        """A value as a cell of a table."""
        return self.place(value) or label_of(value)


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both possible."""

    key: str
    low: float
    high: float
    step: float | None = None
    log: bool = False
    whole: bool = False

    def suggest(self, trial: Trial) -> float:
        """The value that a trial is to have."""
        if self.whole:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return trial.suggest_int(self.key, low, high, step=step, log=self.log)
        value = trial.suggest_float(
            self.key, self.low, self.high, step=self.step, log=self.log
        )
        digits = _DIGITS if self.step is None else 10
        return min(max(float(f"{value:.{digits}g}"), self.low), self.high)

    def place(self, value: Any) -> float | None:
        """The value if the range has it, else None."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not self.low <= value <= self.high:
            return None
        if self.step is not None and not _divides(self.step, value - self.low):
            return None
        return value

    def distribution(self) -> BaseDistribution:
        """The dimension as Optuna has it."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return IntDistribution(low, high, log=self.log, step=step)
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def extremes(self) -> list[Any]:
        """The values that must all be allowed."""
        return [self.low, self.high]

    def show(self, value: Any) -> str:
        """A value as a cell of a table."""
        return label_of(value)


Dimension = Choices | Range


def make_dimension(method: str, key: str, given: Any) -> Dimension:
    """What a line of ``values`` says.

    A list is a choice, ``{low, high}`` with ``step`` or ``log`` a range,
    ``{options: {name: value}}`` a choice by name, anything else the one value it has.

    Raises:
        InputError: the method has no such option, or not with such a value.
    """
    if isinstance(given, Mapping):
        return _from_mapping(method, key, given)
    if not isinstance(given, list):
        given = [given]
    if not given or any(isinstance(value, list | Mapping) for value in given):
        raise InputError(
            f"{key}: expected a list of single values; "
            "lists and mappings are chosen by name: {options: {name: value}}"
        )
    values: dict[str, Any] = {}
    for value in given:
        typed = coerce(method, key, value)
        if label_of(typed) in values:
            raise InputError(f"{key}: {label_of(typed)} is there twice")
        values[label_of(typed)] = typed
    return Choices(key, values)


def coerce(method: str, key: str, value: Any) -> Any:
    """A value as the type that the method's configuration declares."""
    option = option_of(key)
    return as_plain(make_config(method, {option: value}))[option]


def label_of(value: Any) -> str:
    """A value as a word: ``none``, ``16``, ``true``, ``[…]``."""
    return value if isinstance(value, str) else json.dumps(value)


def _from_mapping(method: str, key: str, given: Mapping[str, Any]) -> Dimension:
    named = given.get("options")
    if set(given) == {"options"} and isinstance(named, Mapping) and named:
        values = {str(k): coerce(method, key, v) for k, v in named.items()}
        return Choices(key, values)
    if not {"low", "high"} <= set(given) <= set(_RANGE):
        raise InputError(
            f"{key}: expected low and high, with step or log, or options; "
            f"got {', '.join(map(str, given)) or 'nothing'}"
        )
    low, high = (coerce(method, key, given[end]) for end in ("low", "high"))
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in (low, high)):
        raise InputError(f"{key}: a range is of numbers; choose from a list instead")
    step, log = given.get("step"), given.get("log", False)
    if not low < high:
        raise InputError(f"{key}: low must be below high; got {low} and {high}")
    if not isinstance(log, bool) or (log and (step is not None or low <= 0)):
        raise InputError(f"{key}: log is true or false, for a low above 0, no step")
    whole = isinstance(low, int)
    if step is not None:
        step = _step(key, step, whole, high - low)
    return Range(key, low, high, step, log, whole)


def _step(key: str, step: Any, whole: bool, width: float) -> float:
    kind = int if whole else int | float
    if isinstance(step, bool) or not isinstance(step, kind) or not step > 0:
        raise InputError(f"{key}: step must be a positive number; got {step!r}")
    if not _divides(step, width):
        raise InputError(f"{key}: high must be low plus a multiple of step {step}")
    return step


def _divides(step: float, width: float) -> bool:
    return math.isclose(width / step, round(width / step), abs_tol=1e-8)


def _same(one: Any, two: Any) -> bool:
    """Equal, and of a kind: True is not 1."""
    return bool(one == two) and isinstance(one, bool) == isinstance(two, bool)
