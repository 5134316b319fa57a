"""Arrays, matrices and networkx graphs become the same graph."""

import sys
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.data.checks import check_data
from elugcn.data.convert import to_data
from elugcn.data.edges import clean_edges
from elugcn.data.features import as_features
from elugcn.errors import InputError, MissingExtraError

X = np.arange(8.0).reshape(4, 2)
# The path 0-1-2 and node 3 alone.
EDGES = [[0, 1, 1, 2], [1, 0, 2, 1]]
DENSE = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def path() -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from("abcd")
    made.add_edges_from([("a", "b"), ("b", "c")])
    return made


@pytest.mark.parametrize(
    "adjacency",
    [
        DENSE,
        DENSE.astype(bool),
        np.triu(DENSE),
        sp.csr_matrix(DENSE),
        sp.coo_array(DENSE),
        sp.lil_array(DENSE),
        sp.csc_array(np.tril(DENSE)),
        torch.from_numpy(DENSE),
        torch.from_numpy(DENSE).to_sparse(),
        torch.from_numpy(DENSE).float().to_sparse_csr(),
        np.array(EDGES),
        torch.tensor([[2, 0, 0, 3], [1, 1, 1, 3]]),
        [[0, 1], [1, 2]],
        path(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_forms_of_adjacency_agree(adjacency: Any) -> None:
    data = to_data(X, [0, 1, 0, -1], adjacency)
    assert data.edge_index.tolist() == EDGES
    assert data.edge_index.dtype == torch.int64
    assert "edge_weight" not in data
    assert "train_mask" not in data
    assert data.directed is False


def test_weights_and_direction() -> None:
    matrix = sp.coo_array(([2.0, 1.0, 5.0, 0.0], ([0, 0, 2, 3], [1, 1, 1, 0])), (4, 4))
    directed = to_data(X, adjacency=matrix, directed=True)
    # A scipy matrix adds its repeats up; an explicit 0 is no edge.
    assert directed.edge_index.tolist() == [[0, 2], [1, 1]]
    assert directed.edge_weight.tolist() == [3.0, 5.0]
    assert directed.directed is True
    both = to_data(X, adjacency=matrix)
    assert both.edge_index.tolist() == EDGES
    assert both.edge_weight.tolist() == [3.0, 3.0, 5.0, 5.0]
    assert any("mirrored: 2 edges" in note for note in both.notes)


def test_networkx_weights_and_node_order() -> None:
    made = nx.DiGraph()
    made.add_nodes_from(["z", "a", "m", "b"])
    made.add_edge("m", "z", weight=0.5)
    data = to_data(X, adjacency=made, directed=True)
    assert data.edge_index.tolist() == [[2], [0]]
    assert data.edge_weight.tolist() == [0.5]


def test_networkx_nodes_that_are_row_numbers_may_come_in_any_order() -> None:
    made = nx.Graph([(2, 1), (1, 0)])
    made.add_node(3)
    assert list(made) == [2, 1, 0, 3]
    data = to_data(X, adjacency=made)
    assert data.edge_index.tolist() == to_data(X, adjacency=DENSE).edge_index.tolist()
    assert data.notes == []
    # Others are taken as they are listed, which is said.
    shifted = to_data(X, adjacency=nx.relabel_nodes(made, {3: 4}))
    assert shifted.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert shifted.notes[0].startswith("the nodes of the networkx graph are no row")
    made.add_edge(0, 3, weight="heavy")
    with pytest.raises(InputError, match="adjacency has edges whose weight is no num"):
        to_data(X, adjacency=made)


def test_labels_that_say_unknown_are_counted_where_one_class_is_left() -> None:
    with pytest.raises(
        InputError, match=r"y holds only one class, 1 \(2 labels say unknown, as -1"
    ):
        to_data(X, [-1, 1, 1, -1])
    with pytest.raises(InputError, match=r"y holds only one class, a: expected"):
        to_data(X, ["a"] * 4)


def test_nan_among_strings_and_infinity() -> None:
    data = to_data(X, np.array(["a", "b", np.nan, ""]), DENSE)
    assert data.y.tolist() == [0, 1, -1, -1]
    with pytest.raises(InputError, match="y holds inf: expected classes"):
        to_data(X, np.array([0.0, 1.0, np.inf, np.nan]))


def test_fewer_rows_than_neighbours() -> None:
    pair = to_data(X[:2], n_neighbors=5, or_fewer=True)
    assert pair.edge_index.tolist() == [[0, 1], [1, 0]]
    assert to_data(X[:1], n_neighbors=5, or_fewer=True).edge_index.shape == (2, 0)


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 6),
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20),
    directed=st.booleans(),
)
def test_unweighted_edges_agree_with_scipy(
    n: int, pairs: list[tuple[int, int]], directed: bool
) -> None:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2) % n
    dense = np.zeros((n, n), dtype=np.int8)
    dense[ends[:, 0], ends[:, 1]] = 1
    np.fill_diagonal(dense, 0)
    matrix = sp.csr_array(dense)
    truth = (matrix if directed else sp.csr_array(matrix.maximum(matrix.T))).tocoo()
    edge_index, weight, report = clean_edges(
        ends[:, 0], ends[:, 1], None, n, directed=directed
    )
    assert edge_index.tolist() == [truth.row.tolist(), truth.col.tolist()]
    assert weight is None
    assert report.self_loops == int((ends[:, 0] == ends[:, 1]).sum())
    assert report.repeats == len(ends) - report.self_loops - matrix.nnz
    if not directed:
        assert 2 * report.mutual + report.one_way == matrix.nnz


@pytest.mark.parametrize(
    ("y", "codes", "classes"),
    [
        ([5, 2, -1, 5], [1, 0, -1, 1], np.array([2, 5])),
        (
            np.array([5, 2, -1, 5], dtype=np.int32),
            [1, 0, -1, 1],
            np.array([2, 5], np.int32),
        ),
        (np.array([3.0, np.nan, 1.0, -1.0]), [1, -1, 0, -1], np.array([1.0, 3.0])),
        (["b", "", None, "a"], [1, -1, -1, 0], np.array(["a", "b"])),
        (np.array(["b", "", "b", "a"]), [1, -1, 1, 0], np.array(["a", "b"])),
        ([1, None, float("nan"), 0], [1, -1, -1, 0], np.array([0, 1])),
        ([True, False, True, True], [1, 0, 1, 1], np.array([False, True])),
        (torch.tensor([[1], [0], [-1], [1]]), [1, 0, -1, 1], np.array([0, 1])),
        (None, [-1, -1, -1, -1], np.empty(0, dtype=np.int64)),
    ],
)
def test_labels(y: Any, codes: list[int], classes: Any) -> None:
    data = to_data(X, y, DENSE)
    assert data.y.tolist() == codes
    assert data.y.dtype == torch.int64
    assert data.classes.tolist() == classes.tolist()
    assert data.classes.dtype == classes.dtype
    assert data.class_names == [str(label) for label in classes]


def test_sparse_features_stay_sparse() -> None:
    matrix = sp.random_array((4, 30), density=0.2, rng=np.random.default_rng(0))
    for x in (
        matrix.tocsc(),
        matrix.tocoo(),
        torch.from_numpy(matrix.toarray()).to_sparse(),
    ):
        data = to_data(x, adjacency=DENSE)
        assert data.x.layout == torch.sparse_csr
        assert data.x.dtype == torch.float32
        assert np.allclose(data.x.to_dense().numpy(), matrix.toarray())


def test_nearest_neighbours() -> None:
    x = np.array([[0.0], [1.0], [10.0], [11.5]])
    data = to_data(x, n_neighbors=1)
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    # By angle the long and the short vector of one direction are neighbours.
    rays = sp.csr_array(np.array([[1.0, 0], [0, 1.1], [90, 0], [0, 70]]))
    angles = to_data(rays, n_neighbors=1)
    assert angles.edge_index.tolist() == [[0, 1, 2, 3], [2, 3, 0, 1]]
    assert angles.notes == []


def test_the_result_passes_the_check_and_x_is_copied() -> None:
    x = X.astype(np.float32)
    data = to_data(x, [0, 0, 1, 1], DENSE)
    x[0, 0] = 99
    assert data.x[0, 0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checked = check_data(data)
    assert checked.data.classes.tolist() == [0, 1]
    assert checked.data.edge_index.tolist() == EDGES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.arange(4.0)}, r"X has shape \[4\]: expected two dimensions"),
        ({"X": np.ones((4, 0))}, r"X has shape \[4, 0\]"),
        ({"X": np.full((4, 2), "a")}, r"X has dtype <U1"),
        ({"X": "text"}, "X is a str"),
        (
            {"X": np.array([[0, 1], [2, np.inf], [0, 0], [0, 0]])},
            "X .* node 1, column 1",
        ),
        ({"y": [0, 1]}, "y has 2 labels but X has 4 rows"),
        ({"y": np.eye(4)}, r"y has shape \[4, 4\]: .*\[4\]"),
        ({"y": [0.5, 1.0, 2.0, 1.0]}, r"y holds 0\.5: expected classes"),
        ({"y": [[0], [1], [0], [1]]}, "y holds labels of type list"),
        ({"y": [0, "a", 1, "b"]}, "y holds labels of type int, str"),
        ({"adjacency": np.eye(3)}, r"adjacency has shape \[3, 3\] but X has 4 rows"),
        (
            {"adjacency": sp.eye_array(5)},
            r"adjacency has shape \[5, 5\] but X has 4 rows",
        ),
        (
            {"adjacency": nx.path_graph(3)},
            r"adjacency has shape \[3, 3\] but X has 4 rows",
        ),
        ({"adjacency": nx.Graph()}, "adjacency is a networkx graph without nodes"),
        (
            {"adjacency": np.array([[0, 1], [1, 4]])},
            r"adjacency edge 1 is \(1, 4\).*0\.\.3",
        ),
        ({"adjacency": np.array([[0.0, 1], [1, 2]])}, "adjacency .* expected integers"),
        ({"adjacency": -DENSE}, r"adjacency\[0, 1\] is -1\.0"),
        ({"adjacency": DENSE * np.nan}, r"adjacency\[0, 0\] is nan"),
        ({"adjacency": np.full((4, 4), "a")}, "adjacency has dtype <U1"),
        ({"n_neighbors": 4}, r"n_neighbors is 4 but X has 4 rows: .*1\.\.3"),
        ({"n_neighbors": 0}, "n_neighbors is 0"),
    ],
)
def test_refusals_name_sizes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        to_data(**{"X": X, "n_neighbors": 2, **arguments})
    assert "\n" not in str(caught.value)


def test_networkx_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"elugcn\[networkx\]"):
        to_data(X, adjacency=path())


class Frame:
    """As much of a data frame as is looked at."""

    def __init__(self, columns: dict[str, np.ndarray[Any, Any]]) -> None:
        self.data = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        return self.data[name]

    def to_numpy(self, dtype: Any) -> np.ndarray[Any, Any]:
        return np.stack(list(self.data.values()), axis=1).astype(dtype)


def test_columns_of_a_frame_may_differ_in_kind() -> None:
    columns = {"a": np.array([True, False]), "b": np.array([0.5, 2.0])}
    x = as_features(Frame(columns), "X")
    assert x.tolist() == [[1.0, 0.5], [0.0, 2.0]]
    columns["c"] = np.array(["x", "y"], dtype=object)
    with pytest.raises(InputError, match="X, column 'c' has dtype object"):
        as_features(Frame(columns), "X")
    columns["c"] = np.array(["x", "y"])
    with pytest.raises(InputError, match="X, column 'c'"):
        as_features(Frame(columns), "X")
