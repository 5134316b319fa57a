"""Suite ``scale``: graphs of ten thousand to a million nodes, stage by stage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from elugcn.bench.base import HIDDEN, Settings, Suite, TimedRun, load
from elugcn.bench.children import ChildFailedError, Measured, free_mb, in_child
from elugcn.bench.records import Outcome, shown, slope
from elugcn.methods.base import make_problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_gcn import fit_elu_gcn

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

CASE = "sbm"
SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (1_000, 3_000)
GRAPH: dict[str, Any] = {"n_classes": 10, "mean_degree": 10.0, "n_features": 64}
EPOCHS, QUICK_EPOCHS = 25, 2
STAGES = ("prepare", "pretrain", "utilization", "graph", "train")


def measure(settings: Settings) -> Outcome:
    """Every size once, in a process of its own whose memory is watched."""
    outcome = Outcome(SUITE.name)
    epochs = settings.epochs or (QUICK_EPOCHS if settings.quick else EPOCHS)
    done: dict[int, Measured] = {}
    for n in QUICK_SIZES if settings.quick else SIZES:
        settings.say(f"scale: {n:,} nodes, {epochs} epochs")
        try:
            done[n] = in_child(prepare, n, epochs, limit_mb=0.9 * free_mb())
        except ChildFailedError as error:
            outcome.notes.append(f"{n:,} nodes: {error}")
            break
        _note(outcome, n, epochs, done[n])
    if len(done) > 1:
        _exponents(outcome, done)
    return outcome


def _note(outcome: Outcome, n: int, epochs: int, run: Measured) -> None:
    outcome.add(CASE, n, "epochs", epochs, "epochs")
    for stage in STAGES:
        if stage in run.result:
            outcome.add(CASE, n, f"{stage}_s", run.result[stage], "s")
    outcome.add(CASE, n, "total_s", run.cpu, "s")
    outcome.add(CASE, n, "wall_s", run.wall, "s")
    outcome.add(CASE, n, "peak_rss_mb", run.peak_mb, "MB")
    outcome.add(CASE, n, "grown_mb", run.grown_mb, "MB")


def _exponents(outcome: Outcome, done: dict[int, Measured]) -> None:
    """Slopes over all sizes, noted under the largest."""
    sizes, runs = list(done), list(done.values())
    time = slope(sizes, (run.cpu for run in runs))
    memory = slope(sizes, (run.grown_mb for run in runs))
    outcome.add(CASE, max(sizes), "exponent_time", time, "exponent")
    outcome.add(CASE, max(sizes), "exponent_memory", memory, "exponent")


def prepare(n: int, epochs: int) -> Callable[[], Any]:
    """Try the code on a tiny graph; the work draws the large one and fits it."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
    _fit(300, 2)
    return lambda: _fit(n, epochs)


def _fit(n: int, epochs: int) -> dict[str, float]:
    """From nothing to predictions; seconds of each stage."""
    run = TimedRun()
    with run.clock("prepare"):
        data = load(CASE, n=n, **GRAPH)
        config = config_for_all(epochs)
        problem = make_problem(data, config, torch.device("cpu"))
    return fit_elu_gcn(problem, config, run).seconds


def config_for_all(epochs: int) -> ELUGCNConfig:
    """The default with the members that it has for the largest graph.

    What is too dear there is left out of the smaller ones too, so that all sizes have
    the same method and their times tell how it grows.
    """
    whole = ELUGCNConfig()
    _, dear = whole.affordable(int(SIZES[-1] * (GRAPH["mean_degree"] + 1)))
    return replace(
        whole,
        variants=tuple(v for v in whole.variants if v["name"] not in dear),
        hidden_channels=HIDDEN,
        epochs=epochs,
        patience=epochs,
    )


def write(outcome: Outcome, page: Page) -> None:
    """Time and memory against n, and the numbers."""
    from elugcn.bench.figures import Line, draw_growth

    panels = [
        (
            label,
            [
                Line(
                    "elu-gcn",
                    [(r.n, r.value) for r in outcome.records if r.metric == metric],
                )
            ],
        )
        for metric, label in (("total_s", "seconds"), ("grown_mb", "MB"))
    ]
    page.text(
        "Drawn graphs of mean degree 10, 64 features and 10 classes, hidden width 64. "
        "`elu-gcn` has the members that the default has for the largest of them: the "
        "plain GCN and the two views with the paper's objective (random propagation is "
        "left out above 10⁹ multiplications an epoch). Epochs are bounded, without "
        "early stopping, in every stage. Drawing and checking the graph are in "
        "(prepare). Each size has a process of its own. Seconds are processor time; "
        "the peak of memory is that of the whole process, and the exponent of memory "
        "that of the peak minus what the process held before: Python and PyTorch."
    )
    page.figure(SUITE.name, draw_growth(panels), "Time and memory of a fit, by size")
    metrics = ["epochs", *(f"{s}_s" for s in STAGES)]
    metrics += ["total_s", "wall_s", "peak_rss_mb"]
    rows = [
        (f"{n:,}", *(shown(outcome.value(c, n, metric)) for metric in metrics))
        for c, n in outcome.cases()
    ]
    page.table(("nodes", "epochs", *STAGES, "total", "by the clock", "peak MB"), rows)
    exponents = [
        (r.metric.removeprefix("exponent_"), f"{r.value:.2f}")
        for r in outcome.records
        if r.unit == "exponent"
    ]
    page.table(("exponent of", "log-log slope"), exponents)


SUITE = Suite(
    "scale",
    "Up to a million nodes",
    "How do time and memory of a whole fit grow with the graph?",
    measure,
    write,
)
