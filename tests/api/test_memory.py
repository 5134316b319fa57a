"""The memory a fit is said to take."""

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
from elugcn.methods.options import MethodConfig

N, D, C = 300, 8, 5


@pytest.fixture(scope="module")
def graph() -> Data:
    return check_data(load_dataset("sbm", n=N, n_features=D, n_classes=C)).data


def config(method: str, **options: Any) -> MethodConfig:
    return resolve_config(method, options=options)


def test_a_gcn_by_hand(graph: Data) -> None:
    part = estimate_memory(graph, config("gcn", hidden_channels=16))
    # As given, scaled, and two bytes for dropout.
    assert part.features == (4 + 4 + 2) * N * D
    assert part.graph == 36 * graph.edge_index.size(1)
    assert part.step == 4 * N * (2 * 16 + 12 * C)
    # Itself, its gradient, two moments, the best so far.
    assert part.weights == 5 * 4 * D * 16
    used = part.features + part.graph + part.weights + part.step
    assert part.total == part.program + 2 * used
    assert part.megabytes()["total"] == round(part.total / 2**20, 1)


STEPS: dict[str, tuple[str, dict[str, Any], float]] = {
    "deep": ("gcn", {"num_layers": 3}, 4 * N * (2 * 3.5 * 16 + 12 * C)),
    "residual": ("gcn", {"residual": True}, 4 * N * (6.5 * 16 + 12 * C)),
    "norm": ("gcn", {"norm": "layer", "jump": "cat"}, 4 * N * (9.5 * 16 + 12 * C)),
    "two views": ("elu-gcn", {"eta": 0.4}, 4 * N * (2 * 2 * 16 + 24 * C)),
    "draws": ("grand", {"order": 2, "draws": 3}, 4 * N * (3 * 2 * 16 + 12 * C)),
    # X as a dense matrix, a bag of neighbours per node, and the rows of a step.
    "sample": (
        "grand",
        {"sample": 50, "neighbours": 16, "draws": 2},
        4 * N * D + 12 * N * 16 + 20 * 50 * 2 * D,
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_arrays_of_a_step(case: str, graph: Data) -> None:
    method, options, expected = STEPS[case]
    found = estimate_memory(graph, config(method, hidden_channels=16, **options))
    assert found.step == expected


def test_edges_and_methods_without_a_hidden_layer(graph: Data) -> None:
    assert estimate_memory(graph, config("sgc")).step == 4 * N * 15.5 * C
    step = estimate_memory(graph, config("gat", heads=4, hidden_channels=8)).step
    entries = graph.edge_index.size(1) + N
    assert step == 4 * N * (3.5 * 32 + 12 * C) + 56 * entries * 4


def test_every_member_keeps_its_weights_and_the_largest_step_counts(
    graph: Data,
) -> None:
    one, two = {"name": "a", "hidden_channels": 32}, {"name": "b", "eta": 0.1}
    whole = estimate_memory(graph, config("auto", variants=[one, two]))
    # The GCN, the two members, and what trains the widest.
    width = config("auto").hidden_channels  # type: ignore[attr-defined]
    assert whole.weights == 4 * D * (width + 32 + width + 4 * max(32, width))
    members = [config("auto", variants=[each]) for each in (one, two)]
    steps = [estimate_memory(graph, member).step for member in members]
    assert whole.step == max(steps)
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
    implicit = estimate_memory(graph, config("elu-gcn")).graph
    stored = estimate_memory(graph, config("elu-gcn", **options)).graph
    assert stored - implicit == 64 * entries


def test_members_that_read_the_graph_in_their_own_way(graph: Data) -> None:
    scaled = {"name": "a", "feature_norm": "standard"}
    looped = {"name": "b", "self_loops": False}
    found = [
        estimate_memory(graph, config("auto", feature_norm="none", variants=variants))
        for variants in ([{"name": "c"}], [scaled], [looped], [scaled, looped])
    ]
    # As given, with two bytes for dropout; then twice what the largest reading takes.
    sizes = [4 + 2, 4 + 2 * 6, 4 + 2 * 2, 4 + 2 * 6]
    assert [part.features for part in found] == [s * N * D for s in sizes]
    edges = 36 * graph.edge_index.size(1)
    assert [part.graph for part in found] == [k * edges for k in (1, 2, 2, 2)]


def test_sparse_features_are_counted_by_entry(graph: Data) -> None:
    wide = graph.clone()
    wide.x = torch.eye(N)
    entries = estimate_memory(wide, config("gcn")).features
    assert entries == 4 * N * N + 60 * N
    wide.x = torch.eye(N).to_sparse_csr()
    row, standard = (
        estimate_memory(wide, config("gcn", feature_norm=kind)).features
        for kind in ("row", "standard")
    )
    assert (row, standard) == (60 * N, 6 * N * N)


@pytest.mark.parametrize(
    ("total", "available", "outcome"),
    [(1.0, 1.0, "fits"), (1.0, 0.9, "warned"), (0.51, 0.5, "warned"), (0.49, 0.4, "refused")],
)  # fmt: skip
def test_runs_that_exceed_the_memory_are_refused_before_they_start(
    total: float, available: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = check_data(load_dataset("karate"))
    options = {"hidden_channels": 16, "epochs": 1}
    part = estimate_memory(graph.data, config("gcn", **options))
    need = part.weights + part.step
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
    import json
    import subprocess
    import sys

    script = """
import json, torch
from elugcn.api import estimate_memory, fit, resolve_config
from elugcn.api.runs import peak_rss_mb
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data
graph = check_data(load_dataset("sbm", n=20_000, n_classes=10))
config = resolve_config("elu-gcn", options={"epochs": 2})
estimate = estimate_memory(graph.data, config).megabytes()["total"]
fit(graph, "elu-gcn", config, n_threads=1)
print(json.dumps([estimate, peak_rss_mb()]))
"""
    said = subprocess.check_output([sys.executable, "-W", "ignore", "-c", script])
    estimate, peak = json.loads(said)
    assert estimate == pytest.approx(peak, rel=0.3)
