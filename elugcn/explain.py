"""One node: which labels reach it, who it listens to, and what is made of it."""

from __future__ import annotations

import difflib
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.influence import hop_distance, influence_on
from elugcn.core.utilization import Utilization
from elugcn.diagnosis.fitted import Reading
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.runs import SPLIT_NAMES

SHOWN = 10
_COMPARED = 20_000  # ids that a mistyped one is compared with


def explain(
    fitted: Fitted | Reading, node: int | str, shown: int = SHOWN
) -> dict[str, Any]:
    """What the labels do for one node, as JSON holds it.

    ``influence`` is the share of each class among the labels that reach the node
    (Proposition 1), ``labels`` the training nodes behind it, strongest first.
    ``before`` and ``after`` are the node's neighbours on the original graph and on the
    ELU graph with their share of the weight, and the classes of all of them. One row
    of each operator is computed: O(steps·nnz + n·c).

    Args:
        fitted: From ``fit_graph``, or ``fitted_`` of a classifier; or its reading.
        node: The user's id of it; its number where the graph has no ids.
        shown: Labels and neighbours that are listed.
    """
    if shown < 1:
        raise InputError(f"shown must be at least 1; got {shown}")
    reading = fitted if isinstance(fitted, Reading) else Reading.of(fitted)
    data, use, names = reading.data, reading.use, reading.names
    at = check_node(data, node)
    y, lpa = int(data.y[at]), int(use.lpa[at])
    split = next((s for m, s in SPLIT_NAMES.items() if bool(data[m][at])), None)
    probability, share = reading.proba[at], reading.lpa[at]
    return {
        "node": reading.ids[at],
        "index": at,
        "split": split,
        "label": names[y] if y >= 0 else None,
        "degree": int((data.edge_index[1] == at).sum()),
        "distance": _hops(int(reading.distance[at])),
        "utilization": Utilization(int(use.status[at])).name.lower(),
        "lpa": names[lpa] if lpa >= 0 else None,
        "gcn": names[int(use.gcn[at])],
        "gcn_confidence": float(probability[int(use.gcn[at])]),
        "influence": _by_class(names, share),
        "probabilities": _by_class(names, probability),
        **_labels(reading, at, shown),
        "before": _neighbours(reading, at, _edge_weights(reading, at), shown),
        "after": (
            None
            if reading.graph is None
            else _neighbours(reading, at, reading.graph.rows(at)[0], shown)
        ),
    }


def check_node(data: Data, node: int | str) -> int:
    """The number of the node that the user calls so.

    Raises:
        InputError: There is none; the message says what the ids look like.
    """
    wanted, n = str(node), int(data.num_nodes)
    ids = getattr(data, "node_ids", None)
    if not ids:
        # Not int(): that takes blanks, underscores and signs.
        if wanted.isascii() and wanted.isdecimal() and int(wanted) < n:
            return int(wanted)
        raise InputError(
            f"NODE {wanted!r}: expected the number of a node, 0 to {n - 1}"
        )
    names = [str(i) for i in ids]
    if wanted in names:
        return names.index(wanted)
    close = difflib.get_close_matches(wanted, names[:_COMPARED], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the first is {names[0]!r}"
    raise InputError(f"NODE {wanted!r} is not among the {n:,} nodes; {hint}")


def _labels(reading: Reading, at: int, shown: int) -> dict[str, Any]:
    """The labelled nodes that reach the node, with their share and their distance."""
    data, problem = reading.data, reading.problem
    labelled = data.train_mask.nonzero().squeeze(1)
    shares = influence_on(
        reading.operator,
        data.train_mask,
        torch.tensor([at]),
        reading.steps,
        reading.alpha,
    )[0]
    # Against the edges: from the node back to where labels come from.
    here = torch.zeros(problem.num_nodes, dtype=torch.bool)
    here[at] = True
    hops = hop_distance(problem.spread.T, here)
    order = _largest(shares, shown)
    return {
        "n_labels": int((shares > 0).sum()),
        "labels": [
            {
                "node": reading.ids[int(labelled[i])],
                "class": reading.names[int(data.y[labelled[i]])],
                "share": float(shares[i]),
                "distance": _hops(int(hops[labelled[i]])),
            }
            for i in order
        ],
    }


def _neighbours(
    reading: Reading, at: int, weights: Tensor, shown: int
) -> dict[str, Any]:
    """The strongest neighbours, and the classes of all by their share of the weight.

    Only positive weights count. The class of a neighbour is its training label, else
    what the GCN predicts.
    """
    data, c = reading.data, len(reading.names)
    weights = weights.double().clamp(min=0.0)
    weights[at] = 0.0
    total = float(weights.sum())
    shares = weights / total if total else weights
    classes = torch.where(data.train_mask, data.y, reading.use.gcn)
    mass = torch.zeros(c, dtype=torch.float64).index_add_(0, classes, shares)
    return {
        "n_neighbours": int((weights > 0).sum()),
        "neighbours": [
            {
                "node": reading.ids[i],
                "class": reading.names[int(classes[i])],
                "labelled": bool(data.train_mask[i]),
                "share": float(shares[i]),
            }
            for i in _largest(shares, shown)
        ],
        "classes": _by_class(reading.names, mass),
    }


def _edge_weights(reading: Reading, at: int) -> Tensor:
    """Row of Â, as labels travel by it."""
    row = reading.problem.spread.to_scipy()[[at]].toarray()[0]
    return torch.from_numpy(row)


def _by_class(names: list[str], shares: Tensor) -> list[dict[str, Any]]:
    """Classes with a share, largest first."""
    return [{"class": names[i], "share": float(shares[i])} for i in _largest(shares)]


def _largest(values: Tensor, count: int | None = None) -> list[int]:
    """Places of the positive values, largest first; of equal ones the first."""
    order = torch.argsort(values, descending=True, stable=True)[:count]
    return [int(i) for i in order if values[i] > 0]


def _hops(value: int) -> int | None:
    return value if value >= 0 else None
