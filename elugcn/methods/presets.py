"""Tuned options of known datasets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from elugcn.methods.registry import DEFAULT_METHOD, get_method, resolve_name

COMMON = "common"  # options of a dataset for every method that has them


def preset(method: str, dataset: str) -> dict[str, Any]:
    """The tuned options of a method for a known dataset, ``{}`` for any other.

    The default has none: it is the same for every graph.
    """
    if resolve_name(method) == DEFAULT_METHOD:
        return {}
    sections = all_presets().get(dataset, {})
    known = get_method(method).Config.model_fields
    common = sections.get(COMMON, {})
    own = sections.get(resolve_name(method), {})
    return {key: value for key, value in common.items() if key in known} | dict(own)


def tuned_options(
    method: str, dataset: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The tuned options of a dataset with a user's options on top."""
    return {**({} if dataset is None else preset(method, dataset)), **options}


@cache
def all_presets() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Options by dataset, then by method."""
    content: dict[str, Any] = yaml.safe_load(presets_file().read_text("utf-8"))
    return content


def presets_file() -> Path:
    """The file that the package reads."""
    return Path(str(resources.files("elugcn") / "configs" / "presets.yaml"))
