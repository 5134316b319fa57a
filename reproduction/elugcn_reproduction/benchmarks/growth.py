"""Suites ``graph`` and ``scale``: how time and memory grow with the number of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.elu.closed_form import learn_elu_graph
from elugcn.evaluation.isolated import IsolatedError
from elugcn_reproduction.benchmarks.peers import (
    dense_bytes,
    dense_graph,
    keep_largest,
)
from elugcn_reproduction.benchmarks.suite import (
    Measured,
    Outcome,
    Settings,
    Suite,
    alternately,
    fit_ours,
    free_mb,
    in_child,
    load,
    median_mb,
    median_ms,
    slope,
)
from elugcn_reproduction.page import Page

# Of learning the graph
GRAPH_SIZES, GRAPH_QUICK = (1_000, 2_000, 5_000, 10_000, 20_000), (500, 1_000)
CLASSES, K, BETA = 10, 2, 1.0
# Of whole fits
SCALE_SIZES, SCALE_QUICK = (10_000, 100_000, 1_000_000), (1_000, 3_000)
SBM: dict[str, Any] = {"n_classes": 10, "mean_degree": 10.0, "n_features": 64}
EPOCHS, QUICK_EPOCHS = 25, 2
STAGES = ("pretrain", "utilization", "graph", "train")


def measure_graph(settings: Settings) -> Outcome:
    """Every size in turn, each graph in a process of its own, alternately."""
    outcome = Outcome(GRAPH.name)
    for n in GRAPH_QUICK if settings.quick else GRAPH_SIZES:
        ways = {way: (way, n) for way in ("factored", "dense")}
        if dense_bytes(n) > 0.8 * free_mb() * 2**20:
            del ways["dense"]
            outcome.notes.append(f"{n:,} nodes are too many for n² entries")
        runs = alternately(f"{n:,} nodes", prepare_graph, ways, settings, outcome)
        for way, found in runs.items():
            if found:
                outcome.add("synthetic", n, f"{way}_ms", median_ms(found), "ms")
                outcome.add("synthetic", n, f"{way}_mb", median_mb(found), "MB")
        if (ours := runs["factored"]) and (dense := runs.get("dense")):
            time, memory = median_ms(dense), median_mb(dense)
            outcome.add("synthetic", n, "ratio_time", median_ms(ours) / time)
            outcome.add("synthetic", n, "ratio_memory", median_mb(ours) / memory)
    return outcome


def prepare_graph(way: str, n: int) -> Callable[[], Any]:
    """Draw H and labels, try the code on a few nodes, return the work."""
    learn = {"factored": factored, "dense": dense}[way]
    learn(*draw(100))
    drawn = draw(n)

    def work() -> None:
        learn(*drawn)

    return work


def draw(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """H, labels of a fifth of the nodes, and a label distribution of all."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (n,), generator=generator)
    truth = 2.0 * F.one_hot(y, CLASSES).float()
    h, lpa = (
        F.softmax(truth + torch.randn(n, CLASSES, generator=generator), dim=1)
        for _ in range(2)
    )
    known = torch.rand(n, generator=generator) < 0.2
    return h, torch.where(known, y, -1), lpa


def factored(h: Tensor, labels: Tensor, lpa: Tensor) -> Any:
    """The graph as this package learns it."""
    return learn_elu_graph(h, labels, lpa=lpa, k=K, beta=BETA)


def dense(h: Tensor, labels: Tensor, lpa: Tensor) -> Any:
    """The same Q, then eq. 11 with all n² entries and the largest 10 % of them."""
    # The left factor of the unscaled graph is Q.
    return keep_largest(dense_graph(h, factored(h, labels, lpa).left, BETA))


def write_graph(outcome: Outcome, page: Page) -> None:
    """Time and memory against n, and the numbers."""
    page.text(
        f"The graph of {CLASSES} classes from drawn H and labels, {K} updates of Q. In "
        "factors it is two n×c matrices. The explicit way computes the same Q, then "
        "eq. 11 as it stands, n×n, and keeps the largest 10 % of the entries. Each "
        "measurement has a process of its own and they alternate; medians of "
        "milliseconds of processor time. Memory is the peak minus what the process "
        "held before: Python, PyTorch and H. Ratios are factored over explicit."
    )
    names = {"elu-gcn": "factored", "explicit graph": "dense"}
    page.figure(
        outcome.growth(
            {
                "milliseconds": {name: f"{way}_ms" for name, way in names.items()},
                "MB": {name: f"{way}_mb" for name, way in names.items()},
            }
        ),
        "Time and memory of learning the graph, by size",
    )
    metrics = ("factored_ms", "dense_ms", "ratio_time", "factored_mb", "dense_mb",
               "ratio_memory")  # fmt: skip
    page.table(
        ("nodes", "factored ms", "explicit ms", "time", "factored MB", "explicit MB",
         "memory"),
        [(f"{n:,}", *outcome.shown((d, n), metrics)) for d, n in outcome.cases()],
    )  # fmt: skip


def measure_scale(settings: Settings) -> Outcome:
    """Every size once, in a process of its own whose memory is watched."""
    outcome = Outcome(SCALE.name)
    epochs = settings.epochs or (QUICK_EPOCHS if settings.quick else EPOCHS)
    done: dict[int, Measured] = {}
    for n in SCALE_QUICK if settings.quick else SCALE_SIZES:
        settings.say(f"scale: {n:,} nodes, {epochs} epochs")
        try:
            run = in_child(prepare_scale, n, epochs, limit_mb=0.9 * free_mb())
        except IsolatedError as error:
            outcome.notes.append(f"{n:,} nodes: {error}")
            break
        done[n] = run
        outcome.add("sbm", n, "epochs", epochs, "epochs")
        for stage in STAGES:
            outcome.add("sbm", n, f"{stage}_s", run.result.get(stage, 0.0), "s")
        outcome.add("sbm", n, "total_s", run.cpu, "s")
        outcome.add("sbm", n, "wall_s", run.wall, "s")
        outcome.add("sbm", n, "peak_rss_mb", run.peak_mb, "MB")
        outcome.add("sbm", n, "grown_mb", run.grown_mb, "MB")
    if len(done) > 1:
        # Slopes over all sizes, noted under the largest.
        sizes, runs = list(done), list(done.values())
        time = slope(sizes, [run.cpu for run in runs])
        memory = slope(sizes, [run.grown_mb for run in runs])
        outcome.add("sbm", max(sizes), "exponent_time", time, "exponent")
        outcome.add("sbm", max(sizes), "exponent_memory", memory, "exponent")
    return outcome


def prepare_scale(n: int, epochs: int) -> Callable[[], Any]:
    """Try the code on a tiny graph; the work draws the large one and fits it."""
    fit_ours(load("sbm", n=300, **SBM), 2)
    return lambda: fit_ours(load("sbm", n=n, **SBM), epochs).result.seconds


def write_scale(outcome: Outcome, page: Page) -> None:
    """Time and memory against n, and the numbers."""
    page.text(
        "Drawn graphs of mean degree 10, 64 features and 10 classes, hidden width 64. "
        "Every stage of `elu-gcn` has the same number of epochs, without early "
        "stopping. The total includes drawing and checking the graph; stages are "
        "wall-clock seconds, the total is processor time. Each size has a process of "
        "its own. The peak of memory is that of the whole process, and the exponent of "
        "memory that of the peak minus what the process held before: Python and "
        "PyTorch."
    )
    page.figure(
        outcome.growth(
            {"seconds": {"elu-gcn": "total_s"}, "MB": {"elu-gcn": "grown_mb"}}
        ),
        "Time and memory of a fit, by size",
    )
    metrics = (
        "epochs",
        *(f"{s}_s" for s in STAGES),
        "total_s",
        "wall_s",
        "peak_rss_mb",
    )
    page.table(
        ("nodes", "epochs", *STAGES, "total", "wall clock", "peak MB"),
        [(f"{n:,}", *outcome.shown((d, n), metrics)) for d, n in outcome.cases()],
    )
    page.table(
        ("exponent of", "log-log slope"),
        [
            (r.metric.removeprefix("exponent_"), f"{r.value:.2f}")
            for r in outcome.numbers
            if r.unit == "exponent"
        ],
    )


GRAPH = Suite(
    "graph",
    "Learning the graph",
    "What does the closed form save: the ELU graph in two factors, or as n² entries "
    "of which a tenth is kept?",
    measure_graph,
    write_graph,
)
SCALE = Suite(
    "scale",
    "Up to a million nodes",
    "How do time and memory of a whole fit grow with the graph?",
    measure_scale,
    write_scale,
)
