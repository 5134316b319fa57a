"""One node: which labels reach it, its neighbours, and what is predicted."""

import difflib
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import Fitted
from elugcn.api.runs import SPLIT_NAMES
from elugcn.elu.influence import hop_distance, influence_on
from elugcn.errors import InputError
from elugcn.insight.context import DiagnosisContext

_MAX_COMPARED = 20_000  # ids that an unknown id is compared with


def explain(
    fitted: Fitted | DiagnosisContext, node: int | str, shown: int = 10
) -> dict[str, Any]:
    """What the labels do for one node, as values that JSON can hold.

    ``node`` is the user's id, or the node's number if the graph has no ids.
    ``model`` names what is compared with label propagation, ``gcn`` what it predicts.
    ``influence`` is the share of each class among the labels that reach the node
    (Proposition 1), ``labels`` the ``shown`` strongest training nodes behind it.
    ``before`` and ``after`` are the node's neighbours on the original and on the ELU
    graph with their share of the weight, and the classes of all of them. One row of
    each operator is computed: O(steps·nnz + n·c).
    """
    if shown < 1:
        raise InputError(f"shown must be at least 1; got {shown}")
    context = DiagnosisContext.of(fitted)
    data, use, names, graph = context.data, context.use, context.names, context.graph
    at = check_node(data, node)
    y, lpa, gcn = int(data.y[at]), int(use.lpa[at]), int(use.gcn[at])
    row = torch.from_numpy(context.problem.label_adj.to_scipy()[[at]].toarray()[0])
    parts = context.fitted.data  # as they were drawn
    return {
        "node": context.ids[at],
        "index": at,
        "split": next((s for m, s in SPLIT_NAMES.items() if bool(parts[m][at])), None),
        "label": names[y] if y >= 0 else None,
        "degree": int((data.edge_index[1] == at).sum()),
        "distance": _distance(context.distance[at]),
        "utilization": use.names()[at],
        "lpa": names[lpa] if lpa >= 0 else None,
        "model": context.model,
        "gcn": names[gcn],
        "gcn_confidence": float(context.proba[at, gcn]),
        "influence": _by_class(names, context.lpa[at]),
        "probabilities": _by_class(names, context.proba[at]),
        **_labels(context, at, shown),
        "before": _neighbours(context, at, row, shown),
        "after": graph and _neighbours(context, at, graph.rows(at)[0], shown),
    }


def check_node(data: Data, node: int | str) -> int:
    """The number of a node; the message about an unknown one suggests another."""
    wanted, n = str(node), int(data.num_nodes)
    ids = getattr(data, "node_ids", None)
    if not ids:
        # int() would accept blanks, underscores and signs.
        if wanted.isascii() and wanted.isdecimal() and int(wanted) < n:
            return int(wanted)
        raise InputError(f"node {wanted!r} must be a number from 0 to {n - 1}")
    names = [str(i) for i in ids]
    if wanted in names:
        return names.index(wanted)
    close = difflib.get_close_matches(wanted, names[:_MAX_COMPARED], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the first is {names[0]!r}"
    raise InputError(f"node {wanted!r} is not among the {n:,} nodes; {hint}")


def _labels(context: DiagnosisContext, at: int, shown: int) -> dict[str, Any]:
    """The training nodes whose labels reach a node, with their share and distance."""
    train, here = context.data.train_mask, torch.tensor([at])
    steps, alpha = context.steps, context.alpha
    shares = torch.zeros(train.numel())
    shares[train] = influence_on(context.operator, train, here, steps, alpha)[0]
    # Against the direction of the edges: from the node back to the labels.
    source = torch.zeros_like(train).index_fill_(0, here, True)
    hops = hop_distance(context.problem.label_adj.T, source)
    rows = _strongest(context, shares, context.data.y, shown)
    labels = [row | {"distance": _distance(hops[i])} for i, row in rows.items()]
    return {"n_labels": int((shares > 0).sum()), "labels": labels}


def _neighbours(
    context: DiagnosisContext, at: int, weights: Tensor, shown: int
) -> dict[str, Any]:
    """The strongest neighbours, and the share of the weight per class.

    Only positive weights count. The class of a neighbour is its training label, or
    else what the GCN predicts.
    """
    train, names = context.data.train_mask, context.names
    weights = weights.double().clamp(min=0.0)
    weights[at] = 0.0
    shares = weights / (weights.sum() or 1.0)
    classes = torch.where(train, context.data.y, context.use.gcn)
    rows = _strongest(context, shares, classes, shown)
    return {
        "n_neighbours": int((weights > 0).sum()),
        "neighbours": [row | {"labelled": bool(train[i])} for i, row in rows.items()],
        "classes": _by_class(names, torch.bincount(classes, shares, len(names))),
    }


def _strongest(
    context: DiagnosisContext, shares: Tensor, classes: Tensor, shown: int
) -> dict[int, dict[str, Any]]:
    """The nodes with the largest shares."""
    ids, names = context.ids, context.names
    return {
        i: {"node": ids[i], "class": names[int(classes[i])], "share": float(shares[i])}
        for i in _largest(shares, shown)
    }


def _by_class(names: list[str], shares: Tensor) -> list[dict[str, Any]]:
    """Classes with a positive share, largest first."""
    return [{"class": names[i], "share": float(shares[i])} for i in _largest(shares)]


def _largest(values: Tensor, count: int | None = None) -> list[int]:
    """Indices of the positive values, largest first; ties in ascending order."""
    order = torch.argsort(values, descending=True, stable=True)[:count]
    return order[values[order] > 0].tolist()


def _distance(edges: Tensor) -> int | None:
    return int(edges) if edges >= 0 else None
