"""The numbers of a report: by hand, and against scikit-learn and dense graphs."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_score,
    recall_score,
)
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.low_rank_graph import ExplicitGraph
from elugcn.engine import CSR
from elugcn.insight import DiagnosisContext
from elugcn.report import content as module
from elugcn.report.content import (
    Calibration,
    Evaluation,
    calibration,
    class_scores,
    clean,
    clearly_differs,
    evaluated_nodes,
    heat,
    node_rows,
)
from tests.insight.conftest import by_hand, mask
from tests.report.conftest import contents


def test_scores_by_hand(six: Fitted) -> None:
    six.baselines = {"gcn": torch.tensor([0, 0, 1, 1, 1, 1])}
    own, gcn, lpa, largest = contents(six).scores
    # Of the test nodes 2 and 3, the model says left, left and the truth is left, right.
    assert (own["name"], own["accuracy"], own["balanced"]) == ("elu-gcn", 0.5, 0.5)
    assert (own["validation"], own["clear"]) == (1.0, False)
    assert (gcn["title"], gcn["accuracy"], gcn["clear"]) == ("GCN", 0.5, False)
    assert (lpa["title"], lpa["accuracy"]) == ("label propagation", 0.5)
    assert (largest["title"], largest["accuracy"]) == ("largest class", 0.5)


def test_a_method_is_not_its_own_baseline(six: Fitted) -> None:
    six.method, six.result.label_utilization = "gcn", None
    six.baselines = {"gcn": six.data.y, "mlp": six.data.y}
    names = [score["name"] for score in contents(six).scores]
    assert names == ["gcn", "mlp", "largest class"]


def test_what_accuracies_are_counted_on(six: Fitted) -> None:
    first = evaluated_nodes(six)
    assert first is not None
    assert (first.name, first.nodes, first.margin) == (
        "test", 2, pytest.approx(0.98 / math.sqrt(2)),
    )  # fmt: skip
    six.data.test_mask = mask(6, 4)  # its class is not known
    second = evaluated_nodes(six)
    assert second is not None
    assert (second.name, second.nodes) == ("validation", 1)
    assert contents(six).scores[0]["accuracy"] == 1.0
    six.data.val_mask = mask(6)
    assert evaluated_nodes(six) is None
    empty = contents(six)
    assert (empty.scores, empty.class_scores, empty.confusion) == ([], [], [])
    assert (empty.calibration, empty.best_epoch) == (None, None)


@pytest.mark.parametrize(("ours", "theirs", "clear"), [(9, 2, True), (8, 2, False)])
def test_a_difference_beyond_chance(ours: int, theirs: int, clear: bool) -> None:
    """|9 − 2| = 7 > 2√11 = 6.6, |8 − 2| = 6 < 2√10 = 6.3; shared errors don't count."""
    here = torch.tensor([True] * ours + [False] * theirs + [False] * 30)
    there = torch.tensor([False] * ours + [True] * theirs + [False] * 30)
    assert clearly_differs(here, there) is clear
    assert clearly_differs(there, here) is clear


def test_classes_are_scikit_learns(fitted_tables: Fitted) -> None:
    shown = contents(fitted_tables)
    assert shown.evaluation is not None
    tested, c = shown.evaluation.mask, 3
    y = fitted_tables.data.y[tested].numpy()
    p = fitted_tables.result.logits.argmax(dim=1)[tested].numpy()
    assert shown.scores[0]["accuracy"] == accuracy_score(y, p)
    assert shown.scores[0]["balanced"] == pytest.approx(balanced_accuracy_score(y, p))
    table = confusion_matrix(y, p, labels=range(c))
    assert shown.confusion == table.tolist()
    options: dict[str, Any] = {"average": None, "labels": range(c), "zero_division": 0}
    recall = [row["recall"] for row in shown.class_scores]
    assert recall == pytest.approx(recall_score(y, p, **options))
    precision = [row["precision"] or 0.0 for row in shown.class_scores]
    assert precision == pytest.approx(precision_score(y, p, **options))
    assert [r["nodes"] for r in shown.class_scores] == table.sum(axis=1).tolist()
    train = fitted_tables.data.y[fitted_tables.data.train_mask]
    assert [r["labels"] for r in shown.class_scores] == train.bincount().tolist()


def classes_of(fitted: Fitted, confusion: list[list[int]]) -> list[Any]:
    return class_scores(fitted.data, np.array(confusion), ["left", "right"])


def test_classes_by_hand(six: Fitted) -> None:
    left, right = classes_of(six, [[3, 0], [1, 0]])
    assert (left["recall"], left["precision"], left["confused_with"]) == (1, 0.75, None)
    assert (right["recall"], right["precision"], right["confused_with"]) == (
        0.0, None, "left",
    )  # fmt: skip
    left, right = classes_of(six, [[3, 1], [0, 0]])
    assert (right["nodes"], right["recall"], right["precision"]) == (0, None, 0.0)


def test_forty_classes_are_listed(six: Fitted) -> None:
    six.data.class_names = ["x" * 300, *(f"class {i}" for i in range(1, 45))]
    six.result.logits = torch.cat([six.result.logits, torch.full((6, 43), -9.0)], 1)
    shown = contents(six)
    assert shown.names[0] == "x" * 99 + "…"
    assert len(shown.class_scores) == 40
    assert shown.confusion == []


def test_kinds_of_nodes_by_hand(six: Fitted) -> None:
    elu, nelu, unreachable = contents(six).statuses
    assert [row["nodes"] for row in (elu, nelu, unreachable)] == [4, 1, 1]
    # Node 3 is ELU and tested; all three say left, the truth is right.
    assert (elu["tested"], elu["model"], elu["gcn"], elu["lpa"]) == (1, 0, 0, 0)
    # Node 2 is NELU: the model and label propagation are right, the GCN is not.
    assert (nelu["tested"], nelu["model"], nelu["gcn"], nelu["lpa"]) == (1, 1, 0, 1)
    assert (unreachable["tested"], unreachable["model"]) == (0, None)


def test_groups_are_those_of_the_diagnosis(six: Fitted) -> None:
    groups = contents(six).groups
    assert list(groups) == [
        "predicted class", "number of neighbours", "edges to the nearest label",
    ]  # fmt: skip
    assert [(r["name"], r["nodes"], r["elu"]) for r in groups["predicted class"]] == [
        ("left", 3, 1.0), ("right", 3, pytest.approx(1 / 3)),
    ]  # fmt: skip
    del six.data.edge_index, six.data.x
    shown = contents(six)
    assert list(shown.groups) == ["predicted class"]
    assert shown.findings == shown.suggestions == []
    assert [row["nodes"] for row in shown.statuses] == [4, 1, 1]
    six.result.label_utilization = None
    shown = contents(six)
    assert (shown.statuses, shown.groups) == ([], {})


def calibrated(proba: torch.Tensor, y: torch.Tensor) -> Calibration:
    n = len(y)
    fitted = by_hand(Data(y=y), None, proba)
    return calibration(fitted, Evaluation("test", torch.ones(n).bool(), n))


def test_calibration_by_hand() -> None:
    proba = torch.tensor([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6]])
    found = calibrated(proba, torch.tensor([0, 1, 1]))
    assert found.bins == [
        (pytest.approx(0.6), 1.0, 1), (pytest.approx(0.93), 0.5, 2),
    ]  # fmt: skip
    assert found.confidence == pytest.approx((0.95 + 0.91 + 0.6) / 3)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.error == pytest.approx((1 * 0.4 + 2 * 0.43) / 3)
    certain = calibrated(torch.eye(2), torch.tensor([0, 1]))
    assert (certain.bins, certain.error) == ([(1.0, 1.0, 2)], 0.0)


def test_calibration_is_scikit_learns() -> None:
    generator = torch.Generator().manual_seed(0)
    proba = torch.softmax(3 * torch.randn(500, 4, generator=generator), dim=1)
    y = torch.arange(500) % 4
    found = calibrated(proba, y)
    confidence, best = proba.max(dim=1)
    share, mean = calibration_curve(best == y, confidence, n_bins=10)
    np.testing.assert_allclose([b[1] for b in found.bins], share)
    np.testing.assert_allclose([b[0] for b in found.bins], mean, rtol=1e-6)
    assert sum(b[2] for b in found.bins) == 500


def test_blocks_are_means_of_the_dense_graphs(six: Fitted) -> None:
    found = contents(six).heat
    assert found is not None
    assert list(found.means) == ["Original graph", "ELU graph"]
    original, elu = found.means.values()
    # Five known classes of 48 blocks: one block each, in the order of the classes.
    assert (found.block_class, found.nodes) == ([0, 0, 0, 1, 1], 5)
    a = torch.zeros(6, 6)
    a[six.data.edge_index[0], six.data.edge_index[1]] = 1.0
    degree = a.sum(dim=1)
    a /= torch.outer(degree, degree).sqrt()
    order = [0, 1, 2, 3, 5]
    a, dense = a[order][:, order], six.result.graph.to_dense()[order][:, order]
    np.testing.assert_allclose(original, a, atol=1e-6)
    np.testing.assert_allclose(elu, dense, atol=1e-6)
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


def test_rows_of_nodes_by_hand(six: Fitted) -> None:
    six.data.node_ids = list("abcdef")
    rows = contents(six).rows
    assert [row["id"] for row in rows] == list("fdcbae")
    assert rows[0] == {
        "id": "f", "label": "right", "prediction": "left", "utilization": "elu",
        "confidence": pytest.approx(0.55), "split": "training", "wrong": True,
    }  # fmt: skip
    last = rows[-1]
    assert (last["label"], last["split"], last["wrong"]) == ("", "", False)
    # A quarter of six nodes: the two least certain ones.
    assert contents(six).low_confidence == pytest.approx(0.6)


def test_the_nodes_to_look_at_first(
    six: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TABLE_LIMIT", 3)
    ids = [row["id"] for row in contents(six).rows]
    # NELU and unreachable nodes, then the least certain of the others.
    assert ids == ["2", "4", "5"]
    rows, _ = node_rows(DiagnosisContext(six), None)
    assert [row["id"] for row in rows] == ["5", "3", "2"]
    assert {row["utilization"] for row in rows} == {""}


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
    found = module.collect(six, {"notes": ["a"]}, "", "", ("b",))
    assert found.notes == ["a", "b"]


def test_an_epoch_is_selected_by_validation_nodes_only(six: Fitted) -> None:
    six.result.metadata = {"best_epoch": 3}
    assert contents(six).best_epoch == 3
    six.data.val_mask = mask(6)
    assert contents(six).best_epoch is None


def test_long_and_broken_names() -> None:
    assert clean("a\ud800b") == "a?b"
    assert clean("x" * 100) == "x" * 100
    assert clean("x" * 101) == "x" * 99 + "…"
