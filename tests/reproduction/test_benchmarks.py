"""The contestants against their formulas, and the suites at their smallest."""

import csv
import json
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from elugcn_reproduction.benchmarks.fit import FIT, dense_epochs, prepare
from elugcn_reproduction.benchmarks.growth import GRAPH, SCALE, draw, prepare_graph
from elugcn_reproduction.benchmarks.peers import (
    PyGGAT,
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
    Outcome,
    Settings,
    Turns,
    load,
    measured,
    run_suite,
    shown,
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


def attention(a: Tensor, z: Tensor, src: Tensor, dst: Tensor) -> Tensor:
    """One head, densely: z n×c, softmax over the neighbours of each row."""
    e = F.leaky_relu((z @ dst)[:, None] + (z @ src)[None, :], 0.2)
    return e.masked_fill(a == 0, -torch.inf).softmax(dim=1) @ z


def test_gat_is_the_dense_formula(path: Data) -> None:
    torch.manual_seed(0)
    model = PyGGAT(6, 2).eval()
    a, one, two = with_loops(path), model.conv1, model.conv2
    z = (path.x @ one.lin.weight.T).view(6, 8, 8)
    heads = [
        attention(a, z[:, i], one.att_src[0, i], one.att_dst[0, i]) for i in range(8)
    ]
    h = F.elu(torch.cat(heads, dim=1) + one.bias)
    z = h @ two.lin.weight.T
    expected = attention(a, z, two.att_src[0, 0], two.att_dst[0, 0]) + two.bias
    torch.testing.assert_close(model(path.x, path.edge_index), expected)


@pytest.mark.parametrize(
    "kind", [PyGGCN, PyGSparseGCN, PyGGAT], ids=lambda k: k.__name__
)
def test_an_epoch_trains_and_validates(kind: type) -> None:
    torch.manual_seed(0)
    data = load("karate").data
    dense = data.x.to_dense()
    sparse = kind is PyGSparseGCN
    x = dense.to_sparse_csr() if sparse else dense
    graph = normalized_csr(data) if sparse else data.edge_index
    model = kind(dense.size(1), int(data.y.max()) + 1)
    epoch = pyg_epochs(model, data, x, graph)

    def loss() -> float:
        with torch.no_grad():
            out = model.eval()(x, graph)
        return float(F.cross_entropy(out[data.train_mask], data.y[data.train_mask]))

    before = loss()
    accuracies = [epoch() for _ in range(60)]
    assert loss() < 0.8 * before
    with torch.no_grad():
        right = model(x, graph).argmax(dim=1) == data.y
    assert accuracies[-1] == pytest.approx(float(right[data.val_mask].float().mean()))


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
    torch.testing.assert_close(kept[kept != 0], s[kept != 0], rtol=0, atol=0)
    if keep < 1:
        assert s[kept == 0].abs().max() <= s[kept != 0].abs().min()
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
    assert [shown(v) for v in (None, 0.01234, 12.34, 1234.5)] == [
        "–", "0.0123", "12.3", "1,234",
    ]  # fmt: skip
    # 10 % of n² entries times epochs stay below a budget.
    assert (dense_epochs(1000, 200), dense_epochs(20_000, 200)) == (200, 4)
    outcome = Outcome("x")
    outcome.add("cora", 3, "a", 1.0)
    assert (outcome.value("cora", 3, "a"), outcome.value("cora", 3, "b")) == (1.0, None)
    found = measured(prepare_graph, "factored", 200)
    assert found["cpu"] > 0
    assert found["peak_mb"] >= found["baseline_mb"] > 50


def test_the_work_of_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("ours", "gcn", "dense"):
        seconds = prepare(way, "karate", None, 2)()
        assert bool(seconds) == (way != "gcn")
    with pytest.raises(KeyError):
        prepare("other", "karate", None, 2)


@pytest.mark.parametrize("suite", [STEP, FIT, GRAPH, SCALE], ids=lambda s: s.name)
def test_suites_at_their_smallest(
    suite: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elugcn_reproduction.benchmarks import growth

    monkeypatch.setattr(growth, "GRAPH_QUICK", (100, 200))
    monkeypatch.setattr(growth, "SCALE_QUICK", (300, 400))
    settings = Settings(quick=True, repeats=1, epochs=2, datasets=("karate",))
    outcome, files = run_suite(suite, settings, tmp_path, "command")  # type: ignore[arg-type]
    name = suite.name  # type: ignore[attr-defined]
    assert [p.name for p in files] == [f"{name}.svg", f"{name}.csv", f"{name}.md"]
    assert all(
        number.value > 0 for number in outcome.numbers if number.unit != "exponent"
    )
    with (tmp_path / f"{name}.csv").open() as file:
        assert [float(r["value"]) for r in csv.DictReader(file)] == pytest.approx(
            [number.value for number in outcome.numbers], rel=1e-5
        )
    for number in outcome.numbers:
        if number.metric in ("ratio_sparse_gcn", "ratio_gcn"):
            peer = number.metric.removeprefix("ratio_")
            case = number.dataset, number.n
            ours = outcome.value(*case, "elu_gcn_ms")
            assert number.value == pytest.approx(
                ours / outcome.value(*case, f"pyg_{peer}_ms")
            )  # type: ignore[operator]
    if suite is STEP:
        assert {"ratio_gcn", "ratio_sparse_gcn", "ratio_gat", "overhead"} <= {
            number.metric for number in outcome.numbers
        }


def test_another_version_is_asked_by_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python"
    said = {"n_nodes": 34, "epochs": 4, "seconds": {"train": 0.008}}
    other.write_text(
        f"#!/bin/sh\necho \"$@\" >> {tmp_path}/calls\necho '{json.dumps(said)}'\n"
    )
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
    missing = Settings(
        quick=True, repeats=1, datasets=("karate",), other=tmp_path / "none"
    )
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"--other .*none: No such file"):
        VERSIONS.measure(missing)
