"""Metrics against scikit-learn's, with ties, missing classes and few nodes."""

import math

import pytest
import torch
from sklearn import metrics as truth
from torch import Tensor

from elugcn.errors import InputError
from elugcn.methods.metrics import METRICS, check_classes, check_metric, score


def expected(metric: str, logits: Tensor, y: Tensor) -> float:
    """Scikit-learn's value; classes without a node are not asked for."""
    predicted, p = logits.argmax(dim=1), logits.double().log_softmax(dim=1)
    if metric == "accuracy":
        return float(truth.accuracy_score(y, predicted))
    if metric == "balanced_accuracy":
        return float(truth.balanced_accuracy_score(y, predicted))
    if metric == "f1_macro":
        return float(truth.f1_score(y, predicted, average="macro"))
    ranked = getattr(truth, f"{metric}_score")
    if logits.size(1) == 2:
        return float(ranked(y, p[:, 1]))
    each = [float(ranked(y == k, p[:, k])) for k in y.unique().tolist()]
    return sum(each) / len(each)


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("num_classes", [2, 5])
def test_as_scikit_learn(metric: str, num_classes: int) -> None:
    torch.manual_seed(0)
    for nodes in (4, 30, 200):
        for present in (num_classes, max(2, num_classes - 2)):
            y = torch.arange(nodes) % present
            # Whole numbers: many nodes have the same score.
            logits = torch.randint(-2, 3, (nodes, num_classes)).float()
            got = score(metric, logits, y, num_classes)
            assert got == pytest.approx(expected(metric, logits, y), abs=1e-12)


def test_roc_auc_of_several_classes_as_scikit_learn_names_it() -> None:
    torch.manual_seed(1)
    logits, y = torch.randn(60, 4), torch.arange(60) % 4
    p = logits.double().softmax(dim=1)
    own = truth.roc_auc_score(y, p, multi_class="ovr", average="macro")
    assert score("roc_auc", logits, y, 4) == pytest.approx(own)


@pytest.mark.parametrize("metric", METRICS)
def test_undefined_is_nan(metric: str) -> None:
    assert math.isnan(score(metric, torch.ones(0, 3), torch.zeros(0).long(), 3))


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"^metric must be one of accuracy, .*'auc'$"):
        check_metric("auc")
    one = torch.tensor([1, 1])
    check_classes("balanced_accuracy", one)
    check_classes("roc_auc", one[:0])
    for metric in ("roc_auc", "average_precision"):
        with pytest.raises(
            InputError, match=r"at least two classes; all have the same class"
        ):
            check_classes(metric, one)
