"""The memory a fit is said to take."""

import json
import subprocess
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from elugcn import InputError
from elugcn.api import estimate_memory, fit, resolve_config
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data

N, D, C = 300, 8, 5


@pytest.fixture(scope="module")
def graph() -> Data:
    return check_data(load_dataset("sbm", n=N, n_features=D, n_classes=C)).data


def estimate(graph: Data, method: str, **options: Any) -> dict[str, float]:
    """In bytes; the options of a test are compared with formulas written out."""
    parts = estimate_memory(graph, resolve_config(method, options=options))
    return {name: size * 2**20 for name, size in parts.items()}


def test_a_gcn_by_hand(graph: Data) -> None:
    part = estimate(graph, "gcn", hidden_channels=16)
    # As given, scaled, and two bytes for dropout.
    assert part["features"] == (4 + 4 + 2) * N * D
    assert part["graph"] == 36 * graph.edge_index.size(1)
    assert part["step"] == 4 * N * (2 * 16 + 12 * C)
    # Itself, its gradient, two moments, the best so far.
    assert part["weights"] == 5 * 4 * D * 16
    used = part["features"] + part["graph"] + part["weights"] + part["step"]
    assert part["total"] == part["program"] + 2 * used


WIDE: dict[str, Any] = {"hidden_channels": 16}
STEPS: dict[str, tuple[str, dict[str, Any], float]] = {
    "deep": ("gcn", WIDE | {"num_layers": 3}, 2 * 3.5 * 16 + 12 * C),
    "residual": ("gcn", WIDE | {"residual": True}, 6.5 * 16 + 12 * C),
    "norm": ("gcn", WIDE | {"norm": "layer", "jump": "cat"}, 9.5 * 16 + 12 * C),
    "two views": ("elu-gcn", WIDE | {"eta": 0.4}, 2 * 2 * 16 + 24 * C),
    "draws": ("grand", WIDE | {"order": 2, "draws": 3}, 3 * 2 * 16 + 12 * C),
    # X as a dense matrix, a bag of neighbours per node, and the rows of a step.
    "sample": (
        "grand",
        {"sample": 50, "neighbours": 16, "draws": 2},
        D + 3 * 16 + 5 * 50 * 2 * D / N,
    ),
    "no hidden layer": ("sgc", {}, 15.5 * C),
}


@pytest.mark.parametrize("case", STEPS)
def test_arrays_of_a_step(case: str, graph: Data) -> None:
    method, options, floats = STEPS[case]
    found = estimate(graph, method, **options)["step"]
    assert found == pytest.approx(4 * N * floats)


def test_attention_keeps_numbers_per_edge_and_head(graph: Data) -> None:
    entries = graph.edge_index.size(1) + N
    expected = 4 * N * (3.5 * 32 + 12 * C) + 56 * entries * 4
    assert estimate(graph, "gat", heads=4, hidden_channels=8)["step"] == expected


def test_every_member_keeps_its_weights_and_the_largest_step_counts(
    graph: Data,
) -> None:
    one, two = {"name": "a", "hidden_channels": 32}, {"name": "b", "eta": 0.1}
    whole = estimate(graph, "auto", variants=[one, two])
    # The GCN, the two members, and what trains the widest.
    width = resolve_config("auto").hidden_channels  # type: ignore[attr-defined]
    assert whole["weights"] == 4 * D * (width + 32 + width + 4 * max(32, width))
    steps = [estimate(graph, "auto", variants=[each])["step"] for each in (one, two)]
    assert whole["step"] == max(steps)
    assert steps[0] != steps[1]


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({"graph_mode": "topk", "topk": 20}, N * 20),
        ({"graph_mode": "topk", "topk": 5000}, N * N),
        ({"graph_mode": "paper", "keep": 0.5}, N * N // 2),
    ],
    ids=["topk", "more than there are", "paper"],
)
def test_stored_graphs_are_counted(
    options: dict[str, Any], entries: int, graph: Data
) -> None:
    implicit = estimate(graph, "elu-gcn")["graph"]
    assert estimate(graph, "elu-gcn", **options)["graph"] - implicit == 64 * entries


def test_members_that_read_the_graph_in_their_own_way(graph: Data) -> None:
    scaled = {"name": "a", "feature_norm": "standard"}
    looped = {"name": "b", "self_loops": False}
    found = [
        estimate(graph, "auto", feature_norm="none", variants=variants)
        for variants in ([{"name": "c"}], [scaled], [looped], [scaled, looped])
    ]
    # As given, with two bytes for dropout; then twice what the largest reading takes.
    sizes = [4 + 2, 4 + 2 * 6, 4 + 2 * 2, 4 + 2 * 6]
    assert [part["features"] for part in found] == [s * N * D for s in sizes]
    edges = 36 * graph.edge_index.size(1)
    assert [part["graph"] for part in found] == [k * edges for k in (1, 2, 2, 2)]


def test_sparse_features_are_counted_by_entry(graph: Data) -> None:
    wide = graph.clone()
    wide.x = torch.eye(N)
    assert estimate(wide, "gcn")["features"] == 4 * N * N + 60 * N
    wide.x = torch.eye(N).to_sparse_csr()
    assert estimate(wide, "gcn", feature_norm="row")["features"] == 60 * N
    assert estimate(wide, "gcn", feature_norm="standard")["features"] == 6 * N * N


@pytest.mark.parametrize(
    ("total", "available", "outcome"),
    [(1.0, 1.0, "fits"), (1.0, 0.9, "warned"), (0.51, 0.5, "warned"), (0.49, 0.4, "refused")],
)  # fmt: skip
def test_runs_that_exceed_the_memory_are_refused_before_they_start(
    total: float, available: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = check_data(load_dataset("karate"))
    options = {"hidden_channels": 16, "epochs": 1}
    part = estimate(graph.data, "gcn", **options)
    need = part["weights"] + part["step"]
    memory = SimpleNamespace(total=total * need, available=available * need)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    if outcome == "refused":
        with pytest.raises(InputError, match=r"this computer has .* hidden_channels"):
            fit(graph, "gcn", options)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(graph, "gcn", options)
    found = [w for w in caught if "training would need about" in str(w.message)]
    assert len(found) == (outcome == "warned")


def test_the_estimate_is_close_to_a_real_peak() -> None:
    """In a process of its own: peaks of this one are those of all tests before."""
    script = """
import json, torch
from elugcn.api import estimate_memory, fit, resolve_config
from elugcn.api.runs import peak_rss_mb
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data
graph = check_data(load_dataset("sbm", n=20_000, n_classes=10))
config = resolve_config("elu-gcn", options={"epochs": 2})
estimate = estimate_memory(graph.data, config)["total"]
fit(graph, "elu-gcn", config, n_threads=1)
print(json.dumps([estimate, peak_rss_mb()]))
"""
    said = subprocess.check_output([sys.executable, "-W", "ignore", "-c", script])
    estimate, peak = json.loads(said)
    assert estimate == pytest.approx(peak, rel=0.3)
