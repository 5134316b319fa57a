"""Any PyG graph in, one form out; what cannot be used is named."""

import copy
import re
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.data.features import as_features
from elugcn.errors import InputError
from elugcn.fitting import fit_graph
from elugcn.methods.base import make_problem
from elugcn.methods.network_config import GCNConfig

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
        **MASKS,
    }
    fields.update(changes)
    return Data(**{key: value for key, value in fields.items() if value is not None})


def quiet(data: Data, **options: Any) -> CheckedGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return check_data(data, **options)


def test_a_clean_graph_passes_without_a_note() -> None:
    data = graph()
    before = copy.deepcopy(data)
    checked = quiet(data)
    assert checked.notes == ()
    assert torch.equal(checked.data.x, before.x)
    assert torch.equal(checked.data.edge_index, before.edge_index)
    assert torch.equal(checked.data.y, before.y)
    for name, mask in MASKS.items():
        assert torch.equal(checked.data[name], mask)
    assert checked.data.class_names == ["0", "1"]
    assert checked.data.directed is False
    assert "edge_weight" not in checked.data


def test_the_input_is_not_changed() -> None:
    data = graph(
        x=torch.ones(N, 2, dtype=torch.float64),
        edge_index=torch.tensor([[3, 0, 0, 1], [3, 1, 1, 2]]),
        y=torch.tensor([[0], [0], [1], [1], [0], [1]]),
        val_mask=None,
    )
    before = copy.deepcopy(data)
    with pytest.warns(UserWarning, match="no validation node"):
        checked = check_data(data, features="degree")
    assert checked.data is not data
    assert set(data.keys()) == set(before.keys())
    for key in data.keys():  # noqa: SIM118
        assert torch.equal(data[key], before[key])
        assert data[key].dtype == before[key].dtype


def test_edges_are_cleaned_and_counted() -> None:
    edges = torch.tensor([[1, 0, 0, 2, 3, 3], [0, 1, 1, 3, 3, 4]])
    checked = quiet(graph(edge_index=edges))
    assert checked.data.edge_index.tolist() == [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]]
    assert "1 self-loops dropped" in checked.notes
    assert "1 repeated edges dropped (largest weight kept)" in checked.notes
    assert "edges given in one direction only were mirrored: 2 edges" in checked.notes
    assert "1 isolated nodes" in checked.notes
    assert any(
        note.startswith("1 of 3 components (1 nodes) contain no training label")
        for note in checked.notes
    )


def test_direction_is_kept_when_asked() -> None:
    edges = torch.tensor([[1, 0, 2], [0, 5, 3]])
    for data, options in (
        (graph(edge_index=edges, directed=True), {}),
        (graph(edge_index=edges), {"directed": True}),
    ):
        checked = quiet(data, **options)
        assert checked.data.edge_index.tolist() == [[0, 1, 2], [5, 0, 3]]
        assert checked.data.directed is True
        assert any("keep their direction" in note for note in checked.notes)


def test_weights_follow_their_edges() -> None:
    edges = torch.tensor([[4, 0, 1, 2], [3, 1, 0, 3]])
    weight = torch.tensor([[0.5], [1.0], [3.0], [0.0]], dtype=torch.float64)
    checked = quiet(graph(edge_index=edges, edge_weight=weight))
    assert checked.data.edge_index.tolist() == [[0, 1, 3, 4], [1, 0, 4, 3]]
    assert checked.data.edge_weight.tolist() == [3.0, 3.0, 0.5, 0.5]
    assert checked.data.edge_weight.dtype == torch.float32
    assert "1 edges of weight 0 dropped" in checked.notes
    ones = quiet(graph(edge_weight=torch.ones(10)))
    assert "edge_weight" not in ones.data


@settings(max_examples=150, deadline=None)
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), max_size=25
    )
)
def test_symmetric_form_agrees_with_scipy(edges: list[tuple[int, int, int]]) -> None:
    dense = np.zeros((N, N), dtype=np.float32)
    for source, target, weight in edges:
        if source != target:
            dense[source, target] = max(dense[source, target], weight)
    matrix = sp.csr_array(dense)
    truth = sp.csr_array(matrix.maximum(matrix.T))
    truth.sort_indices()
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    data = graph(
        edge_index=torch.from_numpy(columns[:2].copy()),
        edge_weight=torch.from_numpy(columns[2].astype(np.float32)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = check_data(data).data
        # A second check finds nothing left to do.
        again = check_data(checked)
    entries = truth.tocoo()
    assert checked.edge_index.tolist() == [entries.row.tolist(), entries.col.tolist()]
    weights = (
        checked.edge_weight if "edge_weight" in checked else torch.ones(entries.nnz)
    )
    assert weights.tolist() == entries.data.tolist()
    assert torch.equal(again.data.edge_index, checked.edge_index)
    assert not any("mirrored" in note or "dropped" in note for note in again.notes)


def test_components_agree_with_networkx() -> None:
    edges = torch.tensor([[0, 3], [1, 4]])
    checked = quiet(graph(edge_index=edges))
    pieces = nx.Graph(edges.T.tolist())
    pieces.add_nodes_from(range(N))
    trained = set(MASKS["train_mask"].nonzero().flatten().tolist())
    missed = [part for part in nx.connected_components(pieces) if not part & trained]
    total = nx.number_connected_components(pieces)
    wanted = f"{len(missed)} of {total} components ({sum(map(len, missed))} nodes)"
    assert any(note.startswith(wanted) for note in checked.notes)


def test_features_can_be_made() -> None:
    identity = quiet(graph(x=None), features="identity")
    assert identity.data.x.layout == torch.sparse_csr
    assert torch.equal(identity.data.x.to_dense(), torch.eye(N))
    assert "features were made: identity" in identity.notes
    degree = quiet(graph(), features="degree")
    counts = torch.tensor([1.0, 2, 2, 2, 2, 1])
    assert torch.allclose(degree.data.x, torch.log1p(counts).unsqueeze(1))
    assert any("took the place of data.x" in note for note in degree.notes)


def test_other_kinds_of_x_are_converted() -> None:
    dense = torch.eye(N)
    for x in (
        dense.to(torch.float64),
        dense.to(torch.int64),
        dense.to(torch.bool),
        dense.to_sparse(),
        dense.to_sparse_csr(),
        dense.numpy(),
        dense.t(),
    ):
        checked = quiet(graph(x=x)).data.x
        assert checked.dtype == torch.float32
        assert torch.equal(checked.to_dense(), dense)
        assert checked.layout in (torch.strided, torch.sparse_csr)
    assert any("float64" in note for note in quiet(graph(x=dense.double())).notes)


def test_float_labels_with_nan_and_column_labels() -> None:
    y = torch.tensor([0.0, 0, 1, 1, float("nan"), 1])
    checked = quiet(graph(y=y))
    assert checked.data.y.tolist() == [0, 0, 1, 1, -1, 1]
    assert checked.data.test_mask.tolist() == [False] * 5 + [True]
    assert any("1 nodes of test_mask have no label" in note for note in checked.notes)
    column = quiet(graph(y=torch.tensor([[0], [0], [1], [1], [0], [1]])))
    assert column.data.y.shape == (N,)
    assert any("squeezed" in note for note in column.notes)


def test_a_gap_in_the_classes_is_kept_and_said() -> None:
    checked = quiet(graph(y=torch.tensor([0, 0, 2, 2, 0, 2])))
    assert checked.data.class_names == ["0", "1", "2"]
    assert "classes without any label: 1" in checked.notes


def test_no_masks_make_a_split() -> None:
    bare = graph(train_mask=None, val_mask=None, test_mask=None)
    checked = quiet(bare, val_fraction=0.3, test_fraction=0.3, seed=3)
    sizes = [int(checked.data[name].sum()) for name in MASKS]
    assert sizes == [2, 2, 2]
    assert any(
        "no masks were given" in note and "seed 3" in note for note in checked.notes
    )
    again = quiet(bare, val_fraction=0.3, test_fraction=0.3, seed=3)
    assert torch.equal(checked.data.val_mask, again.data.val_mask)


def test_missing_validation_is_taken_from_training() -> None:
    train = torch.tensor([1, 1, 1, 1, 0, 0], dtype=torch.bool)
    for val_mask in (None, torch.zeros(N, dtype=torch.bool)):
        checked = quiet(graph(train_mask=train, val_mask=val_mask), val_fraction=0.5)
        assert int(checked.data.train_mask.sum()) == 2
        assert int(checked.data.val_mask.sum()) == 2
        assert torch.equal(checked.data.train_mask | checked.data.val_mask, train)
        assert any("2 training nodes were taken for it" in n for n in checked.notes)


def test_metadata_and_earlier_notes_are_kept() -> None:
    data = graph(name="mine", class_names=["cat", "dog"], node_ids=list("abcdef"))
    data.notes = ["7 self-loops dropped"]
    checked = quiet(data)
    assert checked.data.name == "mine"
    assert checked.data.class_names == ["cat", "dog"]
    assert checked.data.node_ids == list("abcdef")
    assert checked.notes == ("7 self-loops dropped",)


def test_prediction_needs_no_labels() -> None:
    checked = quiet(
        graph(y=None, train_mask=None, val_mask=None, test_mask=None),
        require_labels=False,
    )
    assert checked.data.y.tolist() == [-1] * N
    assert not checked.data.train_mask.any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": torch.empty(2, 0, dtype=torch.long)}, "has no edges"),
        ({"edge_index": torch.tensor([[1], [1]])}, "has no edges"),
        (
            {"y": torch.tensor([0, 0, 1, 1, 2, 1])},
            r"classes 2 occur .* no training label",
        ),
        ({"val_mask": None}, "no validation node"),
    ],
)
def test_warnings(changes: dict[str, Any], message: str) -> None:
    with pytest.warns(UserWarning, match=message):
        checked = check_data(graph(**changes))
    assert any(re.search(message, note) for note in checked.notes)


def test_a_class_with_one_label_is_allowed() -> None:
    bare = graph(y=torch.tensor([0, 0, 0, 0, 0, 1]), train_mask=None)
    checked = quiet(Data(x=bare.x, edge_index=bare.edge_index, y=bare.y))
    assert bool(checked.data.train_mask[5])
    assert int(checked.data.val_mask.sum()) == 1


def nan_at(
    shape: tuple[int, ...], *place: int, value: float = float("nan")
) -> torch.Tensor:
    tensor = torch.ones(shape)
    tensor[place] = value
    return tensor


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, r'data\.x is missing.*features="identity".*features="degree"'),
        ({"x": torch.ones(N, 0)}, r"data\.x has shape \[6, 0\]"),
        ({"x": torch.ones(N)}, r"data\.x has shape \[6\]: expected two dimensions"),
        (
            {"x": torch.ones(N, 2, dtype=torch.cfloat)},
            r"data\.x has dtype torch.complex64",
        ),
        ({"x": np.full((N, 2), "a")}, r"data\.x has dtype <U1"),
        ({"x": [[1.0]] * N}, r"data\.x is a list"),
        ({"x": nan_at((N, 2), 4, 1)}, r"data\.x .* at node 4, column 1"),
        ({"x": nan_at((N, 2), 3, 0, value=float("-inf"))}, "at node 3, column 0"),
        ({"x": nan_at((N, 2), 3, 1).to_sparse_csr()}, "at node 3, column 1"),
        (
            {"x": torch.ones(N, 2), "num_nodes": 9},
            r"data\.x says 6 but data\.num_nodes says 9",
        ),
        ({"x": torch.ones(N + 1, 2)}, r"data\.y has shape \[6\]: .*\[7\]"),
        ({"edge_index": None}, r"data\.edge_index is missing"),
        ({"edge_index": torch.ones(2, 3)}, r"data\.edge_index has dtype torch.float32"),
        ({"edge_index": torch.ones(5, 2).long()}, r"shape \[5, 2\].*edge_index\.t\(\)"),
        ({"edge_index": torch.tensor([[0, 1], [1, 6]])}, r"edge 1 is \(1, 6\).*0\.\.5"),
        ({"edge_index": torch.tensor([[0, -1], [1, 2]])}, r"edge 1 is \(-1, 2\)"),
        (
            {"edge_weight": torch.ones(3)},
            r"data\.edge_weight has shape \[3\]: expected \[10\]",
        ),
        (
            {"edge_weight": nan_at((10,), 2)},
            r"data\.edge_weight is nan at edge 2, from node 1",
        ),
        (
            {"edge_weight": nan_at((10,), 0, value=-2.0)},
            r"is -2\.0 at edge 0, from node 0",
        ),
        ({"edge_weight": [1.0] * 10}, r"data\.edge_weight is a list"),
        ({"y": None}, r"data\.y is missing"),
        ({"y": torch.zeros(4).long()}, r"data\.y has shape \[4\]: .*\[6\]"),
        ({"y": torch.eye(N)}, r"data\.y has shape \[6, 6\].*argmax\(1\)"),
        (
            {"y": torch.ones(N, dtype=torch.cfloat)},
            r"data\.y has dtype torch.complex64",
        ),
        ({"y": ["a"] * N}, r"data\.y is not numeric"),
        ({"y": torch.tensor([0, 1, 0.5, 1, 0, 1])}, r"data\.y is 0\.5 at node 2"),
        ({"y": torch.tensor([0, 1, 0, -2, 0, 1])}, r"data\.y is -2 at node 3"),
        ({"y": torch.tensor([0, 1, 0, 40, 0, 1])}, "class 40 .* renumber"),
        ({"y": torch.full((N,), -1)}, r"data\.y holds no label at all"),
        ({"y": torch.zeros(N).long()}, r"data\.y holds only one class, 0"),
        ({"class_names": ["a"]}, r"data\.class_names has 1 names"),
        (
            {"train_mask": torch.ones(4, dtype=torch.bool)},
            r"data\.train_mask has shape \[4\]",
        ),
        ({"val_mask": torch.tensor([1, 3])}, r"data\.val_mask has dtype torch.int64"),
        ({"val_mask": [True] * N}, r"data\.val_mask is a list"),
        (
            {"train_mask": torch.ones(N, 3, dtype=torch.bool)},
            r"train_mask has shape \[6, 3\].*pick one.*train_mask\[:, 0\]",
        ),
        (
            {"val_mask": torch.tensor([1, 1, 1, 0, 0, 0], dtype=torch.bool)},
            r"train_mask and data\.val_mask overlap in 2 nodes \(2 and 3 in all\)",
        ),
        (
            {"train_mask": torch.zeros(N, dtype=torch.bool)},
            "train_mask names no training node",
        ),
        (
            {"y": torch.tensor([-1, 0, -1, 1, 0, 1])},
            "train_mask names 2 nodes and none has",
        ),
        (
            {"y": torch.tensor([0, 0, -1, 1, 0, 1])},
            "train_mask names 1 nodes .* node 2",
        ),
    ],
)
def test_refusals_name_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_data(graph(**changes))
    assert "\n" not in str(caught.value)


def test_options_and_types_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="features is 'ones'"):
        check_data(graph(), features="ones")
    with pytest.raises(InputError, match="val_fraction is 2"):
        check_data(graph(), val_fraction=2)
    with pytest.raises(InputError, match="data is a HeteroData"):
        check_data(HeteroData())
    with pytest.raises(InputError, match="number of nodes is unknown"):
        check_data(Data(edge_index=torch.tensor([[0], [1]])), features="degree")
    with pytest.raises(InputError, match="no nodes"):
        check_data(Data(num_nodes=0), features="degree")


def test_features_in_a_file_are_not_copied(tmp_path: Path) -> None:
    """Float32 features may be larger than memory: the file is used as it is."""
    path = tmp_path / "x.bin"
    written = np.memmap(path, dtype=np.float32, mode="w+", shape=(34, 5))
    written[:] = np.random.default_rng(0).normal(size=(34, 5))
    written.flush()
    x = np.memmap(path, dtype=np.float32, mode="r", shape=(34, 5))
    data = load_dataset("karate")
    data.x = as_features(x, "x")
    assert data.x.data_ptr() == x.ctypes.data
    checked = check_data(data).data
    problem = make_problem(checked, GCNConfig(feature_norm="none"), torch.device("cpu"))
    assert isinstance(problem.x, torch.Tensor)
    assert problem.x.data_ptr() == x.ctypes.data
    assert (
        fit_graph(check_data(data), "gcn", GCNConfig(epochs=2)).prediction.epochs == 2
    )
    assert np.array_equal(x, np.asarray(written))
    # Other types are converted, and so copied.
    double = np.memmap(path, dtype=np.float64, mode="r", shape=(10, 5))
    assert as_features(np.nan_to_num(double), "x").dtype == torch.float32


def test_a_value_in_a_late_block_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elugcn.data.features._BLOCK_ENTRIES", 6)
    x = np.zeros((9, 3), dtype=np.float32)
    x[7, 2] = np.inf
    with pytest.raises(InputError, match="node 7, column 2"):
        as_features(x, "x")
