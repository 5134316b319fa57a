"""The contestants against their formulas, and the suites at their smallest."""

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from elugcn_reproduction.benchmarks import growth
from elugcn_reproduction.benchmarks import suite as suites
from elugcn_reproduction.benchmarks.fit import FIT
from elugcn_reproduction.benchmarks.growth import GRAPH, SCALE, draw, prepare_graph
from elugcn_reproduction.benchmarks.peers import (
    PyGGCN,
    PyGSparseGCN,
    dense_bytes,
    dense_graph,
    keep_largest,
    normalized_csr,
    pyg_epochs,
)
from elugcn_reproduction.benchmarks.step import STEP
from elugcn_reproduction.benchmarks.suite import (
    Settings,
    Suite,
    Turns,
    load,
    measured,
    run_suite,
    slope,
)
from elugcn_reproduction.benchmarks.versions import VERSIONS
from torch import Tensor
from torch_geometric.data import Data

from elugcn.elu.closed_form import learn_elu_graph
from elugcn.errors import InputError


@pytest.fixture
def path(path_graph: Data) -> Data:
    """Six nodes in a row, both directions of every edge."""
    both = [path_graph.edge_index, path_graph.edge_index.flip(0)]
    path_graph.edge_index = torch.cat(both, dim=1)
    return path_graph


def with_loops(data: Data) -> Tensor:
    a = torch.eye(int(data.num_nodes))
    a[data.edge_index[1], data.edge_index[0]] = 1.0
    return a


@pytest.mark.parametrize("sparse", [False, True])
def test_both_gcns_are_the_dense_formula(path: Data, sparse: bool) -> None:
    torch.manual_seed(0)
    a = with_loops(path)
    d = a.sum(dim=1).rsqrt()
    a = d[:, None] * a * d
    model = (PyGSparseGCN if sparse else PyGGCN)(6, 2, 5).eval()
    first, second = model.conv1, model.conv2
    h = F.relu(a @ path.x @ first.lin.weight.T + first.bias)
    expected = a @ h @ second.lin.weight.T + second.bias
    x = path.x.to_sparse_csr() if sparse else path.x
    graph = normalized_csr(path) if sparse else path.edge_index
    torch.testing.assert_close(model(x, graph), expected)


def test_an_epoch_trains_and_validates() -> None:
    torch.manual_seed(0)
    data = load("karate").data
    x, mask = data.x.to_dense(), data.train_mask
    model = PyGGCN(x.size(1), int(data.y.max()) + 1)
    epoch = pyg_epochs(model, data, x, data.edge_index)

    def logits() -> Tensor:
        with torch.no_grad():
            return model.eval()(x, data.edge_index)

    before = F.cross_entropy(logits()[mask], data.y[mask])
    accuracies = [epoch() for _ in range(60)]
    assert F.cross_entropy(logits()[mask], data.y[mask]) < 0.8 * before
    right = (logits().argmax(dim=1) == data.y)[data.val_mask]
    assert accuracies[-1] == pytest.approx(float(right.float().mean()))


def test_the_explicit_graph_solves_equation_9() -> None:
    h, labels, lpa = (t.double() if t.is_floating_point() else t for t in draw(60))
    graph = learn_elu_graph(h, labels, lpa=lpa, k=2, beta=0.5)
    q = graph.left
    ridge = h @ h.T + 0.5 * torch.eye(60, dtype=torch.float64)
    expected = torch.linalg.solve(ridge, h @ q.T).T
    torch.testing.assert_close(dense_graph(h, q, 0.5), expected)


@pytest.mark.parametrize("keep", [0.1, 0.37, 1.0], ids=str)
def test_the_largest_are_kept(keep: float) -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, 50, 4, generator=generator)
    s = left @ right.T
    kept = keep_largest(s.clone(), keep).to_dense()
    assert int((kept != 0).sum()) == pytest.approx(keep * 2500, abs=1)
    smallest = kept[kept != 0].abs().min()
    assert torch.equal(kept, torch.where(s.abs() >= smallest, s, 0.0))
    # An entry equal to the threshold stays.
    s = torch.tensor([[1.0, -2.0], [2.0, 3.0]])
    assert keep_largest(s, 0.5).to_dense().tolist() == [[0.0, -2.0], [2.0, 3.0]]
    # At least S itself and a copy of it.
    assert 2 * 4 * 1000**2 <= dense_bytes(1000) <= 4 * 4 * 1000**2


def test_contestants_take_turns() -> None:
    order: list[str] = []
    turns = Turns("main", {"a": lambda: order.append("a"), "b": lambda: order.append("b")},
                  rounds=3, warmup=1)  # fmt: skip
    assert turns.epochs == 8
    with turns.stage("other", 5) as advance:
        advance({})
    with turns.stage("main", turns.epochs) as advance:
        for _ in range(turns.epochs):
            order.append("own")
            advance({})
    # Two steps each: the first brings its data into the caches.
    assert order == ["own", "own", "a", "a", "b", "b"] * 4
    assert [len(t.cpu) for t in (turns.own, *turns.times.values())] == [3, 3, 3]


def test_numbers() -> None:
    assert slope([10, 100, 1000], [3, 30, 300]) == pytest.approx(1.0)
    found = measured(prepare_graph, "factored", 200)
    assert found["cpu"] > 0
    assert found["peak_mb"] >= found["baseline_mb"] > 50


@pytest.mark.parametrize("suite", [STEP, FIT, GRAPH, SCALE], ids=lambda s: s.name)
def test_suites_at_their_smallest(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "GRAPH_QUICK", (100, 200))
    monkeypatch.setattr(growth, "SCALE_QUICK", (300, 400))
    if suite is not SCALE:  # one suite with real processes is enough
        monkeypatch.setattr(suites, "run_isolated", lambda do, *args, **_: do(*args))
    settings = Settings(quick=True, repeats=1, epochs=2, datasets=("karate",))
    outcome, files = run_suite(suite, settings, tmp_path, "command")
    name = suite.name
    assert [p.name for p in files] == [f"{name}.svg", f"{name}.csv", f"{name}.md"]
    assert all(n.value > 0 for n in outcome.numbers if n.unit != "exponent")
    values = [number.value for number in outcome.numbers]
    with (tmp_path / f"{name}.csv").open() as file:
        written = [float(row["value"]) for row in csv.DictReader(file)]
    assert written == pytest.approx(values, rel=1e-5)
    peers = [
        ("elu_gcn_ms", f"pyg_{peer}_ms", f"ratio_{peer}")
        for peer in ("gcn", "sparse_gcn", "gat")
    ]
    efforts = [(f"{way}_ms", "gcn_ms", f"ratio_{way}") for way in ("quick", "normal")]
    (case, *_) = outcome.cases()
    for metrics in {STEP: peers, FIT: efforts}.get(suite, ()):
        ours, theirs, ratio = (outcome.value(*case, metric) for metric in metrics)
        assert ratio == pytest.approx(ours / theirs)  # type: ignore[operator]


def test_another_version_is_asked_by_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python"
    said = json.dumps({"n_nodes": 34, "epochs": 4, "seconds": {"train": 0.008}})
    other.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/calls\necho '{said}'\n")
    other.chmod(0o755)
    settings = Settings(
        quick=True, repeats=2, epochs=4, datasets=("karate",), other=other
    )
    monkeypatch.setattr(sys, "executable", str(other))
    outcome = VERSIONS.measure(settings)
    values = {n.metric: n.value for n in outcome.numbers}
    assert values == {"this_ms": 2.0, "other_ms": 2.0, "ratio": 1.0}
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 4
    assert "train --dataset karate --method elu-gcn-paper --threads 1" in calls[0]
    assert "--set epochs=4 --set patience=4 --set hidden_channels=64" in calls[0]
    other.write_text("#!/bin/sh\necho 'elugcn: no such option' >&2\nexit 2\n")
    with pytest.raises(InputError, match="elugcn train: elugcn: no such option"):
        VERSIONS.measure(settings)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"--other .*none: No such file"):
        VERSIONS.measure(replace(settings, other=tmp_path / "none"))
