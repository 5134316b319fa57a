"""What a report shows, as plain values. The template only arranges them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from elugcn.api import Fitted
from elugcn.elu.label_propagation import Propagation
from elugcn.elu.utilization import LabelUtilization
from elugcn.errors import InputError
from elugcn.insight import (
    DiagnosisContext,
    Members,
    Suggestion,
    diagnose,
    suggest_labels,
)
from elugcn.insight.diagnosis import by_class, overall
from elugcn.insight.graphs import block_means, class_blocks
from elugcn.methods.problem import GraphView
from elugcn.report.evaluation import MAX_CLASSES, Evaluation, Row, evaluate

SPLITS = {"train_mask": "training", "val_mask": "validation", "test_mask": "test"}
TABLE_LIMIT = 2000
_SUGGESTIONS, _SUGGEST_BELOW = 10, 200_000  # nodes; the choice holds n×256 numbers
_FEW_LABELS = 0.5


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
    n_judged: int  # nodes that judged the model
    names: list[str]
    evaluation: Evaluation | None
    members: Members | None
    lpa_steps: int
    model: str  # what is compared with label propagation
    statuses: list[Row]
    groups: dict[str, list[Row]]
    findings: list[str]
    heat: Heat | None
    history: list[dict[str, float]]
    metric: str
    best_epoch: int | None
    suggestions: list[Suggestion]
    rows: list[Row]
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
    names = context.names = [shorten(name) for name in context.names]
    data, result = fitted.data, fitted.result
    # A saved model keeps Definition 1 but not the graph. Without it, a GCN is needed.
    gcn = fitted.method == "gcn" or "gcn" in fitted.baselines
    known = (context.has_graph and gcn) or result.label_utilization is not None
    use = context.use if known else None
    found = diagnose(context) if known and context.has_graph else {}
    model = result.logits.argmax(dim=1)
    kinds = {} if use is None else overall(use, context.data, model=model)
    best, schema = result.metadata.get("best_epoch"), data.get("table_schema", None)
    edges, said = metrics.get("n_edges"), metrics.get("notes")
    said = said if isinstance(said, list) else []
    return Content(
        dataset=shorten(str(metrics.get("dataset", ""))),
        method=fitted.method,
        n_nodes=int(data.num_nodes),
        n_edges=edges if isinstance(edges, int) else 0,
        n_labels=int(data.train_mask.sum()),
        n_judged=len(fitted.validation()[0]),
        names=names,
        evaluation=evaluate(fitted, names),
        members=members_of(metrics),
        lpa_steps=context.steps,
        model=context.model,
        statuses=[{"name": kind} | row for kind, row in kinds.items()],
        groups={} if use is None else utilization_groups(context, use, found),
        findings=found.get("findings", []),
        heat=heat(context),
        history=result.history,
        metric=fitted.metric,
        # Without validation nodes, nothing selected the epoch.
        best_epoch=best if isinstance(best, int) and data.val_mask.any() else None,
        suggestions=[] if use is None else suggestions(context),
        rows=node_rows(context, use),
        columns=[
            row | {"column": shorten(row["column"])}
            for row in (schema.report() if schema is not None else ())
        ],
        seconds=result.seconds,
        config=config,
        environment=environment,
        notes=[shorten(str(note), 500) for note in (*said, *notes)],
    )


def members_of(metrics: Mapping[str, Any]) -> Members | None:
    """What `auto` tried, with names that fit; None for other methods."""
    members = Members.of(metrics.get("details"))
    for trial in () if members is None else members.trials:
        trial.name, trial.method = shorten(trial.name), shorten(trial.method)
    return members


def shorten(text: str, most: int = 100) -> str:
    """A name on one line, of bounded length, that can be written as UTF-8."""
    text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def utilization_groups(
    context: DiagnosisContext, use: LabelUtilization, found: dict[str, Any]
) -> dict[str, list[Row]]:
    """Definition 1 in groups of nodes; of a loaded run, per class only."""
    classes = by_class(use, context.data, context.names)
    sizes = sorted((row["nodes"] for row in classes), reverse=True)
    least = max(1, sizes[:MAX_CLASSES][-1])
    groups = {
        "predicted class": [row for row in classes if row["nodes"] >= least],
        "number of neighbours": found.get("degrees"),
        "edges to the nearest label": found.get("distances"),
    }
    return {title: rows for title, rows in groups.items() if rows}


def heat(context: DiagnosisContext) -> Heat | None:
    """Block means of Â and S*, exact; None if the run learned no graph."""
    learned, data, labels = context.graph, context.data, context.data.y
    if learned is None:
        return None
    by_prediction = float((labels >= 0).double().mean()) < _FEW_LABELS
    if by_prediction:
        guessed = context.fitted.result.logits.argmax(dim=1)
        labels = torch.where(labels >= 0, labels, guessed)
    block, block_class = class_blocks(labels)
    graphs: dict[str, Propagation] = {"ELU graph": learned}
    if context.has_graph:
        # Self-loops would outshine every edge.
        original = GraphView(self_loops=False).adjacency(data)
        graphs = {"Original graph": original} | graphs
    count = len(block_class)
    means = {title: block_means(graph, block, count) for title, graph in graphs.items()}
    nodes = int((labels >= 0).sum())
    return Heat(means, block_class.tolist(), nodes, by_prediction)


def suggestions(context: DiagnosisContext) -> list[Suggestion]:
    """The next nodes to label; none without the graph or on a very large one."""
    if not context.has_graph or context.data.num_nodes > _SUGGEST_BELOW:
        return []
    try:
        found = suggest_labels(context, _SUGGESTIONS)
    except InputError:  # every node has its label
        return []
    return [replace(one, node=shorten(one.node)) for one in found]


def node_rows(context: DiagnosisContext, use: LabelUtilization | None) -> list[Row]:
    """The nodes of the table, the least confident first.

    Of more than 2,000 nodes those to look at first: NELU and unreachable nodes, then
    the others.
    """
    data, names = context.data, context.names
    confidence, predicted = context.fitted.proba.max(dim=1)
    parts = context.fitted.data  # as they were drawn
    order = torch.argsort(confidence, stable=True)
    if use is not None and len(order) > TABLE_LIMIT:
        order = order[torch.argsort(use.elu[order].long(), stable=True)]
    kinds = [""] * len(order) if use is None else use.names()
    rows = []
    for i in order[:TABLE_LIMIT].tolist():
        label, best = int(data.y[i]), int(predicted[i])
        rows.append(
            {
                "id": shorten(context.ids[i]),
                "label": names[label] if label >= 0 else "",
                "prediction": names[best],
                "confidence": float(confidence[i]),
                "utilization": kinds[i],
                "split": next((s for m, s in SPLITS.items() if parts[m][i]), ""),
                "wrong": 0 <= label != best,
            }
        )
    return rows
