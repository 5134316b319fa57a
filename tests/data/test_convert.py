"""Arrays, matrices, networkx graphs and data frames become the same graph."""

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from elugcn.data.convert import to_data
from elugcn.data.features import as_features
from elugcn.data.labels import encode_labels
from elugcn.data.validation import check_data
from elugcn.errors import InputError

X = np.arange(8.0).reshape(4, 2)
# The path 0-1-2 and node 3 alone.
EDGES = [[0, 1, 1, 2], [1, 0, 2, 1]]
DENSE = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
ARROWS = np.zeros((4, 4))
ARROWS[0, 1] = ARROWS[2, 1] = ARROWS[3, 0] = 1
START = 1_700_000_000


def path() -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from("abcd")
    made.add_edges_from([("a", "b"), ("b", "c")])
    return made


def clean(X: Any, y: Any = None, adjacency: Any = None, **options: Any) -> Data:
    data = check_data(to_data(X, y, adjacency, **options), require_labels=False).data
    assert isinstance(data, Data)
    return data


# Adjacency


@pytest.mark.parametrize(
    "adjacency",
    [
        DENSE,
        np.triu(DENSE).astype(bool),
        sp.csr_matrix(DENSE),
        sp.csc_array(np.tril(DENSE)),
        torch.from_numpy(DENSE),
        torch.from_numpy(DENSE).to_sparse(),
        np.array(EDGES),
        torch.tensor([[2, 0, 0, 3], [1, 1, 1, 3]]),
        [[0, 1], [1, 2]],
        path(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_forms_of_adjacency_agree(adjacency: Any) -> None:
    data = clean(X, [0, 1, 0, -1], adjacency)
    assert data.edge_index.tolist() == EDGES
    assert "edge_weight" not in data
    assert data.directed is False


@pytest.mark.parametrize(
    "adjacency",
    [
        ARROWS,
        sp.csr_array(ARROWS),
        torch.from_numpy(ARROWS).to_sparse_csr(),
        [[2, 0, 3], [1, 1, 0]],
        nx.DiGraph([(0, 1), (2, 1), (3, 0)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_point_to_columns(adjacency: Any) -> None:
    data = clean(X, [0, 1, 0, 1], adjacency, directed=True)
    assert data.edge_index.tolist() == [[0, 2, 3], [1, 1, 0]]
    assert data.directed is True


def test_weights() -> None:
    matrix = sp.coo_array(([2.0, 1.0, 5.0, 0.0], ([0, 0, 2, 3], [1, 1, 1, 0])), (4, 4))
    directed = clean(X, adjacency=matrix, directed=True)
    # A scipy matrix adds its repeats up; an explicit 0 is not an edge.
    assert directed.edge_index.tolist() == [[0, 2], [1, 1]]
    assert directed.edge_weight.tolist() == [3.0, 5.0]
    both = clean(X, adjacency=matrix)
    assert both.edge_index.tolist() == EDGES
    assert both.edge_weight.tolist() == [3.0, 3.0, 5.0, 5.0]


def test_order_of_networkx_nodes() -> None:
    named = nx.DiGraph()
    named.add_nodes_from(["z", "a", "m", "b"])
    named.add_edge("m", "z", weight=0.5)
    data = to_data(X, adjacency=named, directed=True)
    assert data.edge_index.tolist() == [[2], [0]]
    assert data.edge_weight.tolist() == [0.5]
    assert data.notes[0].startswith("the nodes of the networkx graph are not row numb")
    # Row numbers may come in any order.
    numbers = nx.Graph([(2, 1), (1, 0)])
    numbers.add_node(3)
    assert list(numbers) == [2, 1, 0, 3]
    assert clean(X, adjacency=numbers).edge_index.tolist() == EDGES
    assert to_data(X, adjacency=numbers).notes == []


@pytest.mark.parametrize(("sparse", "metric"), [(False, "euclidean"), (True, "cosine")])
def test_nearest_neighbours(sparse: bool, metric: str) -> None:
    x = np.random.default_rng(0).gamma(1, size=(60, 5))
    expected = kneighbors_graph(x, 3, metric=metric)
    expected = (expected + expected.T > 0).tocoo()
    data = clean(sp.csr_array(x) if sparse else x, n_neighbors=3)
    assert data.edge_index.tolist() == [expected.row.tolist(), expected.col.tolist()]
    # If that is allowed, all rows are neighbours where there are fewer.
    pair = to_data(X[:2], n_neighbors=5, or_fewer=True)
    assert pair.edge_index.tolist() == [[0, 1], [1, 0]]
    assert to_data(X[:1], n_neighbors=5, or_fewer=True).edge_index.shape == (2, 0)


# Labels


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        ([5, 2, -1, 5], [1, 0, -1, 1], np.array([2, 5])),
        (np.array([3.0, np.nan, 1.0, -1.0]), [1, -1, 0, -1], np.array([1.0, 3.0])),
        ([3.0, -1.0, 1.0, None], [1, -1, 0, -1], np.array([1.0, 3.0])),
        (["b", "", None, "a"], [1, -1, -1, 0], np.array(["a", "b"])),
        (np.array(["a", "b", np.nan, ""]), [0, 1, -1, -1], np.array(["a", "b"])),
        ([1, None, float("nan"), 0], [1, -1, -1, 0], np.array([0, 1])),
        ([True, False, True], [1, 0, 1], np.array([False, True])),
        (torch.tensor([[1], [0], [-1], [1]]), [1, 0, -1, 1], np.array([0, 1])),
        (pd.Series([7, None, 3], dtype="Int64"), [1, -1, 0], np.array([3, 7])),
        (pd.Series(["b", "a"], dtype="category"), [1, 0], np.array(["a", "b"])),
        ([-1, None, -1], [-1, -1, -1], np.empty(0)),
    ],
    ids=range(11),
)
def test_labels(y: Any, codes: list[int], classes: Any) -> None:
    found, names = encode_labels(y, len(codes))
    assert found.tolist() == codes
    assert found.dtype == torch.int64
    assert names.tolist() == classes.tolist()
    assert names.dtype.kind == classes.dtype.kind
    assert names.dtype.kind == "U" or names.dtype == classes.dtype


# Features


class PolarsColumn:
    """Its dtype knows nothing of numpy's."""

    def __init__(self, values: Any) -> None:
        self.values, self.dtype = np.array(values), object()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values.astype(dtype or self.values.dtype)


class PolarsFrame(dict[str, PolarsColumn]):
    """As much of a polars frame as is looked at."""

    def __init__(self, columns: dict[str, Any]) -> None:
        super().__init__({name: PolarsColumn(columns[name]) for name in columns})
        self.columns = list(columns)

    def to_numpy(self) -> Any:
        raise AssertionError("columns are read one by one")


@pytest.mark.parametrize("frame", [pd.DataFrame, PolarsFrame])
def test_data_frames(frame: Any) -> None:
    columns: dict[str, Any] = {"f": [0.5, 2.0], "i": [1, 2], "b": [True, False]}
    assert as_features(frame(columns), "X").tolist() == [[0.5, 1, 1], [2, 2, 0]]
    with pytest.raises(InputError, match=r"X, column 's' has dtype .*: expected real"):
        as_features(frame({**columns, "s": ["a", "b"]}), "X")
    times = [START, START + 50]
    with pytest.warns(UserWarning, match="X, column 'when': .*single precision"):
        as_features(frame({"f": [0.5, 1.0], "when": times}), "X")
    with pytest.raises(InputError, match="NaN or infinite value at node 1, column 0"):
        clean(frame({"f": [0.5, np.nan]}), adjacency=np.zeros((2, 2)))


def test_nullable_columns_of_pandas() -> None:
    whole = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64")})
    assert as_features(whole, "X").tolist() == [[1], [2]]
    gap = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})
    with pytest.raises(InputError, match=r"missing values|NaN"):
        clean(gap, adjacency=np.zeros((2, 2)))


# Values that single precision cannot tell apart


def times(kind: Any) -> Any:
    values = np.arange(80, dtype=np.float64).reshape(40, 2)
    values[:, 1] = START + 50 * (np.arange(40) % 2)
    return values.astype(kind)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32, np.uint64])
def test_an_array_whose_values_merge_warns(kind: Any) -> None:
    x = times(kind)
    for given in (x, np.asfortranarray(x), x.tolist(), torch.from_numpy(x)):
        with pytest.warns(UserWarning, match=r"X, column 1: .*single") as told:
            data = to_data(given, n_neighbors=2)
        assert len(told) == 1
        assert np.array_equal(data.x.numpy(), x.astype(np.float32))


def test_an_array_that_keeps_its_values_does_not_warn() -> None:
    generator = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (
            times(np.float32),
            torch.from_numpy(times(np.float32)),
            generator.normal(size=(300, 3)),
            np.ones((5, 2)),
            np.zeros((5, 2)),
            # Rounding noise of double precision is not information.
            np.array([[0.1 + 0.2], [0.3]]),
            np.array([[START], [START + 5000.0]]),
            sp.csr_array(np.eye(4)),
            np.array([[2**63 - 1], [-(2**63)]]),
            # numpy has no such kinds.
            torch.ones(4, 2).to(torch.bfloat16),
            torch.ones(4, 2).to(torch.float8_e5m2),
        ):
            as_features(x, "x")
