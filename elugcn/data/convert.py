"""Arrays, matrices and networkx graphs become a PyG graph."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.features import as_features, check_numeric, neighbour_graph
from elugcn.data.labels import encode_labels
from elugcn.errors import InputError

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
    """Make a graph without masks from scikit-learn style input.

    ``check_data`` completes it. ``classes`` holds the labels in the user's dtype.

    Args:
        X: Features [n, d]: array, scipy sparse matrix, tensor or data frame.
        y: One label per row; -1, None, NaN or "" is unknown. None: all unknown.
        adjacency: Scipy sparse, dense or torch matrix [n, n]; integer pairs [2, E]; a
            networkx graph, whose nodes are row numbers or are listed in the order of
            the rows; or None for the nearest neighbours of X.
        n_neighbors: Neighbours per node, if no adjacency is given.
        directed: Treat edges as directed.
        or_fewer: If X has fewer rows, all of them are neighbours.
    """
    x = as_features(X, "X")
    n = x.shape[0]
    labels, classes = torch.full((n,), -1), np.empty(0, dtype=np.int64)
    if y is not None:
        labels, classes = encode_labels(y, n)
    notes: list[str] = []
    if adjacency is None:
        count = min(n_neighbors, n - 1) if or_fewer else n_neighbors
        edges, weight = neighbour_graph(x, count), None
    else:
        edges, weight = _edges_of(adjacency, n, notes)
    return Data(
        x=x,
        edge_index=torch.from_numpy(edges.astype(np.int64)),
        edge_weight=None if weight is None else torch.from_numpy(weight),
        y=labels,
        name="arrays",
        classes=classes,
        class_names=[str(label) for label in classes],
        directed=directed,
        notes=notes,
    )


def _edges_of(adjacency: Any, n: int, notes: list[str]) -> tuple[Array, Array | None]:
    """Edges [2, E] and their weights from any form of adjacency."""
    if hasattr(adjacency, "nodes") and hasattr(adjacency, "edges"):
        adjacency = _from_networkx(adjacency, notes)
    elif isinstance(adjacency, Tensor):
        adjacency = _from_torch(adjacency.detach().cpu())
    if not sp.issparse(adjacency):
        adjacency = np.asarray(adjacency)
    check_numeric(adjacency.dtype, "adjacency")
    shape = adjacency.shape
    if shape == (n, n):
        entries = sp.coo_array(sp.csr_array(adjacency))
        return np.stack(entries.coords), entries.data.astype(np.float32)
    if sp.issparse(adjacency) or len(shape) != 2 or shape[0] != 2:
        raise InputError(
            f"adjacency has shape {list(shape)} but X has {n:,} rows: expected "
            f"[{n}, {n}], or integers of shape [2, edges]"
        )
    if adjacency.dtype.kind not in "iu" and adjacency.size:
        raise InputError(
            f"adjacency has shape {list(shape)} and dtype {adjacency.dtype}: expected "
            "integers for a list of edges"
        )
    return adjacency, None


def _from_torch(matrix: Tensor) -> Any:
    if matrix.layout == torch.strided:
        return matrix.numpy()
    entries = matrix.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
    return sp.coo_array((entries.values(), entries.indices().numpy()), entries.shape)


def _from_networkx(graph: Any, notes: list[str]) -> Any:
    """The matrix of a graph whose nodes are row numbers or stand in row order."""
    import networkx as nx

    nodes = list(graph)
    if not nodes:
        raise InputError("adjacency is a networkx graph without nodes")
    if set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))  # in whatever order edges brought them
    else:
        notes.append(
            "the nodes of the networkx graph are not row numbers: row 0 of X is taken "
            f"for node {nodes[0]!r}, and so on in the graph's order"
        )
    try:
        return nx.to_scipy_sparse_array(graph, nodes, weight="weight", format="csr")
    except (TypeError, ValueError) as error:
        problem = "adjacency has edges whose weight is not a number"
        raise InputError(f"{problem} ({error})") from None
