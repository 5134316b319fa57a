"""One node explained: by hand, and against dense operators."""

import json

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
from tests.insight.conftest import by_hand, row_of_six, small

approx = pytest.approx
LPA = torch.tensor([[1.0, 0], [0.75, 0.25], [1, 0], [0.5, 0.5], [0, 0], [0, 1]])
GCN = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.1, 0.9], [0.3, 0.7],
                    [0.2, 0.8]])  # fmt: skip


@pytest.fixture
def six() -> Data:
    return row_of_six(node_ids=["n0", "[bold]", "c", "d", "e", "f"])


def test_a_row_of_six_by_hand(six: Data) -> None:
    said = explain(by_hand(six, LPA, GCN, lpa_steps=2), "[bold]")
    # Â_10 = 1/√6 and Â_12 = 1/3; n0 is labelled, c counts as what the GCN says.
    share = 6**-0.5 / (6**-0.5 + 1 / 3)
    assert said.pop("before") == {
        "n_neighbours": 2,
        "neighbours": [
            {"node": node, "class": "left", "labelled": known, "share": approx(part)}
            for node, known, part in (("n0", True, share), ("c", False, 1 - share))
        ],
        "classes": [{"class": "left", "share": 1.0}],
    }
    assert said == {
        "node": "[bold]", "index": 1, "split": "val", "label": "left", "degree": 2,
        "distance": 1, "utilization": "nelu", "lpa": "left", "gcn": "right",
        "model": "GCN",
        "gcn_confidence": approx(0.6),
        "probabilities": [
            {"class": "right", "share": approx(0.6)},
            {"class": "left", "share": approx(0.4)},
        ],
        "influence": [
            {"class": "left", "share": 0.75}, {"class": "right", "share": 0.25},
        ],
        # In two steps, the label at the other end gets as far as node 3.
        "n_labels": 1,
        "labels": [{"node": "n0", "class": "left", "share": 1.0, "distance": 1}],
        "after": None,
    }  # fmt: skip


def test_splits_and_unknown_classes_by_hand(six: Data) -> None:
    context = DiagnosisContext(by_hand(six, LPA, GCN))
    said = [explain(context, node) for node in ("n0", "c", "e")]
    assert [(one["split"], one["label"]) for one in said] == [
        ("train", "left"), ("test", "left"), (None, None),
    ]  # fmt: skip
    assert said[0]["labels"] == [
        {"node": "n0", "class": "left", "share": 1.0, "distance": 0}
    ]
    assert len(explain(context, "c", shown=1)["labels"]) == 1


def test_a_label_counts_more_than_the_gcn(six: Data) -> None:
    """The class of a labelled neighbour is its label, whatever the GCN says."""
    wrong = GCN.flip(1)
    near, far = explain(by_hand(six, LPA, wrong), "[bold]")["before"]["neighbours"]
    assert (near["class"], far["class"]) == ("left", "right")


def test_the_elu_graph_by_hand(six: Data) -> None:
    """Row 1 of S* is (0, 9, −2, 3, 1, 0); itself and negative weights do not count."""
    left = torch.eye(6)[:, 1:2]
    right = torch.tensor([[0.0], [9], [-2], [3], [1], [0]])
    fitted = by_hand(six, LPA, GCN, graph=LowRankGraph(left, right))
    assert explain(fitted, "[bold]")["after"] == {
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
    found = said["utilization"], said["lpa"], said["distance"]
    assert found == ("unreachable", None, None)
    assert said["labels"] == said["influence"] == []
    assert said["before"] == {"n_neighbours": 0, "neighbours": [], "classes": []}
    json.dumps(json_safe(said), allow_nan=False)


def test_influence_is_what_label_propagation_loses_without_the_label(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    """Dense label propagation from each label alone: the shares of Proposition 1."""
    data = fitted.data
    a = context.problem.label_adj.to_dense().double().numpy()
    graph = nx.Graph(data.edge_index.T.tolist())
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
        shares = list(found.values())
        np.testing.assert_allclose(shares, expected[list(found)], rtol=1e-3)
        for row in said["influence"]:
            inside = expected[data.y.numpy() == int(row["class"])].sum()
            assert row["share"] == approx(inside, rel=1e-3)
        hops = nx.single_source_shortest_path_length(graph, node)
        assert all(r["distance"] == hops[int(r["node"])] for r in said["labels"])


def test_edges_are_followed_in_their_direction() -> None:
    """0 → 1 → 2, 3 → 2, 2 → 4: labels at 0 and 4."""
    edges = [0, 1, 3, 2], [1, 2, 2, 4]
    data = small([0, 0, 0, 1, 1], edges, (0, 4), (1,), directed=True)
    said = explain(fit(data, "elu-graph", {"epochs": 3}), 2)
    assert said["degree"] == 2
    assert {r["node"] for r in said["before"]["neighbours"]} == {"1", "3"}
    assert [(r["node"], r["distance"]) for r in said["labels"]] == [("0", 2)]


def test_a_method_without_definition_1(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn", {"epochs": 2})
    said, best = explain(plain, 7), plain.proba[7]
    assert (said["after"], said["gcn"]) == (None, str(int(best.argmax())))
    assert said["gcn_confidence"] == approx(float(best.max()))


@pytest.mark.parametrize("node", ["6", "-1", "1.0", " 1", "one", "1_0", "²"])
def test_what_is_not_a_number_of_a_node(node: str) -> None:
    with pytest.raises(InputError, match="must be a number from 0 to 5"):
        check_node(row_of_six(), node)


def test_ids() -> None:
    data = Data(x=torch.zeros(3, 1), node_ids=["anna", "bert", "7"])
    assert [check_node(data, n) for n in ("anna", "7", 7)] == [0, 2, 2]
    message = "node 'ana' is not among the 3 nodes; did you mean 'anna'"
    with pytest.raises(InputError, match=message):
        check_node(data, "ana")
    with pytest.raises(InputError, match=r"node '0' .*; the first is 'anna'"):
        check_node(data, "0")


def test_nothing_to_show(context: DiagnosisContext) -> None:
    with pytest.raises(InputError, match="shown must be at least 1; got 0"):
        explain(context, 1, shown=0)
