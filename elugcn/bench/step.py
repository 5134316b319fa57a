"""Suite ``step``: one epoch with its validation, against PyG's GCN and GAT.

The floor is what no implementation of the two-view model can avoid: its sparse and
dense products, forward, backward and for validation, on arrays that are there already.
It moves with the kernels: faster products raise the overhead of the same step. So the
products as PyTorch alone computes them are timed, too: a floor that stays.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data

from elugcn.bench.base import MEMBER, Settings, Suite, load, two_views
from elugcn.bench.floors import bare_products, plain_products
from elugcn.bench.measure import Times, Turns
from elugcn.bench.peers import PyGGAT, PyGGCN, pyg_epochs
from elugcn.bench.records import Outcome, shown
from elugcn.core.sparse import CSR
from elugcn.methods.base import Run, make_problem
from elugcn.methods.elu_gcn import fit_elu_gcn
from elugcn.training.threads import threads

if TYPE_CHECKING:
    from elugcn.experiments.output import Page

DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
REPEATS, QUICK_REPEATS = 25, 3
OURS, GCN, GAT = "elu-gcn", "PyG GCN", "PyG GAT"
FLOOR, PLAIN = "its products alone", "its products, plainly"
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
        outcome.notes.append(f"{name}: {over_plain(times)}; {disturbance(times)}")
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
            PLAIN: plain_products(problem),
        }
        turns = Turns(MEMBER, others, repeats, warmup)
        fit_elu_gcn(problem, two_views(turns.epochs), Run(progress=turns))
    return {OURS: turns.own} | turns.times


def over_plain(times: dict[str, Times]) -> str:
    """The step over the floor that stays."""
    ratio, plain = times[OURS].ms / times[PLAIN].ms, times[PLAIN].ms
    return f"{ratio:.2f} of the plain products, {shown(plain)} ms"


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
        "and dense products of the two-view model alone, as PyTorch runs them, and "
        "overhead is a step over its floor. (The compiled loops have the products with "
        "W₂ and with the projection head in them, and take less time for them than "
        "PyTorch.) The notes have the same products done plainly: by PyTorch's CSR "
        "with kept transposes, and for all nodes to validate, where the floor has the "
        "kernels that training uses and what the validation nodes depend on."
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
