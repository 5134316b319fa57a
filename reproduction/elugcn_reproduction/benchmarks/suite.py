"""What a benchmark is: cases that are timed fairly, numbers, and a page."""

from __future__ import annotations

import ctypes
import gc
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field, fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
from matplotlib.figure import Figure

from elugcn.api import Fitted, fit
from elugcn.api.runs import peak_rss_mb
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.engine import engine_name
from elugcn.evaluation.isolated import IsolatedError, run_isolated
from elugcn.evaluation.statistics import Summary
from elugcn.training.progress import SILENT, Advance, Progress
from elugcn.training.threads import threads
from elugcn_reproduction.figures import Curve, Panel, draw_growth
from elugcn_reproduction.page import Page

METHOD = "elu-gcn"
# Hidden width of every contestant: GAT has eight heads of eight.
HIDDEN = 64


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None: what the suite has of its own.

    Attributes:
        quick: The small version.
        datasets: Names of graphs.
        data_dir: Where their files are.
        repeats: How often each measurement is taken.
        epochs: Of a whole fit.
        other: Python of the environment that ``versions`` compares with.
        say: Told what is being measured.
    """

    quick: bool = False
    datasets: tuple[str, ...] | None = None
    data_dir: Path | None = None
    repeats: int | None = None
    epochs: int | None = None
    other: Path | None = None
    say: Callable[[str], None] = lambda what: None


@dataclass(frozen=True)
class Number:
    """One number.

    Ratios are ours over the peer's: below 1 we are faster, or smaller.

    Attributes:
        suite: Which suite measured it.
        dataset: On which graph.
        n: Nodes of that graph.
        metric: What was measured.
        value: The number.
        unit: ``ms``, ``s``, ``MB``, ``ratio``, ``exponent``, ``epochs``.
    """

    suite: str
    dataset: str
    n: int
    metric: str
    value: float
    unit: str


@dataclass
class Outcome:
    """The numbers of a suite, and what a reader should know about them."""

    suite: str
    numbers: list[Number] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self, dataset: str, n: int, metric: str, value: float, unit: str = "ratio"
    ) -> None:
        """Keep a number."""
        self.numbers.append(Number(self.suite, dataset, n, metric, value, unit))

    def cases(self) -> list[tuple[str, int]]:
        """Dataset and size of every case, in the order of the measurement."""
        return list(dict.fromkeys((r.dataset, r.n) for r in self.numbers))

    def value(self, dataset: str, n: int, metric: str) -> float | None:
        """One number, if it was measured."""
        for r in self.numbers:
            if (r.dataset, r.n, r.metric) == (dataset, n, metric):
                return r.value
        return None

    def shown(self, case: tuple[str, int], metrics: Sequence[str]) -> list[str]:
        """The numbers of a case for a table."""
        return [shown(self.value(*case, metric)) for metric in metrics]

    def panels(self, metrics: Mapping[str, str]) -> list[Panel]:
        """By case, the metric of each row, as a figure of dots has it."""
        return [
            Panel(
                case[0],
                {
                    row: Summary(self.value(*case, m), None, 1)
                    for row, m in metrics.items()
                },
            )
            for case in self.cases()
        ]

    def growth(self, panels: Mapping[str, Mapping[str, str]]) -> Figure:
        """Numbers against n: by unit of a panel, the metric of each curve."""
        content = []
        for unit, lines in panels.items():
            curves = []
            for name, metric in lines.items():
                found = [r for r in self.numbers if r.metric == metric]
                sizes, values = [r.n for r in found], [r.value for r in found]
                curves.append(Curve(name, sizes, values, [0.0] * len(found)))
            content.append((unit, [curve for curve in curves if curve.x]))
        return draw_growth(content)


@dataclass(frozen=True)
class Suite:
    """One question about speed or memory.

    Attributes:
        name: What the command line calls it.
        title: Heading of its page.
        question: What it shows, in a sentence or two.
        measure: Does the work.
        write: Adds tables and figures to the page.
        datasets: The graphs it is about; none if it draws its own.
        quick_datasets: Those of the small version.
    """

    name: str
    title: str
    question: str
    measure: Callable[[Settings], Outcome]
    write: Callable[[Outcome, Page], None]
    datasets: tuple[str, ...] = ()
    quick_datasets: tuple[str, ...] = ()

    def chosen(self, settings: Settings) -> tuple[str, ...]:
        """The graphs of this run."""
        own = self.quick_datasets if settings.quick else self.datasets
        return (settings.datasets or own) if self.datasets else ()


def run_suite(
    suite: Suite, settings: Settings, folder: Path, command: str
) -> tuple[Outcome, list[Path]]:
    """Measure a suite and write its page; the numbers and the files."""
    before = _load_average()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor|invariant)")
        # A few epochs are too few to learn every class.
        warnings.filterwarnings("ignore", message="no node is predicted")
        outcome = suite.measure(settings)
    page = Page(suite.name, suite.title, suite.question, command, settings.quick)
    for note in outcome.notes:
        page.note(note)
    page.text(
        f"One thread on a machine of {os.cpu_count()} cores, engine `{engine_name()}`; "
        f"the load average was {before:.1f} before and {_load_average():.1f} after, "
        "about 1 of it from this command."
    )
    suite.write(outcome, page)
    page.csv(
        [f.name for f in fields(Number)],
        (astuple(number) for number in outcome.numbers),
    )
    return outcome, page.save(folder)


def _load_average() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


# What is measured


def load(name: str, data_dir: Path | None = None, **options: Any) -> CheckedGraph:
    """A checked graph."""
    return check_data(load_dataset(name, 0, data_dir, **options))


def fit_ours(
    graph: CheckedGraph, epochs: int, progress: Progress = SILENT, **options: Any
) -> Fitted:
    """The paper's method, every stage for exactly ``epochs``."""
    values = {"hidden_channels": HIDDEN, "epochs": epochs, "patience": epochs}
    values |= options
    return fit(graph, METHOD, values, device="cpu", n_threads=1, progress=progress)


# Fair times on a machine that others use too


@dataclass
class Times:
    """Processor and wall-clock seconds of repeated steps."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def ms(self) -> float:
        """Median processor time of a step in milliseconds."""
        return 1000 * median(self.cpu)


class Turns(Progress):
    """Times the epochs of a training loop, with the steps of others in between.

    The contestants take turns, step by step, so that whatever else the machine does
    meets all of them alike; medians ignore the rest. Times are processor times of this
    process. With one thread that is the wall-clock time of an undisturbed machine; the
    wall clock is kept as the measure of disturbance. Before each timed step an untimed
    one puts its data into the caches, as in a training loop.

    The loop is the package's own: this is the progress display that it reports its
    epochs to. ``epochs`` is how many the loop must run.

    Args:
        stage: The stage of the training that is timed; others pass by.
        others: The contestants beside the loop.
        rounds: Timed epochs.
        warmup: Timed epochs before them that are not kept.
    """

    def __init__(
        self,
        stage: str,
        others: Mapping[str, Callable[[], object]],
        rounds: int,
        warmup: int = 2,
    ) -> None:
        self.epochs = 2 * (warmup + rounds)
        self.own = Times()
        self.times = {name: Times() for name in others}
        self._stage, self._others, self._warmup = stage, others, warmup

    @contextmanager
    def stage(self, name: str, total: int, done: int = 0) -> Iterator[Advance]:
        """Time this stage if it is the one, else do nothing."""
        epoch = 0
        start = _clocks()

        def advance(record: Mapping[str, float]) -> None:
            nonlocal epoch, start
            epoch += 1
            if name == self._stage and epoch % 2 == 0:
                kept = epoch > 2 * self._warmup
                _note(self.own, start, kept)
                for other, step in self._others.items():
                    step()
                    begun = _clocks()
                    step()
                    _note(self.times[other], begun, kept)
            start = _clocks()

        yield advance


def _clocks() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def _note(times: Times, start: tuple[float, float], kept: bool) -> None:
    cpu, wall = _clocks()
    if kept:
        times.cpu.append(cpu - start[0])
        times.wall.append(wall - start[1])


# Memory: each case in a process of its own


@dataclass(frozen=True)
class Measured:
    """What a case returned, took and held.

    Attributes:
        result: What the work returned.
        cpu: Processor seconds of the work.
        wall: Wall-clock seconds of the work.
        peak_mb: The most memory that the process held while it worked.
        baseline_mb: What it held before: Python, PyTorch, the data.
    """

    result: Any
    cpu: float
    wall: float
    peak_mb: float
    baseline_mb: float

    @property
    def grown_mb(self) -> float:
        """Memory of the work itself; at least a page, so that ratios exist."""
        return max(self.peak_mb - self.baseline_mb, 4 / 2**10)


# Loads, warms up, and returns the work that is measured; its result must fit JSON.
Prepare = Callable[..., Callable[[], Any]]


def in_child(prepare: Prepare, *args: Any, limit_mb: float | None = None) -> Measured:
    """Do ``prepare(*args)()`` in a new process with one thread."""
    return Measured(**run_isolated(measured, prepare, *args, limit_mb=limit_mb))


def alternately(
    title: str,
    prepare: Prepare,
    ways: Mapping[str, tuple[Any, ...]],
    settings: Settings,
    outcome: Outcome,
) -> dict[str, list[Measured]]:
    """Measure every way in turn; the explicit graph may fail, which is noted."""
    runs: dict[str, list[Measured]] = {way: [] for way in ways}
    repeats = settings.repeats or (1 if settings.quick else 3)
    for i in range(repeats):
        for way, args in ways.items():
            settings.say(f"{outcome.suite}: {title}, {way}, {i + 1} of {repeats}")
            try:
                runs[way].append(in_child(prepare, *args))
            except IsolatedError as error:
                if way != "dense":
                    raise
                outcome.notes.append(f"{title}: the explicit graph {error}")
    return runs


def measured(prepare: Prepare, *args: Any) -> dict[str, Any]:
    """Prepare and work in this process; the fields of ``Measured``."""
    warnings.filterwarnings("ignore", message="Sparse CSR|no node is predicted")
    with threads(1):
        work = prepare(*args)
        # Free what is not used and forget the peak: both would hide what comes next.
        gc.collect()
        with suppress(OSError, AttributeError):  # glibc only
            ctypes.CDLL(None).malloc_trim(0)
        with suppress(OSError):  # Linux only
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        baseline = psutil.Process().memory_info().rss / 2**20
        cpu, wall = _clocks()
        result = work()
        after = _clocks()
    found = Measured(result, after[0] - cpu, after[1] - wall, peak_rss_mb(), baseline)
    return asdict(found)


def free_mb() -> float:
    """Memory that a new process could have."""
    return psutil.virtual_memory().available / 2**20


def median_ms(runs: Sequence[Measured]) -> float:
    """Median processor time in milliseconds."""
    return 1000 * median(run.cpu for run in runs)


def median_mb(runs: Sequence[Measured]) -> float:
    """Median memory of the work itself."""
    return median(run.grown_mb for run in runs)


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent e of value ∝ size^e, by least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def shown(value: float | None) -> str:
    """A number for a table: three digits that count, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
