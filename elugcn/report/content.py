"""What a report shows, as plain values. The template only arranges them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, recall_score
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.api.fit import accuracy
from elugcn.elu.label_propagation import Propagation
from elugcn.elu.utilization import LabelUtilization
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, Suggestion, diagnose, suggest_labels
from elugcn.insight.diagnosis import KINDS, by_class, share
from elugcn.insight.graphs import block_means, class_blocks
from elugcn.methods.problem import GraphView

BASELINES = {"gcn": "GCN", "mlp": "MLP", "lpa": "label propagation"}
SPLITS = {"train_mask": "training", "val_mask": "validation", "test_mask": "test"}
TABLE_LIMIT = 2000
_MAX_CLASSES = 40  # listed in a table
_MAX_CONFUSION = 15  # classes of a confusion matrix that can be read
_SUGGESTIONS, _SUGGEST_BELOW = 10, 200_000  # nodes; the choice holds n×256 numbers
_FEW_LABELS = 0.5

Row = dict[str, Any]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """The labelled nodes that accuracies are counted on: test, else validation."""

    name: str
    mask: Tensor
    nodes: int

    @property
    def margin(self) -> float:
        """At most half of the 95 % interval of a share of so many nodes."""
        return 0.98 / math.sqrt(self.nodes)


@dataclass(frozen=True)
class Calibration:
    """Mean confidence, accuracy and number of nodes, per bin of confidence and overall.

    ``error`` is the expected calibration error, Σ_b (n_b/n)·|accuracy − confidence|.
    """

    bins: list[tuple[float, float, int]]
    confidence: float
    accuracy: float
    error: float


@dataclass(frozen=True)
class Heat:
    """Both graphs as mean entries of the same blocks of nodes, ordered by class."""

    means: dict[str, Tensor]
    block_class: list[int]
    nodes: int
    by_prediction: bool


@dataclass(frozen=True)
class Content:
    """All sections; a part that a run cannot fill is None or empty."""

    dataset: str
    method: str
    n_nodes: int
    n_edges: int
    n_labels: int
    names: list[str]
    evaluation: Evaluation | None
    scores: list[Row]
    confusion: list[list[int]]
    class_scores: list[Row]
    calibration: Calibration | None
    lpa_steps: int
    statuses: list[Row]
    groups: dict[str, list[Row]]
    findings: list[str]
    heat: Heat | None
    history: list[dict[str, float]]
    best_epoch: int | None
    suggestions: list[Suggestion]
    rows: list[Row]
    low_confidence: float
    columns: list[Row]
    seconds: dict[str, float]
    config: str
    environment: str
    notes: list[str]


def collect(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    config: str,
    environment: str,
    notes: tuple[str, ...] = (),
) -> Content:
    """Everything that the report of a run shows."""
    context = DiagnosisContext(fitted)
    names = context.names = [clean(name) for name in context.names]
    context.ids = [clean(one) for one in context.ids]
    data, result = fitted.data, fitted.result
    # A saved model keeps Definition 1 but not the graph.
    known = context.has_graph or result.label_utilization is not None
    use = context.use if known else None
    evaluation = evaluated_nodes(fitted)
    confusion = None if evaluation is None else _confusion(fitted, evaluation)
    rows, low = node_rows(context, use)
    groups, findings = utilization_groups(context, use)
    best, schema = result.metadata.get("best_epoch"), data.get("table_schema", None)
    edges, said = metrics.get("n_edges"), metrics.get("notes")
    said = said if isinstance(said, list) else []
    return Content(
        dataset=clean(str(metrics.get("dataset", ""))),
        method=fitted.method,
        n_nodes=int(data.num_nodes),
        n_edges=edges if isinstance(edges, int) else 0,
        n_labels=int(data.train_mask.sum()),
        names=names,
        evaluation=evaluation,
        scores=[] if evaluation is None else model_scores(fitted, evaluation),
        confusion=(
            []
            if confusion is None or len(names) > _MAX_CONFUSION
            else confusion.tolist()
        ),
        class_scores=[] if confusion is None else class_scores(data, confusion, names),
        calibration=None if evaluation is None else calibration(fitted, evaluation),
        lpa_steps=context.steps,
        statuses=[] if use is None else utilization_rows(fitted, use, evaluation),
        groups=groups,
        findings=findings,
        heat=heat(context),
        history=result.history,
        # Without validation nodes, nothing selected the epoch.
        best_epoch=best if isinstance(best, int) and data.val_mask.any() else None,
        suggestions=suggestions(context),
        rows=rows,
        low_confidence=low,
        columns=[] if schema is None else schema.report(),
        seconds=result.seconds,
        config=config,
        environment=environment,
        notes=[str(note) for note in (*said, *notes)],
    )


def clean(text: str, most: int = 100) -> str:
    """A name of bounded length that can be written as UTF-8."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def evaluated_nodes(fitted: Fitted) -> Evaluation | None:
    """The labelled test nodes; validation nodes if there are none; else None."""
    for name in ("test_mask", "val_mask"):
        chosen = fitted.data[name] & (fitted.data.y >= 0)
        if bool(chosen.any()):
            return Evaluation(SPLITS[name], chosen, int(chosen.sum()))
    return None


def model_scores(fitted: Fitted, evaluation: Evaluation) -> list[Row]:
    """The run's model first, then simpler models and always the largest class.

    ``balanced`` is the mean recall of the classes; ``clear`` says whether a model
    differs from the run's by more than chance.
    """
    data, mask, y = fitted.data, evaluation.mask, fitted.data.y
    ours = fitted.result.logits.argmax(dim=1)
    use = fitted.result.label_utilization
    others = ({} if use is None else {"lpa": use.lpa.cpu()}) | fitted.baselines
    models = {fitted.method: ours}
    models |= {n: others[n] for n in BASELINES if n in others and n != fitted.method}
    largest = int(torch.bincount(y[data.train_mask]).argmax())
    models["largest class"] = torch.full_like(y, largest)
    return [
        {
            "name": name,
            "title": BASELINES.get(name, name),
            "accuracy": accuracy(classes, y, mask),
            "balanced": recall_score(
                y[mask], classes[mask], labels=y[mask].unique(), average="macro",
                zero_division=0,
            ),
            "validation": accuracy(classes, y, data.val_mask),
            "clear": clearly_differs((ours == y)[mask], (classes == y)[mask]),
        }
        for name, classes in models.items()
    ]  # fmt: skip


def clearly_differs(right: Tensor, others_right: Tensor) -> bool:
    """Whether two models' accuracies differ by more than chance (McNemar's test).

    Of the nodes on which exactly one model is right, b are ours and c the other's: the
    difference is clear if |b − c| > 2·√(b + c).
    """
    b = int((right & ~others_right).sum())
    c = int((others_right & ~right).sum())
    return abs(b - c) > 2.0 * math.sqrt(b + c)


def class_scores(data: Data, confusion: Counts, names: list[str]) -> list[Row]:
    """Recall, precision and most frequent error of the true classes."""
    right, nodes = confusion.diagonal(), confusion.sum(axis=1)
    given, wrong = confusion.sum(axis=0), confusion - np.diag(right)
    labels = torch.bincount(data.y[data.train_mask], minlength=len(names))
    largest = np.argsort(-nodes, kind="stable")[:_MAX_CLASSES]
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


def _confusion(fitted: Fitted, evaluation: Evaluation) -> Counts:
    """Nodes per true and predicted class, c×c."""
    truth, logits = fitted.data.y[evaluation.mask], fitted.result.logits
    predicted = logits[evaluation.mask].argmax(dim=1)
    table: Counts = confusion_matrix(truth, predicted, labels=range(logits.size(1)))
    return table


def calibration(fitted: Fitted, evaluation: Evaluation, bins: int = 10) -> Calibration:
    """Confidence and accuracy in bins of equal width without the empty ones."""
    mask = evaluation.mask
    confidence, predicted = fitted.proba[mask].double().max(dim=1)
    right = (predicted == fitted.data.y[mask]).double()
    place = (confidence * bins).long().clamp(max=bins - 1)
    found = []
    for b in torch.unique(place).tolist():
        inside = place == b
        sure, share = float(confidence[inside].mean()), float(right[inside].mean())
        found.append((sure, share, int(inside.sum())))
    return Calibration(
        bins=found,
        confidence=float(confidence.mean()),
        accuracy=float(right.mean()),
        error=sum(size * abs(a - c) for c, a, size in found) / evaluation.nodes,
    )


def utilization_rows(
    fitted: Fitted, use: LabelUtilization, evaluation: Evaluation | None
) -> list[Row]:
    """The three kinds of nodes, with the accuracy of three models on each."""
    y, predicted = fitted.data.y, fitted.result.logits.argmax(dim=1)
    rows = []
    for name, kind in KINDS.items():
        chosen = use.status == kind
        tested = chosen & (evaluation.mask if evaluation else False)
        row = {
            "name": name,
            "nodes": int(chosen.sum()),
            "share": share(chosen),
            "tested": int(tested.sum()),
        }
        for model, classes in (
            ("model", predicted),
            ("gcn", use.gcn),
            ("lpa", use.lpa),
        ):
            row[model] = share(classes == y, tested)
        rows.append(row)
    return rows


def utilization_groups(
    context: DiagnosisContext, use: LabelUtilization | None
) -> tuple[dict[str, list[Row]], list[str]]:
    """Definition 1 in groups of nodes, and findings; what a loaded run can tell."""
    if use is None:
        return {}, []
    found: dict[str, Any] = {}
    if context.has_graph:
        found = diagnose(context)
    classes = found.get("classes") or by_class(use, context.data, context.names)
    sizes = sorted((row["nodes"] for row in classes), reverse=True)
    least = max(1, sizes[:_MAX_CLASSES][-1])
    groups = {
        "predicted class": [row for row in classes if row["nodes"] >= least],
        "number of neighbours": found.get("degrees"),
        "edges to the nearest label": found.get("distances"),
    }
    filled = {title: rows for title, rows in groups.items() if rows}
    return filled, found.get("findings", [])


def heat(context: DiagnosisContext) -> Heat | None:
    """Block means of Â and S*, exact; None if the run learned no graph."""
    learned, data = context.graph, context.data
    if learned is None:
        return None
    labels = data.y
    by_prediction = float((labels >= 0).double().mean()) < _FEW_LABELS
    if by_prediction:
        guessed = context.fitted.result.logits.argmax(dim=1)
        labels = torch.where(labels >= 0, labels, guessed)
    block, block_class = class_blocks(labels)
    graphs: dict[str, Propagation] = {}
    if context.has_graph:
        # Self-loops would outshine every edge.
        graphs["Original graph"] = GraphView(self_loops=False).adjacency(data)
    graphs["ELU graph"] = learned
    count = len(block_class)
    means = {title: block_means(graph, block, count) for title, graph in graphs.items()}
    nodes = int((labels >= 0).sum())
    return Heat(means, block_class.tolist(), nodes, by_prediction)


def suggestions(context: DiagnosisContext) -> list[Suggestion]:
    """The next nodes to label; none without the graph or on a very large one."""
    if not context.has_graph or context.data.num_nodes > _SUGGEST_BELOW:
        return []
    try:
        return suggest_labels(context, _SUGGESTIONS)
    except InputError:  # every node has its label
        return []


def node_rows(
    context: DiagnosisContext, use: LabelUtilization | None
) -> tuple[list[Row], float]:
    """The nodes of the table, and the confidence below which a quarter of all lies.

    Of more than 2,000 nodes those to look at first: NELU and unreachable nodes, then
    the others, each with the least confident first.
    """
    data, names = context.data, context.names
    confidence, predicted = context.fitted.proba.max(dim=1)
    order = torch.argsort(confidence, stable=True)
    low = float(confidence[order[(len(order) - 1) // 4]])
    if use is not None and len(order) > TABLE_LIMIT:
        order = order[torch.argsort(use.elu[order].long(), stable=True)]
    kinds = [""] * len(order) if use is None else use.names()
    rows = []
    for i in order[:TABLE_LIMIT].tolist():
        label, best = int(data.y[i]), int(predicted[i])
        rows.append(
            {
                "id": context.ids[i],
                "label": names[label] if label >= 0 else "",
                "prediction": names[best],
                "confidence": float(confidence[i]),
                "utilization": kinds[i],
                "split": next((s for m, s in SPLITS.items() if data[m][i]), ""),
                "wrong": 0 <= label != best,
            }
        )
    return rows, low
