"""Shares and accuracies of ELU, NELU and unreachable nodes, in groups of nodes."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.insight.context import DiagnosisContext
from elugcn.insight.findings import counted, findings
from elugcn.insight.graphs import compare_graphs

KINDS = {u.name.lower(): u for u in reversed(Utilization)}  # elu, nelu, unreachable
_DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)  # each band ends where the next begins
_FAR = 5  # edges from which on distances are one band

Row = dict[str, Any]


def diagnose(fitted: Fitted | DiagnosisContext) -> dict[str, Any]:
    """What the labels do in a graph, as values that JSON can hold.

    ``overall``, ``classes``, ``degrees``, ``distances``: shares of ELU, NELU and
    unreachable nodes and the accuracy on each. ``confusion``: label propagation against
    the GCN. ``graphs``: homophily and complexity of the original and the ELU graph.
    ``findings``: the most important of it in sentences.

    Classes are those the GCN predicts, so that unlabelled nodes count. Accuracies count
    labelled nodes outside the training set, and are None without any.
    """
    context = DiagnosisContext.of(fitted)
    problem, use, data = context.problem, context.use, context.data
    result: Row = {
        "overall": overall(use, data),
        "classes": by_class(use, data, context.names),
        "confusion": confusion(use, context.names),
        "degrees": by_degree(use, data),
        "distances": by_distance(use, data, context.distance),
        "graphs": compare_graphs(problem, context.graph),
    }
    result["findings"] = findings(result)
    unreachable = result["overall"]["unreachable"]["nodes"]
    note = f"no training label reaches {counted(unreachable, 'node')}"
    result["notes"] = [note] if unreachable else []
    return result


def overall(use: LabelUtilization, data: Data) -> dict[str, Row]:
    """Number, share and accuracies of the nodes of each kind."""
    known, out = evaluated(data), {}
    for name, kind in KINDS.items():
        chosen = use.status == kind
        out[name] = {
            "nodes": int(chosen.sum()),
            "share": share(chosen),
            "gcn_accuracy": share(use.gcn == data.y, chosen & known),
            "lpa_accuracy": share(use.lpa == data.y, chosen & known),
        }
    return out


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


def by_degree(use: LabelUtilization, data: Data) -> list[Row]:
    """One row per band of the number of incoming edges."""
    degree = torch.bincount(data.edge_index[1], minlength=int(data.num_nodes))
    groups = {}
    for low, end in pairwise(_DEGREES):
        name = str(low) if end == low + 1 else f"{low}–{end - 1}"
        groups[name] = (degree >= low) & (degree < end)
    groups[f"{_DEGREES[-1]}+"] = degree >= _DEGREES[-1]
    return _filled_rows(use, data, groups)


def by_distance(use: LabelUtilization, data: Data, distance: Tensor) -> list[Row]:
    """One row per number of edges to the nearest training label (−1: no path)."""
    groups = {str(hops): distance == hops for hops in range(_FAR)}
    groups |= {f"{_FAR}+": distance >= _FAR, "none": distance < 0}
    return _filled_rows(use, data, groups)


def _filled_rows(
    use: LabelUtilization, data: Data, groups: Mapping[str, Tensor]
) -> list[Row]:
    return [_group_row(use, data, *g) for g in groups.items() if bool(g[1].any())]


def _group_row(use: LabelUtilization, data: Data, name: str, chosen: Tensor) -> Row:
    """Shares of the three kinds among some nodes, and the GCN's accuracy on each."""
    known, right = evaluated(data) & chosen, use.gcn == data.y
    out: Row = {"name": name, "nodes": int(chosen.sum())}
    for kind_name, kind in KINDS.items():
        out[kind_name] = share(use.status == kind, chosen)
        out[f"{kind_name}_accuracy"] = share(right, known & (use.status == kind))
    return out | {"accuracy": share(right, known)}


def confusion(use: LabelUtilization, names: list[str]) -> dict[str, Any]:
    """Label propagation against the GCN: nodes per pair of classes.

    ``counts[g][l]`` is the number of nodes that the GCN gives class g and label
    propagation class l; ``unreachable[g]`` those that no label reaches.
    """
    c = len(names)
    pairs = use.gcn * (c + 1) + use.lpa + 1  # column 0 holds class −1
    table = torch.bincount(pairs, minlength=c * (c + 1)).reshape(c, c + 1)
    none, counts = table[:, 0].tolist(), table[:, 1:].tolist()
    return {"classes": names, "counts": counts, "unreachable": none}


def evaluated(data: Data) -> Tensor:
    """Labelled nodes outside the training set."""
    known: Tensor = (data.y >= 0) & ~data.train_mask
    return known


def share(condition: Tensor, among: Tensor | None = None) -> float | None:
    """Share of nodes that meet a condition; None if there are no nodes."""
    values = condition if among is None else condition[among]
    return float(values.double().mean()) if values.numel() else None
