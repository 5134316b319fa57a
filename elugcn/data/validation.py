"""The one place where a graph is checked: edges, features, labels and splits."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.features import (
    as_features,
    check_kind,
    made_features,
    refuse_nonfinite,
)
from elugcn.data.labels import check_labels
from elugcn.data.splits import SPLITS, Split, check_fractions, complete_split
from elugcn.data.tables.schema import TableSchema
from elugcn.errors import InputError


@dataclass(frozen=True)
class CheckedGraph:
    """A graph that every method can rely on.

    Attributes:
        data: A new graph on the CPU; the given one is unchanged. It has ``x``,
            ``edge_index`` (and ``edge_weight`` unless all weights are 1), ``y``, three
            disjoint masks, ``class_names``, ``name`` and ``directed``.
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
    """Validate a graph and bring it into the form that methods expect.

    Args:
        data: Any homogeneous PyG graph.
        features: None uses ``data.x``; ``"identity"`` and ``"degree"`` replace it.
        val_fraction: Share of the labels for validation, if no mask says it.
        test_fraction: Share of the labels for testing, if no mask is given.
        seed: Seed of a split that has to be made.
        directed: Treat edges as directed; None follows ``data.directed``.
        require_labels: False accepts a graph to predict on: labels and training nodes
            may be absent, and no split is made.

    Raises:
        InputError: The graph cannot be used; the message says why.
    """
    if not isinstance(data, Data):
        raise InputError(
            f"data is a {type(data).__name__}: expected torch_geometric.data.Data"
        )
    check_kind(features)
    check_fractions(val_fraction, test_fraction)
    earlier = data.get("notes", None)
    notes = [str(note) for note in earlier] if isinstance(earlier, list) else []
    alerts: list[str] = []
    schema = data.get("table_schema", None)
    if features is None and data.x is None and isinstance(schema, TableSchema):
        features = None if schema.features == "columns" else schema.features
    x = None if features is not None else _features(data, notes)
    n = _count_nodes(data, x)
    if directed is None:
        directed = _is_directed(data)
    edge_index, edge_weight = _edges(data, n, directed, notes, alerts)
    if x is None:
        x = made_features(str(features), edge_index, n)
        place = " and replace data.x" if data.x is not None else ""
        notes.append(f"features were made: {features}{place}")
    y = check_labels(data.y, n, notes, required=require_labels)
    class_names = _class_names(data, y, notes, require_labels)
    masks = _masks(data, y, notes, require_labels)
    if require_labels:
        split = complete_split(
            masks, y.numpy(), val_fraction, test_fraction, seed, notes
        )
        alerts += _split_alerts(y, split, class_names)
        notes += _unreached(edge_index, split.train)
    else:
        none = np.zeros(n, dtype=bool)
        split = Split(*(masks.get(name, none) for name in SPLITS))
    checked = Data(x=x, edge_index=edge_index, y=y)
    if edge_weight is not None:
        checked.edge_weight = edge_weight
    for name, mask in zip(SPLITS, split, strict=True):
        checked[name] = torch.from_numpy(mask.copy())
    checked.class_names = class_names
    checked.directed = directed
    checked.update(_metadata(data, n, notes))
    for alert in alerts:
        if alert not in notes:  # a graph that is checked again warned before
            warnings.warn(alert, UserWarning, stacklevel=2)
    return CheckedGraph(checked, tuple(dict.fromkeys(notes + alerts)))


# Features and size


def _features(data: Data, notes: list[str]) -> Tensor:
    if data.x is None:
        raise InputError(
            "data.x is missing: expected features [nodes, features], or choose "
            'features="identity" or features="degree"'
        )
    x = as_features(data.x, "data.x")
    before = getattr(data.x, "dtype", None)
    if before is not None and before not in (torch.float32, np.float32):
        notes.append(f"x was converted from {before} to torch.float32")
    refuse_nonfinite(x)
    return x


def _count_nodes(data: Data, x: Tensor | None) -> int:
    """The number of nodes, on which everything given per node must agree."""
    sizes: dict[str, int] = {}
    if x is not None:
        sizes["data.x"] = int(x.shape[0])
    # If num_nodes is not stored, PyG guesses it from the edges.
    if "num_nodes" in data and data["num_nodes"] is not None:
        sizes["data.num_nodes"] = int(data["num_nodes"])
    for key in ("y", "x", *SPLITS):
        value = data.get(key, None)
        if not sizes and len(getattr(value, "shape", ())):
            sizes[f"data.{key}"] = int(value.shape[0])
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


# Edges


def _edges(
    data: Data, n: int, directed: bool, notes: list[str], alerts: list[str]
) -> tuple[Tensor, Tensor | None]:
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor):
        found = "missing" if edge_index is None else f"a {type(edge_index).__name__}"
        sparse = "adj_t" in data and edge_index is None
        raise InputError(
            f"data.edge_index is {found}: expected an int64 tensor of shape [2, edges]"
            + ("; adj_t is not read: leave ToSparseTensor out" if sparse else "")
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
            f"edge {at} is ({source[at]}, {target[at]}): expected node numbers "
            f"0..{n - 1}"
        )
    weight = _weights(data, source, target)
    if data.get("edge_attr", None) is not None:
        notes.append("edge_attr is not used; weights are read from edge_weight")
    clean, edge_weight, changes = clean_edges(
        source, target, weight, n, directed=directed
    )
    notes += changes
    if directed:
        notes.append(f"edges are treated as directed: {clean.shape[1]:,}")
    if not clean.shape[1]:
        alerts.append(
            "the graph has no edges: only the features can tell the nodes apart"
        )
    elif isolated := n - len(torch.unique(clean)):
        notes.append(f"isolated nodes: {isolated:,}")
    return clean, edge_weight


def _weights(
    data: Data, source: NDArray[np.int64], target: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    weight, size = data.get("edge_weight", None), len(source)
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
    values: NDArray[np.float32] = weight.float().reshape(-1).numpy(force=True)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"edge {at} from node {source[at]} to node {target[at]} has weight "
            f"{values[at]}: expected finite weights >= 0"
        )
    return values


# Labels


def _class_names(data: Data, y: Tensor, notes: list[str], required: bool) -> list[str]:
    """A name per class: those of the graph, else the numbers."""
    names = _shared_names(data.get("class_names", None))
    present = torch.unique(y[y >= 0]).tolist()
    if required and not present:
        raise InputError("no node has a label: every entry of y is unknown")
    count = present[-1] + 1 if present else 0
    if count > max(len(y), 2, len(names)):
        raise InputError(
            f"data.y holds class {count - 1} but the graph has {len(y):,} nodes: "
            "renumber the classes 0..c-1, e.g. y.unique(return_inverse=True)"
        )
    if isinstance(names, dict):
        names = [names.get(label, label) for label in range(count)]
    names = [str(name) for name in names] or [str(label) for label in range(count)]
    if len(names) < count:
        raise InputError(
            f"data.class_names has {len(names)} names but data.y goes up to class "
            f"{count - 1}: expected one name per class"
        )
    if required and len(present) == 1:
        unknown = int((y < 0).sum())
        aside = f" ({unknown:,} labels are unknown, such as -1)" if unknown else ""
        raise InputError(
            f"y holds only one class, {names[present[0]]}{aside}: expected at least two"
        )
    empty = [name for label, name in enumerate(names) if label not in set(present)]
    if empty and present:
        notes.append(f"classes without any label: {', '.join(empty)}")
    return names


def _shared_names(names: Any) -> Any:
    """The names that all graphs of a batch share; other names as they are."""
    if isinstance(names, list) and names and isinstance(names[0], list | tuple | dict):
        if any(other != names[0] for other in names):
            raise InputError(
                "data.class_names differ between the graphs of the batch: expected "
                "the same names"
            )
        return names[0]
    return [] if names is None else names


# Splits


def _masks(
    data: Data, y: Tensor, notes: list[str], required: bool
) -> dict[str, NDArray[np.bool_]]:
    """The masks that are there, checked, of labelled nodes only."""
    labelled = y >= 0
    masks = {
        name: _mask(name, data[name], len(y))
        for name in SPLITS
        if data.get(name, None) is not None
    }
    for first, second in combinations(masks, 2):
        if both := int((masks[first] & masks[second]).sum()):
            raise InputError(
                f"data.{first} and data.{second} overlap in {both:,} nodes "
                f"({int(masks[first].sum()):,} and {int(masks[second].sum()):,} in "
                "all): expected disjoint masks"
            )
    if required and "train_mask" in masks:
        _check_train(masks["train_mask"], labelled)
    for name, mask in masks.items():
        lost = int((mask & ~labelled).sum())
        if lost and name != "train_mask":
            notes.append(f"{lost:,} nodes of {name} have no label and were left out")
    return {name: (mask & labelled).numpy() for name, mask in masks.items()}


def _mask(name: str, mask: Any, n: int) -> Tensor:
    if isinstance(mask, np.ndarray):
        mask = torch.from_numpy(mask)
    if not isinstance(mask, Tensor):
        raise InputError(
            f"data.{name} is a {type(mask).__name__}: expected a bool tensor of "
            f"shape [{n}]"
        )
    if mask.dim() == 2 and mask.shape[0] == n and mask.shape[1] > 1:
        raise InputError(
            f"data.{name} has shape {list(mask.shape)}, one column per split: pick "
            f"one, e.g. data.{name} = data.{name}[:, 0]"
        )
    if mask.dtype != torch.bool:
        raise InputError(
            f"data.{name} has dtype {mask.dtype}: expected torch.bool, one entry per "
            f"node; data.{name}.bool() converts zeros and ones"
        )
    if mask.shape not in ((n,), (n, 1)):
        raise InputError(
            f"data.{name} has shape {list(mask.shape)}: expected [{n}], one entry per "
            "node"
        )
    return mask.cpu().reshape(n)


def _check_train(train: Tensor, labelled: Tensor) -> None:
    size = int(train.sum())
    if not size:
        raise InputError("data.train_mask has no training node")
    unlabelled = (train & ~labelled).nonzero().flatten()
    if len(unlabelled):
        every = len(unlabelled) == size
        raise InputError(
            f"data.train_mask has {len(unlabelled):,} nodes without a label (y is -1)"
            + (
                ", and no node with one"
                if every
                else f"; the first is node {int(unlabelled[0])}"
            )
        )


def _split_alerts(y: Tensor, split: Split, class_names: list[str]) -> Iterable[str]:
    labels = y.numpy()
    held_out = set(labels[split.val | split.test].tolist())
    if unseen := sorted(held_out - set(labels[split.train].tolist())):
        yield (
            f"classes {', '.join(class_names[label] for label in unseen)} occur in "
            "validation or test but have no training label, so they are not learned"
        )
    if not split.val.any():
        yield (
            "there is no validation node, so the best epoch cannot be chosen; label "
            "more nodes or raise val_fraction"
        )


def _unreached(edge_index: Tensor, train: NDArray[np.bool_]) -> Iterable[str]:
    """How much of the graph no training label can reach over edges."""
    if not edge_index.shape[1]:
        return
    n = len(train)
    ones = np.ones(edge_index.shape[1], dtype=np.int8)
    graph = sp.coo_array((ones, tuple(edge_index.numpy())), shape=(n, n))
    count, member = connected_components(graph, directed=False)
    reached = np.zeros(count, dtype=bool)
    reached[member[train]] = True
    if not reached.all():
        nodes = int((~reached[member]).sum())
        yield (
            f"{int((~reached).sum()):,} of {count:,} components ({nodes:,} nodes) have "
            "no training label: their nodes are predicted from features alone"
        )


# What a graph says about itself


def _metadata(data: Data, n: int, notes: list[str]) -> dict[str, Any]:
    """Names and other attributes that the package uses, in its own form."""
    name = data.get("name", None)
    if isinstance(name, list):  # of a batch
        name = "+".join(dict.fromkeys(map(str, name)))
    kept: dict[str, Any] = {"name": "graph" if name is None else str(name)}
    if (ids := data.get("node_ids", None)) is not None:
        kept["node_ids"] = _node_ids(ids, n)
    if isinstance(classes := data.get("classes", None), np.ndarray):
        kept["classes"] = classes  # PyG datasets use the name for other things
    if isinstance(names := data.get("feature_names", None), list | tuple):
        kept["feature_names"] = [str(name) for name in names]
    if isinstance(links := data.get("links", None), Tensor):
        kept["links"] = links
    if data.get("features_scaled", None) is True:
        kept["features_scaled"] = True
    schema = data.get("table_schema", None)
    if isinstance(schema, TableSchema):
        kept["table_schema"] = schema
    elif schema is not None:
        notes.append("table_schema is not a TableSchema and was left out")
    return kept


def _is_directed(data: Data) -> bool:
    value = data.get("directed", None)
    if isinstance(value, Tensor) and len(set(value.flatten().tolist())) == 1:
        value = value.flatten()[0].item()  # several: of a batch
    if value is None or isinstance(value, bool | np.bool_ | int):
        return bool(value)
    raise InputError(f"data.directed is a {type(value).__name__}: expected a boolean")


def _node_ids(ids: Any, n: int) -> list[str]:
    wanted = f"expected {n} names, one per node"
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    if isinstance(ids, str | bytes | dict) or not isinstance(ids, Iterable):
        raise InputError(f"data.node_ids is a {type(ids).__name__}: {wanted}")
    found = list(ids)
    if all(isinstance(one, list) for one in found):  # of a batch
        found = [one for each in found for one in each]
    if len(found) != n:
        raise InputError(f"data.node_ids has {len(found)} entries: {wanted}")
    return [str(one) for one in found]
