"""Tables of the diagnosis against counting, node by node."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.core.sparse import normalized_adjacency
from elugcn.core.utilization import definition_one
from elugcn.data.checks import CheckedGraph
from elugcn.diagnosis import diagnose, diagnose_fitted
from elugcn.diagnosis.fitted import Reading
from elugcn.diagnosis.graphs import compare_graphs
from elugcn.diagnosis.shares import by_degree, by_distance, confusion
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.storage import json_safe, load_fitted, save_fitted
from tests.diagnosis.conftest import fit

STATUS = {"elu": 1, "nelu": 0, "unreachable": -1}


def test_a_star_by_hand() -> None:
    """Node 0 in the middle of 1 to 4, node 5 alone; 1 is labelled."""
    leaves = torch.arange(1, 5)
    centre = torch.zeros(4, dtype=torch.long)
    edges = torch.stack([torch.cat([centre, leaves]), torch.cat([leaves, centre])])
    data = Data(
        edge_index=edges,
        y=torch.tensor([0, 0, 1, 1, -1, 1]),
        train_mask=torch.tensor([0, 1, 0, 0, 0, 0], dtype=torch.bool),
        num_nodes=6,
    )
    lpa, gcn = [0, 0, 0, 0, 0, -1], [0, 0, 1, 1, 0, 0]
    use = definition_one(torch.tensor(lpa), torch.tensor(gcn))
    alone, leaf, middle = by_degree(use, data)
    assert (alone["name"], alone["nodes"], alone["unreachable"]) == ("0", 1, 1.0)
    assert (alone["accuracy"], alone["unreachable_accuracy"]) == (0.0, 0.0)
    assert alone["elu_accuracy"] is None
    # Leaves 1 and 4 are ELU, but 1 trains and the class of 4 is not known.
    assert (leaf["name"], leaf["nodes"], leaf["elu"], leaf["nelu"]) == (
        "1",
        4,
        0.5,
        0.5,
    )
    assert (leaf["accuracy"], leaf["nelu_accuracy"]) == (1.0, 1.0)
    assert leaf["elu_accuracy"] is None
    assert (middle["name"], middle["nodes"], middle["elu"]) == ("4–7", 1, 1.0)
    distance = torch.tensor([1, 0, 2, 2, 2, -1])
    rows = by_distance(use, data, distance)
    assert [(r["name"], r["nodes"]) for r in rows] == [
        ("0", 1), ("1", 1), ("2", 3), ("none", 1),
    ]  # fmt: skip
    assert rows[2]["nelu"] == pytest.approx(2 / 3)
    table = confusion(use, ["a", "b"])
    assert table["counts"] == [[3, 0], [2, 0]]
    assert table["unreachable"] == [1, 0]
    first, second = diagnose(use, data, ["a", "b"])["classes"]
    assert (first["pulled_to"], first["lpa_nodes"]) == (None, 5)
    assert (second["pulled_to"], second["pulled_share"]) == ("a", 1.0)
    assert (first["labels"], second["labels"]) == (1, 0)


def test_bands_go_up_by_doubling() -> None:
    degrees = [1, 2, 3, 4, 7, 8, 63, 64, 200]
    target = torch.repeat_interleave(torch.arange(9), torch.tensor(degrees))
    data = Data(
        edge_index=torch.stack([torch.zeros_like(target), target]),
        y=torch.full((9,), -1),
        train_mask=torch.zeros(9, dtype=torch.bool),
        num_nodes=9,
    )
    use = definition_one(torch.zeros(9).long(), torch.zeros(9).long())
    rows = by_degree(use, data)
    assert [(r["name"], r["nodes"]) for r in rows] == [
        ("1", 1), ("2–3", 2), ("4–7", 2), ("8–15", 1), ("32–63", 1), ("64+", 2),
    ]  # fmt: skip
    assert all(r["accuracy"] is None and r["elu"] == 1.0 for r in rows)
    far = by_distance(use, data, torch.tensor([0, 1, 2, 3, 4, 5, 6, 30, -1]))
    assert [(r["name"], r["nodes"]) for r in far][-3:] == [
        ("4", 1), ("5+", 3), ("none", 1),
    ]  # fmt: skip


def test_every_number_of_a_fitted_graph(fitted: Fitted, reading: Reading) -> None:
    said = json_safe(diagnose_fitted(fitted))
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    data, use = fitted.data, fitted.prediction.utilization
    assert use is not None
    n, status, gcn, lpa = 150, use.status.numpy(), use.gcn.numpy(), use.lpa.numpy()
    y, train = data.y.numpy(), data.train_mask.numpy()
    judged = (y >= 0) & ~train
    assert 0 < judged.sum() < (~train).sum()
    for name, value in STATUS.items():
        row = said["overall"][name]
        assert row["nodes"] == (status == value).sum() > 0
        of = judged & (status == value)
        assert row["gcn_accuracy"] == pytest.approx((gcn == y)[of].mean())
        assert row["lpa_accuracy"] == pytest.approx((lpa == y)[of].mean())
    for key in ("classes", "degrees", "distances"):
        assert sum(row["nodes"] for row in said[key]) == n
        for row in said[key]:
            shares = [row[k] for k in STATUS]
            assert shares == [None] * 3 or sum(shares) == pytest.approx(1)
    for c, row in enumerate(said["classes"]):
        of = gcn == c
        assert row["nelu"] == pytest.approx((status == 0)[of].mean())
        assert row["nelu_accuracy"] == pytest.approx(
            (gcn == y)[of & judged & (status == 0)].mean()
        )
        assert row["labels"] == (train & (y == c)).sum()
        pulled = np.bincount(lpa[of & (status == 0)], minlength=3)
        assert row["pulled_to"] == str(pulled.argmax())
        assert row["pulled_share"] == pytest.approx(pulled.max() / pulled.sum())
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (gcn[lpa >= 0], lpa[lpa >= 0]), 1)
    assert said["confusion"]["counts"] == counts.tolist()
    assert np.trace(counts) == said["overall"]["elu"]["nodes"]
    assert diagnose_fitted(reading) == diagnose_fitted(fitted)
    assert said["findings"]
    assert said["notes"]


def dense_homophily(weights: np.ndarray, y: np.ndarray, train: np.ndarray) -> float:
    """Mean share of own-class weight, node by node, among known neighbours."""
    weights = np.maximum(weights, 0) * 1.0
    by_class = np.stack([weights[:, y == c].sum(axis=1) for c in range(3)], axis=1)
    # The graph says of a class what its labels sum to, and a negative sum is none.
    rows = [
        by_class[i, y[i]] / by_class[i].sum()
        for i in range(len(y))
        if y[i] >= 0 and not train[i] and by_class[i].sum() > 0
    ]
    return float(np.mean(rows))


def test_graphs_against_dense_ones(fitted: Fitted, reading: Reading) -> None:
    data, graph = fitted.data, reading.graph
    assert graph is not None
    said = compare_graphs(reading.problem, graph)
    y, train = data.y.numpy(), data.train_mask.numpy()
    a = np.zeros((150, 150))
    a[data.edge_index[1], data.edge_index[0]] = 1
    a /= np.maximum(a.sum(axis=1, keepdims=True), 1)
    expected = dense_homophily(a, y, train)
    assert said["original"]["homophily"] == pytest.approx(expected, rel=1e-5)
    s, t = data.edge_index.numpy()
    known = (y[s] >= 0) & (y[t] >= 0)
    edges = (y[s] == y[t])[known].mean()
    assert said["original"]["edge_homophily"] == pytest.approx(edges)
    # S is summed by class before anything is cut at zero.
    dense = graph.to_dense().double().numpy()
    sums = np.stack([dense[:, y == c].sum(axis=1) for c in range(3)], axis=1)
    one = np.zeros((150, 150))
    for c in range(3):
        one[:, np.flatnonzero(y == c)[0]] = sums[:, c]
    expected = dense_homophily(one, y, train)
    assert said["elu"]["homophily"] == pytest.approx(expected, rel=1e-4)
    # The complexity of two smoothed clouds, from its definition.
    x = reading.problem.x
    x = (x if isinstance(x, torch.Tensor) else x.to_dense()).double().numpy()
    adj = normalized_adjacency(data.edge_index, 150).to_dense().double().numpy()
    for key, operator in (("original", adj), ("elu", dense)):
        o, of = operator @ x, [(y == c) & ~train for c in range(3)]
        mean = [o[m].mean(axis=0) for m in of]
        spread = [
            np.sqrt((np.linalg.norm(o[m] - u, axis=1) ** 2).mean())
            for m, u in zip(of, mean, strict=True)
        ]
        ratio = [
            max(
                (spread[i] + spread[j]) / np.linalg.norm(mean[i] - mean[j])
                for j in range(3)
                if j != i
            )
            for i in range(3)
        ]
        assert said[key]["complexity"] == pytest.approx(np.mean(ratio), rel=1e-4)


def test_without_a_label_to_judge_by(fitted: Fitted) -> None:
    data = fitted.data.clone()
    data.y = torch.where(data.train_mask, data.y, -1)
    said = diagnose_fitted(replace(fitted, data=data))
    assert all(r["gcn_accuracy"] is None for r in said["overall"].values())
    assert said["graphs"]["original"]["homophily"] is None
    assert said["graphs"]["elu"]["complexity"] is None
    assert not any("right" in s or "own class" in s for s in said["findings"])


def test_a_plain_gcn_can_be_read_too(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn")
    said = diagnose_fitted(plain)
    use = fitted.prediction.utilization
    assert use is not None
    assert said["overall"]["elu"]["nodes"] == int(use.elu.sum())
    assert said["graphs"]["elu"] is None
    assert not any("ELU graph" in s for s in said["findings"])


def test_a_saved_model_has_no_features(fitted: Fitted, tmp_path: Path) -> None:
    save_fitted(fitted, tmp_path)
    with pytest.raises(InputError, match="keeps no features"):
        Reading.of(load_fitted(tmp_path))
