"""Suite ``step``: one epoch with its validation, against PyG's GCN and GAT.

The floor is what no implementation of the two-view model can avoid: its sparse and
dense products, forward, backward and for validation, by PyTorch's own operators on
arrays that are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.engine import CSR
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for
from elugcn.training.threads import threads
from elugcn_reproduction.benchmarks.peers import (
    PyGGAT,
    PyGGCN,
    PyGSparseGCN,
    normalized_csr,
    pyg_epochs,
    sparse_csr,
)
from elugcn_reproduction.benchmarks.suite import (
    HIDDEN,
    METHOD,
    Outcome,
    Settings,
    Suite,
    Times,
    Turns,
    fit_ours,
    load,
)
from elugcn_reproduction.figures import draw_dots
from elugcn_reproduction.page import Page

REPEATS, QUICK_REPEATS = 25, 3
_STAGE = "two-view"  # the main training of the method
# Contestants and their metrics.
OURS, FLOOR = "elu-gcn", "its products alone"
METRICS = {
    OURS: "elu_gcn_ms",
    FLOOR: "products_ms",
    "PyG GCN": "pyg_gcn_ms",
    "PyG GCN, sparse": "pyg_sparse_gcn_ms",
    "PyG GAT": "pyg_gat_ms",
}
RATIOS = {
    "ratio_gcn": "PyG GCN",
    "ratio_sparse_gcn": "PyG GCN, sparse",
    "ratio_gat": "PyG GAT",
    "overhead": FLOOR,
}


def measure(settings: Settings) -> Outcome:
    """Every dataset in turn."""
    outcome = Outcome(STEP.name)
    repeats = settings.repeats or (QUICK_REPEATS if settings.quick else REPEATS)
    # Everything is loaded first: a missing file is found out at once.
    graphs = {name: load(name, settings.data_dir) for name in STEP.chosen(settings)}
    for name, graph in graphs.items():
        settings.say(f"step: {name}")
        n = int(graph.data.num_nodes or 0)
        times = step_times(graph, repeats)
        for contestant, metric in METRICS.items():
            outcome.add(name, n, metric, times[contestant].ms, "ms")
        for metric, peer in RATIOS.items():
            outcome.add(name, n, metric, times[OURS].ms / times[peer].ms)
        outcome.notes.append(f"{name}: {disturbance(times)}")
    return outcome


def step_times(graph: CheckedGraph, repeats: int, warmup: int = 2) -> dict[str, Times]:
    """Times of an epoch of each contestant on one graph, taken alternately."""
    torch.manual_seed(0)
    data = graph.data
    with threads(1):
        problem = Problem.of(data, config_for(METHOD, {}), torch.device("cpu"))
        x, shapes = problem.x, problem.shapes
        dense = x.to_dense() if isinstance(x, CSR) else x
        sparse = sparse_csr(x) if isinstance(x, CSR) else x
        sizes = shapes.in_channels, shapes.out_channels
        edges = data.edge_index
        turns = Turns(
            _STAGE,
            {
                FLOOR: bare_products(problem),
                "PyG GCN": pyg_epochs(PyGGCN(*sizes), data, dense, edges),
                "PyG GCN, sparse": pyg_epochs(
                    PyGSparseGCN(*sizes), data, sparse, normalized_csr(data)
                ),
                "PyG GAT": pyg_epochs(PyGGAT(*sizes), data, dense, edges),
            },
            repeats,
            warmup,
        )
        fit_ours(graph, turns.epochs, turns)
    return {OURS: turns.own} | turns.times


def bare_products(problem: Problem) -> Callable[[], None]:
    """The products of an epoch by PyTorch's ``@``: CSR with kept transposes.

    Training: Z = X W₁; Â Z and S* Z; their 2n rows times W₂; Â on both views; the
    projection head on both. Backward: the two factors of each, but for X. Validation:
    the training products again, without the head.
    """
    n, h, c = problem.num_nodes, HIDDEN, problem.num_classes
    x, x_t = _plain(problem.x), _plain(problem.x.T)
    a, a_t = _plain(problem.adj), _plain(problem.adj.T)
    w1, w2, head = torch.rand(x.shape[1], h), torch.rand(h, c), torch.rand(c, c)
    left, right = torch.rand(n, c), torch.rand(n, c)
    hidden, logits = torch.rand(2 * n, h), torch.rand(2 * n, c)
    beside, wide = torch.rand(n, 2 * c), torch.rand(n, h)

    def forward() -> None:
        x @ w1
        a @ wide
        left @ (right.T @ wide)
        hidden @ w2
        a @ beside

    def run() -> None:
        forward()
        logits @ head
        logits @ head.T
        logits.T @ logits
        a_t @ beside
        logits @ w2.T
        logits.T @ hidden
        a_t @ wide
        right @ (left.T @ wide)
        x_t @ wide
        forward()

    return torch.no_grad()(run)


def _plain(a: CSR | Tensor) -> Tensor:
    return sparse_csr(a) if isinstance(a, CSR) else a


def disturbance(times: Mapping[str, Times]) -> str:
    """How much longer the wall-clock time was than the processor time."""
    cpu = sum(sum(t.cpu) for t in times.values())
    wall = sum(sum(t.wall) for t in times.values())
    return f"wall-clock time was {wall / cpu:.2f} times the processor time"


def write(outcome: Outcome, page: Page) -> None:
    """A panel per dataset, and the numbers."""
    page.text(
        "One training epoch and its validation: ELU-GCN with both views and the "
        "contrastive loss, hidden width 64; PyG's GCN (`GCNConv`, cached, dense "
        "features) and GAT (8 heads of 8) as in PyG's examples; PyG's GCN in its "
        "fastest way (sparse features, Â as a cached CSR tensor, fused Adam). Single "
        "steps alternate; medians of milliseconds of processor time. The products "
        "alone are the sparse and dense products that the two-view model cannot do "
        "without, by PyTorch's operators; overhead is a step over these. It can be "
        "below 1 because training has faster kernels, and validates only what the "
        "validation nodes depend on."
    )
    page.figure(
        draw_dots(
            outcome.panels(METRICS),
            list(METRICS),
            xlabel="milliseconds per epoch",
            log=True,
        ),
        "Milliseconds per epoch, by dataset",
    )
    metrics = [*METRICS.values(), *RATIOS]
    page.table(
        ("dataset", "nodes", "ELU-GCN ms", "products ms", "PyG GCN ms", "sparse ms",
         "PyG GAT ms", "of GCN", "of sparse GCN", "of GAT", "overhead"),
        [(d, f"{n:,}", *outcome.shown((d, n), metrics)) for d, n in outcome.cases()],
    )  # fmt: skip


STEP = Suite(
    "step",
    "One training step",
    "What does an epoch of ELU-GCN cost, beside PyG's GCN and GAT and beside the "
    "products that it cannot do without?",
    measure,
    write,
    ("cora", "citeseer", "pubmed", "photo", "computers"),
    ("digits",),
)
