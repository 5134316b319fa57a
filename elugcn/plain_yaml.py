"""YAML that people wrote: plain values, no key twice, and one kind of error."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Plain values; a key that is there twice is a mistake, not an order."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        seen = set()
        for key in (key for key, _ in pairs if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"key {key.value!r} is there twice"
                raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """The content of a YAML text.

    Raises:
        yaml.YAMLError: Whatever is wrong.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader: it makes no objects
    except yaml.YAMLError:
        raise
    # A date that is none, a tag that does not fit, brackets without end: PyYAML's
    # constructors fail on them in as many ways.
    except Exception as error:
        raise yaml.YAMLError(str(error)) from None


def line_of(error: yaml.YAMLError) -> int | None:
    """The line where it was noticed, from 1."""
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else None


def reason_of(error: yaml.YAMLError) -> str:
    """What is wrong in parentheses, as far as the parser knows."""
    problem = getattr(error, "problem", None)
    return f" ({problem})" if problem else ""
