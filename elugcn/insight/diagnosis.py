"""Shares and accuracies of ELU, NELU and unreachable nodes, in any groups of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.insight.context import DiagnosisContext
from elugcn.insight.findings import findings
from elugcn.insight.graphs import compare_graphs

STATUSES = (Utilization.ELU, Utilization.NELU, Utilization.UNREACHABLE)
_DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)  # each band ends where the next begins
_FAR = 5  # edges from which on distances are one band


def diagnose(fitted: Fitted | DiagnosisContext) -> dict[str, Any]:
    """What the labels do in a graph, as values that JSON can hold.

    ``overall``, ``classes``, ``degrees``, ``distances``: shares of ELU, NELU and
    unreachable nodes and the accuracy on each. ``confusion``: label propagation against
    the GCN. ``graphs``: homophily and complexity of the original and the ELU graph.
    ``findings``: the most important of it in sentences.

    Classes are those the GCN predicts, so that unlabelled nodes count. Accuracies count
    labelled nodes outside the training set, and are None without any.

    Args:
        fitted: A fitted model, or its context.
    """
    context = DiagnosisContext.of(fitted)
    use, data, names = context.use, context.data, context.names
    unreachable = int(use.unreachable.sum())
    result: dict[str, Any] = {
        "overall": overall(use, data),
        "classes": list(by_class(use, data, names)),
        "confusion": confusion(use, names),
        "degrees": by_degree(use, data),
        "distances": by_distance(use, data, context.distance),
        "graphs": compare_graphs(context.problem, context.graph),
    }
    result["findings"] = findings(result)
    result["notes"] = (
        [f"no training label reaches {unreachable:,} nodes"] if unreachable else []
    )
    return result


def overall(use: LabelUtilization, data: Data) -> dict[str, dict[str, Any]]:
    """Number, share and accuracies of the nodes of each kind."""
    known = evaluated(data)
    out = {}
    for status in STATUSES:
        chosen = use.status == status
        out[status.name.lower()] = {
            "nodes": int(chosen.sum()),
            "share": share(chosen),
            "gcn_accuracy": share(use.gcn == data.y, chosen & known),
            "lpa_accuracy": share(use.lpa == data.y, chosen & known),
        }
    return out


def by_class(
    use: LabelUtilization, data: Data, names: list[str]
) -> Iterator[dict[str, Any]]:
    """One row per predicted class, also for classes that are never predicted.

    ``pulled_to`` is the class that label propagation gives to most of the class's NELU
    nodes, ``pulled_share`` the share of them.
    """
    for c, name in enumerate(names):
        predicted = use.gcn == c
        pulled = torch.bincount(use.lpa[predicted & use.nelu], minlength=1)
        to, some = int(pulled.argmax()), bool(pulled.any())
        yield {
            **group_row(use, data, name, predicted),
            "labels": int((data.train_mask & (data.y == c)).sum()),
            "lpa_nodes": int((use.lpa == c).sum()),
            "pulled_to": names[to] if some else None,
            "pulled_share": float(pulled[to] / pulled.sum()) if some else None,
        }


def by_degree(use: LabelUtilization, data: Data) -> list[dict[str, Any]]:
    """One row per band of the number of incoming edges."""
    degree = torch.bincount(data.edge_index[1], minlength=int(data.num_nodes))
    groups = []
    for low, end in zip(_DEGREES, (*_DEGREES[1:], None), strict=True):
        if end is None:
            groups.append((f"{low}+", degree >= low))
        else:
            name = str(low) if end == low + 1 else f"{low}–{end - 1}"
            groups.append((name, (degree >= low) & (degree < end)))
    return _filled_rows(use, data, groups)


def by_distance(
    use: LabelUtilization, data: Data, distance: Tensor
) -> list[dict[str, Any]]:
    """One row per number of edges to the nearest training label (−1: no path)."""
    groups = [(str(hops), distance == hops) for hops in range(_FAR)]
    groups += [(f"{_FAR}+", distance >= _FAR), ("none", distance < 0)]
    return _filled_rows(use, data, groups)


def group_row(
    use: LabelUtilization, data: Data, name: str, chosen: Tensor
) -> dict[str, Any]:
    """Shares of the three kinds among some nodes, and the GCN's accuracy on each."""
    known, right = evaluated(data) & chosen, use.gcn == data.y
    out: dict[str, Any] = {"name": name, "nodes": int(chosen.sum())}
    for status in STATUSES:
        kind = use.status == status
        out[status.name.lower()] = share(kind, chosen)
        out[f"{status.name.lower()}_accuracy"] = share(right, known & kind)
    out["accuracy"] = share(right, known)
    return out


def confusion(use: LabelUtilization, names: list[str]) -> dict[str, Any]:
    """Label propagation against the GCN: nodes per pair of classes.

    ``counts[g][l]`` is the number of nodes that the GCN gives class g and label
    propagation class l; ``unreachable[g]`` those that no label reaches.
    """
    c = len(names)
    # Column 0 holds class −1.
    pairs = use.gcn * (c + 1) + use.lpa + 1
    table = torch.bincount(pairs, minlength=c * (c + 1)).reshape(c, c + 1)
    return {
        "classes": names,
        "counts": table[:, 1:].tolist(),
        "unreachable": table[:, 0].tolist(),
    }


def evaluated(data: Data) -> Tensor:
    """Labelled nodes outside the training set."""
    known: Tensor = (data.y >= 0) & ~data.train_mask
    return known


def share(condition: Tensor, among: Tensor | None = None) -> float | None:
    """Share of nodes that meet a condition; None if there are no nodes."""
    values = condition if among is None else condition[among]
    return float(values.double().mean()) if values.numel() else None


def _filled_rows(
    use: LabelUtilization, data: Data, groups: Iterable[tuple[str, Tensor]]
) -> list[dict[str, Any]]:
    return [group_row(use, data, *group) for group in groups if bool(group[1].any())]
