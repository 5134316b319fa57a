"""How far a comparison is: a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elugcn.evaluation.jobs import Job
from elugcn.evaluation.store import Record

# Called often: what is finished so far, and what is running.
Report = Callable[[Sequence[tuple[Job, Record]], Sequence[Job]], None]


class Monitor:
    """Says nothing; the other kind shows a bar."""

    @contextmanager
    def watching(self, todo: Sequence[Job], done: Iterable[Record]) -> Iterator[Report]:
        """Watch ``todo`` being done, when ``done`` was there before."""
        yield lambda finished, running: None


SILENT = Monitor()


class TerminalMonitor(Monitor):
    """A bar on stderr, removed when all is done."""

    @contextmanager
    def watching(self, todo: Sequence[Job], done: Iterable[Record]) -> Iterator[Report]:
        """Show runs done of all, the current run and the time left."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
        )
        before = list(done)
        with Progress(
            *columns, console=Console(stderr=True), transient=True
        ) as progress:
            total = len(before) + len(todo)
            task = progress.add_task("", total=total, completed=len(before), left="")

            def report(
                finished: Sequence[tuple[Job, Record]], running: Sequence[Job]
            ) -> None:
                over = {job for job, _ in finished}
                records = before + [record for _, record in finished]
                left = time_left([j for j in todo if j not in over], records)
                if left is not None and running:
                    left /= len(running)
                progress.update(
                    task,
                    completed=len(before) + len(finished),
                    left=show_time(left),
                    description="; ".join(job.title for job in running),
                )

            yield report


def time_left(todo: Sequence[Job], records: Iterable[Record]) -> float | None:
    """Seconds that the jobs will take one after another.

    A job takes what runs of the same method and dataset took on average; where there
    is none, what runs of the method took, else what all runs took. None if nothing
    has run yet.
    """
    seen: dict[Any, list[float]] = defaultdict(list)
    for record in records:
        seconds = record.get("process_seconds")
        if seconds is not None and record.get("status") == "done":
            for key in (
                (record["method"], record["dataset"]),
                record["method"],
                None,
            ):
                seen[key].append(float(seconds))
    if not seen:
        return None
    means = {key: sum(values) / len(values) for key, values in seen.items()}
    return sum(means.get(j.pair, means.get(j.method, means[None])) for j in todo)


def show_time(seconds: float | None) -> str:
    """``1:02:03 left``, or nothing where it is not known."""
    if seconds is None:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{rest:02} left"


def default_monitor(quiet: bool = False) -> Monitor:
    """A bar if stderr is a terminal and the user did not ask for quiet."""
    return TerminalMonitor() if sys.stderr.isatty() and not quiet else SILENT
