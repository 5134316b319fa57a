"""From defaults, presets, files and ``--set`` to one checked configuration.

Later wins: the method's defaults, the tuned values of a known dataset
(``configs/<dataset>.yaml``), a file of the user's, single ``key=value`` pairs. An
unknown key is an error everywhere.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from elugcn.errors import InputError, shown
from elugcn.methods.base import BaseConfig
from elugcn.methods.registry import METHODS, get_method
from elugcn.plain_yaml import line_of, parse_yaml, reason_of

SCHEMA = 1
# The largest whole number of an option: no count of anything is larger.
_MOST = 2**31 - 1
SEARCH = "search"  # lies among the presets and is none: the spaces of `elugcn tune`
# What the file of a run says about itself besides its options.
_RUN_KEYS = {"schema", "method", "dataset", "split", "seed", "graph", "options"}


def resolve_config(
    method: str,
    dataset: str | None = None,
    file: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
    presets: Path | None = None,
) -> BaseConfig:
    """The configuration of a method, every source applied and checked.

    ``presets`` is a directory of tuned values to use instead of the package's own.
    """
    values = {} if dataset is None else preset(dataset, method, presets)
    if file is not None:
        read = _checked(method, read_options(file, method), str(file))
        values = _yielding(method, values, read) | read
    given = _checked(method, options or {}, "option")
    return make_config(method, _yielding(method, values, given) | given)


def _yielding(
    method: str, values: dict[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Variants that do not override what the user set: ``eta=0.5`` means everywhere.

    Not those that are set along with it: there the user says both.
    """
    known = {f.name: f for f in fields(get_method(method).config)}
    if "variants" not in known or "variants" in given or not given:
        return values
    variants = values.get("variants", known["variants"].default)
    kept = [{k: v for k, v in one.items() if k not in given} for one in variants]
    return values | {"variants": kept}


def make_config(method: str, values: Mapping[str, Any]) -> BaseConfig:
    """A method's configuration from plain values of the right type."""
    kind = get_method(method).config
    known = {f.name: f for f in fields(kind)}
    typed = {}
    for key, value in values.items():
        if key not in known:
            raise InputError(_unknown(key, list(known), f"of method {method}"))
        typed[key] = _coerce(key, value, str(known[key].type))
    for variant in typed.get("variants", ()):
        for key in variant.keys() & known.keys():
            variant[key] = _coerce(key, variant[key], str(known[key].type))
    return cast(BaseConfig, kind(**typed))


def preset(dataset: str, method: str, folder: Path | None = None) -> dict[str, Any]:
    """The tuned values for a known dataset, ``{}`` for any other."""
    common, own = preset_parts(dataset, method, folder)
    return common | own


def preset_parts(
    dataset: str, method: str, folder: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a dataset's file says for all methods, as far as it fits, and for one."""
    path = (folder or resources.files("elugcn") / "configs") / f"{dataset}.yaml"
    if dataset == SEARCH or not path.is_file():
        return {}, {}
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected sections of 'key: value' lines")
    for key in content:
        if key not in {"schema", "common", *METHODS}:
            raise InputError(_unknown(key, ["common", *METHODS], f"in {path}"))
    fits = {f.name for f in fields(get_method(method).config)}
    common = {k: v for k, v in (content.get("common") or {}).items() if k in fits}
    return common, _checked(method, content.get(method) or {}, str(path))


def read_options(file: str | Path, method: str) -> dict[str, Any]:
    """Options from YAML: a flat mapping, or the ``config.yaml`` of a run."""
    path, content = Path(file), read_yaml(file)
    if "options" not in content:
        return {k: v for k, v in content.items() if k != "schema"}
    asked = content.get("method", method)
    if get_method(str(asked)).config is not get_method(method).config:
        said = f"--config {path} is for method {asked!r}; this run uses {method!r}"
        way = f"say --method {asked}" if method in METHODS else "give a run of elu-gcn"
        raise InputError(f"{said}: {way}")
    return dict(content["options"])


def read_yaml(file: str | Path) -> dict[str, Any]:
    """A configuration file: its keys are strings and its layout is a known one."""
    path = Path(file)
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"--config {path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--config {path}: can't be read ({error})") from None
    except yaml.YAMLError as error:
        line = line_of(error)
        place = path if line is None else f"{path}, line {line}"
        raise InputError(
            f"--config {place}: not valid YAML{reason_of(error)}"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"--config {path}: expected 'key: value' lines")
    content = {str(k): v for k, v in content.items()}
    if content.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"--config {path}: expected schema {SCHEMA}")
    if "options" not in content:
        return content
    for key in content:
        if key not in _RUN_KEYS:
            raise InputError(_unknown(key, sorted(_RUN_KEYS), f"in {path}"))
    for key in ("options", "graph"):
        content[key] = {} if content.get(key) is None else content[key]
        if not isinstance(content[key], dict):
            raise InputError(f"--config {path}: {key} must hold 'key: value' lines")
    return content


def parse_assignments(pairs: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """``["eta=0.3", "form=paper"]`` as a mapping, values read as YAML."""
    out: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"{option} {pair}: expected key=value")
        try:
            out[key.strip()] = parse_yaml(value)
        except yaml.YAMLError:
            raise InputError(f"{option} {pair}: the value is not valid YAML") from None
    return out


def as_plain(config: BaseConfig) -> dict[str, Any]:
    """The configuration as YAML and JSON hold it."""
    plain = asdict(config)
    if "variants" in plain:
        plain["variants"] = [dict(v) for v in plain["variants"]]
    return plain


def _checked(method: str, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    known = [f.name for f in fields(get_method(method).config)]
    for key in values:
        if key not in known:
            place = f"of method {method}" if where == "option" else f"in {where}"
            raise InputError(_unknown(str(key), known, place))
    return dict(values)


def _unknown(key: str, known: Sequence[str], place: str) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
    return f"unknown option {key!r} {place}{hint}"


def _coerce(key: str, value: Any, annotation: str) -> Any:
    """A value read from YAML, or numpy's own, as the type the dataclass declares."""
    if isinstance(value, np.generic):
        value = value.item()
    if annotation.startswith("tuple"):
        if not isinstance(value, list | tuple) or not all(
            isinstance(v, Mapping) for v in value
        ):
            raise InputError(f"{key} must be a list of mappings; got {shown(value)}")
        return tuple(dict(v) for v in value)
    if annotation == "bool":
        expected, ok = "true or false", isinstance(value, bool)
    elif annotation == "int":
        ok = isinstance(value, int) and not isinstance(value, bool)
        expected = "a whole number"
        if ok and abs(value) > _MOST:
            raise InputError(f"{key} must be at most {_MOST}; got {shown(value)}")
    elif annotation in ("float", "float | None"):
        if value is None and annotation != "float":
            return None
        number = _number(value)
        if number is not None:
            return number
        expected, ok = "a number", False
    else:
        expected, ok = "a word", isinstance(value, str)
    if not ok:
        raise InputError(f"{key} must be {expected}; got {shown(value)}")
    return value


def _number(value: Any) -> float | None:
    # YAML reads 5e-4 as a string: it wants 5.0e-4. People write 5e-4.
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
