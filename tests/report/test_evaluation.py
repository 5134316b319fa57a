"""Accuracies on held-out labels: by hand, and against scikit-learn."""

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

from elugcn.api import Fitted
from elugcn.report.evaluation import (
    Evaluation,
    calibration,
    class_scores,
    clearly_differs,
    evaluate,
)
from tests.insight.conftest import mask


def evaluated(fitted: Fitted) -> Evaluation:
    found = evaluate(fitted, ["left", "right"])
    assert found is not None
    return found


def test_scores_by_hand(six: Fitted) -> None:
    six.baselines = {"gcn": torch.tensor([0, 0, 1, 1, 1, 1])}
    own, gcn, lpa, largest = evaluated(six).scores
    # Of the test nodes 2 and 3, the model says left, left and the truth is left, right.
    assert (own["name"], own["accuracy"], own["balanced"]) == ("elu-gcn", 0.5, 0.5)
    assert (own["validation"], own["clear"]) == (1.0, False)
    assert (gcn["title"], gcn["accuracy"], gcn["clear"]) == ("GCN", 0.5, False)
    assert (lpa["title"], lpa["accuracy"]) == ("label propagation", 0.5)
    assert (largest["title"], largest["accuracy"]) == ("largest class", 0.5)


def test_a_method_is_not_its_own_baseline(six: Fitted) -> None:
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
    assert clearly_differs(here, there) is clear
    assert clearly_differs(there, here) is clear


def test_classes_are_scikit_learns(fitted_tables: Fitted) -> None:
    shown, c = evaluate(fitted_tables, ["a", "b", "c"]), 3
    assert shown is not None
    tested = fitted_tables.data.val_mask
    assert shown.nodes == int(tested.sum())
    y = fitted_tables.data.y[tested].numpy()
    p = fitted_tables.result.logits.argmax(dim=1)[tested].numpy()
    assert shown.scores[0]["accuracy"] == accuracy_score(y, p)
    assert shown.scores[0]["balanced"] == pytest.approx(balanced_accuracy_score(y, p))
    table = confusion_matrix(y, p, labels=range(c))
    assert shown.confusion == table.tolist()
    options: dict[str, Any] = {"average": None, "labels": range(c), "zero_division": 0}
    recall = [row["recall"] for row in shown.classes]
    assert recall == pytest.approx(recall_score(y, p, **options))
    precision = [row["precision"] or 0.0 for row in shown.classes]
    assert precision == pytest.approx(precision_score(y, p, **options))
    assert [r["nodes"] for r in shown.classes] == table.sum(axis=1).tolist()
    train = fitted_tables.data.y[fitted_tables.data.train_mask]
    assert [r["labels"] for r in shown.classes] == train.bincount().tolist()


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


def test_the_forty_largest_classes_are_listed(six: Fitted) -> None:
    names = [f"class {i}" for i in range(45)]
    six.result.logits = torch.cat([six.result.logits, torch.full((6, 43), -9.0)], 1)
    found = evaluate(six, names)
    assert found is not None
    assert [row["name"] for row in found.classes] == names[:40]


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


def test_calibration_is_scikit_learns() -> None:
    generator = torch.Generator().manual_seed(0)
    proba = torch.softmax(3 * torch.randn(500, 4, generator=generator), dim=1)
    y = torch.arange(500) % 4
    found = calibration(proba, y)
    confidence, best = proba.max(dim=1)
    share, mean = calibration_curve(best == y, confidence, n_bins=10)
    np.testing.assert_allclose([b[1] for b in found.bins], share)
    np.testing.assert_allclose([b[0] for b in found.bins], mean, rtol=1e-6)
    assert sum(b[2] for b in found.bins) == 500
