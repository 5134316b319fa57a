"""Two tables become a graph: values by hand, by pandas and by scikit-learn."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from elugcn.data.tables import TableSchema, load_tables
from elugcn.data.validation import check_data
from elugcn.errors import InputError
from tests.data.conftest import EDGES, NODES

Load = Callable[..., Data]
PAIR = "source,target\na,b\n"
TWO = "id,label,f\na,x,1\nb,y,2\n"


def standardised(*values: float) -> list[float]:
    column = np.array(values)
    return ((column - column.mean()) / column.std()).tolist()


X = np.column_stack(
    [standardised(1.5, 2, 3, 4, -5), [1, 0, 1, 0, 1], [0, 1, 0, 0, 1], [1, 0, 0, 1, 0]]
)


def check_truth(data: Data) -> None:
    """The graph of NODES and EDGES, worked by hand."""
    np.testing.assert_allclose(data.x, X, rtol=1e-6)
    assert data.feature_names == ["age", "member", "colour=blue", "colour=red"]
    assert data.node_ids == ["007", "b", "c", "d", "e"]
    assert data.class_names == ["9", "10"]
    assert data.y.tolist() == [1, 0, -1, 1, 0]
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]]
    assert data.edge_weight.tolist() == [1, 1, 2.5, 2.5, 3, 3]
    assert data.train_mask.tolist() == [True, True, False, False, False]
    assert data.val_mask.tolist() == [False, False, False, True, False]
    assert data.test_mask.tolist() == [False, False, False, False, True]
    assert data.x.dtype == data.edge_weight.dtype == torch.float32
    assert data.y.dtype == data.edge_index.dtype == torch.int64
    assert data.directed is False
    assert data.name == "nodes"


def parquet(folder: Path, **columns: Any) -> Path:
    """A node table with ids n0, n1, ... and two classes."""
    n = len(next(iter(columns.values())))
    ids = {"id": [f"n{i}" for i in range(n)], "label": ["x", "y"] * (n // 2)}
    pa_parquet.write_table(pa.table(ids | columns), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("source,target\nn0,n1\n")
    return folder / "nodes.parquet"


# Files


def test_other_files_give_the_same_graph(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "NODES.CSV.GZ", "wt") as file:
        file.write("\ufeff" + NODES.replace("\n", "\r\n"))
    (tmp_path / "edges.tsv").write_text(EDGES.replace(",", "\t"))
    nodes = pa.table(
        {
            # Another order, and what pandas makes of integers with a gap.
            "colour": pd.Categorical(["red", "blue", None, "red", "blue"]),
            "split": ["train", "train", None, "Valid", "test"],
            "__index_level_0__": [5, 6, 7, 8, 9],
            "label": [10.0, 9.0, None, 10.0, 9.0],
            "age": pa.array([1.5, 2, 3, 4, -5], pa.float32()),
            "member": [True, False, True, False, True],
            "id": ["007", "b", "c", "d", "e"],
        }
    )
    edges = pd.read_csv(tmp_path / "edges.tsv", sep="\t", dtype={"source": str})
    pa_parquet.write_table(nodes, tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    first = load_tables(tmp_path / "NODES.CSV.GZ", str(tmp_path / "edges.tsv"))
    first.name = "nodes"
    check_truth(check_data(first).data)
    second = load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.parquet")
    second = check_data(second).data
    # The columns keep the order of their own file.
    assert second.feature_names == ["colour=blue", "colour=red", "age", "member"]
    np.testing.assert_allclose(second.x, X[:, [2, 3, 0, 1]], rtol=1e-6)
    second.x, second.feature_names = second.x[:, [2, 3, 0, 1]], first.feature_names
    check_truth(second)


def test_integer_ids_of_parquet_match_those_of_csv(tmp_path: Path) -> None:
    nodes = parquet(tmp_path, id=[3, 1, 2, 7], f=[1, 2, 3, 4])
    (tmp_path / "edges.csv").write_text("a,b\n1,2\n3,1\n")
    data = load_tables(nodes, tmp_path / "edges.csv")
    assert data.node_ids == ["3", "1", "2", "7"]
    assert data.edge_index.tolist() == [[1, 0], [2, 1]]
    assert data.edge_weight is None
    edges = {"e": [1, 2], "a": [1, 3], "b": [2, 1], "year": [1999.5, 2001.5]}
    pa_parquet.write_table(pa.table(edges), tmp_path / "edges.parquet")
    with pytest.raises(InputError, match="'e', 'a', 'b' all hold node ids"):
        load_tables(nodes, tmp_path / "edges.parquet")


def test_lines_of_megabytes_are_read(load: Load) -> None:
    """Longer than the blocks that Arrow parses by default."""
    wide, note = 4_000, "x" * 1_500_000
    lines = [",".join(["id", "label", *(f"{i:0300}" for i in range(wide)), "note"])]
    for row, name in enumerate("abcd"):
        cells = [f"{row}.000000000000000001"] * wide
        lines.append(",".join([name, "xy"[row % 2], *cells, note]))
    assert min(map(len, lines)) > 2**20
    data = load("\n".join(lines) + "\n", PAIR)
    expected = np.tile(standardised(0, 1, 2, 3), (wide, 1)).T
    np.testing.assert_allclose(data.x[:, :wide], expected, rtol=1e-6)


@pytest.mark.parametrize("column", ["label", "f"])
def test_a_quote_that_swallows_a_large_file(column: str, load: Load) -> None:
    rows = [f"n{i},{'xy'[i % 2]},{i}" for i in range(30_000)]
    rows[5] = 'n5,"y,5' if column == "label" else 'n5,y,"5'
    text = "\n".join(["id,label,f", *rows]) + "\n"
    assert len(text) > 2 * 131_072  # the longest cell of Python's reader, by default
    with pytest.raises(InputError, match=r"nodes\.csv, line 7\b") as caught:
        load(text, "source,target\nn0,n1\n")
    assert "\n" not in str(caught.value)


def test_blanks_blank_lines_and_index_columns_do_not_count(load: Load) -> None:
    plain = load(TWO + "c,x,3\n", "source,target,weight\na,b,3\n")
    nodes = '"id ","Unnamed: 0",label , f,"",\n\na,9,x,1,,\nb,8, y,2,,\n\nc ,7,x,3,,\n'
    spaced = load(nodes, "\n,source , target, weight\n0,a, b ,3\n")
    assert torch.equal(spaced.x, plain.x)
    assert spaced.feature_names == ["f"]
    assert torch.equal(spaced.y, plain.y)
    assert spaced.edge_weight.tolist() == [3, 3]
    assert any("columns without a name were left out" in n for n in spaced.notes)


def test_lines_are_those_of_an_editor(load: Load) -> None:
    nodes = 'id,label,f,"two\nlines"\n\na,x,1,p\n\n,y,1,z\n'
    with pytest.raises(InputError, match=r"nodes\.csv, line 6, column 'id'"):
        load(nodes, PAIR)


# Feature columns


def test_encoding_agrees_with_scikit_learn(tmp_path: Path, load: Load) -> None:
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "id": [f"node {i}" for i in range(n)],
            "label": rng.choice(["x", "y"], n),
            "shape": rng.choice(["round", "square", None], n),
            "income": rng.normal(5e4, 2e4, n).round(2),
            "time": 1_700_000_000 + 50 * rng.integers(0, 4, n),
            "member": rng.integers(0, 2, n),
            "city": rng.choice([f"city {i}" for i in range(20)], n),
        }
    )
    frame.to_csv(tmp_path / "frame.csv", index=False)
    data = load((tmp_path / "frame.csv").read_text(), "u,v\nnode 0,node 1\n")
    frame = pd.read_csv(tmp_path / "frame.csv")
    expected = np.column_stack(
        [
            pd.get_dummies(frame["shape"]),
            StandardScaler().fit_transform(frame[["income", "time"]]),
            frame["member"],
            pd.get_dummies(frame["city"]),
        ]
    )
    np.testing.assert_allclose(data.x, expected, rtol=1e-5, atol=1e-6)
    cities = [f"city={name}" for name in sorted(frame["city"].unique())]
    names = ["shape=round", "shape=square", "income", "time", "member", *cities]
    assert data.feature_names == names
    # Four times stay four values, although float32 cannot tell them apart.
    assert len(data.x[:, 3].unique()) == 4
    first, second, _, fourth, _ = data.table_schema.report()
    missing = int(frame["shape"].isna().sum())
    assert list(first.values()) == ["shape", "category", 2, "one-hot", missing]
    mean = f"{frame['income'].mean():.6g}"
    assert second["scaling"].startswith(f"standardised: mean {mean},")
    assert fourth["scaling"] == "kept as 0 and 1"


@pytest.mark.parametrize("informative", ["age", "city"])
def test_no_column_drowns_another(informative: str, load: Load) -> None:
    """An age beside a city of 20 values: either may carry the class."""
    rng = np.random.default_rng(0)
    n = 400
    age, city = rng.uniform(18, 90, n), rng.integers(0, 20, n)
    label = age > 54 if informative == "age" else city < 10
    rows = [f"{i},{label[i]},{age[i]:.3f},city {city[i]}" for i in range(n)]
    data = load("\n".join(["id,label,age,city", *rows]), "u,v\n0,1\n")
    model = LogisticRegression(max_iter=1000)
    assert cross_val_score(model, data.x.numpy(), label).mean() > 0.95


def test_gaps_become_the_mean(load: Load) -> None:
    nodes = "id,label,f,g,h\na,x,1,,7\nb,y,,true,7\nc,x,4,false,7\nd,y,1,true,7\n"
    data = load(nodes, PAIR)
    centred = np.array([1, 2, 4, 1]) - 2
    std = np.std([1, 4, 1])
    np.testing.assert_allclose(data.x[:, 0], centred / std, rtol=1e-6)
    np.testing.assert_allclose(data.x[:, 1], [2 / 3, 1, 0, 1], rtol=1e-6)
    assert data.x[:, 2].tolist() == [0] * 4
    assert "column 'f': 1 missing values were replaced by the mean, 2" in data.notes
    assert "column 'h' is constant and carries no information" in data.notes


@pytest.mark.parametrize("values", [("1,5", "-2,25"), ("10%", "20 %"), ("€3", "4€")])
def test_almost_numbers_are_pointed_out(values: tuple[str, str], load: Load) -> None:
    rows = [f'{i},{"xy"[i % 2]},"{values[i // 2]}",{"pq"[i % 2]}' for i in range(4)]
    data = load("id,label,f,g\n" + "\n".join(rows), "source,target\n0,1\n")
    (note,) = [note for note in data.notes if "read as a category" in note]
    assert note.startswith("column 'f'")
    assert "1234.5" in note


# Labels and splits


@pytest.mark.parametrize(
    ("labels", "classes", "y", "said"),
    [
        ("0 1 -1 -1.0 1", "0 1", [0, 1, -1, -1, 1], "-1 means unlabelled (2 nodes)"),
        ("-2 1 -1 1 1", "-2 -1 1", [0, 2, 1, 2, 2], ""),
        (
            "no 1 -1 1 1",
            "-1 1 no",
            [2, 1, 0, 1, 1],
            "'-1' is read as a class (1 nodes)",
        ),
        (
            "x y NA NA nan",
            "NA x y",
            [1, 2, 0, 0, -1],
            "'NA' is read as a class (2 nodes)",
        ),
    ],
)
def test_classes_and_unknown_labels(
    labels: str, classes: str, y: list[int], said: str, load: Load
) -> None:
    rows = [f"{'abcde'[i]},{one},{i}" for i, one in enumerate(labels.split())]
    data = load("\n".join(["id,label,f", *rows]), PAIR)
    assert data.y.tolist() == y
    assert data.class_names == classes.split()
    assert any(f"column 'label': {said}" in note for note in data.notes) == bool(said)


def test_labels_of_other_files(tmp_path: Path, load: Load) -> None:
    """NaN that is not null, booleans, and more digits than a float has."""
    file = parquet(tmp_path, label=np.array([1.0, 0.0, np.nan, 1.0]), f=range(4))
    assert load_tables(file, tmp_path / "edges.csv").y.tolist() == [1, 0, -1, 1]
    truths = load("id,label,f\na,True,1\nb,False,2\n", PAIR)
    assert truths.class_names == ["False", "True"]
    lower = "id,label,f\na,true,1\nb,false,2\n"
    again = load(lower, PAIR, schema=truths.table_schema)
    assert again.y.tolist() == truths.y.tolist() == [1, 0]
    large = "id,label,f\na,12345678901234567.0,1\nb,12345678901234568.0,2\n"
    assert load(large, PAIR).class_names == ["12345678901234567", "12345678901234568"]


# Edges


@pytest.mark.parametrize("header", ["src,dst", "from,to", "Source,Target", "u,v"])
def test_usual_names_of_edge_columns(load: Load, header: str) -> None:
    data = load(edges=f"{header}\n007,b\n", directed=True)
    assert data.edge_index.tolist() == [[0], [1]]


def test_named_columns_and_direction(load: Load) -> None:
    nodes = NODES.replace("id,label,split", "key,class,part")
    named = {"id_column": "key", "label_column": "class", "split_column": "part"}
    named |= {"source_column": "a", "target_column": "b", "weight_column": "w"}
    data = load(nodes, "w,note,b,a\n2,x,007,e\n1,y,d,007\n", directed=True, **named)
    assert data.edge_index.tolist() == [[0, 4], [3, 0]]
    assert data.edge_weight.tolist() == [1, 2]
    assert data.directed is True
    assert data.feature_names == ["age", "member", "colour=blue", "colour=red"]


def test_ends_are_guessed_among_columns_that_can_be_ends(load: Load) -> None:
    nodes = "id,label,f\n" + "".join(f"{i},{'xy'[i % 2]},{i}\n" for i in range(6))
    named = {"source_column": "a", "target_column": "b", "directed": True}
    three = load(nodes, "e,a,b\n0,4,5\n1,2,3\n", **named)
    assert three.edge_index.tolist() == [[2, 4], [3, 5]]
    years = load(nodes, "a,b,year\n4,5,1999\n2,3,2001\n", directed=True)
    assert years.edge_index.tolist() == [[2, 4], [3, 5]]
    # What the user calls an end is not the weight, whatever its name.
    odd = load(edges="weight,target\n007,b\nc,d\n", source_column="weight")
    assert odd.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert "edge_weight" not in odd
    again = load(edges="weight,target\n007,b\nc,d\n", schema=odd.table_schema)
    assert torch.equal(again.edge_index, odd.edge_index)


def test_no_edges_go_on(load: Load) -> None:
    assert load(edges="source,target,weight\n").edge_index.shape == (2, 0)


# Another table for a trained model


def saved(data: Data) -> dict[str, Any]:
    """The schema, written and read as a model does."""
    text = json.dumps(data.table_schema.model_dump(mode="json"))
    content: dict[str, Any] = json.loads(text)
    return content


def test_schema_round_trip(load: Load) -> None:
    data = load()
    check_truth(data)
    assert TableSchema.parse(saved(data)) == data.table_schema
    check_truth(load(schema=saved(data)))
    # Other order, an extra column, no labels, ages that look like integers.
    other = "extra,colour,id,member,age\nx,blue,n1,false,7\ny,,n2,true,8\n"
    edges = "source,target,weight\nn1,n2,1\n"
    fresh = load(other, edges, schema=saved(data))
    ages = np.array([1.5, 2, 3, 4, -5])
    expected = (np.array([7, 8]) - ages.mean()) / ages.std()
    np.testing.assert_allclose(fresh.x[:, 0], expected, rtol=1e-6)
    assert fresh.x[:, 1:].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert fresh.y.tolist() == [-1, -1]
    assert fresh.class_names == ["9", "10"]
    assert not (fresh.train_mask | fresh.val_mask | fresh.test_mask).any()
    labelled = "colour,id,member,age,label\nblue,n1,false,7,10\nred,n2,true,8,\n"
    tested = load(labelled, edges, schema=saved(data))
    assert tested.y.tolist() == [1, -1]
    assert tested.test_mask.tolist() == [True, False]


def test_what_the_training_table_does_not_have_is_said(
    tmp_path: Path, load: Load
) -> None:
    schema = load().table_schema
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,colour,member,age,label\nn1,3,true,,cat\n")
    edges.write_text("source,target\nn1,n1\n")
    with pytest.warns(UserWarning, match="training") as caught:
        data = load_tables(nodes, edges, schema=schema)
    assert data.x.tolist() == [[0, 1, 0, 0]]
    told = [str(warning.message) for warning in caught]
    for part in (
        "column 'colour' has values that are not in the training table in 1 rows",
        "column 'age' has 1 missing values; the training table has none",
        "labels that the model does not know count as unknown: 'cat'",
        "no column 'weight', which has the weights of the training graph",
    ):
        assert any(part in text for text in told), part
    assert all(text in data.notes for text in told)


def test_edges_are_read_as_those_trained_on(load: Load) -> None:
    nodes = "id,label,f\na,x,1\nb,y,2\nc,x,3\n"
    # Named by the user, the other way round than usual names would have it.
    edges = "source,target,weight,strength\na,b,9,0.5\nb,c,9,0.25\n"
    named = {"source_column": "target", "target_column": "source"}
    data = load(nodes, edges, weight_column="strength", directed=True, **named)
    assert data.edge_index.tolist() == [[1, 2], [0, 1]]
    again = load(nodes, edges, schema=saved(data))
    assert again.edge_index.tolist() == data.edge_index.tolist()
    assert again.edge_weight.tolist() == [0.5, 0.25]
    # What the user names now comes first.
    ends = {"source_column": "source", "target_column": "target"}
    now = load(nodes, edges, schema=saved(data), weight_column="weight", **ends)
    assert now.edge_index.tolist() == [[0, 1], [1, 2]]
    assert now.edge_weight.tolist() == [9, 9]
    # A weight that the model was not trained with does not count.
    plain = saved(load(nodes, "source,target\na,b\nb,c\n"))
    assert "edge_weight" not in load(nodes, edges, schema=plain)


def test_made_features(load: Load) -> None:
    bare, edges = "id,label\na,x\nb,y\nc,x\n", "source,target\na,b\na,c\n"
    degree = load(bare, edges, features="degree")
    assert torch.allclose(degree.x[:, 0], torch.log1p(torch.tensor([2.0, 1, 1])))
    assert degree.feature_names == ["log_degree"]
    identity = load(bare, edges, features="identity")
    again = load(bare, edges, schema=saved(identity))
    assert torch.equal(again.x.to_dense(), torch.eye(3))
    with pytest.raises(InputError, match=r"nodes\.csv.*identity.*same ids"):
        load(bare.replace("c,x", "d,x"), PAIR, schema=saved(identity))


def test_schemas_of_version_0_1(load: Load) -> None:
    """Their columns are not scaled: the model scales the encoded matrix."""
    f = {"name": " f", "kind": "number"}
    g = {"name": "g", "kind": "category", "categories": ["p", "q"]}
    old = {"version": 1, "features": "columns", "columns": [f, g], "digest": None}
    old |= {"class_names": ["x", "y"], "directed": True, "edge_columns": None}
    nodes = "id,label,f,g\na,x,100,p\nb,y,200,q\n"
    data = load(nodes, PAIR, schema=old)
    assert data.x.tolist() == [[100, 1, 0], [200, 0, 1]]
    assert data.edge_index.tolist() == [[0], [1]]
    assert data.get("features_scaled") is None
    assert data.table_schema.report()[0]["scaling"] == "not scaled"
    assert TableSchema.parse(saved(data)) == data.table_schema
    with pytest.raises(InputError, match="line 2, column 'f': empty cell or NaN"):
        load(nodes.replace("100", ""), PAIR, schema=old)
