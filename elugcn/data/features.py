"""Node features in any form become one kind of matrix, or are made from the edges."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from elugcn.data.edges import clean_edges
from elugcn.errors import InputError

# Entries that are checked at once.
_BLOCK_ENTRIES = 2**22
# Of values that span less than this share of the largest, single precision keeps
# at most 128 apart.
_NARROW = 2.0**-17
# Doubles that span less than this share of the largest differ by rounding only.
_NOISE = 2.0**-40
# Kinds of tensor that hold more than single precision does.
_WIDE = (torch.float64, torch.int32, torch.int64, torch.uint32, torch.uint64)
# Rows by which most columns of an array are known not to be narrow.
_FIRST_ROWS = 64


def as_features(x: Any, name: str) -> Tensor:
    """A finite float32 matrix: dense and contiguous, or sparse CSR.

    Args:
        x: Torch tensor (dense or sparse), numpy array, scipy sparse matrix or a data
            frame of numbers.
        name: What to call it in a message.
    """
    given = x
    if _is_frame(x):
        x = _from_frame(x, name)
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        if x.dtype.is_complex or x.is_quantized:
            raise InputError(f"{name} has dtype {x.dtype}: expected real numbers")
    elif sp.issparse(x):
        check_numeric(getattr(x, "dtype", None), name)
    elif isinstance(x, np.ndarray) or hasattr(x, "__array__"):
        x = _numbers(x)
        check_numeric(np.asarray(x).dtype, name)
        x = _from_array(x)
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
        with _without_csr_warning():
            x = x.to_sparse_csr().to(torch.float32)
    _refuse_nonfinite(x, name)
    if merged := _merged_columns(given):
        warnings.warn(f"{name}, {merged_note(merged)}", UserWarning, stacklevel=3)
    return x  # type: ignore[no-any-return]


def _numbers(x: Any) -> Any:
    """Numbers that stand in an array of objects; anything else as it is."""
    if np.asarray(x).dtype != object:
        return x
    try:
        return np.asarray(x).astype(np.float64)
    except (TypeError, ValueError):
        return x


def check_numeric(dtype: Any, name: str) -> None:
    """Refuse a numpy dtype that holds no real numbers."""
    if np.dtype(dtype).kind not in "fiub":
        raise InputError(f"{name} has dtype {dtype}: expected real numbers")


def _is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def _from_frame(x: Any, name: str) -> NDArray[Any]:
    """Columns of numbers and booleans; together they would be objects."""
    foreign = False
    for column in x.columns:
        dtype = x[column].dtype
        kind = getattr(dtype, "kind", None)
        if kind is None:
            # The dtypes of polars are not numpy's: what the column becomes counts.
            foreign, kind = True, np.asarray(x[column]).dtype.kind
        if kind not in "fiub":
            raise InputError(
                f"{name}, column {column!r} has dtype {dtype}: expected real numbers"
            )
    if foreign:
        # Its to_numpy takes no dtype; the result is checked as any array.
        return np.asarray(x)
    try:
        values: NDArray[np.float32] = x.to_numpy(dtype=np.float32)
    except (TypeError, ValueError) as error:  # pandas.NA
        raise InputError(f"{name} can't be read as numbers ({error})") from None
    return values


def collapses(values: NDArray[Any]) -> bool:
    """Whether different values of a column become the same in single precision.

    Asked only of columns that span little against their size: elsewhere rounding
    merges what is too near to be told apart once the column is scaled.

    Args:
        values: Numbers that are finite in single precision, [n].
    """
    if np.can_cast(values.dtype, np.float32) or not len(values):
        return False
    low, high = values.min().item(), values.max().item()
    span, size = high - low, max(abs(low), abs(high))
    # Whole numbers are exact: what they differ by is meant.
    noise = 0 if values.dtype.kind in "iu" else _NOISE * size
    if not noise < span < _NARROW * size:
        return False
    return len(np.unique(values.astype(np.float32))) < len(np.unique(values))


def merged_note(columns: Sequence[str]) -> str:
    """What to say of columns whose values become the same."""
    shown = ", ".join(columns[:5])
    if len(columns) > 5:
        shown += f", ... ({len(columns):,} in all)"
    return (
        f"column{'s' if len(columns) > 1 else ''} {shown}: values differ by less than "
        "single precision (float32) can hold and become the same; subtract a constant "
        "first, e.g. the smallest value"
    )


def _merged_columns(x: Any) -> list[str]:
    """Columns of a frame or dense array [n, d] that collapse, by name or number."""
    if _is_frame(x):
        columns = ((column, np.asarray(x[column])) for column in x.columns)
        return [
            repr(column)
            for column, values in columns
            if values.dtype.kind in "fiu" and collapses(values)
        ]
    if isinstance(x, Tensor):
        if x.layout != torch.strided or x.dtype not in _WIDE:
            return []
        x = x.detach().cpu().resolve_neg().numpy()
    # A sparse column has zeros, and so is as wide as its values are large.
    if sp.issparse(x) or np.can_cast(np.asarray(x).dtype, np.float32):
        return []
    values = np.asarray(x)
    # Narrow columns are narrow in their first rows too: in a wide array of usual
    # numbers no other row has to be looked at.
    first = values[:_FIRST_ROWS].astype(np.float64)
    span = first.max(axis=0) - first.min(axis=0)
    narrow = np.flatnonzero(span < 2 * _NARROW * np.abs(first).max(axis=0))
    return [str(column) for column in narrow if collapses(values[:, column])]


def from_rows(x: list[Any] | tuple[Any, ...], name: str) -> NDArray[Any]:
    """A list of rows as a matrix."""
    try:
        return np.asarray(x)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths") from None


def _from_array(x: Any) -> Tensor:
    """A float32 tensor; of a float32 file in memory the file itself, not a copy."""
    on_disk = isinstance(x, np.memmap) and x.dtype == np.float32
    values = np.asarray(x).astype(np.float32, copy=not on_disk)
    with warnings.catch_warnings():
        # Nothing here writes to features, and a file opened to be read can't be.
        warnings.filterwarnings("ignore", message=".*not writable")
        return torch.from_numpy(values)


def _scipy_to_csr(x: Any) -> Tensor:
    rows = sp.csr_array(x, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    crow, col = torch.from_numpy(rows.indptr), torch.from_numpy(rows.indices)
    return sparse_rows(crow, col, torch.from_numpy(rows.data), rows.shape[1])


def _refuse_nonfinite(x: Tensor, name: str) -> None:
    values = x if x.layout == torch.strided else x.values()
    # A sum is one pass without a mask; only a suspicious one is looked into. In blocks,
    # because a sum in double precision makes a copy in double precision.
    width = max(1, values.numel() // max(1, values.size(0)))
    rows = max(1, _BLOCK_ENTRIES // width)
    total = torch.zeros((), dtype=torch.float64)
    for start in range(0, values.size(0), rows):
        total += values[start : start + rows].sum(dtype=torch.float64)
    if bool(torch.isfinite(total)):
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


def sparse_rows(crow: Tensor, col: Tensor, value: Tensor, d: int) -> Tensor:
    """A sparse CSR tensor [n, d] of float32."""
    with _without_csr_warning():
        return torch.sparse_csr_tensor(
            crow.long(),
            col.long(),
            value.to(torch.float32),
            size=(len(crow) - 1, d),
            check_invariants=False,
        )


@contextmanager
def _without_csr_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        yield


def made_features(kind: str, edge_index: Tensor, n: int) -> Tensor:
    """Features for a graph that has none.

    Args:
        kind: "identity" gives each node its own column (sparse), "degree" one
            column log(1 + number of edges at the node).
        edge_index: Clean edges; of a directed graph both ends count.
        n: Number of nodes.
    """
    check_kind(kind)
    if kind == "identity":
        nodes = torch.arange(n + 1)
        return sparse_rows(nodes, nodes[:-1], torch.ones(n), n)
    # An edge held in both directions is one neighbour, not two.
    source, target = edge_index.numpy()
    both, _, _ = clean_edges(source, target, None, n, directed=False)
    degree = torch.bincount(both[0], minlength=n)
    return torch.log1p(degree.to(torch.float32)).unsqueeze(1)


def check_kind(kind: str) -> None:
    """Refuse a kind of made features that there is not."""
    if kind not in ("identity", "degree"):
        raise InputError(f'features is {kind!r}: expected None, "identity" or "degree"')


def set_ones(matrix: NDArray[np.float32], start: int, codes: NDArray[Any]) -> None:
    """One-hot columns, in place: in row i a 1 at ``start + codes[i]``; -1 has none."""
    rows = np.flatnonzero(codes >= 0)
    matrix[rows, start + codes[rows]] = 1
