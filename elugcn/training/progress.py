"""Progress of long work: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

Advance = Callable[[Mapping[str, float]], None]


class Progress:
    """Silent progress; subclasses show it."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """A stage of at most ``total`` steps. Call the yielded function at each."""
        yield lambda record: None


SILENT = Progress()


class Bars(Progress):
    """A bar per stage on stderr, removed when the stage is over."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """Show the stage with its validation score and the time left."""
        from rich import progress as rich
        from rich.console import Console

        columns = (
            rich.TextColumn("{task.description:<12}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.fields[note]}"),
            rich.TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        with rich.Progress(*columns, console=console, transient=True) as bars:
            task = bars.add_task(name, total=total, note="")

            def advance(record: Mapping[str, float]) -> None:
                score = record.get("val_score", record.get("val_accuracy", math.nan))
                note = "" if math.isnan(score) else f"validation {score:.1%}"
                bars.update(task, advance=1, note=note)

            yield advance


def default_progress(quiet: bool = False) -> Progress:
    """Bars if stderr is a terminal and the user did not ask for quiet."""
    return Bars() if sys.stderr.isatty() and not quiet else SILENT
