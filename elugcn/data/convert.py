"""From arrays, matrices and networkx graphs to the tensors of a graph."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.errors import InputError, MissingExtraError

Array = NDArray[Any]


@dataclass(frozen=True)
class EdgeReport:
    """What cleaning a list of edges dropped or added.

    Attributes:
        self_loops: Edges from a node to itself, dropped.
        zero_weights: Edges of weight 0, dropped.
        repeats: Exact repeats, dropped; the largest weight stays.
        one_way: Edges that were there in one direction and got the other.
        mutual: Edges that were there in both directions (undirected only).
    """

    self_loops: int
    zero_weights: int
    repeats: int
    one_way: int
    mutual: int

    def dropped(self) -> list[str]:
        """One sentence for each kind of edge that was dropped."""
        return [
            text.format(count)
            for count, text in (
                (self.self_loops, "{:,} self-loops dropped"),
                (self.zero_weights, "{:,} edges of weight 0 dropped"),
                (self.repeats, "{:,} repeated edges dropped (largest weight kept)"),
            )
            if count
        ]

    def mirrored(self) -> list[str]:
        """A sentence when edges were given in one direction only."""
        if not self.one_way:
            return []
        return [
            f"edges given in one direction only were mirrored: {self.one_way:,} edges"
        ]


def clean_edges(
    source: Array,
    target: Array,
    weight: Array | None,
    n: int,
    *,
    directed: bool,
) -> tuple[Tensor, Tensor | None, EdgeReport]:
    """Bring edges into the one form the package works with.

    Self-loops, edges of weight 0 and repeats go; undirected edges are held in
    both directions, with the larger weight if the two differ; the result is
    sorted by source, then target.

    Args:
        source: Source of each edge, in 0..n-1.
        target: Target of each edge, in 0..n-1.
        weight: Finite weight >= 0 of each edge, or None for 1 each.
        n: Number of nodes.
        directed: Keep the direction instead of mirroring.

    Returns:
        ``edge_index`` [2, E], ``edge_weight`` [E] or None when all are 1, and
        what was changed.
    """
    source, target = source.astype(np.int64), target.astype(np.int64)
    if weight is not None:
        weight = weight.astype(np.float32)
    keep = source != target
    self_loops = len(keep) - int(keep.sum())
    zero_weights = 0
    if weight is not None:
        positive = weight > 0
        zero_weights = int((keep & ~positive).sum())
        keep &= positive
        weight = weight[keep]
    key = source[keep] * n + target[keep]
    given = len(key)
    key, weight = _largest_per_key(key, weight)
    distinct = len(key)
    if not directed:
        key, weight = _mirror(key, weight, n)
    report = EdgeReport(
        self_loops=self_loops,
        zero_weights=zero_weights,
        repeats=given - distinct,
        one_way=0 if directed else len(key) - distinct,
        mutual=0 if directed else distinct - len(key) // 2,
    )
    edge_index = torch.from_numpy(np.stack([key // n, key % n]))
    if weight is None or bool((weight == 1).all()):
        return edge_index, None, report
    return edge_index, torch.from_numpy(weight), report


def _mirror(key: Array, weight: Array | None, n: int) -> tuple[Array, Array | None]:
    """Add the other direction of each edge to sorted, distinct edges."""
    back = key % n * n + key // n
    if weight is None:
        return _largest_per_key(np.concatenate([key, back]), None)
    order = np.argsort(back)
    if bool((back[order] == key).all()) and bool((weight[order] == weight).all()):
        return key, weight
    return _largest_per_key(
        np.concatenate([key, back]), np.concatenate([weight, weight])
    )


def _largest_per_key(key: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """Sort the keys and keep each once, with its largest weight."""
    if bool((key[1:] > key[:-1]).all()):
        return key, weight
    if weight is None:
        key = np.sort(key)
        return key[np.diff(key, prepend=-1) != 0], None
    order = np.argsort(key)
    key, weight = key[order], weight[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    return key[starts], np.maximum.reduceat(weight, starts)


def count_isolated(edge_index: Tensor, n: int) -> int:
    """Number of nodes that no edge touches."""
    alone = torch.ones(n, dtype=torch.bool)
    alone[edge_index[0]] = False
    alone[edge_index[1]] = False
    return int(alone.sum())


def sparse_rows(crow: Tensor, col: Tensor, value: Tensor, d: int) -> Tensor:
    """A sparse CSR tensor [n, d] of float32."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            crow.long(),
            col.long(),
            value.to(torch.float32),
            size=(len(crow) - 1, d),
            check_invariants=False,
        )


def made_features(kind: str, edge_index: Tensor, n: int) -> Tensor:
    """Features for a graph that has none.

    Args:
        kind: "identity" gives each node its own column (sparse), "degree" one
            column log(1 + number of edges at the node).
        edge_index: Clean edges; of a directed graph both ends count.
        n: Number of nodes.
    """
    if kind == "identity":
        nodes = torch.arange(n + 1)
        return sparse_rows(nodes, nodes[:-1], torch.ones(n), n)
    if kind == "degree":
        key = edge_index[0] * n + edge_index[1]
        back = edge_index[1] * n + edge_index[0]
        # An edge held in both directions is one neighbour, not two.
        source = torch.unique(torch.cat([key, back])) // max(n, 1)
        degree = torch.bincount(source, minlength=n)
        return torch.log1p(degree.to(torch.float32)).unsqueeze(1)
    raise InputError(f'features is {kind!r}: expected None, "identity" or "degree"')


def as_features(x: Any, name: str) -> Tensor:
    """A finite float32 matrix: dense and contiguous, or sparse CSR.

    Args:
        x: Torch tensor (dense or sparse), numpy array or scipy sparse matrix.
        name: What to call it in a message.
    """
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.dtype.is_complex or x.is_quantized:
            raise InputError(f"{name} has dtype {x.dtype}: expected real numbers")
    elif sp.issparse(x):
        _check_numeric(getattr(x, "dtype", None), name)
    elif isinstance(x, np.ndarray) or hasattr(x, "__array__"):
        x = np.asarray(x)
        _check_numeric(x.dtype, name)
        x = torch.from_numpy(x.astype(np.float32))
    else:
        raise InputError(
            f"{name} is a {type(x).__name__}: expected a numeric array or tensor of "
            "shape [nodes, features]"
        )
    if len(x.shape) != 2:
        raise InputError(
            f"{name} has shape {list(x.shape)}: expected two dimensions, "
            "[nodes, features]"
        )
    if x.shape[0] == 0 or x.shape[1] == 0:
        raise InputError(
            f"{name} has shape {list(x.shape)}: expected at least one node and one "
            'feature column (features="identity" or features="degree" make some)'
        )
    if sp.issparse(x):
        x = _scipy_to_csr(x)
    elif x.layout == torch.strided:
        x = x.to(torch.float32).contiguous()
    else:
        x = x.to_sparse_csr().to(torch.float32)
    _refuse_nonfinite(x, name)
    return x  # type: ignore[no-any-return]


def _check_numeric(dtype: Any, name: str) -> None:
    if np.dtype(dtype).kind not in "fiub":
        raise InputError(f"{name} has dtype {dtype}: expected real numbers")


def _scipy_to_csr(x: Any) -> Tensor:
    rows = sp.csr_array(x, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    crow, col = torch.from_numpy(rows.indptr), torch.from_numpy(rows.indices)
    return sparse_rows(crow, col, torch.from_numpy(rows.data), rows.shape[1])


def _refuse_nonfinite(x: Tensor, name: str) -> None:
    values = x if x.layout == torch.strided else x.values()
    # A sum is one pass without a mask; only a suspicious one is looked into.
    if bool(torch.isfinite(values.sum(dtype=torch.float64))):
        return
    bad = (~torch.isfinite(values)).nonzero()
    if not len(bad):
        return
    if x.layout == torch.strided:
        node, column = bad[0].tolist()
    else:
        at = int(bad[0])
        node = int(torch.searchsorted(x.crow_indices(), at, right=True)) - 1
        column = int(x.col_indices()[at])
    raise InputError(
        f"{name} has a NaN or infinite value at node {node}, column {column}: "
        "expected finite numbers"
    )


def encode_labels(y: Any, n: int) -> tuple[Tensor, Array]:
    """Class numbers and classes of labels given in any usual way.

    Args:
        y: Integers, strings or booleans; -1, None, NaN and "" are unknown.
        n: Number of nodes.

    Returns:
        int64 [n] with -1 for unknown, and the sorted classes in the user's dtype.
    """
    given = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
    if isinstance(given, (list, tuple)):
        # np.asarray([1, "a"]) or ["a", None] would turn one kind into another.
        holder = np.empty(len(given), dtype=object)
        for i, label in enumerate(given):
            holder[i] = label
        given = holder
    labels = np.asarray(given)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"y has shape {list(labels.shape)}: expected one label per node, [{n}]"
        )
    if len(labels) != n:
        raise InputError(f"y has {len(labels):,} labels but X has {n:,} rows")
    if labels.dtype.kind == "b":
        known = np.ones(n, dtype=bool)
    elif labels.dtype.kind in "iu":
        known = labels != -1
    elif labels.dtype.kind == "f":
        known = ~np.isnan(labels) & (labels != -1)
    elif labels.dtype.kind == "U":
        known = labels != ""
    else:
        labels = labels.astype(object)
        known = np.array([not _is_unknown(label) for label in labels], dtype=bool)
        # Back from objects to the plain dtype of the labels themselves.
        plain = [
            label.item() if isinstance(label, np.generic) else label
            for label in labels[known].tolist()
        ]
        kinds = {type(label) for label in plain}
        if len(kinds) > 1 or not kinds <= {int, str, float, bool}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(
                f"y holds labels of type {names}: expected all int or all str"
            )
        classes, codes = np.unique(np.array(plain), return_inverse=True)
        return _codes(known, codes, classes)
    classes, codes = np.unique(labels[known], return_inverse=True)
    return _codes(known, codes, classes)


def _is_unknown(label: Any) -> bool:
    if label is None or (isinstance(label, str) and label == ""):
        return True
    if isinstance(label, float) and np.isnan(label):
        return True
    # pandas' NA, recognised without pandas.
    if type(label).__name__ == "NAType":
        return True
    return isinstance(label, (int, float, np.integer)) and label == -1


def _codes(known: Array, codes: Array, classes: Array) -> tuple[Tensor, Array]:
    if classes.dtype.kind == "f" and bool((classes != np.floor(classes)).any()):
        raise InputError(
            f"y holds {classes[classes != np.floor(classes)][0]}: expected classes, "
            "not continuous numbers"
        )
    encoded = np.full(len(known), -1, dtype=np.int64)
    encoded[known] = codes
    return torch.from_numpy(encoded), classes


def _edges_of(adjacency: Any, n: int) -> tuple[Array, Array, Array | None]:
    """Source, target and weight from any form of adjacency."""
    if hasattr(adjacency, "nodes") and hasattr(adjacency, "edges"):
        adjacency = _from_networkx(adjacency)
    elif isinstance(adjacency, Tensor):
        adjacency = adjacency.detach().cpu()
        if adjacency.layout == torch.strided:
            adjacency = adjacency.numpy()
        else:
            entries = adjacency.to_sparse_coo().coalesce()
            row, col = entries.indices().numpy()
            adjacency = sp.coo_array(
                (entries.values().numpy(), (row, col)), entries.shape
            )
    if not sp.issparse(adjacency):
        dense = np.asarray(adjacency)
        _check_numeric(dense.dtype, "adjacency")
        square = dense.shape == (n, n)
        if not square and dense.ndim == 2 and len(dense) == 2:
            return _from_pairs(dense, n)
        if not square:
            raise InputError(
                f"adjacency has shape {list(dense.shape)} but X has {n:,} rows: "
                f"expected [{n}, {n}], or integers of shape [2, edges]"
            )
        adjacency = sp.coo_array(dense)
    _check_numeric(adjacency.dtype, "adjacency")
    if adjacency.shape != (n, n):
        raise InputError(
            f"adjacency has shape {list(adjacency.shape)} but X has {n:,} rows: "
            f"expected [{n}, {n}]"
        )
    entries = sp.coo_array(sp.csr_array(adjacency))
    weight = entries.data.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(wrong):
        i, j, value = entries.row[wrong[0]], entries.col[wrong[0]], weight[wrong[0]]
        raise InputError(
            f"adjacency[{i}, {j}] is {value}: expected finite weights >= 0"
        )
    return entries.row, entries.col, weight


def _from_networkx(graph: Any) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    if graph.number_of_nodes() == 0:
        raise InputError("adjacency is a networkx graph without nodes")
    return nx.to_scipy_sparse_array(graph, weight="weight", format="csr")


def _from_pairs(pairs: Array, n: int) -> tuple[Array, Array, None]:
    if pairs.dtype.kind not in "iu" and pairs.size:
        raise InputError(
            f"adjacency has shape {list(pairs.shape)} and dtype {pairs.dtype}: "
            "expected integers for a list of edges"
        )
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=0))
    if len(outside):
        source, target = pairs[:, outside[0]]
        raise InputError(
            f"adjacency edge {outside[0]} is ({source}, {target}) but X has {n:,} "
            f"rows: expected node numbers 0..{n - 1}"
        )
    return pairs[0], pairs[1], None


def _neighbour_graph(x: Tensor, n_neighbors: int) -> tuple[Array, Array, None]:
    from sklearn.neighbors import kneighbors_graph

    n, d = x.shape
    if not 1 <= n_neighbors < n:
        raise InputError(
            f"n_neighbors is {n_neighbors} but X has {n:,} rows: expected a number in "
            f"1..{n - 1}"
        )
    matrix: Any
    if x.layout == torch.strided:
        matrix, metric = x.numpy(), "euclidean"
    else:
        col, crow = x.col_indices().numpy(), x.crow_indices().numpy()
        # scikit-learn takes 32-bit indices only in some versions.
        if len(col) < 2**31:
            col, crow = col.astype(np.int32), crow.astype(np.int32)
        matrix = sp.csr_matrix((x.values().numpy(), col, crow), shape=(n, d))
        metric = "cosine"
    graph = kneighbors_graph(matrix, n_neighbors, metric=metric, include_self=False)
    entries = sp.coo_array(graph)
    return entries.row, entries.col, None


def to_data(
    X: Any,
    y: Any = None,
    adjacency: Any = None,
    *,
    n_neighbors: int = 10,
    directed: bool = False,
) -> Data:
    """Make a graph from scikit-learn style input.

    Args:
        X: Features [n, d]: numpy array, scipy sparse matrix or torch tensor.
        y: A label per row; -1, None, NaN or "" is unknown. None: all unknown.
        adjacency: Scipy sparse, dense or torch matrix [n, n]; a networkx graph
            whose nodes are in the order of the rows; integer pairs [2, E]; or
            None for the graph of nearest neighbours of X (cosine for sparse X,
            euclidean otherwise).
        n_neighbors: Neighbours per node where no adjacency is given.
        directed: Keep the direction of the edges.

    Returns:
        A graph without masks; ``classes`` holds the labels in the user's dtype,
        ``notes`` what was changed.
    """
    x = as_features(X, "X")
    n = x.shape[0]
    if y is None:
        labels, classes = torch.full((n,), -1), np.empty(0, dtype=np.int64)
    else:
        labels, classes = encode_labels(y, n)
    if adjacency is None:
        source, target, weight = _neighbour_graph(x, n_neighbors)
    else:
        source, target, weight = _edges_of(adjacency, n)
    edge_index, edge_weight, report = clean_edges(
        source, target, weight, n, directed=directed
    )
    data = Data(x=x, edge_index=edge_index, y=labels)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    data.name = "arrays"
    data.classes = classes
    data.class_names = [str(label) for label in classes]
    data.directed = directed
    data.notes = report.dropped() + ([] if adjacency is None else report.mirrored())
    return data
