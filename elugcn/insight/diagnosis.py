"""Shares and accuracies of ELU, NELU and unreachable nodes, in groups of nodes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.insight.context import DiagnosisContext
from elugcn.insight.findings import findings
from elugcn.insight.graphs import compare_graphs

KINDS = {u.name.lower(): u for u in reversed(Utilization)}  # elu, nelu, unreachable
# Each band ends where the next begins.
_DEGREES, _DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64), (0, 1, 2, 3, 4, 5)

Row = dict[str, Any]


def diagnose(fitted: Fitted | DiagnosisContext) -> dict[str, Any]:
    """What the labels do in a graph, as values that JSON can hold.

    ``model`` names what is compared with label propagation: a GCN, or the linear model
    of ``auto``. It is called GCN below.

    ``overall``, ``classes``, ``degrees``, ``distances``: shares of ELU, NELU and
    unreachable nodes, and accuracies. ``confusion``: nodes per pair of classes, label
    propagation against the GCN. ``graphs``: homophily and complexity of the original
    and the ELU graph. ``findings``: the most important of it in sentences.

    Classes are those the GCN predicts, so that unlabelled nodes count. Accuracies count
    labelled nodes outside the training set, and are None without any.
    """
    context = DiagnosisContext.of(fitted)
    problem, use, data = context.problem, context.use, context.data
    degree = torch.bincount(data.edge_index[1], minlength=problem.num_nodes)
    result: Row = {
        "model": context.model,
        "overall": overall(use, data),
        "classes": by_class(use, data, context.names),
        "confusion": confusion(use, context.names),
        "degrees": by_band(use, data, degree, _DEGREES),
        "distances": by_band(use, data, context.distance, _DISTANCES),
        "graphs": compare_graphs(problem, context.graph),
    }
    return result | {"findings": findings(result)}


def overall(use: LabelUtilization, data: Data, **others: Tensor) -> dict[str, Row]:
    """The nodes of each kind: number, share, how many test accuracies, accuracies.

    The accuracies are those of both predictions of Definition 1, and of others.
    """
    rows = {}
    for name, kind in KINDS.items():
        chosen = use.status == kind
        known = chosen & evaluated(data)
        rows[name] = {
            "nodes": int(chosen.sum()),
            "share": share(chosen),
            "tested": int(known.sum()),
        }
        for model, classes in {"gcn": use.gcn, "lpa": use.lpa, **others}.items():
            rows[name][f"{model}_accuracy"] = share(classes == data.y, known)
    return rows


def by_class(use: LabelUtilization, data: Data, names: list[str]) -> list[Row]:
    """One row per predicted class, also for classes that are never predicted.

    ``pulled_to`` is the class that label propagation gives to most of the class's NELU
    nodes, ``pulled_share`` the share of them.
    """
    rows = []
    for c, name in enumerate(names):
        row = _group_row(use, data, name, use.gcn == c)
        row["labels"] = int((data.train_mask & (data.y == c)).sum())
        row["lpa_nodes"] = int((use.lpa == c).sum())
        pulled = use.lpa[(use.gcn == c) & use.nelu]
        to = int(torch.bincount(pulled, minlength=1).argmax())
        row["pulled_to"] = names[to] if pulled.numel() else None
        row["pulled_share"] = share(pulled == to)
        rows.append(row)
    return rows


def confusion(use: LabelUtilization, names: list[str]) -> Row:
    """Nodes per class of the GCN and of label propagation, or that no label reaches."""
    c = len(names)
    pairs = use.gcn * (c + 1) + use.lpa + 1  # column 0 holds class −1
    table = torch.bincount(pairs, minlength=c * (c + 1)).reshape(c, c + 1)
    none, counts = table[:, 0].tolist(), table[:, 1:].tolist()
    return {"classes": names, "counts": counts, "unreachable": none}


def by_band(
    use: LabelUtilization, data: Data, values: Tensor, starts: Sequence[int]
) -> list[Row]:
    """One row per band of values that has nodes; −1 is in a band of its own."""
    groups = {}
    for low, end in pairwise(starts):
        name = str(low) if end == low + 1 else f"{low}–{end - 1}"
        groups[name] = (values >= low) & (values < end)
    groups |= {f"{starts[-1]}+": values >= starts[-1], "none": values < 0}
    return [_group_row(use, data, *g) for g in groups.items() if bool(g[1].any())]


def _group_row(use: LabelUtilization, data: Data, name: str, chosen: Tensor) -> Row:
    """Shares of the three kinds among some nodes, and the GCN's accuracy on them."""
    shares = {key: share(use.status == kind, chosen) for key, kind in KINDS.items()}
    accuracy = share(use.gcn == data.y, chosen & evaluated(data))
    return {"name": name, "nodes": int(chosen.sum()), **shares, "accuracy": accuracy}


def evaluated(data: Data) -> Tensor:
    """Labelled nodes outside the training set."""
    known: Tensor = (data.y >= 0) & ~data.train_mask
    return known


def share(condition: Tensor, among: Tensor | None = None) -> float | None:
    """Share of nodes that meet a condition; None if there are no nodes."""
    values = condition if among is None else condition[among]
    return float(values.double().mean()) if values.numel() else None
