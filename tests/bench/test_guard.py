"""Ratios that a real regression would break: generous bounds, no absolute times."""

from statistics import median
from time import process_time

import pytest
import torch
from torch_geometric.data import Data

from elugcn import compiled
from elugcn.bench import graph, step
from elugcn.bench.base import Settings
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.nn import ProjectionHead
from elugcn.nn.activation import activated_product
from elugcn.nn.two_view_loss import Terms, two_view_loss


def cora_like() -> Data:
    """As many nodes, edges, classes and words as Cora, drawn."""
    data = load_dataset("sbm", n=2708, n_classes=7, mean_degree=3.9)
    generator = torch.Generator().manual_seed(0)
    data.x = (torch.rand(2708, 1433, generator=generator) < 0.0127).float()
    return check_data(data).data


def test_a_step_stays_below_pyg() -> None:
    times = step.step_times(cora_like(), repeats=7, warmup=2)
    ours = times[step.OURS].ms
    assert ours < 0.2 * times[step.GCN].ms
    assert ours < 0.2 * times[step.GAT].ms
    assert ours < (4 if compiled.available() else 6) * times[step.FLOOR].ms


def test_compiled_loops_are_worth_their_compiler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not compiled.available():
        pytest.skip("the loops were not compiled: no C compiler at installation")
    n, c, h = 2708, 7, 64
    nodes = torch.arange(n)
    terms = Terms(nodes % c, torch.rand(n), nodes[::2], nodes[1::2], 0.5, 0.5)
    head, wide = ProjectionHead(c), torch.randn(n, 2 * c)
    z, bias = torch.randn(n, h), torch.randn(h, requires_grad=True)
    weight = torch.randn(h, c)

    def one() -> None:
        two_view_loss(wide, head, terms, 1.0, 1.0)
        activated_product([z], bias, weight, 0.5, True).sum().backward()

    loops = compiled._loops
    times: dict[bool, list[float]] = {True: [], False: []}
    for i in range(60):
        for used in (True, False):
            monkeypatch.setattr(compiled, "_loops", loops if used else None)
            start = process_time()
            one()
            if i >= 10:
                times[used].append(process_time() - start)
    assert median(times[True]) < 0.8 * median(times[False])


def test_the_graph_stays_in_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "QUICK_SIZES", (2000,))
    outcome = graph.measure(Settings(quick=True, repeats=3))
    found = {r.metric: r.value for r in outcome.records}
    assert found["ratio_time"] < 0.25
    assert found["ratio_memory"] < 0.2
