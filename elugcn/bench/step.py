"""Suite ``step``: one epoch with its validation, against PyG's GCN and GAT.

The floor is what no implementation of the two-view model can avoid: its sparse and
dense products, forward, backward and for validation, on arrays that are there already.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.bench.base import HIDDEN, MEMBER, Settings, Suite, load, two_views
from elugcn.bench.measure import Times, Turns
from elugcn.bench.peers import PyGGAT, PyGGCN, pyg_epochs
from elugcn.bench.records import Outcome, shown
from elugcn.core.operators import LowRankGraph
from elugcn.core.products import multiply, narrow_product, transposed_product
from elugcn.core.sparse import CSR
from elugcn.methods.base import Problem, Run, make_problem
from elugcn.methods.elu_gcn import fit_elu_gcn
from elugcn.nn import GCN as Network
from elugcn.nn.field import Field, field_of
from elugcn.training.threads import threads

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
REPEATS, QUICK_REPEATS = 25, 3
OURS, FLOOR, GCN, GAT = "elu-gcn", "its products alone", "PyG GCN", "PyG GAT"
_METRICS = {OURS: "elu_gcn_ms", GCN: "pyg_gcn_ms", GAT: "pyg_gat_ms", FLOOR: "floor_ms"}
_RATIOS = (("ratio_gcn", GCN), ("ratio_gat", GAT), ("overhead", FLOOR))


def measure(settings: Settings) -> Outcome:
    """Every dataset in turn."""
    outcome = Outcome(SUITE.name)
    repeats = settings.repeats or (QUICK_REPEATS if settings.quick else REPEATS)
    # Everything is loaded first: a missing file is found out at once.
    graphs = {name: load(name, settings.data_dir) for name in SUITE.chosen(settings)}
    for name, data in graphs.items():
        settings.say(f"step: {name}")
        times = step_times(data, repeats)
        for contestant, metric in _METRICS.items():
            outcome.add(name, data.num_nodes, metric, times[contestant].ms, "ms")
        for metric, peer in _RATIOS:
            ratio = times[OURS].ms / times[peer].ms
            outcome.add(name, data.num_nodes, metric, ratio)
        outcome.notes.append(f"{name}: {disturbance(times)}")
    return outcome


def step_times(data: Data, repeats: int, warmup: int = 2) -> dict[str, Times]:
    """Times of an epoch of each contestant on one graph, taken alternately."""
    torch.manual_seed(0)
    with threads(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        problem = make_problem(data, two_views(1), torch.device("cpu"))
        x = problem.x.to_dense() if isinstance(problem.x, CSR) else problem.x
        sizes = problem.in_channels, problem.num_classes
        others = {
            GCN: pyg_epochs(PyGGCN(*sizes), data, x),
            GAT: pyg_epochs(PyGGAT(*sizes), data, x),
            FLOOR: bare_products(problem),
        }
        turns = Turns(MEMBER, others, repeats, warmup)
        fit_elu_gcn(problem, two_views(turns.epochs), Run(progress=turns))
    return {OURS: turns.own} | turns.times


def bare_products(problem: Problem) -> Callable[[], None]:
    """The products of one epoch of the two-view GCN, and nothing else.

    Training: Z = X W₁; Â Z and S* Z; their 2n rows times W₂; Â on both views; the
    projection head on both. Backward: the two factors of each, but for X. Validation:
    the training products again, without the head, as far as the validation nodes need
    them.
    """
    n, c, h = problem.num_nodes, problem.num_classes, HIDDEN
    x, a = problem.x, problem.adj
    a_t = a.T
    w1, w2, head = torch.rand(x.shape[1], h), torch.rand(h, c), torch.rand(c, c)
    left, right = torch.rand(n, c), torch.rand(n, c)
    hidden, logits = torch.rand(2 * n, h), torch.rand(2 * n, c)
    beside, wide = torch.rand(n, 2 * c), torch.rand(n, h)

    def forward() -> None:
        product(x, w1)
        product(a, wide)
        left @ (right.T @ wide)
        narrow_product(hidden, w2)
        product(a, beside)

    nodes = problem.val_mask.nonzero().squeeze(1)
    field = field_of(Network(x.shape[1], h, c), x, a, LowRankGraph(left, right), nodes)
    validation = forward if field is None else products_of(field, w1, w2)

    def run() -> None:
        forward()
        logits @ head
        logits @ head.T
        logits.T @ logits
        product(a_t, beside)
        logits @ w2.T
        logits.T @ hidden
        product(a_t, wide)
        right @ (left.T @ wide)
        transposed(x, wide)
        validation()

    return torch.no_grad()(run)


def products_of(field: Field, w1: Tensor, w2: Tensor) -> Callable[[], None]:
    """The forward products of both views for the nodes of a field."""
    first, second = (layer.operator for layer in field.layers)
    elu_graph, h, c = field.elu_graph, w1.size(1), w2.size(1)
    assert isinstance(second, CSR)
    assert elu_graph is not None
    read, near = torch.rand(field.x.shape[0], h), torch.rand(2 * second.n_cols, h)
    beside = torch.rand(second.n_cols, 2 * c)

    def run() -> None:
        product(field.x, w1)
        if isinstance(first, CSR):  # else X has been propagated before
            product(first, read)
        elu_graph @ (read if field.elu_x is None else field.elu_x @ w1)
        narrow_product(near, w2)
        product(second, beside)

    return run


def product(a: CSR | Tensor, z: Tensor) -> Tensor:
    """A Z by the kernel that training uses, without its records for gradients."""
    if isinstance(a, CSR):
        return multiply(a.crow, a.col, a.value, a.n_cols, z)
    return a @ z


def transposed(x: CSR | Tensor, z: Tensor) -> Tensor:
    """Xᵀ Z as the backward pass computes it."""
    if isinstance(x, CSR):
        return transposed_product(x, x.value, z)
    return x.T @ z


def disturbance(times: dict[str, Times]) -> str:
    """How much longer than the processor's the clock's time was."""
    cpu = sum(sum(t.cpu) for t in times.values())
    wall = sum(sum(t.wall) for t in times.values())
    return f"the clock ran {wall / cpu:.2f} times as long as the processor worked"


def write(outcome: Outcome, page: Page) -> None:
    """A panel a dataset, and the numbers."""
    from elugcn.bench.figures import draw_times
    from elugcn.report.dots import Dot, Panel

    rows = (OURS, FLOOR, GCN, GAT)
    panels, table = [], []
    for dataset, n in outcome.cases():
        found = {r.metric: r.value for r in outcome.records if r.dataset == dataset}
        panels.append(Panel(dataset, [Dot(r, found[_METRICS[r]]) for r in rows]))
        metrics = [*(_METRICS[r] for r in rows), *(metric for metric, _ in _RATIOS)]
        table.append((dataset, f"{n:,}", *(shown(found[metric]) for metric in metrics)))
    page.text(
        "One training epoch and its validation: ELU-GCN with both views and the "
        "contrastive loss, hidden width 64; PyG's GCN (`GCNConv`, cached, dense "
        "features) and GAT (8 heads of 8) as in PyG's examples. Single steps "
        "alternate; medians of milliseconds of processor time. The floor is the sparse "
        "and dense products of the two-view model alone, and overhead is a step over "
        "its floor."
    )
    figure = draw_times(panels, rows, "milliseconds per epoch")
    page.figure(SUITE.name, figure, "Milliseconds per epoch, by dataset")
    page.table(
        ("dataset", "nodes", "ELU-GCN ms", "floor ms", "PyG GCN ms", "PyG GAT ms",
         "of GCN", "of GAT", "overhead"),
        table,
    )  # fmt: skip


SUITE = Suite(
    "step",
    "One training step",
    "What does an epoch of ELU-GCN cost, beside PyG's GCN and GAT and beside the "
    "products that it can't do without?",
    measure,
    write,
    DATASETS,
    ("digits",),
)
