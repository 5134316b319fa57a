"""Tables of the diagnosis: by hand, and counted with scikit-learn and networkx."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, recall_score
from torch_geometric.data import Data

from elugcn.api import Fitted, fit, json_safe, load, save
from elugcn.data.validation import CheckedGraph
from elugcn.elu.utilization import definition_one
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, diagnose
from elugcn.insight.diagnosis import by_degree, by_distance
from tests.insight.conftest import by_hand, mask, row_of_six

# Nodes 0 to 5; node 4 hears no label, and node 3 hears the other side.
LPA = torch.tensor([[1.0, 0], [1, 0], [1, 0], [0.9, 0.1], [0, 0], [0, 1]])
GCN = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7],
                    [0.2, 0.8]])  # fmt: skip


@pytest.fixture(scope="module")
def six() -> dict[str, Any]:
    return diagnose(by_hand(row_of_six(), LPA, GCN))


def test_kinds_of_nodes_by_hand(six: dict[str, Any]) -> None:
    elu, nelu, unreachable = six["overall"].values()
    # ELU: 0, 2 and 5; 0 and 5 train, so node 2 alone counts.
    assert (elu["nodes"], elu["share"]) == (3, 0.5)
    assert (elu["gcn_accuracy"], elu["lpa_accuracy"]) == (1.0, 1.0)
    # NELU: 1, where label propagation is right, and 3, where the GCN is.
    assert (nelu["nodes"], nelu["gcn_accuracy"], nelu["lpa_accuracy"]) == (2, 0.5, 0.5)
    assert (unreachable["nodes"], unreachable["gcn_accuracy"]) == (1, None)
    assert six["notes"] == ["no training label reaches 1 node"]


def test_classes_by_hand(six: dict[str, Any]) -> None:
    left, right = six["classes"]
    assert (left["name"], left["nodes"], left["elu"], left["labels"]) == (
        "left", 2, 1.0, 1,
    )  # fmt: skip
    assert (left["pulled_to"], left["lpa_nodes"]) == (None, 4)
    # The GCN says right of 1, 3, 4 and 5.
    assert (right["nodes"], right["elu"], right["nelu"], right["unreachable"]) == (
        4, 0.25, 0.5, 0.25,
    )  # fmt: skip
    assert (right["pulled_to"], right["pulled_share"]) == ("left", 1.0)
    assert (right["accuracy"], right["nelu_accuracy"]) == (0.5, 0.5)
    assert right["unreachable_accuracy"] is None
    table = six["confusion"]
    assert (table["counts"], table["unreachable"]) == ([[2, 0], [2, 1]], [0, 1])


def test_bands_by_hand(six: dict[str, Any]) -> None:
    ends, middle = six["degrees"]
    assert (ends["name"], ends["nodes"], ends["elu"]) == ("1", 2, 1.0)
    assert (middle["name"], middle["nodes"], middle["nelu"]) == ("2–3", 4, 0.5)
    assert middle["accuracy"] == pytest.approx(2 / 3)
    assert [(r["name"], r["nodes"]) for r in six["distances"]] == [
        ("0", 2), ("1", 2), ("2", 2),
    ]  # fmt: skip


def test_bands_of_degrees_double_and_far_nodes_share_one() -> None:
    degrees = [0, 1, 2, 3, 4, 7, 8, 63, 64, 200]
    target = torch.repeat_interleave(torch.arange(10), torch.tensor(degrees))
    data = Data(
        edge_index=torch.stack([torch.zeros_like(target), target]),
        y=torch.full((10,), -1),
        train_mask=mask(10),
        num_nodes=10,
    )
    use = definition_one(torch.zeros(10).long(), torch.zeros(10).long())
    rows = by_degree(use, data)
    assert [(r["name"], r["nodes"]) for r in rows] == [
        ("0", 1), ("1", 1), ("2–3", 2), ("4–7", 2), ("8–15", 1), ("32–63", 1),
        ("64+", 2),
    ]  # fmt: skip
    assert all(r["accuracy"] is None and r["elu"] == 1.0 for r in rows)
    far = by_distance(use, data, torch.tensor([0, 1, 2, 3, 4, 5, 6, 30, -1, -1]))
    assert [(r["name"], r["nodes"]) for r in far][-3:] == [
        ("4", 1), ("5+", 3), ("none", 2),
    ]  # fmt: skip


def test_every_number_of_a_fitted_graph(fitted: Fitted) -> None:
    said = diagnose(fitted)
    assert json.loads(json.dumps(json_safe(said), allow_nan=False)) == json_safe(said)
    data, use = fitted.data, fitted.result.label_utilization
    assert use is not None
    status, gcn, lpa = use.status.numpy(), use.gcn.numpy(), use.lpa.numpy()
    y, train = data.y.numpy(), data.train_mask.numpy()
    known = (y >= 0) & ~train
    for name, value in (("elu", 1), ("nelu", 0), ("unreachable", -1)):
        row, of = said["overall"][name], known & (status == value)
        assert row["nodes"] == (status == value).sum() > 0
        assert row["gcn_accuracy"] == pytest.approx((gcn == y)[of].mean())
        assert row["lpa_accuracy"] == pytest.approx((lpa == y)[of].mean())
    for key in ("classes", "degrees", "distances"):
        assert sum(row["nodes"] for row in said[key]) == 150
        for row in said[key]:
            assert row["elu"] + row["nelu"] + row["unreachable"] == pytest.approx(1)
    # Definition 1 as a confusion matrix; its diagonal are the ELU nodes.
    counts = confusion_matrix(gcn[lpa >= 0], lpa[lpa >= 0], labels=[0, 1, 2])
    assert said["confusion"]["counts"] == counts.tolist()
    assert np.trace(counts) == said["overall"]["elu"]["nodes"]
    # ELU nodes of a predicted class: recall of label propagation, the GCN as truth.
    recall = recall_score(gcn, lpa, labels=[0, 1, 2], average=None, zero_division=0)
    assert [row["elu"] for row in said["classes"]] == pytest.approx(recall)


def test_distances_are_networkx(fitted: Fitted, context: DiagnosisContext) -> None:
    data = fitted.data
    graph = nx.DiGraph()
    graph.add_nodes_from(range(150))
    graph.add_edges_from(data.edge_index.T.tolist())
    labels = set(data.train_mask.nonzero().flatten().tolist())
    hops = nx.multi_source_dijkstra_path_length(graph, labels)
    expected = [hops.get(i, -1) for i in range(150)]
    assert context.distance.tolist() == expected
    assert -1 in expected
    reached = sum(r["nodes"] for r in diagnose(context)["distances"][:-1])
    assert reached == len(hops)


def test_label_propagation_is_the_dense_one(fitted: Fitted) -> None:
    """Of a method without Definition 1: from the graph, as elu-graph has it."""
    options = {"epochs": 1, "lpa_steps": 3, "lpa_alpha": 0.7}
    context = DiagnosisContext(fit(CheckedGraph(fitted.data, ()), "elu-graph", options))
    data = fitted.data
    a = np.eye(150)
    a[data.edge_index[1], data.edge_index[0]] = 1
    scale = a.sum(axis=1) ** -0.5
    a = scale[:, None] * a * scale
    train = data.train_mask.numpy()
    start = np.eye(3)[data.y.numpy()] * train[:, None]
    y = start.copy()
    for _ in range(3):
        y = 0.7 * a @ y + 0.3 * y
        y[train] = start[train]
    total = y.sum(axis=1, keepdims=True)
    expected = np.divide(y, total, out=np.zeros_like(y), where=total > 0)
    np.testing.assert_allclose(context.lpa, expected, atol=1e-5)
    # The context computes it again where the fit did not keep it.
    result = replace(context.fitted.result, label_utilization=None)
    again = DiagnosisContext(replace(context.fitted, result=result))
    np.testing.assert_allclose(again.lpa, expected, atol=1e-5)
    assert again.use.names() == context.use.names()


def test_labels_travel_as_the_method_lets_them(path_graph: Data) -> None:
    """Nodes that point to the same node, where labels travel between those."""
    path_graph.edge_index = torch.tensor([[0, 1, 5, 4], [2, 2, 3, 3]])
    path_graph.directed = True
    options = {"lpa_graph": "coupled", "epochs": 2, "self_loops": False}
    context = DiagnosisContext(fit(path_graph, "elu-graph", options))
    kept = context.fitted.result.label_utilization
    result = replace(context.fitted.result, label_utilization=None)
    again = DiagnosisContext(replace(context.fitted, result=result))
    assert kept is not None
    assert again.lpa.argmax(dim=1).tolist() == kept.lpa.clamp(min=0).tolist()


def test_without_a_label_to_compare_with(fitted: Fitted) -> None:
    data = fitted.data.clone()
    data.y = torch.where(data.train_mask, data.y, -1)
    said = diagnose(replace(fitted, data=data))
    assert all(r["gcn_accuracy"] is None for r in said["overall"].values())
    assert said["graphs"]["original"]["homophily"] is None
    assert said["graphs"]["elu"]["complexity"] is None
    assert not any("right" in s or "its class" in s for s in said["findings"])


def test_another_method_takes_the_part_of_the_gcn(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn", {"epochs": 20}, n_threads=1)
    said = diagnose(plain)
    use = fitted.result.label_utilization
    assert use is not None
    assert said["overall"]["elu"]["nodes"] == int(use.elu.sum())
    assert said["graphs"]["elu"] is None
    assert not any("ELU graph" in s for s in said["findings"])


def test_a_saved_model_does_not_contain_its_graph(
    fitted: Fitted, tmp_path: Path
) -> None:
    save(fitted, tmp_path / "model")
    with pytest.raises(InputError, match="does not contain its graph"):
        diagnose(load(tmp_path / "model"))
