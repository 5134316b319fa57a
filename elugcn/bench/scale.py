"""Suite ``scale``: graphs of ten thousand to a million nodes, stage by stage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from elugcn.bench.base import HIDDEN, Settings, Suite, TimedRun, load, two_views
from elugcn.bench.children import ChildFailedError, Measured, free_mb, in_child
from elugcn.bench.records import Outcome, shown, slope
from elugcn.methods.base import make_problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_gcn import fit_elu_gcn

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (1_000, 3_000)
GRAPH: dict[str, Any] = {"n_classes": 10, "mean_degree": 10.0, "n_features": 64}
# An epoch of the whole default costs about five of the two-view member's.
EPOCHS = {"sbm": 5, "sbm:two-views": 25}
QUICK_EPOCHS = 2
STAGES = ("prepare", "pretrain", "utilization", "graph", "train")


def measure(settings: Settings) -> Outcome:
    """Every size once, in a process of its own whose memory is watched."""
    outcome = Outcome(SUITE.name)
    sizes = QUICK_SIZES if settings.quick else SIZES
    for case, own in EPOCHS.items():
        epochs = settings.epochs or (QUICK_EPOCHS if settings.quick else own)
        done: dict[int, Measured] = {}
        for n in sizes:
            settings.say(f"scale: {case}, {n:,} nodes, {epochs} epochs")
            try:
                done[n] = in_child(prepare, case, n, epochs, limit_mb=0.9 * free_mb())
            except ChildFailedError as error:
                outcome.notes.append(f"{case}, {n:,} nodes: {error}")
                break
            _note(outcome, case, n, epochs, done[n])
        if len(done) > 1:
            _exponents(outcome, case, done)
    return outcome


def _note(outcome: Outcome, case: str, n: int, epochs: int, run: Measured) -> None:
    outcome.add(case, n, "epochs", epochs, "epochs")
    for stage in STAGES:
        if stage in run.result:
            outcome.add(case, n, f"{stage}_s", run.result[stage], "s")
    outcome.add(case, n, "total_s", run.cpu, "s")
    outcome.add(case, n, "wall_s", run.wall, "s")
    outcome.add(case, n, "peak_rss_mb", run.peak_mb, "MB")
    outcome.add(case, n, "grown_mb", run.grown_mb, "MB")


def _exponents(outcome: Outcome, case: str, done: dict[int, Measured]) -> None:
    """Slopes over all sizes, noted under the largest."""
    sizes, runs = list(done), list(done.values())
    time = slope(sizes, (run.cpu for run in runs))
    memory = slope(sizes, (run.grown_mb for run in runs))
    outcome.add(case, max(sizes), "exponent_time", time, "exponent")
    outcome.add(case, max(sizes), "exponent_memory", memory, "exponent")


def prepare(case: str, n: int, epochs: int) -> Callable[[], Any]:
    """Try the code on a tiny graph; the work draws the large one and fits it."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
    _fit(case, 300, 2)
    return lambda: _fit(case, n, epochs)


def _fit(case: str, n: int, epochs: int) -> dict[str, float]:
    """From nothing to predictions; seconds of each stage."""
    run = TimedRun()
    with run.clock("prepare"):
        data = load("sbm", n=n, **GRAPH)
        config = _config(case, epochs)
        problem = make_problem(data, config, torch.device("cpu"))
    return fit_elu_gcn(problem, config, run).seconds


def _config(case: str, epochs: int) -> ELUGCNConfig:
    if case == "sbm":
        return replace(
            ELUGCNConfig(), hidden_channels=HIDDEN, epochs=epochs, patience=epochs
        )
    return two_views(epochs)


def write(outcome: Outcome, page: Page) -> None:
    """Time and memory against n, and the numbers."""
    from elugcn.bench.figures import Line, draw_growth

    titles = {"sbm": "elu-gcn", "sbm:two-views": "two views alone"}
    panels = [
        (
            label,
            [
                Line(
                    title,
                    [
                        (r.n, r.value)
                        for r in outcome.records
                        if r.dataset == case and r.metric == metric
                    ],
                )
                for case, title in titles.items()
            ],
        )
        for metric, label in (("total_s", "seconds"), ("grown_mb", "MB"))
    ]
    page.text(
        "Drawn graphs of mean degree 10, 64 features and 10 classes, hidden width 64; "
        "`elu-gcn` is the method as it is by default, every member of it, and two "
        "views the member with the paper's objective alone. Epochs are bounded, "
        "without early stopping, in every stage. Drawing and checking the graph are "
        "in (prepare). Each size has a process of its own. Seconds are processor "
        "time; the peak of memory is that of the "
        "whole process, and the exponent of memory that of the peak minus what the "
        "process held before: Python and PyTorch."
    )
    page.figure(SUITE.name, draw_growth(panels), "Time and memory of a fit, by size")
    metrics = ["epochs", *(f"{s}_s" for s in STAGES)]
    metrics += ["total_s", "wall_s", "peak_rss_mb"]
    rows = [
        (
            titles[c],
            f"{n:,}",
            *(shown(outcome.value(c, n, metric)) for metric in metrics),
        )
        for c, n in outcome.cases()
    ]
    page.table(
        ("", "nodes", "epochs", *STAGES, "total", "by the clock", "peak MB"), rows
    )
    exponents = [
        (titles[r.dataset], r.metric.removeprefix("exponent_"), f"{r.value:.2f}")
        for r in outcome.records
        if r.unit == "exponent"
    ]
    page.table(("exponent", "of", "log-log slope"), exponents)


SUITE = Suite(
    "scale",
    "Up to a million nodes",
    "How do time and memory of a whole fit grow with the graph?",
    measure,
    write,
)
