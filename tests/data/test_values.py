"""What tables, arrays and graphs become, value by value."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data

from elugcn.data.checks import check_data
from elugcn.data.convert import to_data
from elugcn.data.digest import graph_digest
from elugcn.data.features import as_features
from elugcn.data.holdout import resolve_splits, stratified_holdout
from elugcn.data.sbm import load_sbm
from elugcn.data.splits import draw_labels
from elugcn.data.tables import load_tables
from elugcn.errors import InputError
from tests.data.test_checks import graph, quiet
from tests.data.test_convert import DENSE, X
from tests.data.test_tables import NODES, load  # noqa: F401

Loader = Callable[..., Data]


def test_columns_after_a_category_stand_beside_it(load: Loader) -> None:  # noqa: F811
    """Columns after a category stand beside it, not in it."""
    nodes = """id,label,shape,colour,age
a,0,round,red,1
b,1,square,,2
c,0,,blue,3
d,1,round,blue,4
e,0,square,red,5
"""
    data = load(nodes, "source,target\na,b\nc,d\nd,e\n")
    names = ["shape=round", "shape=square", "colour=blue", "colour=red", "age"]
    assert data.feature_names == names
    assert data.x.tolist() == [
        [1, 0, 0, 1, 1],
        [0, 1, 0, 0, 2],
        [0, 0, 1, 0, 3],
        [1, 0, 1, 0, 4],
        [0, 1, 0, 1, 5],
    ]


def test_every_form_keeps_the_direction() -> None:
    """Rows point to columns; pairs go from the first to the second."""
    arrows = np.zeros((4, 4))
    arrows[0, 1] = arrows[2, 1] = arrows[3, 0] = 1
    for adjacency in (
        arrows,
        sp.csr_array(arrows),
        torch.from_numpy(arrows),
        torch.from_numpy(arrows).to_sparse(),
        torch.from_numpy(arrows).to_sparse_csr(),
        [[2, 0, 3], [1, 1, 0]],
    ):
        data = to_data(X, [0, 1, 0, 1], adjacency, directed=True)
        assert data.edge_index.tolist() == [[0, 2, 3], [1, 1, 0]]


def test_negative_nodes_in_pairs_are_refused() -> None:
    message = r"adjacency edge 1 is \(-1, 2\)"
    with pytest.raises(InputError, match=message):
        to_data(X, adjacency=[[0, -1], [1, 2]])


def test_validation_from_training_follows_the_seed() -> None:
    y = torch.tensor([0, 1] * 10)
    drawn = {
        seed: resolve_splits(
            {"train_mask": y >= 0}, y, val_fraction=0.5, test_fraction=0.0, seed=seed
        ).val
        for seed in (0, 1)
    }
    assert not torch.equal(drawn[0], drawn[1])
    for seed, val in drawn.items():
        _, expected, _ = stratified_holdout(y, y >= 0, 0.5, 0.0, seed)
        assert torch.equal(val, expected)


def test_shares_are_rounded_to_the_nearest() -> None:
    """Shares are rounded to the nearest number: 0.25 of 7 is 2."""
    y = torch.tensor([0] * 7 + [1] * 7)
    _, val, test = stratified_holdout(y, y >= 0, 0.25, 0.25, 0)
    assert [int((mask & (y == 0)).sum()) for mask in (val, test)] == [2, 2]


def test_who_has_no_label_does_not_train() -> None:
    y = torch.tensor([0, -1, 1])
    everyone = torch.ones(3, dtype=torch.bool)
    splits = resolve_splits(
        {"train_mask": everyone},
        y,
        val_fraction=0.2,
        test_fraction=0.0,
        seed=0,
        require_train=False,
    )
    assert splits.train.tolist() == [True, False, True]


def test_a_class_in_validation_alone_is_said() -> None:
    # Class 2 is on node 3 alone, which validates.
    with pytest.warns(UserWarning, match=r"classes 2 occur .* no training label"):
        check_data(graph(y=torch.tensor([0, 0, 1, 2, 0, 1])))


def test_a_name_for_every_class() -> None:
    odd = graph(y=torch.tensor([0, 0, 1, 1, 2, 1]), class_names=["cat", "dog"])
    with pytest.raises(InputError, match=r"2 names but data\.y goes up to class 2"):
        check_data(odd)


def test_labels_are_copies() -> None:
    data = graph()
    kept = quiet(data).data
    y = data.y.tolist()
    data.y[:] = 1
    assert kept.y.tolist() == y


def test_all_labels_unknown() -> None:
    data = to_data(X, [-1, None, -1, float("nan")], DENSE)
    assert data.y.tolist() == [-1] * 4
    with pytest.raises(InputError, match="no label at all"):
        check_data(data)


def test_minus_one_as_a_float_is_no_class() -> None:
    data = to_data(X, [3.0, -1.0, 1.0, None], DENSE)
    assert data.y.tolist() == [1, -1, 0, -1]
    assert data.classes.tolist() == [1.0, 3.0]


def test_the_node_of_a_wrong_sparse_entry() -> None:
    """The first entry of a row belongs to that row, not to the one before."""
    x = sp.csr_array(np.array([[1.0, 2.0], [0.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(InputError, match="at node 2, column 1"):
        as_features(x, "X")


def test_labels_have_a_stream_of_their_own() -> None:
    """The draws are those of numpy, each kind with a stream of its own."""
    y, names = np.arange(40) % 2, ["a", "b"]
    everyone = np.ones(40, dtype=bool)
    drawn = draw_labels(y, 3, 7, everyone, names)
    rng = np.random.default_rng([7, 1])
    expected = [rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in (0, 1)]
    assert drawn.nonzero()[0].tolist() == sorted(np.concatenate(expected))


def test_every_class_has_a_test_node() -> None:
    """Every class has a test node, however many labels are asked for."""
    data = load_sbm(0, n=11, n_classes=3, label_rate=0.49, mean_degree=1.0)
    for mask in (data.train_mask, data.val_mask):
        assert torch.bincount(data.y[mask]).tolist() == [1, 1, 1]
    assert torch.bincount(data.y[data.test_mask]).tolist() == [2, 2, 1]


def test_another_weight_or_value_is_another_graph() -> None:
    """Another weight or another value is another graph, dense or sparse."""
    dense = torch.eye(4)
    weight = torch.full((10,), 2.0)
    for x in (dense, dense.to_sparse_csr()):
        found = {graph_digest(graph(x=x)), graph_digest(graph(x=2 * x))}
        found.add(graph_digest(graph(x=x, edge_weight=weight)))
        found.add(graph_digest(graph(x=x, edge_weight=2 * weight)))
        assert len(found) == 4


def test_test_nodes_without_a_label_are_left_out(load: Loader) -> None:  # noqa: F811
    data = load(NODES.replace("c,,,3", "c,,test,3"))
    assert data.test_mask.tolist() == [False, False, False, False, True]
    assert "1 validation or test nodes have no label and were left out" in data.notes


def test_half_as_many_classes_as_labels(load: Loader) -> None:  # noqa: F811
    """Half as many classes as labelled nodes are classes, more are not."""
    rows = [f"n{i},{i % 10},{i}" for i in range(20)]
    nodes = "\n".join(["id,label,age", *rows]) + "\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load(nodes, "source,target\nn0,n1\n")
    assert len(data.class_names) == 10


def test_nan_in_parquet_is_no_label(tmp_path: Path) -> None:
    """NaN that is no null, as numpy writes it, is no label."""
    labels = np.array([1.0, 0.0, np.nan, 1.0, 0.0])
    table = pa.table({"id": list("abcde"), "label": labels, "age": range(5)})
    pq.write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nc,d\nd,e\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")
    assert data.y.tolist() == [1, 0, -1, 1, 0]
    assert data.class_names == ["0", "1"]


def test_the_usual_seed_is_zero(load: Loader) -> None:  # noqa: F811
    rows = [f"n{i},{i % 2},{i}" for i in range(30)]
    nodes = "\n".join(["id,label,age", *rows]) + "\n"
    edges = "source,target\nn0,n1\n"
    usual, zero, one = (load(nodes, edges, **o) for o in ({}, {"seed": 0}, {"seed": 1}))
    assert torch.equal(usual.train_mask, zero.train_mask)
    assert not torch.equal(zero.train_mask, one.train_mask)


def test_weights_are_kept_as_they_are() -> None:
    edges = torch.tensor([[0, 2], [1, 3]])
    weight = torch.tensor([0.1, 70_000.5])
    kept = quiet(graph(edge_index=edges, edge_weight=weight)).data.edge_weight
    assert kept.tolist() == weight.repeat_interleave(2).tolist()


def test_what_was_dropped_is_counted_once() -> None:
    edges = torch.tensor([[0, 1, 2], [0, 2, 3]])
    weight = torch.tensor([0.0, 0.0, 1.0])
    notes = quiet(graph(edge_index=edges, edge_weight=weight)).notes
    assert "1 self-loops dropped" in notes
    assert "1 edges of weight 0 dropped" in notes


def test_ten_neighbours_are_usual() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    usual, ten = to_data(x), to_data(x, n_neighbors=10)
    assert torch.equal(usual.edge_index, ten.edge_index)


def test_names_of_classes_that_differ_in_a_batch() -> None:
    parts = [graph(class_names=names) for names in (["cat", "dog"], ["dog", "cat"])]
    with pytest.raises(InputError, match="class_names differ between the graphs"):
        check_data(Batch.from_data_list(parts))
    same = Batch.from_data_list([parts[0], parts[0]])
    assert quiet(same).data.class_names == ["cat", "dog"]


@pytest.mark.parametrize("unknown", ["", "-1", "nan"])
def test_unknown_cells_are_no_labels(unknown: str, load: Loader) -> None:  # noqa: F811
    labels = [str(i) for i in range(40)] + [unknown] * 60
    rows = [f"n{i},{label},{i}" for i, label in enumerate(labels)]
    with pytest.raises(InputError, match="40 different labels on 40 nodes"):
        load("\n".join(["id,label,age", *rows]) + "\n", "source,target\nn0,n1\n")
