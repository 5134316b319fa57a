"""Dotted keys: ``variants.0.order`` reaches into the options of a method.

An element of a list is named by its number, or by its ``name``:
``variants.two views.eta``. Options whose path does not exist are left alone, since
which variants there are may itself be searched.
"""

from __future__ import annotations

from typing import Any

Options = dict[str, Any]


def option_of(key: str) -> str:
    """The option that a key sets: its last part."""
    return key.rpartition(".")[2]


def depth(key: str) -> int:
    """How many lists and mappings the key goes through."""
    return key.count(".")


def holder(options: Options, key: str) -> Options | None:
    """The mapping that has, or may get, the option; None if there is none."""
    place: Any = options
    for part in key.split(".")[:-1]:
        place = _step(place, part)
    return place if isinstance(place, dict) else None


def read(options: Options, key: str) -> Any:
    """The value of an option; of the method's own where a variant has none."""
    place = holder(options, key)
    if place is None:
        raise KeyError(key)
    option = option_of(key)
    return place[option] if option in place else options[option]


def put(options: Options, key: str, value: Any) -> bool:
    """Set an option; False if its path does not exist."""
    place = holder(options, key)
    if place is None:
        return False
    place[option_of(key)] = value
    return True


def _step(place: Any, part: str) -> Any:
    if isinstance(place, dict):
        return place.get(part)
    if not isinstance(place, list):
        return None
    if part.isdecimal():
        return place[int(part)] if int(part) < len(place) else None
    named = (e for e in place if isinstance(e, dict) and e.get("name") == part)
    return next(named, None)
