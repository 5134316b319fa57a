"""Any PyG graph becomes one form; what is changed is noted."""

import copy
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from elugcn.data.features import as_features
from elugcn.data.fingerprint import graph_fingerprint
from elugcn.data.tables import TableSchema
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.errors import InputError

N = 6
MASKS = {
    "train_mask": torch.tensor([1, 0, 1, 0, 0, 0], dtype=torch.bool),
    "val_mask": torch.tensor([0, 1, 0, 1, 0, 0], dtype=torch.bool),
    "test_mask": torch.tensor([0, 0, 0, 0, 1, 1], dtype=torch.bool),
}


def graph(**changes: Any) -> Data:
    """A path 0-1-2-3-4-5 with two classes and three masks, and some changes."""
    edges = torch.tensor(
        [[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]]
    )
    fields: dict[str, Any] = {
        "x": torch.arange(12, dtype=torch.float32).reshape(N, 2),
        "edge_index": edges,
        "y": torch.tensor([0, 0, 1, 1, 0, 1]),
        **{name: mask.clone() for name, mask in MASKS.items()},
    }
    fields.update(changes)
    return Data(**{key: value for key, value in fields.items() if value is not None})


def quiet(data: Data, **options: Any) -> CheckedGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return check_data(data, **options)


def test_a_clean_graph_passes_without_a_note() -> None:
    data = graph()
    checked = quiet(data)
    assert checked.notes == ()
    for name in ("x", "edge_index", "y", *MASKS):
        assert torch.equal(checked.data[name], data[name])
    assert checked.data.class_names == ["0", "1"]
    assert checked.data.directed is False
    assert checked.data.name == "graph"
    assert "edge_weight" not in checked.data
    y = data.y.tolist()
    data.y[:] = 1  # labels are copies
    data.train_mask[:] = False
    assert checked.data.y.tolist() == y
    assert checked.data.train_mask.any()


def test_the_input_is_not_changed() -> None:
    edges = torch.tensor([[3, 0, 0, 1], [3, 1, 1, 2]])
    y = torch.tensor([[0], [0], [1], [1], [0], [1]])
    data = graph(x=torch.ones(N, 2).double(), edge_index=edges, y=y)
    before = copy.deepcopy(data)
    assert quiet(data, features="degree").data is not data
    assert set(data.keys()) == set(before.keys())
    for key in before.keys():  # noqa: SIM118
        assert torch.equal(data[key], before[key])
        assert data[key].dtype == before[key].dtype


def test_edges_are_cleaned_and_counted() -> None:
    edges = torch.tensor([[1, 0, 0, 2, 3, 3], [0, 1, 1, 3, 3, 4]])
    checked = quiet(graph(edge_index=edges))
    assert checked.data.edge_index.tolist() == [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]]
    assert checked.notes == (
        "self-loops dropped: 1",
        "repeated edges dropped (largest weight kept): 1",
        "edges given in one direction were added in the other: 2",
        "isolated nodes: 1",
        "1 of 3 components (1 nodes) have no training label: their nodes are predicted "
        "from features alone",
    )


def test_direction_is_kept_when_asked() -> None:
    edges = torch.tensor([[1, 0, 2], [0, 5, 3]])
    for data, options in (
        (graph(edge_index=edges, directed=True), {}),
        (graph(edge_index=edges, directed=torch.tensor([True, True])), {}),
        (graph(edge_index=edges), {"directed": True}),
    ):
        checked = quiet(data, **options)
        assert checked.data.edge_index.tolist() == [[0, 1, 2], [5, 0, 3]]
        assert checked.data.directed is True
        assert "edges are treated as directed: 3" in checked.notes


def test_weights_follow_their_edges() -> None:
    edges = torch.tensor([[4, 0, 1, 2, 5], [3, 1, 0, 3, 5]])
    weight = torch.tensor([[0.5], [1.0], [70_000.5], [0.0], [0.0]], dtype=torch.float64)
    checked = quiet(graph(edge_index=edges, edge_weight=weight))
    assert checked.data.edge_index.tolist() == [[0, 1, 3, 4], [1, 0, 4, 3]]
    assert checked.data.edge_weight.tolist() == [70_000.5, 70_000.5, 0.5, 0.5]
    assert checked.data.edge_weight.dtype == torch.float32
    # What is dropped is counted once.
    assert "edges of weight 0 dropped: 1" in checked.notes
    assert "self-loops dropped: 1" in checked.notes
    assert "edge_weight" not in quiet(graph(edge_weight=torch.ones(10))).data
    attributes = quiet(graph(edge_attr=torch.ones(10, 3)))
    assert (
        "edge_attr is not used; weights are read from edge_weight" in attributes.notes
    )


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)), max_size=25
    ),
    directed=st.booleans(),
)
def test_edges_agree_with_scipy(
    edges: list[tuple[int, int, int]], directed: bool
) -> None:
    dense = np.zeros((N, N), dtype=np.float32)
    for source, target, weight in edges:
        if source != target:
            dense[source, target] = max(dense[source, target], weight)
    truth = sp.coo_array(dense if directed else np.maximum(dense, dense.T))
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    data = graph(
        edge_index=torch.from_numpy(columns[:2].copy()),
        edge_weight=torch.from_numpy(columns[2].astype(np.float32)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = check_data(data, directed=directed)
    assert checked.data.edge_index.tolist() == [truth.row.tolist(), truth.col.tolist()]
    weights = checked.data.get("edge_weight", torch.ones(truth.nnz))
    assert weights.tolist() == truth.data.tolist()
    # A second check finds nothing left to do, and does not warn again.
    checked.data.notes = list(checked.notes)
    again = quiet(checked.data)
    assert torch.equal(again.data.edge_index, checked.data.edge_index)
    assert again.notes == checked.notes


def test_features_can_be_made() -> None:
    identity = quiet(graph(x=None), features="identity")
    assert identity.data.x.layout == torch.sparse_csr
    assert torch.equal(identity.data.x.to_dense(), torch.eye(N))
    assert identity.notes == ("features were made: identity",)
    counts = torch.tensor([1.0, 2, 2, 2, 2, 1])
    for directed in (False, True):
        degree = quiet(graph(), features="degree", directed=directed)
        assert torch.allclose(degree.data.x, torch.log1p(counts).unsqueeze(1))
        assert "features were made: degree and replace data.x" in degree.notes


def test_other_kinds_of_x_are_converted() -> None:
    dense = torch.eye(N)
    kinds: list[Any] = [dense.to(k) for k in (torch.float64, torch.int64, torch.bool)]
    kinds += [dense.to_sparse(), dense.to_sparse_csr(), dense.numpy(), dense.t()]
    for x in [*kinds, dense.tolist(), sp.csc_array(dense.numpy())]:
        checked = quiet(graph(x=x)).data.x
        assert checked.dtype == torch.float32
        assert torch.equal(checked.to_dense(), dense)
        assert checked.layout in (torch.strided, torch.sparse_csr)
    notes = quiet(graph(x=dense.double())).notes
    assert notes == ("x was converted from torch.float64 to torch.float32",)


def test_float_labels_with_nan_and_column_labels() -> None:
    y = torch.tensor([[0.0], [0], [1], [1], [float("nan")], [1]])
    checked = quiet(graph(y=y))
    assert checked.data.y.tolist() == [0, 0, 1, 1, -1, 1]
    assert checked.data.test_mask.tolist() == [False] * 5 + [True]
    assert "1 nodes of test_mask have no label and were left out" in checked.notes
    assert "y was squeezed from shape [n, 1]" in checked.notes


def test_classes_without_labels_are_kept_and_said() -> None:
    checked = quiet(graph(y=torch.tensor([0, 0, 2, 2, 0, 2])))
    assert checked.data.class_names == ["0", "1", "2"]
    assert "classes without any label: 1" in checked.notes
    named = quiet(graph(class_names=["cat", "dog", "emu"]))
    assert "classes without any label: emu" in named.notes
    by_number = quiet(graph(class_names={1: "dog"}))
    assert by_number.data.class_names == ["0", "dog"]


def test_no_masks_make_a_split() -> None:
    bare = graph(train_mask=None, val_mask=None, test_mask=None)
    checked = quiet(bare, val_fraction=0.3, test_fraction=0.3, seed=3)
    assert [int(checked.data[name].sum()) for name in MASKS] == [2, 2, 2]
    assert checked.notes == (
        "no split was given: a stratified split was made with seed 3 (2 train, 2 "
        "validation, 2 test)",
    )


def test_missing_masks_are_made_of_the_others() -> None:
    train = torch.tensor([1, 1, 1, 1, 0, 0], dtype=torch.bool)
    checked = quiet(graph(train_mask=train, val_mask=None), val_fraction=0.5)
    assert int(checked.data.train_mask.sum()) == int(checked.data.val_mask.sum()) == 2
    assert torch.equal(checked.data.train_mask | checked.data.val_mask, train)
    assert any("2 of 4 training nodes validate" in n for n in checked.notes)
    data = graph(train_mask=None, val_mask=None)
    data.y[5] = -1
    checked = quiet(data, val_fraction=0.5)
    assert checked.data.test_mask.tolist() == [False] * 4 + [True, False]
    assert int(checked.data.train_mask.sum()) == int(checked.data.val_mask.sum()) == 2
    assert any("no train_mask was given" in note for note in checked.notes)


def test_metadata_and_earlier_notes_are_kept() -> None:
    about: dict[str, Any] = {
        "name": "mine",
        "class_names": ["cat", "dog"],
        "node_ids": list("abcdef"),
        "classes": np.array(["cat", "dog"]),
        "feature_names": ["f", "g"],
        "links": torch.tensor([[0], [1]]),
        "features_scaled": True,
        "table_schema": TableSchema(class_names=("cat", "dog")),
    }
    checked = quiet(graph(notes=["self-loops dropped: 7"], **about))
    assert checked.notes == ("self-loops dropped: 7",)
    for key, value in about.items():
        assert checked.data[key] is value or checked.data[key] == value
    odd = quiet(graph(table_schema={"version": 9}, node_ids=torch.arange(N)))
    assert "table_schema" not in odd.data
    assert odd.notes == ("table_schema is not a TableSchema and was left out",)
    assert odd.data.node_ids == list("012345")


def test_a_batch_of_graphs() -> None:
    part = graph(name="a", class_names=["cat", "dog"], node_ids=list("abcdef"))
    checked = quiet(Batch.from_data_list([part, part])).data
    assert checked.class_names == ["cat", "dog"]
    assert checked.node_ids == list("abcdefabcdef")
    assert checked.name == "a"
    assert checked.num_nodes == 2 * N


def test_prediction_needs_no_labels() -> None:
    bare = graph(y=None, train_mask=None, val_mask=None, test_mask=None)
    checked = quiet(bare, require_labels=False).data
    assert checked.y.tolist() == [-1] * N
    assert not (checked.train_mask | checked.val_mask | checked.test_mask).any()
    # Labels that only a model's class names reach; nodes without one do not train.
    few = graph(y=torch.tensor([0, -1, 9, 1, 0, 1]), class_names=list("abcdefghij"))
    checked = quiet(few, require_labels=False).data
    assert checked.y.tolist() == [0, -1, 9, 1, 0, 1]
    assert checked.val_mask.tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": torch.empty(2, 0)}, "has no edges"),
        ({"y": torch.tensor([0, 0, 1, 2, 0, 1])}, "classes 2 occur .* no training lab"),
        ({"val_mask": None}, "no validation node"),
    ],
)
def test_warnings(changes: dict[str, Any], message: str) -> None:
    with pytest.warns(UserWarning, match=message):
        checked = check_data(graph(**changes))
    assert any(re.search(message, note) for note in checked.notes)


def test_features_in_a_file_are_not_copied(tmp_path: Path) -> None:
    """Float32 features may be larger than memory: the file is used in place."""
    path = tmp_path / "x.bin"
    written = np.memmap(path, dtype=np.float32, mode="w+", shape=(N, 5))
    written[:] = np.random.default_rng(0).normal(size=(N, 5))
    written.flush()
    x = np.memmap(path, dtype=np.float32, mode="r", shape=(N, 5))
    features = as_features(x, "x")
    assert features.data_ptr() == x.ctypes.data
    assert quiet(graph(x=features)).data.x.data_ptr() == x.ctypes.data


def test_a_value_far_down_a_large_matrix_is_found() -> None:
    x = torch.zeros(2**20 + 9, 5)
    x[2**20 + 7, 2] = torch.inf
    edges = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match="node 1048583, column 2"):
        check_data(Data(x=x, edge_index=edges), require_labels=False)
    x[2**20 + 7, 2] = 0
    x[:3, 0] = torch.tensor([3e38, 3e38, 3e38])  # a large sum is fine
    check_data(Data(x=x, edge_index=edges), require_labels=False)


def test_another_weight_or_value_is_another_graph() -> None:
    dense, weight = torch.eye(4), torch.full((10,), 2.0)
    for x in (dense, dense.to_sparse_csr()):
        graphs = [graph(x=x), graph(x=2 * x)]
        graphs += [graph(x=x, edge_weight=weight), graph(x=x, edge_weight=2 * weight)]
        assert len({graph_fingerprint(each) for each in graphs}) == 4
        assert graph_fingerprint(graph(x=x)) == graph_fingerprint(graphs[0])
