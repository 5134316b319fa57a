"""What a search over options tries: the contents of ``configs/search.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from elugcn.methods.problem import GraphTraits


def suggested(method: str, trial: Any, traits: GraphTraits) -> dict[str, Any]:
    """Options that an Optuna trial suggests, for a graph with these traits."""
    values: dict[str, Any] = {}
    for block in _searches().get(method, {}).get("space", ()):
        for condition, section in block.items():
            if _holds(condition, traits):
                values |= section
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    ranges = {name: value for name, value in values.items() if isinstance(value, dict)}
    chosen = {name: trial.suggest_categorical(name, x) for name, x in lists.items()}
    floats = {name: trial.suggest_float(name, **x) for name, x in ranges.items()}
    return values | chosen | floats


def starts(method: str, traits: GraphTraits) -> list[dict[str, Any]]:
    """Options that a search tries first, for a graph with these traits."""
    for condition, options in _searches().get(method, {}).get("starts", {}).items():
        if _holds(condition, traits):
            return [dict(one) for one in options]
    return []


def _holds(condition: str, traits: GraphTraits) -> bool:
    """Whether all the traits named are the graph's."""
    names = condition.split(" and ")
    return names == ["always"] or all(getattr(traits, name) for name in names)


@cache
def _searches() -> Mapping[str, Any]:
    file = resources.files("elugcn") / "configs" / "search.yaml"
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content
