"""The file of search spaces: sections per method, and the budget of a search.

A section is named after a method, or ``method@a,b`` for some datasets or groups of
them. For a method on a dataset the sections that mean it are put on top of each other,
from the one for most datasets to the one for fewest: a key of ``values`` in a later one
replaces the earlier one (``null`` removes it), and so do ``start`` and ``like``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from elugcn.config import SCHEMA, SEARCH, as_plain, make_config, preset, preset_parts
from elugcn.data.datasets import dataset_info, list_datasets
from elugcn.errors import InputError
from elugcn.methods.registry import METHODS
from elugcn.plain_yaml import line_of, parse_yaml, reason_of
from elugcn.tuning import alike
from elugcn.tuning.space import Space, make_space

_KEYS = ("schema", "budget", "groups", "spaces")
_SECTION = ("start", "values", "like")
_LEAST = {"trials": 1, "runs": 1, "first": 0, "search_seed": 0}


@dataclass(frozen=True)
class Budget:
    """What a search may spend.

    Attributes:
        trials: configurations to try.
        runs: runs of each.
        first: seed of the first run, away from the seeds that are reported.
        search_seed: seed of the search itself.
        trials_of: trials of single methods.
    """

    trials: int = 12
    runs: int = 2
    first: int = 100
    search_seed: int = 0
    trials_of: Mapping[str, int] = field(default_factory=dict)

    def trials_for(self, method: str) -> int:
        """How many configurations of a method are tried."""
        return self.trials_of.get(method, self.trials)

    def but(self, **given: int | None) -> Budget:
        """The budget with what is given instead; trials are then of every method."""
        said = {key: value for key, value in given.items() if value is not None}
        for key, value in said.items():
            if value < _LEAST[key]:
                option = "--" + key.replace("_", "-")
                raise InputError(
                    f"{option} must be at least {_LEAST[key]}; got {value}"
                )
        of = {} if "trials" in said else self.trials_of
        return replace(self, **said, trials_of=of)


@dataclass(frozen=True)
class Section:
    """One entry of ``spaces``."""

    name: str
    method: str
    datasets: frozenset[str]
    content: Mapping[str, Any]


@dataclass(frozen=True)
class SearchFile:
    """A file of search spaces, read and checked."""

    name: str
    budget: Budget
    sections: tuple[Section, ...]
    own: bool = False  # the package's

    def space(self, method: str, dataset: str, presets: Path | None = None) -> Space:
        """The space of a method on a dataset.

        It starts from the method's defaults and what ``configs/<dataset>.yaml`` has
        in common for all methods, not from the method's own tuned values: a search
        does not depend on the outcome of an earlier one.

        Args:
            method: name of the method.
            dataset: name of the dataset.
            presets: directory of tuned values instead of the package's.
        """
        sections = self._sections(method, dataset)
        values: dict[str, Any] = {}
        starts: list[Mapping[str, Any]] = [{}]
        for section in sections:
            values |= section.content.get("values") or {}
            starts = section.content.get("start", starts)
        values = {k: v for k, v in values.items() if v is not None}
        base, _ = preset_parts(dataset, method, presets)
        like = self.like(method, dataset)
        if like is not None:
            _, tuned = preset_parts(dataset, like, presets)
            fits = METHODS[method].config.__dataclass_fields__
            base |= {key: value for key, value in tuned.items() if key in fits}
        try:
            around = as_plain(make_config(method, base))
            values = alike.resolved(
                values, around, lambda other: preset(dataset, other, presets)
            )
            return make_space(method, dataset, base, values, starts)
        except InputError as error:
            place = " and ".join(section.name for section in sections)
            raise InputError(f"--space {self.name}: {place}: {error}") from None

    def like(self, method: str, dataset: str) -> str | None:
        """The method whose tuned values the search starts from, if any."""
        like = None
        for section in self._sections(method, dataset):
            like = section.content.get("like", like)
        return like

    def starts_from(self, method: str, dataset: str) -> list[str]:
        """Every method whose tuned values the search needs, those of variants too."""
        like = self.like(method, dataset)
        found = [] if like is None else [like]
        for section in self._sections(method, dataset):
            found += alike.named(section.content.get("values") or {})
        return list(dict.fromkeys(found))

    def _sections(self, method: str, dataset: str) -> list[Section]:
        own = [s for s in self.sections if s.method == method]
        if not own:
            known = ", ".join(dict.fromkeys(s.method for s in self.sections))
            raise InputError(
                f"--space {self.name}: no space for method {method!r}; known: {known}"
            )
        own = [s for s in own if dataset in s.datasets]
        if not own:
            raise InputError(
                f"--space {self.name}: no space for method {method!r} on {dataset}"
            )
        return sorted(own, key=lambda s: -len(s.datasets))


def read_search(path: Path | None = None) -> SearchFile:
    """Read a file of search spaces; without a path the package's own.

    Raises:
        InputError: the file is not there or is no such file.
    """
    name = f"{SEARCH}.yaml" if path is None else str(path)
    try:
        return replace(_parse(name, _content(path)), own=path is None)
    except InputError as error:
        raise InputError(f"--space {name}: {error}") from None


def _content(path: Path | None) -> Any:
    place = path or resources.files("elugcn") / "configs" / f"{SEARCH}.yaml"
    try:
        return parse_yaml(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't be read ({error})") from None
    except yaml.YAMLError as error:
        line = line_of(error)
        where = "" if line is None else f" (line {line})"
        raise InputError(f"not valid YAML{where}{reason_of(error)}") from None


def _parse(name: str, content: Any) -> SearchFile:
    content = _mapping("the file", content, _KEYS)
    if content.get("schema") != SCHEMA:
        raise InputError(f"expected schema {SCHEMA}; got {content.get('schema')!r}")
    groups = {info.name: frozenset({info.name}) for info in list_datasets()}
    for group, members in _mapping("groups", content.get("groups")).items():
        if group in groups or not isinstance(members, list):
            raise InputError(f"group {group!r} must be new and list datasets")
        groups[group] = frozenset(dataset_info(str(m)).name for m in members)
    spaces = _mapping("spaces", content.get("spaces"))
    sections = tuple(_section(str(k), v, groups) for k, v in spaces.items())
    return SearchFile(name, _budget(content.get("budget")), sections)


def _section(name: str, given: Any, groups: Mapping[str, frozenset[str]]) -> Section:
    content = _mapping(name, given, _SECTION)
    method, at, where = name.partition("@")
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise InputError(f"section {name!r}: unknown method {method!r}; known: {known}")
    words = [word.strip() for word in where.split(",")] if at else list(groups)
    for word in words:
        if word not in groups:
            raise InputError(f"section {name!r}: no dataset or group {word!r}")
    _mapping(f"{name}: values", content.get("values"))
    starts = content.get("start", [])
    if not isinstance(starts, list):
        raise InputError(f"{name}: start must be a list of mappings")
    for start in starts:
        _mapping(f"{name}: start", start)
    if content.get("like") not in (None, *METHODS):
        raise InputError(f"{name}: like must be a method; got {content['like']!r}")
    datasets = frozenset(d for word in words for d in groups[word])
    return Section(name, method, datasets, content)


def _budget(given: Any) -> Budget:
    content = dict(_mapping("budget", given, (*_LEAST, "trials_of")))
    of = _mapping("trials_of", content.pop("trials_of", None), METHODS)
    for key, value in (content | dict(of)).items():
        least = _LEAST.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"budget: {key} must be a whole number from {least} on")
    return Budget(**content, trials_of=of)


def _mapping(what: str, given: Any, known: Any = None) -> Mapping[str, Any]:
    """A mapping with known keys; nothing is an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"{what}: expected 'key: value' lines; got {given!r}")
    for key in given:
        if not isinstance(key, str) or (known is not None and key not in known):
            hint = f"; known: {', '.join(known)}" if known is not None else ""
            raise InputError(f"{what}: unknown key {key!r}{hint}")
    return given
