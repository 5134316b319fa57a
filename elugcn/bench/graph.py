"""Suite ``graph``: learning the ELU graph, in factors against n² entries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.bench.base import Settings, Suite
from elugcn.bench.children import ChildFailedError, Measured, free_mb, in_child
from elugcn.bench.peers import dense_bytes, dense_graph, keep_largest
from elugcn.bench.records import Outcome, shown
from elugcn.core.elu_graph import learn_elu_graph, solve_influence

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

SIZES, QUICK_SIZES = (1_000, 2_000, 5_000, 10_000, 20_000), (500, 1_000)
REPEATS, QUICK_REPEATS = 3, 1
CLASSES = 10
K, BETA = 2, 1.0
DATASET = "synthetic"
_METRICS = {
    "factored": ("factored_ms", "factored_mb"),
    "dense": ("dense_ms", "dense_mb"),
}


def measure(settings: Settings) -> Outcome:
    """Every size in turn, each graph in a process of its own, alternately."""
    outcome = Outcome(SUITE.name)
    repeats = settings.repeats or (QUICK_REPEATS if settings.quick else REPEATS)
    for n in QUICK_SIZES if settings.quick else SIZES:
        ways = ["factored", "dense"]
        if dense_bytes(n) > 0.8 * free_mb() * 2**20:
            ways = ways[:1]
            outcome.notes.append(f"no dense way for {n:,} nodes: it does not fit")
        runs: dict[str, list[Measured]] = {way: [] for way in ways}
        for i in range(repeats):
            for way in ways:
                settings.say(f"graph: {n:,} nodes, {way}, {i + 1} of {repeats}")
                try:
                    runs[way].append(in_child(prepare, way, n))
                except ChildFailedError as error:
                    if way != "dense":
                        raise
                    outcome.notes.append(f"{n:,} nodes: the dense way {error}")
        for way, (time, memory) in _METRICS.items():
            if runs.get(way):
                ms = 1000 * median(run.cpu for run in runs[way])
                outcome.add(DATASET, n, time, ms, "ms")
                mb = median(run.grown_mb for run in runs[way])
                outcome.add(DATASET, n, memory, mb, "MB")
        for metric, i in (("ratio_time", 0), ("ratio_memory", 1)):
            ours, theirs = (
                outcome.value(DATASET, n, names[i]) for names in _METRICS.values()
            )
            if ours is not None and theirs is not None:
                outcome.add(DATASET, n, metric, ours / theirs)
    return outcome


def prepare(way: str, n: int) -> Callable[[], Any]:
    """Draw H and labels, try the code on a few nodes, return the work."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
    learn = _WAYS[way]
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


def factored(h: Tensor, labels: Tensor, lpa: Tensor) -> object:
    """The graph as this package learns it."""
    return learn_elu_graph(h, labels, lpa=lpa, k=K, beta=BETA)


def dense(h: Tensor, labels: Tensor, lpa: Tensor) -> object:
    """The same Q, then eq. 11 with all n² entries and the largest 10 % of them."""
    _, q = solve_influence(h, labels, lpa, K, BETA, "paper", "lpa", 0.0, "l2")
    return keep_largest(dense_graph(h, q, BETA))


_WAYS: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "factored": factored,
    "dense": dense,
}


def write(outcome: Outcome, page: Page) -> None:
    """Time and memory against n, and the numbers."""
    from elugcn.bench.figures import Line, draw_growth

    lines = []
    for i in range(2):
        lines.append(
            [
                Line("elu-gcn" if way == "factored" else "the dense way",
                     [(r.n, r.value) for r in outcome.records if r.metric == names[i]])
                for way, names in _METRICS.items()
            ]
        )  # fmt: skip
    page.text(
        f"The graph of {CLASSES} classes from drawn H and labels, {K} updates of Q. In "
        "factors it is two n×c matrices. The dense way computes the same Q, then eq. "
        "11 as it stands, n×n, and keeps the largest 10 % of the entries. Each "
        "measurement has a process of its own and they alternate; medians of "
        "milliseconds of processor time. Memory is the peak minus what the process "
        "held before: Python, PyTorch and H. Ratios are factored over dense."
    )
    figure = draw_growth([("milliseconds", lines[0]), ("MB", lines[1])])
    page.figure(SUITE.name, figure, "Time and memory of learning the graph, by size")
    header = ("nodes", "factored ms", "dense ms", "time", "factored MB", "dense MB",
              "memory")  # fmt: skip
    metrics = ("factored_ms", "dense_ms", "ratio_time", "factored_mb", "dense_mb",
               "ratio_memory")  # fmt: skip
    rows = [
        (f"{n:,}", *(shown(outcome.value(dataset, n, metric)) for metric in metrics))
        for dataset, n in outcome.cases()
    ]
    page.table(header, rows)


SUITE = Suite(
    "graph",
    "Learning the graph",
    "What does the closed form save: the ELU graph in two factors, or as n² entries "
    "of which a tenth is kept?",
    measure,
    write,
)
