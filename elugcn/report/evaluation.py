"""How accurate a run is on held-out labels, beside simpler models."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.api.fitting import accuracy
from elugcn.methods.metrics import TITLES, is_uneven, leading

BASELINES = {"gcn": "GCN", "mlp": "MLP", "lpa": "label propagation"}
MAX_CLASSES = 40  # listed in a table

Row = dict[str, Any]


@dataclass(frozen=True)
class Calibration:
    """How far confidence and accuracy agree."""

    bins: list[tuple[float, float, int]]  # mean confidence, accuracy, number of nodes
    confidence: float  # of all nodes, like the accuracy
    accuracy: float
    error: float  # expected calibration error, Σ_b (n_b/n)·|accuracy − confidence|


@dataclass(frozen=True)
class Evaluation:
    """What the labelled test nodes say, or else the nodes that judged the model."""

    name: str  # test, validation or cross-validated
    judged: str  # validation or cross-validated: the nodes that judged the model
    nodes: int
    scores: list[Row]  # one per model, the run's own first
    confusion: list[list[int]]  # nodes per true and predicted class
    classes: list[Row]  # one per true class, the 40 largest
    calibration: Calibration
    uneven: bool  # accuracy alone would mislead
    headline: list[tuple[str, float | None]]  # title and value of what comes first

    @property
    def margin(self) -> float:
        """At most half of the 95 % interval of a share of so many nodes."""
        return 0.98 / math.sqrt(self.nodes)


def evaluate(fitted: Fitted, names: list[str]) -> Evaluation | None:
    """The evaluation of a run; None without held-out labels."""
    data = fitted.data
    name, nodes = "test", (data.test_mask & (data.y >= 0)).nonzero()[:, 0]
    logits = fitted.result.logits[nodes]
    score: Callable[[str], float | None] = partial(fitted.score, data.test_mask)
    judged = "cross-validated" if is_cross_validated(fitted) else "validation"
    if not len(nodes):
        name, score = judged, fitted.val_score
        nodes, logits = fitted.validation()
    truth = data.y[nodes]
    if not len(truth):
        return None
    predicted = logits.argmax(dim=1)
    table = confusion_matrix(truth, predicted, labels=range(len(names)))
    uneven = is_uneven(data.y, data.train_mask)
    first = leading(fitted.metric, uneven)
    return Evaluation(
        name=name,
        judged=judged,
        nodes=len(truth),
        scores=model_scores(fitted, nodes, predicted),
        confusion=table.tolist(),
        classes=class_scores(data, table, names),
        calibration=calibration(torch.softmax(logits, dim=1), truth),
        uneven=uneven,
        headline=[(TITLES[one], score(one)) for one in first],
    )


def is_cross_validated(fitted: Fitted) -> bool:
    """Whether training nodes judged, too: each by models that had not seen it."""
    return bool(fitted.data.train_mask[fitted.validation()[0]].any())


def model_scores(fitted: Fitted, nodes: Tensor, predicted: Tensor) -> list[Row]:
    """The run's model first, then simpler models and always the largest class.

    ``nodes`` are those of the evaluation, and ``predicted`` what the run's model says
    of them. ``balanced`` is the mean recall of the classes; ``clear`` says whether a
    model differs from the run's by more than chance. A simpler model that was trained
    on the nodes of a number has none.
    """
    data, y = fitted.data, fitted.data.y
    ours, use = fitted.result.logits.argmax(dim=1), fitted.result.label_utilization
    ours[nodes] = predicted
    others = ({} if use is None else {"lpa": use.lpa.cpu()}) | fitted.baselines
    models = {fitted.method: ours}
    models |= {n: others[n] for n in BASELINES if n in others and n != fitted.method}
    mask = torch.zeros_like(data.val_mask).index_fill(0, nodes, True)
    # Models of one fit on the training nodes have not seen the validation nodes, except
    # for label propagation where these trained the answer.
    crossed = is_cross_validated(fitted)
    seen = set(models) - {fitted.method} if crossed else set()
    if fitted.result.held_out is not None and use is not None:
        seen.add("lpa")
    if bool((mask & ~data.test_mask).any()):
        models = {name: x for name, x in models.items() if name not in seen}
    largest = int(torch.bincount(y[data.train_mask]).argmax())
    models["largest class"] = torch.full_like(y, largest)
    true = [mask & (y == c) for c in torch.unique(y[mask])]
    judging_mask = torch.zeros_like(mask).index_fill(0, fitted.validation()[0], True)
    rows = [
        {
            "name": name,
            "title": BASELINES.get(name, name),
            "accuracy": accuracy(classes, y, mask),
            "balanced": np.mean([accuracy(classes, y, nodes) for nodes in true]),
            "validation": (
                None if name in seen else accuracy(classes, y, judging_mask)
            ),
            "clear": clearly_differs((ours == y)[mask], (classes == y)[mask]),
        }
        for name, classes in models.items()
    ]
    rows[0]["validation"] = fitted.val_score("accuracy")
    return rows


def clearly_differs(right: Tensor, others_right: Tensor) -> bool:
    """Whether two models' accuracies differ by more than chance (McNemar's test).

    Of the nodes on which exactly one model is right, b are ours and c the other's: the
    difference is clear if |b − c| > 2·√(b + c).
    """
    b = int((right & ~others_right).sum())
    c = int((others_right & ~right).sum())
    return abs(b - c) > 2.0 * math.sqrt(b + c)


def class_scores(
    data: Data, confusion: NDArray[np.int64], names: list[str]
) -> list[Row]:
    """Recall, precision and most frequent error of the true classes."""
    right, nodes = confusion.diagonal(), confusion.sum(axis=1)
    given, wrong = confusion.sum(axis=0), confusion - np.diag(right)
    labels = torch.bincount(data.y[data.train_mask], minlength=len(names))
    largest = np.argsort(-nodes, kind="stable")[:MAX_CLASSES]
    return [
        {
            "name": names[i],
            "labels": int(labels[i]),
            "nodes": int(nodes[i]),
            "recall": float(right[i] / nodes[i]) if nodes[i] else None,
            "precision": float(right[i] / given[i]) if given[i] else None,
            "confused_with": names[wrong[i].argmax()] if wrong[i].any() else None,
        }
        for i in sorted(largest.tolist())
    ]


def calibration(proba: Tensor, y: Tensor, bins: int = 10) -> Calibration:
    """Confidence and accuracy in bins of equal width without the empty ones."""
    confidence, predicted = proba.double().max(dim=1)
    right = (predicted == y).double()
    place = (confidence * bins).long().clamp(max=bins - 1)
    inside = [place == b for b in torch.unique(place)]
    found = [
        (float(confidence[i].mean()), float(right[i].mean()), int(i.sum()))
        for i in inside
    ]
    return Calibration(
        bins=found,
        confidence=float(confidence.mean()),
        accuracy=float(right.mean()),
        error=sum(size * abs(a - c) for c, a, size in found) / len(y),
    )
