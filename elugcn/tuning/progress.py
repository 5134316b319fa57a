"""How far a search is: a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elugcn.evaluation.jobs import Job
from elugcn.evaluation.monitor import Monitor, Report, show_time
from elugcn.evaluation.store import Record
from elugcn.tuning.search import Search

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Trials of every search, by method and dataset.
Plan = Mapping[tuple[str, str], int]


class TuneMonitor(Monitor):
    """Says nothing; the other kind shows a bar."""

    @contextmanager
    def showing(self, plan: Plan, at_once: int = 1) -> Iterator[None]:
        """Watch the searches of a plan, ``at_once`` runs at a time."""
        yield

    def trial(self, search: Search) -> None:
        """A trial of the search is about to begin."""


SILENT = TuneMonitor()


class TerminalTuneMonitor(TuneMonitor):
    """A bar on stderr over all trials, removed when all is done."""

    def __init__(self) -> None:
        self._plan: Plan = {}
        self._spent: dict[tuple[str, str], list[float]] = {}
        self._at_once = 1
        self._bar: tuple[Progress, TaskID] | None = None
        self._title = ""

    @contextmanager
    def showing(self, plan: Plan, at_once: int = 1) -> Iterator[None]:
        """Show trials done of all, the current search, its best and the time left."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
        )
        self._plan, self._spent, self._at_once = plan, {}, at_once
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            self._bar = bar, bar.add_task("", total=sum(plan.values()), left="")
            yield
        self._bar = None

    def trial(self, search: Search) -> None:
        """Show which trial begins."""
        self._title = headline(search)
        pair = search.space.method, search.space.dataset
        self._spent[pair] = [trial.evaluation.seconds for trial in search.trials]
        if self._bar is None:
            return
        bar, task = self._bar
        left = seconds_left(self._plan, self._spent)
        bar.update(
            task,
            completed=sum(map(len, self._spent.values())),
            left=show_time(None if left is None else left / self._at_once),
            description=self._title,
        )

    @contextmanager
    def watching(self, todo: Sequence[Job], done: Iterable[Record]) -> Iterator[Report]:
        """Show which runs of the trial are going on."""

        def report(
            finished: Sequence[tuple[Job, Record]], running: Sequence[Job]
        ) -> None:
            if self._bar is not None:
                seeds = " and ".join(str(job.seed) for job in running)
                text = f"{self._title}, seed {seeds}" if seeds else self._title
                self._bar[0].update(self._bar[1], description=text)

        yield report


def headline(search: Search) -> str:
    """``gcn on cora, trial 3 of 12, best 81.4 %``."""
    where = f"{search.space.method} on {search.space.dataset}"
    text = f"{where}, trial {len(search.trials) + 1} of {search.total}"
    best = search.best
    return text if best is None else f"{text}, best {100 * best.value:.1f} %"


def seconds_left(
    plan: Plan, spent: Mapping[tuple[str, str], Sequence[float]]
) -> float | None:
    """Seconds that the trials still to come will take, one run after another.

    A trial takes what the earlier ones of its search took on average, before the first
    of them what all took. None if nothing has been tried yet.
    """
    every = [seconds for trials in spent.values() for seconds in trials]
    if not every:
        return None
    left = 0.0
    for pair, total in plan.items():
        own = spent.get(pair, ())
        left += (total - len(own)) * (sum(own or every) / len(own or every))
    return left


def default_monitor(quiet: bool = False) -> TuneMonitor:
    """A bar if stderr is a terminal and the user did not ask for quiet."""
    return TerminalTuneMonitor() if sys.stderr.isatty() and not quiet else SILENT
