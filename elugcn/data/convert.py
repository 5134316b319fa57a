"""From arrays, matrices and networkx graphs to the tensors of a graph."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.edges import clean_edges
from elugcn.data.features import as_features, check_numeric, from_rows
from elugcn.data.graph import make_data
from elugcn.data.labels import encode_labels
from elugcn.errors import InputError, MissingExtraError

Array = NDArray[Any]


def to_data(
    X: Any,
    y: Any = None,
    adjacency: Any = None,
    *,
    n_neighbors: int = 10,
    directed: bool = False,
    or_fewer: bool = False,
) -> Data:
    """Make a graph from scikit-learn style input.

    Args:
        X: Features [n, d]: numpy array, scipy sparse matrix or torch tensor.
        y: A label per row; -1, None, NaN or "" is unknown. None: all unknown.
        adjacency: Scipy sparse, dense or torch matrix [n, n]; a networkx graph,
            whose nodes are row numbers (0 to n-1) or else are listed in the order of
            the rows; integer pairs [2, E]; or
            None for the graph of nearest neighbours of X (cosine for sparse X,
            euclidean otherwise).
        n_neighbors: Neighbours per node where no adjacency is given.
        directed: Keep the direction of the edges.
        or_fewer: Where there are not as many rows, all of them are neighbours.

    Returns:
        A graph without masks; ``classes`` holds the labels in the user's dtype,
        ``notes`` what was changed.
    """
    x = as_features(from_rows(X, "X") if isinstance(X, list | tuple) else X, "X")
    n = x.shape[0]
    if y is None:
        labels, classes = torch.full((n,), -1), np.empty(0, dtype=np.int64)
    else:
        labels, classes = encode_labels(y, n)
        if len(classes) == 1:
            unknown = int((labels < 0).sum())
            aside = f" ({unknown:,} labels say unknown, as -1 does)" if unknown else ""
            raise InputError(
                f"y holds only one class, {classes[0]}{aside}: expected at least two"
            )
    notes: list[str] = []
    if adjacency is None:
        count = min(n_neighbors, n - 1) if or_fewer else n_neighbors
        source, target, weight = _neighbour_graph(x, count)
    else:
        source, target, weight = _edges_of(adjacency, n, notes)
    edge_index, edge_weight, report = clean_edges(
        source, target, weight, n, directed=directed
    )
    return make_data(
        x,
        edge_index,
        labels,
        edge_weight=edge_weight,
        name="arrays",
        classes=classes,
        class_names=[str(label) for label in classes],
        directed=directed,
        notes=notes
        + report.dropped()
        + ([] if adjacency is None else report.mirrored()),
    )


def _edges_of(
    adjacency: Any, n: int, notes: list[str]
) -> tuple[Array, Array, Array | None]:
    """Source, target and weight from any form of adjacency."""
    if hasattr(adjacency, "nodes") and hasattr(adjacency, "edges"):
        adjacency = _from_networkx(adjacency, notes)
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
        check_numeric(dense.dtype, "adjacency")
        square = dense.shape == (n, n)
        if not square and dense.ndim == 2 and len(dense) == 2:
            return _from_pairs(dense, n)
        if not square:
            raise InputError(
                f"adjacency has shape {list(dense.shape)} but X has {n:,} rows: "
                f"expected [{n}, {n}], or integers of shape [2, edges]"
            )
        adjacency = sp.coo_array(dense)
    check_numeric(adjacency.dtype, "adjacency")
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


def _from_networkx(graph: Any, notes: list[str]) -> Any:
    """The matrix of a graph whose nodes are row numbers, or stand in their order."""
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingExtraError("networkx", "networkx") from error
    if graph.number_of_nodes() == 0:
        raise InputError("adjacency is a networkx graph without nodes")
    nodes = list(graph)
    whole = all(isinstance(v, int | np.integer) for v in nodes)
    if whole and set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))  # in whatever order edges brought them
    else:
        notes.append(
            "the nodes of the networkx graph are no row numbers: row 0 of X is taken "
            f"for node {nodes[0]!r}, and so on as the graph lists them"
        )
    try:
        return nx.to_scipy_sparse_array(graph, nodes, weight="weight", format="csr")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"adjacency has edges whose weight is no number ({error})"
        ) from None


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
    if n == 1 and n_neighbors == 0:
        alone = np.empty(0, dtype=np.int64)
        return alone, alone, None
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
