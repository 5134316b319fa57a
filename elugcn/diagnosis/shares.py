"""Shares and accuracies of ELU, NELU and unreachable nodes, in any groups of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.utilization import LabelUtilization, Utilization

STATUSES = (Utilization.ELU, Utilization.NELU, Utilization.UNREACHABLE)
# From the first number to below the next: as many bands as a graph needs, by doubling.
_DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)
_FAR = 5  # hops from which on distances are one band

Group = tuple[str, Tensor]


def diagnose(use: LabelUtilization, data: Data, names: list[str]) -> dict[str, Any]:
    """What Definition 1 says over all nodes and per class.

    Accuracies count the labelled nodes outside the training set; None where there are
    none. Classes are those the GCN predicts, so that unlabelled nodes count too.

    Args:
        use: Definition 1 for every node.
        data: The graph; its labels and training mask are read.
        names: Of the classes.
    """
    known = judged(data)
    overall = {}
    for status in STATUSES:
        chosen = use.status == status
        overall[status.name.lower()] = {
            "nodes": int(chosen.sum()),
            "share": share(chosen),
            "gcn_accuracy": share(use.gcn == data.y, chosen & known),
            "lpa_accuracy": share(use.lpa == data.y, chosen & known),
        }
    notes = []
    if bool(use.unreachable.any()):
        count = int(use.unreachable.sum())
        notes.append(
            f"no training label reaches {count:,} nodes: only their features speak"
        )
    return {
        "overall": overall,
        "classes": list(_classes(use, data, names)),
        "confusion": confusion(use, names),
        "notes": notes,
    }


def by_degree(use: LabelUtilization, data: Data) -> list[dict[str, Any]]:
    """The same for bands of the number of neighbours a node hears."""
    degree = torch.bincount(data.edge_index[1], minlength=int(data.num_nodes))
    ends = (*_DEGREES[1:], None)
    groups = []
    for low, end in zip(_DEGREES, ends, strict=True):
        if end is None:
            groups.append((f"{low}+", degree >= low))
        else:
            name = str(low) if end == low + 1 else f"{low}–{end - 1}"
            groups.append((name, (degree >= low) & (degree < end)))
    return group_rows(use, data, groups)


def by_distance(
    use: LabelUtilization, data: Data, distance: Tensor
) -> list[dict[str, Any]]:
    """The same for the number of edges to the nearest training label.

    ``distance`` is −1 where no path leads to one (``core.influence.hop_distance``).
    """
    groups = [(str(hops), distance == hops) for hops in range(_FAR)]
    groups += [(f"{_FAR}+", distance >= _FAR), ("none", distance < 0)]
    return group_rows(use, data, groups)


def group_rows(
    use: LabelUtilization, data: Data, groups: Iterable[Group]
) -> list[dict[str, Any]]:
    """A row a group of nodes; groups without nodes are left out."""
    return [row(use, data, *group) for group in groups if bool(group[1].any())]


def row(use: LabelUtilization, data: Data, name: str, chosen: Tensor) -> dict[str, Any]:
    """Shares of the three kinds among some nodes, and the GCN's accuracy on each."""
    known, right = judged(data) & chosen, use.gcn == data.y
    out: dict[str, Any] = {"name": name, "nodes": int(chosen.sum())}
    for status in STATUSES:
        out[status.name.lower()] = share(use.status == status, chosen)
    out["accuracy"] = share(right, known)
    for status in STATUSES:
        of = known & (use.status == status)
        out[f"{status.name.lower()}_accuracy"] = share(right, of)
    return out


def confusion(use: LabelUtilization, names: list[str]) -> dict[str, Any]:
    """Label propagation against the GCN: nodes of each pair of classes.

    ``counts[g][l]`` is the number of nodes that the GCN gives class g and label
    propagation class l; ``unreachable[g]`` those that no label reaches.
    """
    c = len(names)
    # Column 0 is "no class", so that −1 needs no case of its own.
    pairs = use.gcn * (c + 1) + use.lpa + 1
    table = torch.bincount(pairs, minlength=c * (c + 1)).reshape(c, c + 1)
    return {
        "classes": names,
        "counts": table[:, 1:].tolist(),
        "unreachable": table[:, 0].tolist(),
    }


def judged(data: Data) -> Tensor:
    """The nodes on which a prediction can be called right or wrong."""
    known: Tensor = (data.y >= 0) & ~data.train_mask
    return known


def share(condition: Tensor, among: Tensor | None = None) -> float | None:
    """Share of nodes that meet a condition; None among none."""
    values = condition if among is None else condition[among]
    return float(values.double().mean()) if values.numel() else None


def _classes(
    use: LabelUtilization, data: Data, names: list[str]
) -> Iterator[dict[str, Any]]:
    """A row a class, also for those that nobody is predicted to be."""
    for c, name in enumerate(names):
        predicted = use.gcn == c
        pulled = torch.bincount(use.lpa[predicted & use.nelu], minlength=1)
        to = int(pulled.argmax())
        some = bool(pulled.any())
        yield {
            **row(use, data, name, predicted),
            "labels": int((data.train_mask & (data.y == c)).sum()),
            "lpa_nodes": int((use.lpa == c).sum()),
            "pulled_to": names[to] if some else None,
            "pulled_share": float(pulled[to] / pulled.sum()) if some else None,
        }
