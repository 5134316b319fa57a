"""How good predictions are: scikit-learn's metrics, fast enough for every epoch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.errors import InputError


def score(metric: str, logits: Tensor, y: Tensor, num_classes: int) -> float:
    """A metric of some nodes; NaN where it is not defined, as without nodes.

    Classes that do not occur among these nodes are left out of the mean over classes,
    as scikit-learn does (``f1_macro`` counts those that are predicted).

    Args:
        metric: One of ``METRICS``.
        logits: Logits of the nodes, m×c.
        y: Their classes, (m,).
        num_classes: c. Of two classes the second is the positive one.
    """
    return METRICS[metric](logits, y, num_classes) if y.numel() else float("nan")


def check_metric(metric: str) -> None:
    """Refuse an unknown metric."""
    if not isinstance(metric, str) or metric not in METRICS:
        expected = ", ".join(METRICS)
        raise InputError(f"metric must be one of {expected}; got {metric!r}")


def check_classes(metric: str, y: Tensor, nodes: str = "validation nodes") -> None:
    """Refuse a metric that the classes of some nodes leave undefined."""
    if metric in RANKING and y.numel() and bool((y == y[0]).all()):
        raise InputError(
            f"metric={metric!r} requires {nodes} of at least two classes; "
            "all have the same class"
        )


def is_uneven(y: Tensor, train_mask: Tensor) -> bool:
    """Whether accuracy alone would mislead.

    The largest class has more than three times the training labels of the smallest one,
    or more than three times the labels (−1 is none) of all others together.
    """
    train, every = (torch.bincount(labels) for labels in (y[train_mask], y[y >= 0]))
    train = train[train > 0]
    most = every.max()
    return bool((train.max() > 3 * train.min()) | (most > 3 * (every.sum() - most)))


def _accuracy(logits: Tensor, y: Tensor, num_classes: int) -> float:
    return float((logits.argmax(dim=1) == y).double().mean())


def _balanced_accuracy(logits: Tensor, y: Tensor, num_classes: int) -> float:
    right = torch.bincount(y[logits.argmax(dim=1) == y], minlength=num_classes)
    nodes = torch.bincount(y, minlength=num_classes)
    return float((right / nodes.double())[nodes > 0].mean())


def _f1_macro(logits: Tensor, y: Tensor, num_classes: int) -> float:
    predicted = logits.argmax(dim=1)
    right, true, claimed = (
        torch.bincount(classes, minlength=num_classes)
        for classes in (y[predicted == y], y, predicted)
    )
    occurs = true + claimed
    return float((2 * right / occurs.double())[occurs > 0].mean())


def _roc_auc(logits: Tensor, y: Tensor, num_classes: int) -> float:
    scores, positive = _one_against_rest(logits, y, num_classes)
    lower, positive_lower = _count_below(scores, positive)
    up_to, positive_up_to = _count_below(scores, positive, or_equal=True)
    # The negative nodes below each positive one; those level with it count half.
    negative = (lower - positive_lower + up_to - positive_up_to) / 2
    pairs = positive.sum(dim=1) * (~positive).sum(dim=1)
    return float(((negative * positive).sum(dim=1, dtype=torch.double) / pairs).mean())


def _average_precision(logits: Tensor, y: Tensor, num_classes: int) -> float:
    scores, positive = _one_against_rest(logits, y, num_classes)
    lower, positive_lower = _count_below(scores, positive)
    # The precision where a node is the last one that is called positive.
    count = positive.sum(dim=1, keepdim=True)
    precision = (count - positive_lower) / (y.numel() - lower).double()
    return float(((precision * positive).sum(dim=1) / count[:, 0]).mean())


def _one_against_rest(
    logits: Tensor, y: Tensor, num_classes: int
) -> tuple[Tensor, Tensor]:
    """One row per class with all scores, and who belongs to the class."""
    classes = y.new_ones(1) if num_classes == 2 else y.bincount().nonzero()[:, 0]
    log_p = F.log_softmax(logits.double(), dim=1).T
    return log_p[classes].contiguous(), y == classes[:, None]


def _count_below(
    scores: Tensor, positive: Tensor, or_equal: bool = False
) -> tuple[Tensor, Tensor]:
    """How many nodes have a lower score than each, and how many positive ones."""
    ordered, order = scores.sort(dim=1)
    lower = torch.searchsorted(ordered, scores, right=or_equal)
    positive_before = F.pad(positive.gather(1, order).cumsum(dim=1), (1, 0))
    return lower, positive_before.gather(1, lower)


def leading(metric: str, uneven: bool) -> list[str]:
    """What is shown first: what selected, balanced accuracy if that helps, accuracy."""
    first = [] if metric == "accuracy" else [metric]
    first += ["balanced_accuracy"] if uneven else []
    return list(dict.fromkeys([*first, "accuracy"]))


METRICS: dict[str, Callable[[Tensor, Tensor, int], float]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "f1_macro": _f1_macro,
    "roc_auc": _roc_auc,
    "average_precision": _average_precision,
}
# How people read them.
TITLES = {name: name.replace("_", " ") for name in METRICS} | {
    "f1_macro": "macro F1",
    "roc_auc": "ROC AUC",
}
RANKING = ("roc_auc", "average_precision")  # of scores; they need two classes
