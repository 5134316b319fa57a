"""What several commands do to print, and to check where they write."""

import functools
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from elugcn.api import json_safe
from elugcn.errors import InputError
from elugcn.insight import format_percent

percent = functools.partial(format_percent, digits=1)
_WIDE = 200


def console() -> Console:
    """Stdout for people. Where it is not a terminal: plain, and no line is broken."""
    terminal = sys.stdout.isatty()
    width = None if terminal else _WIDE
    return Console(highlight=False, soft_wrap=not terminal, width=width)


def print_table(
    screen: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table without lines.

    Columns are numbers on the right, which are never cut. The first column, and those
    whose name begins with ``<``, are text on the left; a long one is cut.
    """
    longest = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    crowded = sum(longest) + 2 * len(longest) > screen.width
    gap = 1 if crowded else 2
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for i, name in enumerate(columns):
        if i == 0 or name.startswith("<"):
            table.add_column(name.removeprefix("<"))
        else:
            words = name.split() if crowded else [name]
            width = max(map(len, (*words, *(row[i] for row in rows))))
            table.add_column(name, justify="right", width=width)
    for row in rows:
        cells = (Text(cell, no_wrap=True, overflow="ellipsis") for cell in row)
        table.add_row(*cells)
    screen.print()
    screen.print(table)


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(json_safe(content), allow_nan=False))


def given_names(text: str, option: str) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError(f"{option} {text!r}: expected names separated by commas")
    return names
