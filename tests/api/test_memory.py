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
from elugcn.recipe.portfolio import Member

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
# Floats per node that a training step keeps.
STEPS: dict[str, tuple[str, dict[str, Any], float]] = {
    "deep": ("gcn", WIDE | {"num_layers": 3}, 2 * 3.5 * 16 + 12 * C),
    "residual": ("gcn", WIDE | {"residual": True}, 6.5 * 16 + 12 * C),
    "norm": ("gcn", WIDE | {"norm": "layer", "jump": "cat"}, 9.5 * 16 + 12 * C),
    "two views": ("elu-gcn", WIDE, 2 * 2 * 16 + 24 * C),
    "draws": ("grand", WIDE | {"order": 2, "draws": 3}, 3 * 2 * 16 + 12 * C),
    # X as a dense matrix, a bag of neighbours per node, and the rows of a step.
    "sample": ("grand", {"sample": N, "neighbours": 16, "draws": 2}, 11 * D + 3 * 16),
    "no hidden layer": ("sgc", {}, 15.5 * C),
}
# A part of the estimate: bytes, and bytes per edge.
PARTS: dict[str, tuple[str, dict[str, Any], str, float, int]] = {
    case: (method, options, "step", 4 * N * floats, 0)
    for case, (method, options, floats) in STEPS.items()
} | {
    # Numbers per edge, self-loop and head.
    "attention": (
        "gat", {"heads": 4, "hidden_channels": 8},
        "step", 4 * N * (3.5 * 32 + 12 * C) + 56 * N * 4, 56 * 4,
    ),
    "topk": ("elu-gcn", {"graph_mode": "topk", "topk": 20}, "graph", 64 * N * 20, 36),
    "all": ("elu-gcn", {"graph_mode": "topk", "topk": 5000}, "graph", 64 * N * N, 36),
    "paper": ("elu-gcn", {"graph_mode": "paper", "keep": 0.5}, "graph", 32 * N * N, 36),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
def test_parts(case: str, graph: Data) -> None:
    method, options, part, fixed, per_edge = PARTS[case]
    edges = graph.edge_index.size(1)
    assert estimate(graph, method, **options)[part] == fixed + per_edge * edges


def members(*options: dict[str, Any], method: str = "elu-gcn") -> tuple[Member, ...]:
    return tuple(Member(f"{i}", method, given) for i, given in enumerate(options))


# Of the default's members: a part of the estimate, bytes, and bytes per edge.
WIDER, WIDEST = {"hidden_channels": 32}, {"hidden_channels": 48}
ALONE: dict[str, Any] = WIDE | {"feature_norm": "none"}
OF_MEMBERS: dict[str, tuple[tuple[Member, ...], str, float, int]] = {
    "largest": (members(WIDEST, WIDER), "step", 4 * N * (2 * 2 * 48 + 24 * C), 0),
    # Every member keeps its weights; the widest is trained.
    "weights": (
        members(WIDE, WIDER, WIDEST), "weights", 4 * D * (16 + 32 + 48 + 4 * 48), 0,
    ),
    # As given, with two bytes for dropout; then twice what the largest reading takes.
    "alike": (members(ALONE, ALONE), "features", 6 * N * D, 0),
    "scaled": (
        members(ALONE, ALONE | {"feature_norm": "standard"}), "features", 16 * N * D, 0,
    ),
    "loops": (members(ALONE, ALONE | {"self_loops": False}), "features", 8 * N * D, 0),
    "both": (
        members(ALONE, ALONE | {"self_loops": False}, ALONE | {"direction": "out"}),
        "graph", 0, 2 * 36,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_MEMBERS)
def test_members_of_the_default(
    case: str, graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    networks, part, fixed, per_edge = OF_MEMBERS[case]
    monkeypatch.setattr("elugcn.recipe.auto.NETWORKS", networks)
    edges = graph.edge_index.size(1)
    assert estimate(graph, "auto")[part] == fixed + per_edge * edges
    # Members in closed form hold nothing of a network.
    assert estimate(graph, "auto", effort="quick")["step"] < 4 * N * 100


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
