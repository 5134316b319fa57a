"""Accuracies on held-out labels: by hand, and against scikit-learn."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_score,
    recall_score,
)

from elugcn.api import Fitted
from elugcn.report import evaluation
from elugcn.report.evaluation import Evaluation, calibration, evaluate
from tests.insight.conftest import mask


def evaluated(fitted: Fitted, names: list[str] | None = None) -> Evaluation:
    found = evaluate(fitted, names or ["left", "right"])
    assert found is not None
    return found


def values(rows: list[dict[str, Any]], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in keys) for row in rows]


def test_scores_by_hand(six: Fitted) -> None:
    six.baselines = {"gcn": torch.tensor([0, 0, 1, 1, 1, 1])}
    scores = evaluated(six).scores
    # Of the test nodes 2 and 3, the model says left, left and the truth is left, right.
    assert values(scores, "title", "accuracy", "clear") == [
        ("elu-gcn", 0.5, False), ("GCN", 0.5, False),
        ("label propagation", 0.5, False), ("largest class", 0.5, False),
    ]  # fmt: skip
    assert (scores[0]["balanced"], scores[0]["validation"]) == (0.5, 1.0)
    # A method is not its own baseline.
    six.method, six.result.label_utilization = "gcn", None
    six.baselines = {"gcn": six.data.y, "mlp": six.data.y}
    names = [score["name"] for score in evaluated(six).scores]
    assert names == ["gcn", "mlp", "largest class"]


def test_what_accuracies_are_counted_on(six: Fitted) -> None:
    first = evaluated(six)
    assert (first.name, first.nodes) == ("test", 2)
    assert first.margin == pytest.approx(0.98 / math.sqrt(2))
    six.data.test_mask = mask(6, 4)  # its class is not known
    second = evaluated(six)
    assert (second.name, second.nodes) == ("validation", 1)
    assert second.scores[0]["accuracy"] == 1.0
    six.data.val_mask = mask(6)
    assert evaluate(six, ["left", "right"]) is None


@pytest.mark.parametrize(("ours", "theirs", "clear"), [(9, 2, True), (8, 2, False)])
def test_a_difference_beyond_chance(ours: int, theirs: int, clear: bool) -> None:
    """|9 − 2| = 7 > 2√11 = 6.6, |8 − 2| = 6 < 2√10 = 6.3; shared errors don't count."""
    here = torch.tensor([True] * ours + [False] * theirs + [False] * 30)
    there = torch.tensor([False] * ours + [True] * theirs + [False] * 30)
    assert evaluation.clearly_differs(here, there) is clear
    assert evaluation.clearly_differs(there, here) is clear


def test_classes_are_scikit_learns(fitted_tables: Fitted) -> None:
    shown, data = evaluated(fitted_tables, ["a", "b", "c"]), fitted_tables.data
    y = data.y[data.val_mask].numpy()
    p = fitted_tables.result.logits.argmax(dim=1)[data.val_mask].numpy()
    assert shown.nodes == len(y)
    assert shown.scores[0]["accuracy"] == accuracy_score(y, p)
    assert shown.scores[0]["balanced"] == pytest.approx(balanced_accuracy_score(y, p))
    table = confusion_matrix(y, p)
    assert shown.confusion == table.tolist()
    for name, score in (("recall", recall_score), ("precision", precision_score)):
        expected = score(y, p, average=None, zero_division=0)
        assert [r[name] or 0.0 for r in shown.classes] == pytest.approx(expected)
    labels = data.y[data.train_mask].bincount().tolist()
    nodes = table.sum(axis=1).tolist()
    expected = list(zip(nodes, labels, strict=True))
    assert values(shown.classes, "nodes", "labels") == expected


@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ([[3, 0], [1, 0]], [(3, 1.0, 0.75, None), (1, 0.0, None, "left")]),
        ([[3, 1], [0, 0]], [(4, 0.75, 1.0, "right"), (0, None, 0.0, None)]),
    ],
    ids=["never predicted", "no nodes"],
)
def test_classes_by_hand(six: Fitted, confusion: Any, expected: list[Any]) -> None:
    rows = evaluation.class_scores(six.data, np.array(confusion), ["left", "right"])
    assert values(rows, "nodes", "recall", "precision", "confused_with") == expected


def test_the_forty_largest_classes_are_listed(six: Fitted) -> None:
    names = [f"class {i}" for i in range(45)]
    six.result.logits = torch.cat([six.result.logits, torch.full((6, 43), -9.0)], 1)
    assert [row["name"] for row in evaluated(six, names).classes] == names[:40]


def test_calibration_by_hand() -> None:
    proba = torch.tensor([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6]])
    found = calibration(proba, torch.tensor([0, 1, 1]))
    assert found.bins == [
        (pytest.approx(0.6), 1.0, 1), (pytest.approx(0.93), 0.5, 2),
    ]  # fmt: skip
    assert found.confidence == pytest.approx((0.95 + 0.91 + 0.6) / 3)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.error == pytest.approx((1 * 0.4 + 2 * 0.43) / 3)
    certain = calibration(torch.eye(2), torch.tensor([0, 1]))
    assert (certain.bins, certain.error) == ([(1.0, 1.0, 2)], 0.0)
