"""How good predictions are: scikit-learn's metrics, fast enough for every epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
    found = []
    for scores, own in _against_rest(logits, y, num_classes):
        m, k = scores.numel(), own.numel()
        # Twice the nodes below each positive one; those level with it count half.
        below = torch.searchsorted(scores, own)
        below = below + torch.searchsorted(scores, own, right=True)
        found.append((below.sum().double() - k * k) / (2 * k * (m - k)))
    return float(torch.stack(found).mean())


def _average_precision(logits: Tensor, y: Tensor, num_classes: int) -> float:
    found = []
    for scores, own in _against_rest(logits, y, num_classes):
        # The precision where a positive node is the last that is called positive.
        called = scores.numel() - torch.searchsorted(scores, own)
        right = own.numel() - torch.searchsorted(own, own)
        found.append((right / called.double()).mean())
    return float(torch.stack(found).mean())


def _against_rest(
    logits: Tensor, y: Tensor, num_classes: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each class the sorted scores of all nodes, and of its own."""
    classes = y.new_ones(1) if num_classes == 2 else y.bincount().nonzero()[:, 0]
    log_p = F.log_softmax(logits.double(), dim=1).T
    ordered = log_p[classes].sort(dim=1).values
    for i, k in enumerate(classes.tolist()):
        yield ordered[i], log_p[k][y == k].sort().values


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
