"""One node explained: by hand, and against dense operators."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.core.propagation import propagate_labels
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.diagnosis.fitted import Reading
from elugcn.errors import InputError
from elugcn.explain import check_node, explain
from elugcn.fitting import Fitted
from elugcn.storage import json_safe
from tests.diagnosis.conftest import fit


@pytest.fixture(scope="module")
def fitted(checked: Callable[..., CheckedGraph]) -> Fitted:
    return fit(checked())


@pytest.fixture(scope="module")
def reading(fitted: Fitted) -> Reading:
    return Reading.of(fitted)


def test_a_row_of_six_by_hand(path_graph: Data) -> None:
    path_graph.node_ids = ["n0", "[bold]", "c", "d", "e", "f"]
    path_graph.class_names = ["left", "right"]
    fitted = fit(check_data(path_graph), lpa_steps=2, epochs=3)
    said = explain(fitted, "[bold]")
    assert (said["node"], said["index"], said["split"]) == ("[bold]", 1, "val")
    assert (said["label"], said["degree"], said["distance"]) == ("left", 2, 1)
    # Two steps: the label at the other end is four edges away.
    assert (said["lpa"], said["n_labels"]) == ("left", 1)
    assert said["influence"] == [{"class": "left", "share": 1.0}]
    assert said["labels"] == [
        {"node": "n0", "class": "left", "share": 1.0, "distance": 1}
    ]
    # Â_10 = 1/√6 and Â_12 = 1/3; n0 is labelled.
    near, far = said["before"]["neighbours"]
    assert (near["node"], near["labelled"]) == ("n0", True)
    assert (far["node"], far["labelled"]) == ("c", False)
    assert near["share"] == pytest.approx(6**-0.5 / (6**-0.5 + 1 / 3))
    middle = explain(fitted, "c")
    assert (middle["split"], middle["distance"]) == (None, 2)
    assert explain(fitted, "n0")["labels"][0]["node"] == "n0"


def test_a_node_that_no_label_reaches(path_graph: Data) -> None:
    path_graph.edge_index = path_graph.edge_index[:, :2]  # 0 - 1 - 2, others alone
    fitted = fit(check_data(path_graph), epochs=3)
    said = explain(fitted, 3)
    assert (said["utilization"], said["lpa"], said["distance"]) == (
        "unreachable", None, None,
    )  # fmt: skip
    assert said["labels"] == said["influence"] == []
    assert said["before"] == {"n_neighbours": 0, "neighbours": [], "classes": []}
    json.dumps(json_safe(said), allow_nan=False)


def test_shares_are_those_of_label_propagation(
    fitted: Fitted, reading: Reading
) -> None:
    data = fitted.data
    nodes = data.test_mask.nonzero().flatten()[:4].tolist()
    for node in nodes:
        said = explain(reading, node, shown=150)
        assert len(said["labels"]) == said["n_labels"] > 1
        assert sum(row["share"] for row in said["labels"]) == pytest.approx(1, rel=1e-4)
        by_class: dict[str, float] = {}
        for row in said["labels"]:
            assert bool(data.train_mask[int(row["node"])])
            by_class[row["class"]] = by_class.get(row["class"], 0.0) + row["share"]
        for row in said["influence"]:
            assert by_class[row["class"]] == pytest.approx(row["share"], rel=1e-3)
        use = fitted.prediction.utilization
        assert use is not None
        assert said["utilization"] == use.names()[node]
        assert said["lpa"] == max(by_class, key=by_class.__getitem__)
        best = fitted.prediction.proba[node]
        assert said["gcn"] == str(int(best.argmax()))
        assert said["gcn_confidence"] == pytest.approx(float(best.max()))


def test_the_share_of_a_label_is_what_is_lost_without_it(reading: Reading) -> None:
    """T is linear: the influence of a label by its class alone, propagated."""
    problem, node = reading.problem, 140
    said = explain(reading, node, shown=150)
    label = int(said["labels"][0]["node"])
    marked = torch.where(problem.train_mask, 0, -1)
    marked[label] = 1
    shares = propagate_labels(reading.operator, marked, 2, reading.steps, reading.alpha)
    assert said["labels"][0]["share"] == pytest.approx(float(shares[node, 1]), rel=1e-3)


def test_neighbours_before_and_after(fitted: Fitted, reading: Reading) -> None:
    data, graph = fitted.data, reading.graph
    assert graph is not None
    node = int(data.test_mask.nonzero().flatten()[3])
    said = explain(reading, node, shown=5)
    row = graph.to_dense()[node].double().numpy().clip(min=0)
    row[node] = 0
    order = np.argsort(-row, kind="stable")[:5]
    assert [int(r["node"]) for r in said["after"]["neighbours"]] == order.tolist()
    shares = [r["share"] for r in said["after"]["neighbours"]]
    np.testing.assert_allclose(shares, row[order] / row.sum(), rtol=1e-4)
    assert said["after"]["n_neighbours"] == (row > 0).sum()
    classes = torch.where(data.train_mask, data.y, reading.use.gcn).numpy()
    for one in said["after"]["classes"]:
        inside = row[classes == int(one["class"])].sum() / row.sum()
        assert one["share"] == pytest.approx(inside, rel=1e-4)
    around = data.edge_index[0][data.edge_index[1] == node]
    assert said["degree"] == said["before"]["n_neighbours"] == len(around)
    assert {int(r["node"]) for r in said["before"]["neighbours"]} <= set(
        around.tolist()
    )
    assert sum(r["share"] for r in said["before"]["classes"]) == pytest.approx(1)


def test_a_method_without_a_graph(fitted: Fitted) -> None:
    plain = fit(CheckedGraph(fitted.data, ()), "gcn")
    assert explain(plain, 7)["after"] is None


@pytest.mark.parametrize("node", ["150", "-1", "1.0", " 1", "one", "1_0", "²"])
def test_numbers_that_are_no_node(node: str, reading: Reading) -> None:
    with pytest.raises(InputError, match="expected the number of a node, 0 to 149"):
        explain(reading, node)


def test_ids_that_are_no_node() -> None:
    data = Data(x=torch.zeros(3, 1), node_ids=["anna", "bert", "7"])
    assert [check_node(data, n) for n in ("anna", "7", 7)] == [0, 2, 2]
    with pytest.raises(
        InputError, match="NODE 'ana' is not among the 3 nodes; did you mean 'anna'"
    ):
        check_node(data, "ana")
    with pytest.raises(InputError, match=r"NODE '0' .*; the first is 'anna'"):
        check_node(data, "0")


def test_nothing_to_show(reading: Reading) -> None:
    with pytest.raises(InputError, match="shown must be at least 1; got 0"):
        explain(reading, 1, shown=0)


def test_edges_are_followed_in_their_direction() -> None:
    """0 → 1 → 2, 3 → 2, 2 → 4: labels at 0 and 4."""
    edges = torch.tensor([[0, 1, 3, 2], [1, 2, 2, 4]])
    data = Data(
        x=torch.eye(5),
        edge_index=edges,
        y=torch.tensor([0, 0, 0, 1, 1]),
        train_mask=torch.tensor([1, 0, 0, 0, 1], dtype=torch.bool),
        val_mask=torch.tensor([0, 1, 0, 0, 0], dtype=torch.bool),
        directed=True,
    )
    fitted = fit(check_data(data), epochs=3)
    said = explain(fitted, 2)
    assert said["degree"] == 2
    assert {r["node"] for r in said["before"]["neighbours"]} == {"1", "3"}
    assert [(r["node"], r["distance"]) for r in said["labels"]] == [("0", 2)]
