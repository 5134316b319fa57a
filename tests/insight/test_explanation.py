"""One node explained: by hand, and against dense operators."""

import json
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.api import Fitted, fit, json_safe
from elugcn.data.validation import CheckedGraph
from elugcn.elu.low_rank_graph import LowRankGraph
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, check_node, explain
from tests.insight.conftest import by_hand, row_of_six


def six(**changes: Any) -> Data:
    data = row_of_six()
    data.node_ids = ["n0", "[bold]", "c", "d", "e", "f"]
    data.update(changes)
    return data


LPA = torch.tensor([[1.0, 0], [0.75, 0.25], [1, 0], [0.5, 0.5], [0, 0], [0, 1]])
GCN = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7],
                    [0.2, 0.8]])  # fmt: skip


def test_a_row_of_six_by_hand() -> None:
    fitted = by_hand(six(), LPA, GCN, lpa_steps=2)
    said = explain(fitted, "[bold]")
    assert (said["node"], said["index"], said["split"]) == ("[bold]", 1, "val")
    assert (said["label"], said["degree"], said["distance"]) == ("left", 2, 1)
    assert (said["utilization"], said["lpa"], said["gcn"]) == ("nelu", "left", "right")
    assert said["gcn_confidence"] == pytest.approx(0.6)
    assert said["influence"] == [
        {"class": "left", "share": 0.75}, {"class": "right", "share": 0.25},
    ]  # fmt: skip
    # In two steps, the label at the other end gets as far as node 3.
    assert said["n_labels"] == 1
    assert said["labels"] == [
        {"node": "n0", "class": "left", "share": 1.0, "distance": 1}
    ]
    # Â_10 = 1/√6 and Â_12 = 1/3; n0 is labelled, c counts as what the GCN says.
    assert said["before"]["n_neighbours"] == 2
    near, far = said["before"]["neighbours"]
    assert (near["node"], near["class"], near["labelled"]) == ("n0", "left", True)
    assert (far["node"], far["class"], far["labelled"]) == ("c", "left", False)
    assert near["share"] == pytest.approx(6**-0.5 / (6**-0.5 + 1 / 3))
    assert said["after"] is None


def test_splits_and_unknown_classes_by_hand() -> None:
    context = DiagnosisContext(by_hand(six(), LPA, GCN))
    said = [explain(context, node) for node in ("n0", "c", "e")]
    assert [one["split"] for one in said] == ["train", "test", None]
    assert [one["label"] for one in said] == ["left", "left", None]
    assert said[0]["labels"] == [
        {"node": "n0", "class": "left", "share": 1.0, "distance": 0}
    ]
    assert len(explain(context, "c", shown=1)["labels"]) == 1


def test_a_label_counts_more_than_the_gcn() -> None:
    """The class of a labelled neighbour is its label, whatever the GCN says."""
    wrong = GCN.flip(1)
    near, far = explain(by_hand(six(), LPA, wrong), "[bold]")["before"]["neighbours"]
    assert (near["class"], far["class"]) == ("left", "right")


def test_the_elu_graph_by_hand() -> None:
    """Row 1 of S* is (0, 9, −2, 3, 1, 0); itself and negative weights do not count."""
    left = torch.zeros(6, 1)
    left[1] = 1.0
    right = torch.tensor([[0.0], [9], [-2], [3], [1], [0]])
    fitted = by_hand(six(), LPA, GCN, graph=LowRankGraph(left, right))
    after = explain(fitted, "[bold]")["after"]
    assert after == {
        "n_neighbours": 2,
        "neighbours": [
            {"node": "d", "class": "right", "labelled": False, "share": 0.75},
            {"node": "e", "class": "right", "labelled": False, "share": 0.25},
        ],
        "classes": [{"class": "right", "share": 1.0}],
    }


def test_a_node_that_no_label_reaches(path_graph: Data) -> None:
    path_graph.edge_index = path_graph.edge_index[:, :2]  # 0 - 1 - 2, others alone
    said = explain(fit(path_graph, "elu-graph", {"epochs": 3}), 3)
    assert (said["utilization"], said["lpa"], said["distance"]) == (
        "unreachable", None, None,
    )  # fmt: skip
    assert said["labels"] == said["influence"] == []
    assert said["before"] == {"n_neighbours": 0, "neighbours": [], "classes": []}
    json.dumps(json_safe(said), allow_nan=False)


def test_influence_is_what_label_propagation_loses_without_the_label(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    """Dense label propagation from each label alone: the shares of Proposition 1."""
    data = fitted.data
    a = context.problem.label_adj.to_dense().double().numpy()
    train = data.train_mask.numpy()
    y = start = np.diag(train.astype(float))
    for _ in range(context.steps):
        y = context.alpha * a @ y + (1 - context.alpha) * y
        y[train] = start[train]
    for node in data.test_mask.nonzero().flatten()[6:9].tolist():
        said = explain(context, node, shown=150)
        expected = y[node] / y[node].sum()
        found = {int(r["node"]): r["share"] for r in said["labels"]}
        assert len(found) == said["n_labels"] == (expected > 0).sum() > 1
        np.testing.assert_allclose(
            list(found.values()), expected[list(found)], rtol=1e-3
        )
        for row in said["influence"]:
            inside = expected[data.y.numpy() == int(row["class"])].sum()
            assert row["share"] == pytest.approx(inside, rel=1e-3)


def test_distances_of_labels_are_networkx(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    graph = nx.Graph(fitted.data.edge_index.T.tolist())
    node = int(fitted.data.test_mask.nonzero()[40])
    hops = nx.single_source_shortest_path_length(graph, node)
    labels = explain(context, node, shown=150)["labels"]
    assert labels
    assert {r["node"]: r["distance"] for r in labels} == {
        r["node"]: hops[int(r["node"])] for r in labels
    }


def test_neighbours_are_rows_of_the_dense_graphs(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    data, graph = fitted.data, context.graph
    assert graph is not None
    node = int(data.test_mask.nonzero()[40])
    said = explain(context, node, shown=5)
    classes = torch.where(data.train_mask, data.y, context.use.gcn).numpy()
    for side, dense in (("before", context.problem.label_adj), ("after", graph)):
        row = dense.to_dense()[node].double().numpy().clip(min=0)
        row[node] = 0
        # The strongest first; ties go to the lower number.
        order = np.argsort(-row, kind="stable")[: min(5, (row > 0).sum())]
        found = said[side]
        assert [int(r["node"]) for r in found["neighbours"]] == order.tolist()
        shares = [r["share"] for r in found["neighbours"]]
        np.testing.assert_allclose(shares, row[order] / row.sum(), rtol=1e-4)
        assert found["n_neighbours"] == (row > 0).sum()
        for one in found["classes"]:
            inside = row[classes == int(one["class"])].sum() / row.sum()
            assert one["share"] == pytest.approx(inside, rel=1e-4)


def test_edges_are_followed_in_their_direction() -> None:
    """0 → 1 → 2, 3 → 2, 2 → 4: labels at 0 and 4."""
    data = Data(
        x=torch.eye(5),
        edge_index=torch.tensor([[0, 1, 3, 2], [1, 2, 2, 4]]),
        y=torch.tensor([0, 0, 0, 1, 1]),
        train_mask=torch.tensor([1, 0, 0, 0, 1], dtype=torch.bool),
        val_mask=torch.tensor([0, 1, 0, 0, 0], dtype=torch.bool),
        directed=True,
    )
    said = explain(fit(data, "elu-graph", {"epochs": 3}), 2)
    assert said["degree"] == 2
    assert {r["node"] for r in said["before"]["neighbours"]} == {"1", "3"}
    assert [(r["node"], r["distance"]) for r in said["labels"]] == [("0", 2)]


def test_a_method_without_definition_1(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn", {"epochs": 2})
    said = explain(plain, 7)
    assert said["after"] is None
    best = plain.proba[7]
    assert said["gcn"] == str(int(best.argmax()))
    assert said["gcn_confidence"] == pytest.approx(float(best.max()))


@pytest.mark.parametrize("node", ["6", "-1", "1.0", " 1", "one", "1_0", "²"])
def test_what_is_not_a_number_of_a_node(node: str) -> None:
    with pytest.raises(InputError, match="must be a number from 0 to 5"):
        check_node(row_of_six(), node)


def test_ids() -> None:
    data = Data(x=torch.zeros(3, 1), node_ids=["anna", "bert", "7"])
    assert [check_node(data, n) for n in ("anna", "7", 7)] == [0, 2, 2]
    with pytest.raises(
        InputError, match="node 'ana' is not among the 3 nodes; did you mean 'anna'"
    ):
        check_node(data, "ana")
    with pytest.raises(InputError, match=r"node '0' .*; the first is 'anna'"):
        check_node(data, "0")


def test_nothing_to_show(context: DiagnosisContext) -> None:
    with pytest.raises(InputError, match="shown must be at least 1; got 0"):
        explain(context, 1, shown=0)
