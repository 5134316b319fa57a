"""The one place where a graph is checked: edges, features, labels and splits."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

from elugcn.data.edges import clean_edges
from elugcn.data.features import (
    as_features,
    check_kind,
    made_features,
    refuse_nonfinite,
)
from elugcn.data.labels import check_labels, check_tensor
from elugcn.data.splits import SPLITS, Mask, Split, check_fractions, complete_split
from elugcn.data.tables.schema import TableSchema
from elugcn.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class CheckedGraph:
    """A graph that every method can rely on."""

    # A new graph on the CPU; the given one is unchanged. It has x, edge_index (and
    # edge_weight unless all weights are 1), y, three disjoint masks, class_names, name
    # and directed.
    data: Data
    notes: tuple[str, ...]  # what was unusual and how it was handled


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
    x = _features(data, notes) if features is None else None
    n = _count_nodes(data, x)
    directed = _is_directed(data) if directed is None else directed
    edge_index, edge_weight = _edges(data, n, directed, notes, alerts)
    if x is None:
        x = made_features(str(features), edge_index, n)
        place = " and replace data.x" if data.x is not None else ""
        notes.append(f"features were made: {features}{place}")
    y = check_labels(data.y, n, notes, required=require_labels)
    class_names = _class_names(data, y, notes, require_labels)
    masks = _masks(data, y, notes, require_labels)
    if require_labels:
        fractions = val_fraction, test_fraction
        split = complete_split(masks, y.numpy(), *fractions, seed, notes)
        alerts += _split_alerts(y.numpy(), split, class_names)
        notes += _unreached(edge_index, split.train)
    else:
        none = np.zeros(n, dtype=bool)
        split = Split(*(masks.get(name, none) for name in SPLITS))
    checked = Data(x=x, edge_index=edge_index, edge_weight=edge_weight, y=y)
    for name, mask in zip(SPLITS, split, strict=True):
        checked[name] = torch.from_numpy(mask.copy())
    about = _metadata(data, n, notes)
    checked.update({"class_names": class_names, "directed": directed, **about})
    # Whether validation nodes were drawn here, so that they may train in the end.
    checked.split_made = require_labels and "val_mask" not in masks
    for alert in alerts:
        if alert not in notes:  # a graph that is checked again warned before
            warnings.warn(alert, UserWarning, stacklevel=2)
    return CheckedGraph(checked, tuple(dict.fromkeys(notes + alerts)))


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
    # If num_nodes is not stored, PyG guesses it from the edges.
    stored = data.get("num_nodes", None)
    if x is not None and stored not in (None, len(x)):
        raise InputError(
            f"the number of nodes is unclear: data.x says {len(x):,} but "
            f"data.num_nodes says {stored:,}"
        )
    values = (data.get(key, None) for key in ("y", "x", *SPLITS))
    sizes = [value.shape[0] for value in values if len(getattr(value, "shape", ()))]
    if x is not None or stored is not None:
        sizes = [stored if x is None else len(x)]
    if not sizes:
        raise InputError(
            "the number of nodes is unknown: set data.x, data.y or data.num_nodes"
        )
    if sizes[0] < 1:
        raise InputError("the graph has no nodes")
    return int(sizes[0])


def _edges(
    data: Data, n: int, directed: bool, notes: list[str], alerts: list[str]
) -> tuple[Tensor, Tensor | None]:
    edges, hint = data.edge_index, ""
    if edges is None and "adj_t" in data:
        hint = "; adj_t is not read: leave ToSparseTensor out"
    elif isinstance(edges, Tensor) and edges.dim() == 2 and edges.size(1) == 2:
        hint = ", so transpose it: edge_index.t()"
    if isinstance(edges, Tensor) and not edges.numel():
        edges = edges.long()  # torch.empty(2, 0) is float
    wanted = f"an int64 tensor of shape [2, edges]{hint}"
    edges = check_tensor("data.edge_index", edges, "integer", (2, -1), wanted)
    source, target = edges.long().numpy()
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
        notes.append(f"edges are treated as directed: {clean.size(1):,}")
    if not clean.numel():
        alerts.append(
            "the graph has no edges: only the features can tell the nodes apart"
        )
    elif isolated := n - len(torch.unique(clean)):
        notes.append(f"isolated nodes: {isolated:,}")
    return clean, edge_weight


def _weights(data: Data, source: Array, target: Array) -> Array | None:
    weight, size = data.get("edge_weight", None), len(source)
    if weight is None:
        return None
    wanted = f"a float tensor of shape [{size}], one weight per edge"
    weight = check_tensor("data.edge_weight", weight, "real", (size,), wanted)
    values: Array = weight.float().numpy()
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"edge {at} from node {source[at]} to node {target[at]} has weight "
            f"{values[at]}: expected finite weights >= 0"
        )
    return values


def _class_names(data: Data, y: Tensor, notes: list[str], required: bool) -> list[str]:
    """A name per class: those of the graph, else the numbers."""
    names = data.get("class_names", None)
    if isinstance(names, list) and names and isinstance(names[0], list | tuple | dict):
        if any(other != names[0] for other in names):
            raise InputError(
                "data.class_names differ between the graphs of the batch: expected "
                "the same names"
            )
        names = names[0]
    known = y[y >= 0]
    present = torch.unique(known).tolist()
    count = max(present, default=-1) + 1
    if count > max(len(y), 2, len(names or ())):
        raise InputError(
            f"data.y holds class {count - 1} but the graph has {len(y):,} nodes: "
            "renumber the classes 0..c-1, e.g. y.unique(return_inverse=True)"
        )
    if isinstance(names, dict):
        names = [names.get(label, label) for label in range(count)]
    names = [str(name) for name in names or range(count)]
    if len(names) < count:
        raise InputError(
            f"data.class_names has {len(names)} names but data.y goes up to class "
            f"{count - 1}: expected one name per class"
        )
    if required and len(present) < 2:
        schema = data.get("table_schema", None)
        table = isinstance(schema, TableSchema)
        where = f"column {schema.label_column!r}" if table else "y"
        if not present:
            raise InputError(f"no node has a label: every entry of {where} is unknown")
        unknown = len(y) - len(known)
        aside = f" ({unknown:,} labels are unknown, such as -1)" if unknown else ""
        raise InputError(
            f"{where} holds only one class, {names[present[0]]!r}{aside}: expected at "
            "least two"
        )
    empty = [name for label, name in enumerate(names) if label not in set(present)]
    if empty and present:
        notes.append(f"classes without any label: {', '.join(empty)}")
    return names


def _masks(data: Data, y: Tensor, notes: list[str], required: bool) -> dict[str, Mask]:
    """The masks that are there, checked, of labelled nodes only."""
    masks = {}
    for name in SPLITS:
        if (mask := data.get(name, None)) is not None:
            masks[name] = _mask(f"data.{name}", mask, len(y))
    for (first, a), (second, b) in combinations(masks.items(), 2):
        if both := int((a & b).sum()):
            raise InputError(
                f"data.{first} and data.{second} overlap in {both:,} nodes "
                f"({int(a.sum()):,} and {int(b.sum()):,} in all): expected disjoint "
                "masks"
            )
    for name, mask in masks.items():
        size, lost = int(mask.sum()), (mask & (y < 0)).nonzero().flatten()
        if name != "train_mask":
            if len(lost):
                notes.append(
                    f"{len(lost):,} nodes of {name} have no label and were left out"
                )
        elif required and not size:
            raise InputError("data.train_mask has no training node")
        elif required and len(lost):
            first = f"; the first is node {int(lost[0])}"
            more = ", and no node with one" if len(lost) == size else first
            raise InputError(
                f"data.train_mask has {len(lost):,} nodes without a label (y is -1)"
                f"{more}"
            )
    return {name: (mask & (y >= 0)).numpy() for name, mask in masks.items()}


def _mask(name: str, mask: Any, n: int) -> Tensor:
    hint = ""
    if isinstance(mask, np.ndarray):
        mask = torch.from_numpy(mask)
    if isinstance(mask, Tensor) and mask.dim() == 2 and mask.size(1) > 1:
        hint = f"; with one column per split, pick one, e.g. {name} = {name}[:, 0]"
    elif isinstance(mask, Tensor) and mask.dtype != torch.bool:
        hint = f"; {name}.bool() converts zeros and ones"
    return check_tensor(name, mask, "bool", (n,), f"a bool tensor of shape [{n}]{hint}")


def _split_alerts(y: Array, split: Split, class_names: list[str]) -> Iterator[str]:
    if unseen := sorted({*y[split.val | split.test]} - {*y[split.train]}):
        yield (
            f"classes {', '.join(class_names[label] for label in unseen)} occur in "
            "validation or test but have no training label, so they are not learned"
        )
    if not split.val.any():
        yield (
            "there is no validation node, so the best epoch cannot be chosen; label "
            "more nodes or raise val_fraction"
        )


def _unreached(edge_index: Tensor, train: Mask) -> Iterator[str]:
    """How much of the graph no training label can reach over edges."""
    graph = to_scipy_sparse_matrix(edge_index, num_nodes=len(train))
    count, member = connected_components(graph, directed=False)
    reached = np.isin(np.arange(count), member[train])
    if edge_index.numel() and not reached.all():
        yield (
            f"{int((~reached).sum()):,} of {count:,} components "
            f"({int((~reached[member]).sum()):,} nodes) have no training label: their "
            "nodes are predicted from features alone"
        )


def _metadata(data: Data, n: int, notes: list[str]) -> dict[str, Any]:
    """Names and other attributes that the package uses, in its own form."""
    name = data.get("name", None)
    if isinstance(name, list):  # of a batch
        name = "+".join(dict.fromkeys(map(str, name)))
    kept: dict[str, Any] = {"name": "graph" if name is None else str(name)}
    if (ids := data.get("node_ids", None)) is not None:
        kept["node_ids"] = _node_ids(ids, n)
    if isinstance(names := data.get("feature_names", None), list | tuple):
        kept["feature_names"] = [str(name) for name in names]
    if data.get("features_scaled", None) is True:
        kept["features_scaled"] = True
    # PyG datasets use some of these names for other things.
    kinds = {"classes": np.ndarray, "links": Tensor, "table_schema": TableSchema}
    for key, kind in kinds.items():
        if isinstance(value := data.get(key, None), kind):
            kept[key] = value
    if "table_schema" in data and "table_schema" not in kept:
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
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    found, problem = [], f"is a {type(ids).__name__}"
    if isinstance(ids, Iterable) and not isinstance(ids, str | bytes | dict):
        found = list(ids)
        if all(isinstance(one, list) for one in found):  # of a batch
            found = [one for each in found for one in each]
        problem = f"has {len(found)} entries"
    if len(found) != n:
        raise InputError(f"data.node_ids {problem}: expected {n} names, one per node")
    return [str(one) for one in found]
