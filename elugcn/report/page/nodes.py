"""Which nodes the page carries, and what it knows of each: columns of plain numbers."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elugcn.core.utilization import Utilization
from elugcn.fitting import Fitted
from elugcn.report.page.embedding import node_map
from elugcn.runs import SPLIT_NAMES

MAP_LIMIT = 4000
TABLE_LIMIT = 5000
# Bytes of ids the table and the map may carry: ids may be of any length.
_ID_BUDGET = 500_000
SPLITS = (*SPLIT_NAMES.values(), "")
_LOW = 0.25


@dataclass(frozen=True)
class Nodes:
    """The nodes of the page in columns; classes and splits by number.

    Attributes:
        columns: ``id``, ``label`` (−1 unknown), ``prediction``, ``confidence`` (per
            mille), ``utilization`` (None where the method has none), ``split``, and
            ``x``, ``y`` (0 to 1000) of those on the map, None elsewhere.
        table: Rows of the table, by place in the columns.
        mapped: Rows on the map.
        corners: Place of each class's corner, on the scale of x and y.
        total: Nodes of the graph.
        low: Whole percent below which the least sure quarter of all nodes lies.
    """

    columns: dict[str, list[Any] | None]
    table: list[int]
    mapped: list[int]
    corners: list[list[int]]
    total: int
    low: int


def select_nodes(fitted: Fitted) -> Nodes:
    """Choose and describe the nodes; O(n·c), and sorting."""
    data, prediction = fitted.data, fitted.prediction
    n = int(data.num_nodes)
    proba = prediction.proba
    confidence, best = proba.max(dim=1)
    ids = getattr(data, "node_ids", None)
    for_table = _table_nodes(fitted, confidence, ids)
    for_map = _map_nodes(n, ids)
    chosen = torch.unique(torch.cat([for_table, for_map]))  # ascending
    place = torch.full((n,), -1)
    place[chosen] = torch.arange(chosen.numel())
    points, corners = _scaled(*node_map(proba[for_map]))
    xy = torch.full((chosen.numel(), 2), -1)
    xy[place[for_map]] = points
    use = prediction.utilization
    columns: dict[str, list[Any] | None] = {
        "id": [str(i) if ids is None else str(ids[i]) for i in chosen.tolist()],
        "label": data.y[chosen].tolist(),
        "prediction": best[chosen].tolist(),
        "confidence": _per_mille(confidence[chosen]).tolist(),
        "utilization": None if use is None else use.status.cpu()[chosen].tolist(),
        "split": _splits(fitted)[chosen].tolist(),
        "x": xy[:, 0].tolist(),
        "y": xy[:, 1].tolist(),
    }
    return Nodes(
        columns=columns,
        table=place[for_table].tolist(),
        mapped=place[for_map].tolist(),
        corners=corners.tolist(),
        total=n,
        low=_low(confidence),
    )


def embedded(value: Any) -> str:
    """JSON that can stand in a script element, whatever strings it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    # Half of a surrogate pair is no text and can't be written.
    return text.encode("utf-8", "replace").decode("utf-8")


def _table_nodes(fitted: Fitted, confidence: Tensor, ids: list[str] | None) -> Tensor:
    """All nodes, or those to look at first: NELU and unreachable, least sure first."""
    order = torch.argsort(confidence, stable=True)
    use = fitted.prediction.utilization
    if use is not None:
        used = (use.status.cpu() == Utilization.ELU).long()
        order = order[torch.argsort(used[order], stable=True)]
    return _affordable(order[:TABLE_LIMIT], ids).sort().values


def _map_nodes(n: int, ids: list[str] | None) -> Tensor:
    """All nodes, or a draw of them that is the same each time."""
    draw = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return _affordable(draw[:MAP_LIMIT], ids).sort().values


def _affordable(nodes: Tensor, ids: list[str] | None) -> Tensor:
    """The first nodes whose ids fit into the budget; one at least."""
    if ids is None:
        return nodes
    length = torch.tensor([len(embedded(str(ids[i])).encode()) for i in nodes.tolist()])
    return nodes[: max(1, int((length.cumsum(0) <= _ID_BUDGET).sum()))]


def _scaled(points: Tensor, corners: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one square of 0 to 1000, the proportions kept."""
    both = torch.cat([points, corners])
    low, high = both.min(dim=0).values, both.max(dim=0).values
    side = float((high - low).max()) or 1.0
    shift = (side - (high - low)) / 2
    fitted = (((both - low + shift) / side) * 1000).round().long()
    return fitted[: len(points)], fitted[len(points) :]


def _splits(fitted: Fitted) -> Tensor:
    out = torch.full((int(fitted.data.num_nodes),), len(SPLITS) - 1)
    for i, mask in enumerate(SPLIT_NAMES):
        out[fitted.data[mask]] = i
    return out


def _per_mille(share: Tensor) -> Tensor:
    return (share * 1000).round().long()


def _low(confidence: Tensor) -> int:
    """A whole percent, as the page says it, with the least sure quarter below it.

    ``torch.quantile`` refuses large inputs.
    """
    last = math.ceil(_LOW * confidence.numel()) - 1  # of the least sure quarter
    return min(100, int(_per_mille(confidence).sort().values[last]) // 10 + 1)
