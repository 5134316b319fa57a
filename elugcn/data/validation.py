"""One place where any graph is checked and brought into the form models expect."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.described import described, is_directed
from elugcn.data.edges import clean_edges, layout_notes
from elugcn.data.features import as_features, made_features
from elugcn.data.graph import make_data
from elugcn.data.holdout import SPLITS, resolve_splits
from elugcn.data.labels import check_class_names, check_labels
from elugcn.errors import InputError

OFFER = 'or choose features="identity" or features="degree"'


@dataclass(frozen=True)
class CheckedGraph:
    """A graph every model can rely on.

    Attributes:
        data: A new graph; the one that was checked is as it was.
        notes: What was unusual and how it was handled, one sentence each.
    """

    data: Data
    notes: tuple[str, ...]


def check_data(
    data: Data,
    *,
    features: str | None = None,
    val_fraction: float = 0.2,
    test_fraction: float = 0.0,
    seed: int = 0,
    directed: bool | None = None,
    require_labels: bool = True,
) -> CheckedGraph:
    """Validate a graph and bring it into the package's form, on the CPU.

    Args:
        data: Any homogeneous PyG graph; it is not changed.
        features: None uses ``data.x``; "identity" and "degree" make features and
            take the place of ``data.x``.
        val_fraction: Share of the labels for validation where no mask says it.
        test_fraction: Share of the labels for testing where no mask is given.
        seed: Seed of a split that has to be made.
        directed: Keep the direction of edges; None does what ``data.directed``
            says, and mirrors edges where that is absent.
        require_labels: False accepts a graph to predict on: labels and training
            nodes may be absent, and no split is made.

    Returns:
        The graph in the package's form and the notes.

    Raises:
        InputError: The graph cannot be used; the message says why.
    """
    if not isinstance(data, Data):
        raise InputError(
            f"data is a {type(data).__name__}: expected torch_geometric.data.Data"
        )
    earlier = data.get("notes", None)
    notes = [str(note) for note in earlier] if isinstance(earlier, list) else []
    alerts: list[str] = []
    x = None if features is not None else _features(data, notes)
    n = _count_nodes(data, x)
    if directed is None:
        directed = is_directed(data)
    edge_index, edge_weight = _edges(data, n, directed, notes, alerts)
    if x is None:
        x = made_features(str(features), edge_index, n)
        place = " and took the place of data.x" if data.x is not None else ""
        notes.append(f"features were made: {features}{place}")
    # The user's own labels may change later: scores and pages read these.
    y = check_labels(data.y, n, notes, required=require_labels).clone()
    splits = resolve_splits(
        {name: data.get(name, None) for name in SPLITS},
        y,
        val_fraction=val_fraction,
        test_fraction=test_fraction,
        seed=seed,
        require_train=require_labels,
        class_names=data.get("class_names", None),
    )
    notes += splits.notes
    alerts += splits.alerts

    masks = (splits.train, splits.val, splits.test)
    checked = make_data(x, edge_index, y, edge_weight=edge_weight, masks=masks)
    checked.update(described(data, n, notes))
    if isinstance(data.get("links", None), Tensor):
        checked.links = data.links
    checked.class_names = check_class_names(data, y, notes)
    checked.directed = directed
    if require_labels:
        notes += _unreached(edge_index, splits.train)
    for alert in alerts:
        warnings.warn(alert, UserWarning, stacklevel=2)
    return CheckedGraph(checked, tuple(dict.fromkeys(notes + alerts)))


def _features(data: Data, notes: list[str]) -> Tensor:
    if data.x is None:
        raise InputError(
            f"data.x is missing: expected features [nodes, features], {OFFER}"
        )
    x = as_features(data.x, "data.x")
    before = getattr(data.x, "dtype", None)
    if before is not None and before != torch.float32:
        notes.append(f"x was converted from {before} to torch.float32")
    return x


def _count_nodes(data: Data, x: Tensor | None) -> int:
    """The number of nodes, on which all that is given per node must agree."""
    sizes: dict[str, int] = {}
    if x is not None:
        sizes["data.x"] = int(x.shape[0])
    # PyG guesses num_nodes from the edges if it is not stored: no count at all.
    if "num_nodes" in data and data["num_nodes"] is not None:
        sizes["data.num_nodes"] = int(data["num_nodes"])
    if not sizes:
        for key in ("y", "x", *SPLITS):
            value = data.get(key, None)
            if value is not None and hasattr(value, "shape") and len(value.shape):
                sizes[f"data.{key}"] = int(value.shape[0])
                break
    if not sizes:
        raise InputError(
            "the number of nodes is unknown: set data.x, data.y or data.num_nodes"
        )
    if len(set(sizes.values())) > 1:
        said = " but ".join(f"{key} says {size:,}" for key, size in sizes.items())
        raise InputError(f"the number of nodes is unclear: {said}")
    n = next(iter(sizes.values()))
    if n < 1:
        raise InputError("the graph has no nodes")
    return n


def _edges(
    data: Data, n: int, directed: bool, notes: list[str], alerts: list[str]
) -> tuple[Tensor, Tensor | None]:
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor):
        found = "missing" if edge_index is None else f"a {type(edge_index).__name__}"
        turned = "adj_t" in data and edge_index is None
        raise InputError(
            f"data.edge_index is {found}: expected an int64 tensor of shape [2, edges]"
            + ("; adj_t is not read: leave ToSparseTensor out" if turned else "")
        )
    edge_index = edge_index.detach().cpu()
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        turn = edge_index.dim() == 2 and edge_index.shape[1] == 2
        raise InputError(
            f"data.edge_index has shape {list(edge_index.shape)}: expected [2, edges]"
            + (", so transpose it: edge_index.t()" if turn else "")
        )
    wrong_kind = edge_index.is_floating_point() or edge_index.is_complex()
    if (wrong_kind or edge_index.dtype == torch.bool) and edge_index.numel():
        raise InputError(
            f"data.edge_index has dtype {edge_index.dtype}: expected torch.int64"
        )
    source, target = edge_index.long().numpy()
    outside = (source < 0) | (source >= n) | (target < 0) | (target >= n)
    if outside.any():
        at = int(outside.argmax())
        raise InputError(
            f"data.edge_index names a node that is not there: edge {at} is "
            f"({source[at]}, {target[at]}), expected node numbers 0..{n - 1}"
        )
    weight = _weights(data, len(source), source, target)
    if "edge_attr" in data and data.edge_attr is not None:
        notes.append("edge_attr is not used (edge_weight would be)")
    clean, edge_weight, report = clean_edges(
        source, target, weight, n, directed=directed
    )
    notes += report.dropped() + report.mirrored()
    notes += layout_notes(clean, n, directed=directed)
    if not clean.shape[1]:
        alerts.append(
            "the graph has no edges: only the features can tell the nodes apart"
        )
    return clean, edge_weight


def _weights(data: Data, size: int, source: Any, target: Any) -> Any:
    """Finite weights >= 0 as numpy, or None where there are none."""
    weight = data.edge_weight if "edge_weight" in data else None
    if weight is None:
        return None
    if not isinstance(weight, Tensor) or weight.is_complex():
        kind = weight.dtype if isinstance(weight, Tensor) else type(weight).__name__
        raise InputError(
            f"data.edge_weight is a {kind}: expected a float tensor of shape [{size}]"
        )
    if weight.shape not in ((size,), (size, 1)):
        raise InputError(
            f"data.edge_weight has shape {list(weight.shape)}: expected [{size}], one "
            "weight per edge"
        )
    values = weight.detach().cpu().to(torch.float32).reshape(-1).numpy()
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"data.edge_weight is {values[at]} at edge {at}, from node {source[at]} to "
            f"node {target[at]}: expected finite weights >= 0"
        )
    return values


def _unreached(edge_index: Tensor, train: Tensor) -> Iterable[str]:
    """Say how much of the graph no training label can reach over edges."""
    if not edge_index.shape[1]:
        return []
    source, target = edge_index.numpy()
    ones = np.ones(len(source), dtype=np.int8)
    graph = sp.coo_array((ones, (source, target)), shape=(len(train), len(train)))
    count, member = connected_components(graph, directed=False)
    reached = np.zeros(count, dtype=bool)
    reached[member[train.numpy()]] = True
    if reached.all():
        return []
    nodes = int((~reached[member]).sum())
    return [
        f"{int((~reached).sum()):,} of {count:,} components ({nodes:,} nodes) contain "
        "no training label: only their features speak for their class"
    ]
