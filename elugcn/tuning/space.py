"""The configurations that a search may try, for one method on one dataset."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elugcn.config import as_plain, make_config
from elugcn.errors import InputError
from elugcn.tuning.dimensions import (
    Choices,
    Dimension,
    coerce,
    label_of,
    make_dimension,
)
from elugcn.tuning.paths import Options, depth, option_of, put, read

if TYPE_CHECKING:
    from optuna.trial import Trial


@dataclass(frozen=True)
class Space:
    """What is searched, what is fixed, and what is tried first.

    Attributes:
        method: name of the method.
        dataset: name of the dataset.
        base: the configuration that all of them start from.
        fixed: options with one value, on top of the base.
        searched: the dimensions, outer options before those inside variants.
        starts: options of the configurations to try first, on top of base and fixed.
    """

    method: str
    dataset: str
    base: Options
    fixed: Options
    searched: tuple[Dimension, ...]
    starts: tuple[Options, ...]

    @property
    def columns(self) -> list[str]:
        """The options in which the configurations may differ."""
        keys = [dimension.key for dimension in self.searched]
        keys += [key for start in self.starts for key in start]
        return list(dict.fromkeys(keys))

    def draft(self, chosen: Mapping[str, Any], deepest: float = math.inf) -> Options:
        """All options with the chosen ones, down to a depth; not checked yet."""
        options = copy.deepcopy(self.base)
        values = self.fixed | dict(chosen)
        # A variant is there before what is inside it is set.
        for key in sorted(values, key=depth):
            if depth(key) <= deepest:
                put(options, key, copy.deepcopy(values[key]))
        return options

    def configuration(self, chosen: Mapping[str, Any]) -> Options:
        """All options with the chosen ones, checked."""
        return as_plain(make_config(self.method, self.draft(chosen)))

    def suggest(self, trial: Trial) -> Options:
        """What a trial chooses; options of variants it does not have are left out."""
        chosen: Options = {}
        for dimension in self.searched:
            if self.applies(dimension.key, chosen):
                chosen[dimension.key] = dimension.suggest(trial)
        return chosen

    def applies(self, key: str, chosen: Mapping[str, Any]) -> bool:
        """Whether a configuration has a place for the option."""
        return put(self.draft(chosen), key, None)

    def value(self, chosen: Mapping[str, Any], key: str) -> Any:
        """The value of an option; a list of variants as it was chosen.

        Raises:
            KeyError: the configuration has no place for it.
        """
        return read(self.draft(chosen, depth(key)), key)

    def shown(self, chosen: Mapping[str, Any]) -> dict[str, str]:
        """The options of a configuration that make the difference, as words."""
        known = {dimension.key: dimension for dimension in self.searched}
        cells = {}
        for key in self.columns:
            with contextlib.suppress(KeyError):
                value = self.value(chosen, key)
                cells[key] = known[key].show(value) if key in known else label_of(value)
        return cells


def make_space(
    method: str,
    dataset: str,
    base: Mapping[str, Any],
    values: Mapping[str, Any],
    starts: list[Mapping[str, Any]],
) -> Space:
    """A space from the lines of a file, every value in it checked.

    Args:
        method: name of the method.
        dataset: name of the dataset.
        base: options that differ from the method's defaults.
        values: per key what is searched or fixed (see ``make_dimension``).
        starts: options of the configurations to try first.

    Raises:
        InputError: an option or a value that the method does not have.
    """
    plain = as_plain(make_config(method, base))
    fixed: Options = {}
    searched: list[Dimension] = []
    named: dict[str, dict[str, Any]] = {}
    for key in sorted(values, key=depth):
        dimension = make_dimension(method, key, values[key])
        if isinstance(dimension, Choices):
            named[key] = dimension.values
        if isinstance(dimension, Choices) and len(dimension.values) == 1:
            (fixed[key],) = dimension.values.values()
        else:
            searched.append(dimension)
    space = Space(method, dataset, plain, fixed, tuple(searched), ())
    first = tuple(_start(method, start, named) for start in starts)
    _check(space, first)
    return Space(method, dataset, plain, fixed, tuple(searched), first)


def _start(
    method: str, start: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]
) -> Options:
    """A start as options: names of choices stand for their values."""
    options = {}
    for key, value in start.items():
        known = named.get(key, {})
        by_name = isinstance(value, str) and value in known
        options[key] = known[value] if by_name else coerce(method, key, value)
    return options


def _check(space: Space, starts: tuple[Options, ...]) -> None:
    """Make a configuration of every value alone: no trial is to find out."""
    for dimension in space.searched:
        around = _around(space, dimension.key)
        for value in dimension.extremes():
            space.configuration(around | {dimension.key: value})
    for key in space.fixed:
        _around(space, key)
    for start in starts:
        for key in start:
            outer = {k: v for k, v in start.items() if depth(k) < depth(key)}
            if not space.applies(key, outer):
                raise InputError(f"{key}: a start has no place for it")
        space.configuration(start)


def _around(space: Space, key: str) -> Options:
    """Choices with which an option has a place."""
    for choice in _outer(space):
        if space.applies(key, choice):
            return choice
    raise InputError(f"{key}: no place for {option_of(key)!r} with any choice")


def _outer(space: Space) -> Iterator[Options]:
    yield {}
    for dimension in space.searched:
        if isinstance(dimension, Choices) and not depth(dimension.key):
            yield from ({dimension.key: value} for value in dimension.values.values())
