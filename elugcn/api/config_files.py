"""Options from presets, YAML files and ``key=value`` pairs to one configuration.

Later wins: the method's defaults, the preset of a dataset, a file, single options. An
unknown option is an error everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from elugcn.errors import InputError
from elugcn.methods.options import MethodConfig, make_config, unknown_option
from elugcn.methods.presets import preset as preset_of
from elugcn.methods.registry import (
    DEFAULT_METHOD,
    GRAPH_ONLY,
    get_method,
    resolve_name,
)

SCHEMA = 2  # of config.yaml
# What methods of version 0.1 (schema 1) are called today.
RENAMED = {"elu-gcn": "auto", "elu-gcn-paper": "elu-gcn"}
RENAMED_OPTIONS = {"nodeformer": {"features": "random_features"}}
_RUN_KEYS = ("schema", "method", "dataset", "split", "seed", "metric", "class_weight",
             "graph", "options")  # fmt: skip


def resolve_config(
    method: str,
    preset: str | None = None,
    file: str | Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> MethodConfig:
    """The configuration of a method from all sources, checked.

    ``preset`` names a dataset whose tuned options are the starting point; ``file`` is a
    YAML file with options, or the ``config.yaml`` of a run.
    """
    method = resolve_name(method)
    kind = get_method(method).Config
    values = {} if preset is None else preset_of(method, preset)
    if file is not None:
        content = read_config_file(file)
        given: dict[str, Any] = content.get("options", content)
        asked = resolve_name(str(content.get("method", method)))
        if method == GRAPH_ONLY and asked in ("auto", "elu-gcn"):
            # The ELU graph alone has fewer options than the methods that train on it.
            given = {k: value for k, value in given.items() if k in kind.model_fields}
        elif asked != method:
            raise InputError(f"{file} is for method {asked!r}, not for {method!r}")
        _check_known(given, kind.model_fields, file)
        values = {**values, **given}
    values = {**values, **(options or {})}
    config: MethodConfig = make_config(kind, values, f"method {method}")
    return config


def with_effort(
    method: str,
    options: Mapping[str, Any],
    effort: str | None,
    time_limit: float | None,
) -> dict[str, Any]:
    """Options with the effort and the time limit of the default, where they are given.

    Other methods have neither.
    """
    given = {"effort": effort, "time_limit": time_limit}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if name not in get_method(method).Config.model_fields:
            raise InputError(
                f"{name}={value} requires method={DEFAULT_METHOD!r}; got {method!r}"
            )
    return {**options, **given}


def _check_known(given: Iterable[Any], known: Iterable[str], path: str | Path) -> None:
    for key in given:
        if key not in known:
            raise InputError(unknown_option(str(key), known, str(path)))


def read_config_file(path: str | Path) -> dict[str, Any]:
    """A YAML file of options, or the ``config.yaml`` of a run with its keys checked.

    Method names of version 0.1 become those of today.
    """
    path = Path(path)
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: file not found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read ({error})") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{line}: not valid YAML ({error.problem})") from None
    except yaml.YAMLError:
        raise InputError(f"{path}: not valid YAML") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected 'key: value' lines")
    content = {str(key): value for key, value in content.items()}
    schema = content.pop("schema", SCHEMA)
    if schema not in (1, SCHEMA):
        raise InputError(f"{path}: expected schema {SCHEMA}")
    if "options" not in content:
        return content
    _check_known(content, _RUN_KEYS, path)
    content = {k: value for k, value in content.items() if value is not None}
    for key in ("options", "graph"):
        content.setdefault(key, {})
        if not isinstance(content[key], dict):
            raise InputError(f"{path}: {key} must hold 'key: value' lines")
    if schema == 1 and "method" in content:
        content["method"], content["options"] = renamed(
            str(content["method"]), content["options"]
        )
    return content


def renamed(method: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A method of version 0.1 and its options by new names, without those dropped."""
    method = RENAMED.get(method, method)
    known = get_method(method).Config.model_fields
    names = RENAMED_OPTIONS.get(method, {})
    today = {names.get(key, key): value for key, value in options.items()}
    if method == "auto" and today.get("direction") == "apart":
        del today["direction"]  # no member of the default keeps them apart
    return method, {key: value for key, value in today.items() if key in known}


def parse_assignments(pairs: Sequence[str], name: str = "options") -> dict[str, Any]:
    """``["eta=0.3", "form=paper"]`` as a mapping; values are read as YAML.

    The last of equal keys wins. Messages start with ``name``.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{name} {pair}: expected key=value")
        try:
            out[key.strip()] = parse_yaml(value)
        except yaml.YAMLError:
            raise InputError(f"{name} {pair}: the value is not valid YAML") from None
    return out


class _StrictLoader(yaml.SafeLoader):
    """Plain values; a duplicate key is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        seen = set()
        for key in (key for key, _ in pairs if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"duplicate key {key.value!r}"
                raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """The content of a YAML text; raises ``YAMLError``, whatever is wrong."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader: plain values only
    except yaml.YAMLError:
        raise
    except Exception as error:  # an impossible date, a wrong tag, endless brackets
        raise yaml.YAMLError(str(error)) from None
