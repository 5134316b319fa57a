"""The other numbers of a report: by hand, and against dense graphs."""

import numpy as np
import pytest
import torch

from elugcn.api import Fitted
from elugcn.elu.low_rank_graph import ExplicitGraph
from elugcn.engine import CSR
from elugcn.insight import DiagnosisContext
from elugcn.report import content as module
from elugcn.report.content import heat, node_rows, shorten
from tests.insight.conftest import mask
from tests.report.conftest import contents


def test_kinds_of_nodes_by_hand(six: Fitted) -> None:
    rows = contents(six).statuses
    names = ("tested", "model_accuracy", "gcn_accuracy", "lpa_accuracy")
    assert [[row["nodes"], *(row[name] for name in names)] for row in rows] == [
        # Node 1 is ELU: right by all three. Node 3: left by all three; it is right.
        [4, 2, 0.5, 0.5, 0.5],
        # Node 2 is NELU: the model and label propagation are right, the GCN is not.
        [1, 1, 1.0, 0.0, 1.0],
        [1, 0, None, None, None],
    ]


def test_other_methods_stand_beside_the_gcn_of_the_fit(six: Fitted) -> None:
    """Labels reach 0 to 2 from the left and 3 to 5 from the right in three steps."""
    six.method, six.result.label_utilization = "gat", None
    six.result.graph = None
    assert contents(six).statuses == contents(six).suggestions == []
    six.baselines = {"gcn": torch.tensor([0, 0, 1, 0, 1, 1])}
    elu, nelu, unreachable = contents(six).statuses
    assert [row["nodes"] for row in (elu, nelu, unreachable)] == [4, 2, 0]
    assert (nelu["gcn_accuracy"], nelu["lpa_accuracy"]) == (0.0, 1.0)
    # Predictions of a GCN itself: 0 to 3 left, 4 right and 5 left.
    six.method, six.baselines = "gcn", {}
    assert [row["nodes"] for row in contents(six).statuses] == [4, 2, 0]


def test_groups_are_those_of_the_diagnosis(six: Fitted) -> None:
    groups = contents(six).groups
    assert list(groups) == [
        "predicted class", "number of neighbours", "edges to the nearest label",
    ]  # fmt: skip
    rows = [(r["name"], r["nodes"], r["elu"]) for r in groups["predicted class"]]
    assert rows == [("left", 3, 1.0), ("right", 3, pytest.approx(1 / 3))]
    del six.data.edge_index, six.data.x
    shown = contents(six)
    assert list(shown.groups) == ["predicted class"]
    assert shown.findings == shown.suggestions == []
    assert [row["nodes"] for row in shown.statuses] == [4, 1, 1]


def test_blocks_are_means_of_the_dense_graphs(six: Fitted) -> None:
    found = contents(six).heat
    assert found is not None
    assert list(found.means) == ["Original graph", "ELU graph"]
    # Five known classes of 48 blocks: one block each, in the order of the classes.
    assert (found.block_class, found.nodes) == ([0, 0, 0, 1, 1], 5)
    degree = torch.tensor([1.0, 2, 2, 2, 2, 1])
    a = torch.diag(torch.ones(5), 1) / torch.outer(degree, degree).sqrt()
    order = [0, 1, 2, 3, 5]
    for means, dense in zip(
        found.means.values(), (a + a.T, six.result.graph.to_dense()), strict=True
    ):
        np.testing.assert_allclose(means, dense[order][:, order], atol=1e-6)
    assert not found.by_prediction


def test_blocks_by_predicted_class_where_few_labels_are_known(six: Fitted) -> None:
    six.data.y = torch.tensor([0, -1, -1, -1, -1, 1])
    six.result.graph = ExplicitGraph(CSR.from_tensor(torch.eye(6)))
    del six.data.edge_index
    found = heat(DiagnosisContext(six))
    assert found is not None
    assert list(found.means) == ["ELU graph"]
    assert found.by_prediction
    assert found.block_class == [0, 0, 0, 0, 1, 1]
    six.result.graph = None
    assert heat(DiagnosisContext(six)) is None


def test_rows_of_nodes_by_hand(six: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    six.data.node_ids = list("abcdef")
    rows = contents(six).rows
    assert [row["id"] for row in rows] == list("fdcbae")
    assert rows[0] == {
        "id": "f", "label": "right", "prediction": "left", "utilization": "elu",
        "confidence": pytest.approx(0.55), "split": "training", "wrong": True,
    }  # fmt: skip
    last = rows[-1]
    assert (last["label"], last["split"], last["wrong"]) == ("", "", False)
    # Of many nodes: NELU and unreachable ones, then the least certain of the others.
    monkeypatch.setattr(module, "TABLE_LIMIT", 3)
    assert [row["id"] for row in contents(six).rows] == list("cef")
    rows = node_rows(DiagnosisContext(six), None)
    assert [(row["id"], row["utilization"]) for row in rows] == [
        ("f", ""), ("d", ""), ("c", ""),
    ]  # fmt: skip


def test_suggestions(six: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = contents(six).suggestions  # the only class that is not known
    assert (one.node, one.reason) == ("4", "no label reaches it")
    monkeypatch.setattr(module, "_SUGGEST_BELOW", 5)
    assert contents(six).suggestions == []
    monkeypatch.undo()
    six.data.y = torch.zeros(6).long()
    six.data.train_mask = torch.ones(6, dtype=torch.bool)
    assert contents(six).suggestions == []


def test_columns_of_a_table(fitted_tables: Fitted, six: Fitted) -> None:
    size, colour = contents(fitted_tables).columns
    assert (size["column"], size["features"], size["missing"]) == ("size", 1, 1)
    assert (colour["column"], colour["kind"], colour["features"]) == (
        "colour<b>", "category", 2,
    )  # fmt: skip
    assert contents(six).columns == []


def test_odd_records_are_shown_as_far_as_possible(six: Fitted) -> None:
    shown = contents(six, notes=5, n_edges="many", dataset=None)
    assert (shown.notes, shown.n_edges, shown.dataset) == ([], 0, "None")
    assert module.collect(six, {"notes": ["a"]}, "", "", ("b",)).notes == ["a", "b"]
    six.result.metadata = {"best_epoch": 3}
    assert contents(six).best_epoch == 3
    # Without validation nodes, nothing selected it.
    six.data.val_mask = mask(6)
    assert contents(six).best_epoch is None


def test_long_and_broken_names(six: Fitted) -> None:
    six.data.class_names = ["x" * 300, "y"]
    assert contents(six).names == ["x" * 99 + "…", "y"]
    assert shorten("a\ud800b") == "a?b"
    assert shorten("x" * 100) == "x" * 100
    assert shorten("x" * 101) == "x" * 99 + "…"
