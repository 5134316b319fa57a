"""Ratios that a real regression would break: generous bounds, no absolute times."""

import pytest
import torch
from torch_geometric.data import Data

from elugcn.bench import graph, step
from elugcn.bench.base import Settings
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset


def cora_like() -> Data:
    """As many nodes, edges, classes and words as Cora, drawn."""
    data = load_dataset("sbm", n=2708, n_classes=7, mean_degree=3.9)
    generator = torch.Generator().manual_seed(0)
    data.x = (torch.rand(2708, 1433, generator=generator) < 0.0127).float()
    return check_data(data).data


def test_a_step_stays_below_pyg() -> None:
    times = step.step_times(cora_like(), repeats=7, warmup=2)
    ours = times[step.OURS].ms
    assert ours < 0.4 * times[step.GCN].ms
    assert ours < 0.4 * times[step.GAT].ms
    assert ours < 12 * times[step.FLOOR].ms


def test_the_graph_stays_in_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "QUICK_SIZES", (2000,))
    outcome = graph.measure(Settings(quick=True, repeats=3))
    found = {r.metric: r.value for r in outcome.records}
    assert found["ratio_time"] < 0.25
    assert found["ratio_memory"] < 0.2
