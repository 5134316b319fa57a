"""What a report shows, as plain values. The template only arranges them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from elugcn.api import Fitted
from elugcn.api.runs import SPLIT_NAMES
from elugcn.data.tables import TableSchema
from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.utilization import Utilization
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, Suggestion, diagnose, suggest_labels
from elugcn.insight.diagnosis import KINDS, by_class, overall, share
from elugcn.insight.graphs import block_means, class_blocks, inside_share
from elugcn.methods.problem import GraphView

MODELS = {"gcn": "GCN", "mlp": "MLP", "lpa": "label propagation"}
TABLE_LIMIT = 2000
_MAX_CLASSES = 40  # listed in a table
_MAX_CONFUSION = 15  # classes of a confusion matrix that can be read
_MAX_LETTERS = 100  # of a name
_SUGGESTIONS, _SUGGEST_BELOW = 10, 200_000  # nodes; the choice holds n×256 numbers
_FEW_LABELS = 0.5


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
class Score:
    """A model on the evaluated nodes; ``clear`` if it clearly differs from the run's.

    ``balanced`` is the balanced accuracy, the mean recall of the classes.
    """

    name: str
    accuracy: float
    balanced: float
    validation: float | None
    clear: bool | None = None


@dataclass(frozen=True)
class ClassScore:
    """How well the nodes of one true class are found."""

    name: str
    labels: int
    nodes: int
    recall: float | None
    precision: float | None
    confused_with: str | None


@dataclass(frozen=True)
class Calibration:
    """Confidence beside accuracy, in bins of equal width without the empty ones.

    ``error`` is the expected calibration error, Σ_b (n_b/n)·|accuracy − confidence|.
    """

    confidences: list[float]
    accuracies: list[float]
    counts: list[int]
    confidence: float
    accuracy: float
    error: float


@dataclass(frozen=True)
class Heat:
    """Both graphs as mean entries of the same blocks of nodes, by class.

    ``graphs`` holds title, means and the share of weight inside classes per graph;
    ``chance`` is the share of pairs of nodes of one class.
    """

    graphs: list[tuple[str, Tensor, float | None]]
    block_class: list[int]
    nodes: int
    chance: float
    by_prediction: bool


@dataclass(frozen=True)
class NodeRow:
    """A node of the table."""

    id: str
    label: str
    prediction: str
    confidence: float
    utilization: str
    split: str
    wrong: bool


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
    scores: list[Score]
    confusion: list[list[int]]
    class_scores: list[ClassScore]
    calibration: Calibration | None
    lpa_steps: int
    statuses: list[dict[str, Any]]
    groups: dict[str, list[dict[str, Any]]]
    findings: list[str]
    heat: Heat | None
    history: list[dict[str, float]]
    best_epoch: int | None
    suggestions: list[Suggestion]
    rows: list[NodeRow]
    low_confidence: float
    columns: list[dict[str, Any]]
    config: str
    facts: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)


def collect(
    fitted: Fitted,
    metrics: Mapping[str, Any],
    config: str = "",
    environment: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> Content:
    """Everything that the report of a run shows."""
    context = DiagnosisContext(fitted)
    data, result = fitted.data, fitted.result
    names = [clean(name) for name in context.names]
    evaluation = evaluated_nodes(fitted)
    predicted = result.logits.argmax(dim=1)
    counts = None
    if evaluation is not None:
        mask, c = evaluation.mask, len(names)
        pairs = data.y[mask] * c + predicted[mask]
        counts = torch.bincount(pairs, minlength=c * c).reshape(c, c)
    best = result.metadata.get("best_epoch")
    seconds = {f"seconds: {k}": round(v, 2) for k, v in result.seconds.items()}
    rows, low = node_rows(fitted, names, context.ids)
    return Content(
        dataset=clean(str(metrics.get("dataset", ""))),
        method=fitted.method,
        n_nodes=int(data.num_nodes),
        n_edges=_whole(metrics.get("n_edges")),
        n_labels=int(data.train_mask.sum()),
        names=names,
        evaluation=evaluation,
        scores=[] if evaluation is None else scores(fitted, evaluation),
        confusion=(
            [] if counts is None or len(names) > _MAX_CONFUSION else counts.tolist()
        ),
        class_scores=[] if counts is None else class_scores(fitted, counts, names),
        calibration=None if evaluation is None else calibration(fitted, evaluation),
        lpa_steps=context.steps,
        **_label_use(context, predicted, evaluation),
        heat=heat(context),
        history=result.history,
        # Without validation nodes, nothing selected the epoch.
        best_epoch=best if isinstance(best, int) and data.val_mask.any() else None,
        suggestions=suggestions(context),
        rows=rows,
        low_confidence=low,
        columns=table_columns(data),
        config=config,
        facts=_flat(seconds) + _flat(environment or {}),
        notes=[clean(n, 500) for n in (*_strings(metrics.get("notes")), *notes)],
    )


def clean(text: str, most: int = _MAX_LETTERS) -> str:
    """A name of bounded length that can be written as UTF-8."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def evaluated_nodes(fitted: Fitted) -> Evaluation | None:
    """The labelled test nodes; validation nodes if there are none; else None."""
    data = fitted.data
    for name, mask in (("test", data.test_mask), ("validation", data.val_mask)):
        chosen = mask & (data.y >= 0)
        if bool(chosen.any()):
            return Evaluation(name, chosen, int(chosen.sum()))
    return None


def scores(fitted: Fitted, evaluation: Evaluation) -> list[Score]:
    """The run's model first, then simpler models and always the largest class."""
    data, mask, y = fitted.data, evaluation.mask, fitted.data.y
    ours = fitted.result.logits.argmax(dim=1)
    known = data.val_mask & (y >= 0)
    largest = torch.full_like(y, int(torch.bincount(y[data.train_mask]).argmax()))
    use = fitted.result.label_utilization
    others = {} if use is None else {"lpa": use.lpa.cpu()}
    others |= fitted.baselines
    others.pop(fitted.method, None)

    def score(name: str, classes: Tensor, clear: bool | None = None) -> Score:
        right = classes == y
        recall = [right[mask & (y == c)].double().mean() for c in y[mask].unique()]
        accuracy = float(right[mask].double().mean())
        balanced = float(torch.stack(recall).mean())
        return Score(name, accuracy, balanced, share(right, known), clear)

    out = [score(fitted.method, ours)]
    for name in MODELS:
        if name in others:
            clear = clearly_differs(ours, others[name], y, mask)
            out.append(score(name, others[name], clear))
    return [*out, score("largest class", largest)]


def clearly_differs(ours: Tensor, other: Tensor, y: Tensor, mask: Tensor) -> bool:
    """Whether two models' accuracies differ by more than chance (McNemar's test).

    Of the nodes on which exactly one model is right, b are ours and c the other's: the
    difference is clear if |b − c| > 2·√(b + c).
    """
    right, others_right = (ours == y)[mask], (other == y)[mask]
    b = int((right & ~others_right).sum())
    c = int((others_right & ~right).sum())
    return abs(b - c) > 2.0 * math.sqrt(b + c)


def class_scores(fitted: Fitted, counts: Tensor, names: list[str]) -> list[ClassScore]:
    """One row per true class, from the confusion counts (true × predicted)."""
    data = fitted.data
    labels = torch.bincount(data.y[data.train_mask], minlength=len(names)).tolist()
    size, given = counts.sum(dim=1).tolist(), counts.sum(dim=0).tolist()
    wrong = counts.clone().fill_diagonal_(0)
    out = []
    for c, name in enumerate(names):
        right = int(counts[c, c])
        confused = int(wrong[c].argmax()) if bool(wrong[c].any()) else None
        out.append(
            ClassScore(
                name=name,
                labels=labels[c],
                nodes=size[c],
                recall=right / size[c] if size[c] else None,
                precision=right / given[c] if given[c] else None,
                confused_with=None if confused is None else names[confused],
            )
        )
    largest = sorted(out, key=lambda row: -row.nodes)[:_MAX_CLASSES]
    return [row for row in out if row in largest]


def calibration(fitted: Fitted, evaluation: Evaluation, bins: int = 10) -> Calibration:
    """Confidence and accuracy on the evaluated nodes, O(n·c)."""
    mask = evaluation.mask
    confidence, predicted = fitted.proba[mask].double().max(dim=1)
    right = (predicted == fitted.data.y[mask]).double()
    place = (confidence * bins).long().clamp(max=bins - 1)
    counts = torch.bincount(place, minlength=bins)
    filled = counts > 0
    size = counts[filled].double()
    mean = torch.bincount(place, confidence, bins)[filled] / size
    accuracy = torch.bincount(place, right, bins)[filled] / size
    return Calibration(
        confidences=mean.tolist(),
        accuracies=accuracy.tolist(),
        counts=counts[filled].tolist(),
        confidence=float(confidence.mean()),
        accuracy=float(right.mean()),
        error=float((size * (accuracy - mean).abs()).sum() / size.sum()),
    )


def _label_use(
    context: DiagnosisContext, predicted: Tensor, evaluation: Evaluation | None
) -> dict[str, Any]:
    """What Definition 1 says; empty for a loaded run without it."""
    data = context.data
    if context.has_graph:
        found = diagnose(context)
    elif context.fitted.result.label_utilization is not None:
        use = context.use
        found = {
            "overall": overall(use, data),
            "classes": by_class(use, data, context.names),
        }
    else:
        return {"statuses": [], "groups": {}, "findings": []}
    use, statuses = context.use, []
    for name, status in KINDS.items():
        chosen = use.status == status
        tested = chosen & (evaluation.mask if evaluation else False)
        statuses.append(
            {
                "name": name,
                "nodes": int(chosen.sum()),
                "share": share(chosen),
                "tested": int(tested.sum()),
                "model": share(predicted == data.y, tested),
                "gcn": share(use.gcn == data.y, tested),
                "lpa": share(use.lpa == data.y, tested),
            }
        )
    classes = sorted(found["classes"], key=lambda row: -row["nodes"])[:_MAX_CLASSES]
    groups = {
        "predicted class": [
            row | {"name": clean(row["name"])}
            for row in found["classes"]
            if row in classes and row["nodes"]
        ],
        "number of neighbours": found.get("degrees", []),
        "edges to the nearest label": found.get("distances", []),
    }
    return {
        "statuses": statuses,
        "groups": {title: rows for title, rows in groups.items() if rows},
        "findings": [clean(text, 500) for text in found.get("findings", [])],
    }


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
    count = block_class.numel()
    graphs: list[tuple[str, ELUGraph | CSR]] = [("ELU graph", learned)]
    if context.has_graph:
        # Self-loops would outshine every edge.
        adj = GraphView(self_loops=False).adjacency(data)
        graphs.insert(0, ("Original graph", adj))
    size = torch.bincount(labels[labels >= 0]).double()
    return Heat(
        graphs=[
            (title, block_means(graph, block, count), inside_share(graph, labels))
            for title, graph in graphs
        ],
        block_class=block_class.tolist(),
        nodes=int(size.sum()),
        chance=float((size**2).sum() / size.sum() ** 2),
        by_prediction=by_prediction,
    )


def suggestions(context: DiagnosisContext) -> list[Suggestion]:
    """The next nodes to label; none without the graph or on a very large one."""
    if not context.has_graph or context.data.num_nodes > _SUGGEST_BELOW:
        return []
    try:
        return suggest_labels(context, _SUGGESTIONS)
    except InputError:  # every node has its label
        return []


def node_rows(
    fitted: Fitted, names: list[str], ids: list[str]
) -> tuple[list[NodeRow], float]:
    """The nodes of the table, and the confidence below which a quarter of all lies.

    Of more than 2,000 nodes those to look at first: NELU and unreachable nodes, then
    the others, each with the least confident first.
    """
    data, use = fitted.data, fitted.result.label_utilization
    confidence, predicted = fitted.proba.max(dim=1)
    order = torch.argsort(confidence, stable=True)
    low = float(confidence[order[(len(order) - 1) // 4]])
    status = None if use is None else use.status.cpu()
    if status is not None and len(order) > TABLE_LIMIT:
        elu = (status == Utilization.ELU)[order]
        order = order[torch.argsort(elu, stable=True)]
    kinds = [] if use is None else use.names()
    rows = []
    for i in order[:TABLE_LIMIT].tolist():
        label, best = int(data.y[i]), int(predicted[i])
        rows.append(
            NodeRow(
                id=clean(ids[i]),
                label=names[label] if label >= 0 else "",
                prediction=names[best],
                confidence=float(confidence[i]),
                utilization=kinds[i] if kinds else "",
                split=next((s for m, s in SPLIT_NAMES.items() if data[m][i]), ""),
                wrong=0 <= label != best,
            )
        )
    return rows, low


def table_columns(data: Any) -> list[dict[str, Any]]:
    """What each column of a node table became; empty for other graphs."""
    schema: TableSchema | None = getattr(data, "table_schema", None)
    rows = [] if schema is None else schema.report()
    return [row | {"column": clean(row["column"])} for row in rows]


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of nested facts, without the unknown ones."""
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            out += _flat(value)
        elif isinstance(value, bool):
            out.append((clean(str(key)), "yes" if value else "no"))
        elif value is not None:
            out.append((clean(str(key)), clean(str(value), 300)))
    return out


def _strings(found: Any) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list | tuple) else []


def _whole(found: Any) -> int:
    return found if isinstance(found, int) else 0
