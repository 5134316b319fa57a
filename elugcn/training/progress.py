"""Progress of long work: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

Advance = Callable[[Mapping[str, float]], None]


class Progress:
    """Silent progress; subclasses show it."""

    @contextmanager
    def stage(self, name: str, total: int, done: int = 0) -> Iterator[Advance]:
        """A stage of at most ``total`` steps. Call the yielded function at each.

        ``done`` steps were made before.

        Its record may have ``val_score`` (or ``val_accuracy``) and ``seconds_left``.
        """
        yield lambda record: None


SILENT = Progress()


class Bars(Progress):
    """A bar per stage on stderr, removed when the stage is over.

    A stage inside another one has its bar below: the members of a fit, and the epochs
    of the one that is trained.
    """

    def __init__(self) -> None:
        self._bars: Any = None  # while a stage is shown

    @contextmanager
    def stage(self, name: str, total: int, done: int = 0) -> Iterator[Advance]:
        """Show the stage with its validation score and the time left."""
        with ExitStack() as stack:
            if self._bars is None:
                self._bars = stack.enter_context(_display())
                stack.callback(setattr, self, "_bars", None)
            bars = self._bars
            task = bars.add_task(name, total=total, completed=done, note="", left="")
            stack.callback(bars.remove_task, task)
            stack.callback(bars.refresh)  # the last state is shown, however short

            def advance(record: Mapping[str, float]) -> None:
                score = record.get("val_score", record.get("val_accuracy", math.nan))
                note = "" if math.isnan(score) else f"validation {score:.1%}"
                limit = record.get("seconds_left", math.nan)
                left = "" if math.isnan(limit) else f"at most {limit:.0f} s left"
                bars.update(task, advance=1, note=note, left=left)

            yield advance


def _display() -> Any:
    """What draws the bars."""
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description:<12}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[note]}"),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[left]}"),
    )
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)


def default_progress(quiet: bool = False) -> Progress:
    """Bars if stderr is a terminal and the user did not ask for quiet."""
    return Bars() if sys.stderr.isatty() and not quiet else SILENT
