"""Node features: any matrix as float32, and features or edges made from the rest."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils import to_undirected

from elugcn.errors import InputError

Array = NDArray[Any]

# Float32 tells at most 128 values apart that span less than this share of the largest.
_NARROW = 2.0**-17
# Doubles that span less than this share of the largest differ by rounding only.
_ROUNDING = 2.0**-40
# Entries that are checked at once.
_BLOCK_ENTRIES = 2**22
_CSR_WARNING = "Sparse CSR tensor support is in beta"


def as_features(x: Any, name: str) -> Tensor:
    """A float32 matrix [n, d], dense and contiguous or sparse CSR, from any kind of X.

    A float32 file (``np.memmap``) is used in place, without a copy. Whether values are
    finite is checked once, in ``check_data``. Messages call X ``name``.
    """
    if isinstance(x, Tensor):
        return _from_tensor(x, name)
    if sp.issparse(x):
        return _from_scipy(x, name)
    names = x.columns if hasattr(x, "columns") and hasattr(x, "to_numpy") else None
    values = _as_array(x, name) if names is None else _from_frame(x, name)
    _check_shape(values.shape, name)
    _warn_of_merged_values(values, name, names)
    in_place = isinstance(values, np.memmap) and values.dtype == np.float32
    with warnings.catch_warnings():
        # Features are never written to, so a read-only file is fine.
        warnings.filterwarnings("ignore", message=".*not writable")
        return torch.from_numpy(
            np.asarray(values).astype(np.float32, order="C", copy=not in_place)
        )


def _from_tensor(x: Tensor, name: str) -> Tensor:
    if x.dtype.is_complex or x.is_quantized:
        raise InputError(f"{name} has dtype {x.dtype}: expected real numbers")
    _check_shape(x.shape, name)
    x = x.detach().cpu()
    if x.layout == torch.strided:
        if x.element_size() >= 4 and x.dtype != torch.float32:
            _warn_of_merged_values(x.resolve_neg().numpy(), name, None)
        return x.to(torch.float32).contiguous()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _CSR_WARNING)
        return x.to_sparse_csr().to(torch.float32)


def _from_scipy(x: Any, name: str) -> Tensor:
    check_numeric(x.dtype, name)
    _check_shape(x.shape, name)
    rows = sp.csr_array(x, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    crow, col, value = map(torch.from_numpy, (rows.indptr, rows.indices, rows.data))
    return sparse_rows(crow, col, value, int(x.shape[1]))


def _as_array(x: Any, name: str) -> Array:
    if not hasattr(x, "__array__") and not isinstance(x, list | tuple):
        raise InputError(
            f"{name} is a {type(x).__name__}: expected a numeric array or tensor of "
            "shape [nodes, features]"
        )
    try:
        values: Array = x if isinstance(x, np.memmap) else np.asarray(x)
        if values.dtype == object:
            values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a matrix of numbers ({error})") from None
    check_numeric(values.dtype, name)
    return values


def _from_frame(x: Any, name: str) -> Array:
    """The columns of a data frame of pandas, polars or similar, side by side."""
    columns = []
    for column in x.columns:
        dtype, values = x[column].dtype, np.asarray(x[column])
        place = f"{name}, column {column!r}"
        # Nullable numbers of pandas become objects; polars has dtypes of its own.
        if getattr(dtype, "kind", values.dtype.kind) not in "fiub":
            raise InputError(f"{place} has dtype {dtype}: expected real numbers")
        try:
            numeric = values.dtype != object
            columns.append(values if numeric else values.astype(np.float64))
        except (TypeError, ValueError):  # pandas.NA
            raise InputError(f"{place} has missing values") from None
    return np.stack(columns, axis=1) if columns else np.empty((len(x), 0))


def check_numeric(dtype: Any, name: str) -> None:
    """Refuse a numpy dtype that does not hold real numbers."""
    if np.dtype(dtype).kind not in "fiub":
        raise InputError(f"{name} has dtype {dtype}: expected real numbers")


def _check_shape(shape: Sequence[int], name: str) -> None:
    expected = "two dimensions, [nodes, features]"
    if len(shape) == 2 and 0 not in shape:
        return
    if len(shape) == 2:
        expected = (
            'at least one node and one feature (features="identity" and '
            'features="degree" make some)'
        )
    raise InputError(f"{name} has shape {list(shape)}: expected {expected}")


def _warn_of_merged_values(values: Array, name: str, names: Any) -> None:
    """Warn of columns whose different values become equal in float32."""
    if np.can_cast(values.dtype, np.float32):
        return
    low, high = values.min(axis=0) * 1.0, values.max(axis=0) * 1.0
    span, size = high - low, np.maximum(np.abs(low), np.abs(high))
    # Whole numbers are exact: their differences are meant.
    rounding = 0 if values.dtype.kind in "iu" else _ROUNDING * size
    narrow = np.flatnonzero((rounding < span) & (span < _NARROW * size))
    merged = []
    for j in narrow.tolist():
        column = values[:, j]
        if len(np.unique(column.astype(np.float32))) < len(np.unique(column)):
            merged.append(j)
    if not merged:
        return
    shown = ", ".join(str(j) if names is None else repr(names[j]) for j in merged[:5])
    if len(merged) > 5:
        shown += f", ... ({len(merged):,} in all)"
    warnings.warn(
        f"{name}, column{'s' if len(merged) > 1 else ''} {shown}: different values "
        "become equal in single precision (float32); subtract a constant first, e.g. "
        "the smallest value",
        UserWarning,
        stacklevel=4,
    )


def sparse_rows(crow: Tensor, col: Tensor, value: Tensor, d: int) -> Tensor:
    """A sparse CSR tensor [n, d] of float32."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _CSR_WARNING)
        return torch.sparse_csr_tensor(
            crow.long(),
            col.long(),
            value.to(torch.float32),
            size=(len(crow) - 1, d),
            check_invariants=False,
        )


def blocks(x: Tensor) -> tuple[Tensor, ...]:
    """The rows of a tensor, in blocks of a few million entries."""
    return torch.split(x, max(1, _BLOCK_ENTRIES // max(1, x[:1].numel())))


def refuse_nonfinite(x: Tensor) -> None:
    """Refuse features with a NaN or infinite value; O(n·d)."""
    start = 0
    for block in blocks(x if x.layout == torch.strided else x.values()):
        # A sum needs no mask; only a suspicious block is looked into.
        if not torch.isfinite(block.sum(dtype=torch.float64)):
            at, *column = (~torch.isfinite(block)).nonzero()[0].tolist()
            node = start + at
            if not column:  # node is the number of an entry
                column = [int(x.col_indices()[node])]
                node = int(torch.searchsorted(x.crow_indices(), node, right=True)) - 1
            raise InputError(
                f"the features have a NaN or infinite value at node {node}, column "
                f"{column[0]}: expected finite numbers"
            )
        start += len(block)


def check_kind(kind: Any) -> None:
    """Refuse a value of ``features`` that no features can be made for."""
    if kind not in (None, "identity", "degree"):
        raise InputError(
            f'features={kind!r} is unknown: expected None, "identity" or "degree"'
        )


def made_features(kind: str, edge_index: Tensor, n: int) -> Tensor:
    """Features for a graph that has none, with n nodes and clean edges.

    ``"identity"``: one column per node (sparse). ``"degree"``: one column, log(1 +
    number of neighbours in either direction).
    """
    if kind == "identity":
        nodes = torch.arange(n + 1)
        return sparse_rows(nodes, nodes[:-1], torch.ones(n), n)
    both = to_undirected(edge_index, num_nodes=n)
    return torch.log1p(torch.bincount(both[0], minlength=n).float()).unsqueeze(1)


def neighbour_graph(x: Tensor, n_neighbors: int) -> Array:
    """Edges [2, E] from each row of X to its nearest rows, in both directions.

    The distance is cosine for sparse and Euclidean for dense X.
    """
    from sklearn.neighbors import kneighbors_graph

    refuse_nonfinite(x)
    n, d = x.shape
    if n == 1 and n_neighbors == 0:
        return np.empty((2, 0), dtype=np.int64)
    if not 1 <= n_neighbors < n:
        raise InputError(
            f"n_neighbors={n_neighbors} does not fit X with {n:,} rows: expected a "
            f"number in 1..{n - 1}"
        )
    matrix: Any = x
    if x.layout != torch.strided:
        parts = (x.values(), x.col_indices(), x.crow_indices())
        # csr_matrix stores 32-bit indices where they suffice; scikit-learn needs it.
        matrix = sp.csr_matrix(tuple(p.numpy() for p in parts), shape=(n, d))
    metric = "cosine" if sp.issparse(matrix) else "euclidean"
    graph = kneighbors_graph(matrix, n_neighbors, metric=metric, include_self=False)
    return np.stack(graph.maximum(graph.T).nonzero())
