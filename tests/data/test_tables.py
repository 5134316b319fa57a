"""Two tables become a graph; every bad cell is named with its file and line."""

import gzip
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
import pytest
import torch
from torch_geometric.data import Data

from elugcn.data.checks import check_data
from elugcn.data.tables import load_tables
from elugcn.errors import InputError

NODES = """id,label,split,age,member,colour
007,10,train,1.5,true,red
b,9,train,2,false,blue
c,,,3,true,
d,10,Valid,4,false,red
e,9,test,-5,true,blue
"""
EDGES = """source,target,weight
007,b,1
b,007,1
c,b,2.5
c,c,1
d,e,1
d,e,3
"""
X = torch.tensor(
    [[1.5, 1, 0, 1], [2, 0, 1, 0], [3, 1, 0, 0], [4, 0, 0, 1], [-5, 1, 1, 0]]
)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Data]:
    """Write the two texts to files and load them, without a warning."""

    def loader(nodes: str = NODES, edges: str = EDGES, **options: Any) -> Data:
        (tmp_path / "nodes.csv").write_text(nodes)
        (tmp_path / "edges.csv").write_text(edges)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return load_tables(
                tmp_path / "nodes.csv", tmp_path / "edges.csv", **options
            )

    return loader


def check_truth(data: Data) -> None:
    assert torch.equal(data.x, X[:, [0, 1, 2, 3]])
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


def test_csv_against_hand_written_truth(load: Callable[..., Data]) -> None:
    data = load()
    check_truth(data)
    assert "1 self-loops dropped" in data.notes
    assert "1 repeated edges dropped (largest weight kept)" in data.notes
    assert (
        "1 edges were given in both directions and 2 in one: all count as undirected"
        in data.notes
    )


def test_other_files_give_the_same_graph(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "nodes.csv.gz", "wt") as file:
        file.write("\ufeff" + NODES.replace("\n", "\r\n"))
    (tmp_path / "edges.tsv").write_text(EDGES.replace(",", "\t"))
    check_truth(load_tables(tmp_path / "nodes.csv.gz", tmp_path / "edges.tsv"))
    nodes = pa.table(
        {
            "id": ["007", "b", "c", "d", "e"],
            # What pandas makes of integers with a gap.
            "label": [10.0, 9.0, None, 10.0, 9.0],
            "split": ["train", "train", None, "Valid", "test"],
            "age": pa.array([1.5, 2, 3, 4, -5], pa.float32()),
            "member": [True, False, True, False, True],
            "colour": pa.array(
                ["red", "blue", None, "red", "blue"]
            ).dictionary_encode(),
            "__index_level_0__": [5, 6, 7, 8, 9],
        }
    )
    edges = pa.table(
        {
            "source": ["007", "b", "c", "c", "d", "d"],
            "target": ["b", "007", "b", "c", "e", "e"],
            "weight": [1, 1, 2.5, 1, 1, 3],
        }
    )
    pa_parquet.write_table(nodes, tmp_path / "nodes.parquet")
    pa_parquet.write_table(edges, tmp_path / "edges.parquet")
    check_truth(
        load_tables(str(tmp_path / "nodes.parquet"), tmp_path / "edges.parquet")
    )


def test_integer_ids_of_parquet_match_those_of_csv(tmp_path: Path) -> None:
    pa_parquet.write_table(
        pa.table({"id": [3, 1, 2], "label": ["a", "b", "a"], "f": [1, 2, 3]}),
        tmp_path / "nodes.parquet",
    )
    (tmp_path / "edges.csv").write_text("a,b\n1,2\n3,1\n")
    data = load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")
    assert data.node_ids == ["3", "1", "2"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert "edge_weight" not in data


@pytest.mark.parametrize("header", ["src,dst", "from,to", "Source,Target", "u,v"])
def test_usual_names_of_edge_columns(load: Callable[..., Data], header: str) -> None:
    data = load(edges=f"{header}\n007,b\n")
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_named_columns_and_direction(load: Callable[..., Data]) -> None:
    nodes = NODES.replace("id,label,split", "key,class,part")
    data = load(
        nodes,
        "w,note,b,a\n2,x,007,e\n1,y,d,007\n",
        id_column="key",
        label_column="class",
        split_column="part",
        source_column="a",
        target_column="b",
        weight_column="w",
        directed=True,
    )
    assert data.edge_index.tolist() == [[0, 4], [3, 0]]
    assert data.edge_weight.tolist() == [1, 2]
    assert data.directed is True
    assert "edges keep their direction: 2 edges" in data.notes
    assert "2 isolated nodes" in data.notes
    assert data.feature_names == ["age", "member", "colour=blue", "colour=red"]


def test_split_is_made_where_there_is_none(load: Callable[..., Data]) -> None:
    rows = "".join(f"{i},{'ab'[i % 2] if i < 20 else ''},{i}\n" for i in range(25))
    nodes, edges = "id,label,f\n" + rows, "source,target\n0,1\n"
    data = load(nodes, edges, val_fraction=0.3, test_fraction=0.2, seed=4)
    sizes = [int(m.sum()) for m in (data.train_mask, data.val_mask, data.test_mask)]
    assert sizes == [10, 6, 4]
    assert not (data.train_mask | data.val_mask | data.test_mask)[20:].any()
    assert any("seed 4 (10 train, 6 validation, 4 test)" in n for n in data.notes)
    again = load(nodes, edges, val_fraction=0.3, test_fraction=0.2, seed=4)
    assert torch.equal(data.train_mask, again.train_mask)


def test_made_features(load: Callable[..., Data]) -> None:
    bare = "id,label\na,x\nb,y\nc,x\n"
    edges = "source,target\na,b\na,c\n"
    identity = load(bare, edges, features="identity")
    assert identity.x.layout == torch.sparse_csr
    assert torch.equal(identity.x.to_dense(), torch.eye(3))
    for directed in (False, True):
        degree = load(bare, edges, features="degree", directed=directed)
        assert torch.allclose(degree.x[:, 0], torch.log1p(torch.tensor([2.0, 1, 1])))
    schema = json.loads(json.dumps(identity.table_schema))
    assert torch.equal(load(bare, edges, schema=schema).x.to_dense(), torch.eye(3))
    with pytest.raises(InputError, match=r"nodes\.csv.*identity.*same ids"):
        load(bare.replace("c,x", "d,x"), "source,target\na,b\n", schema=schema)


def test_the_checks_accept_it(load: Callable[..., Data]) -> None:
    checked = check_data(load())
    assert "1 self-loops dropped" in checked.notes
    assert checked.data.table_schema["class_names"] == ["9", "10"]
    check_truth(checked.data)


def test_schema_round_trip(load: Callable[..., Data]) -> None:
    data = load()
    schema = json.loads(json.dumps(data.table_schema))
    same = load(schema=schema)
    check_truth(same)
    assert same.table_schema == data.table_schema
    # Other order, an extra column, no labels, ages that look like integers.
    other = "extra,colour,id,member,age\nx,blue,n1,false,7\ny,,n2,true,8\n"
    fresh = load(other, "source,target,weight\nn1,n2,1\n", schema=schema)
    assert fresh.x.tolist() == [[7, 0, 1, 0], [8, 1, 0, 0]]
    assert fresh.y.tolist() == [-1, -1]
    assert fresh.class_names == ["9", "10"]
    assert not (fresh.train_mask | fresh.val_mask | fresh.test_mask).any()
    labelled = "colour,id,member,age,label\nblue,n1,false,7,10\nred,n2,true,8,\n"
    tested = load(labelled, "source,target,weight\nn1,n2,1\n", schema=schema)
    assert tested.y.tolist() == [1, -1]
    assert tested.test_mask.tolist() == [True, False]


def test_edges_are_read_as_those_trained_on(
    tmp_path: Path, load: Callable[..., Data]
) -> None:
    nodes = "id,label,f\na,x,1\nb,y,2\nc,x,3\n"
    # Named by the user, the other way round than usual names would have it.
    edges = "source,target,weight,strength\na,b,9,0.5\nb,c,9,0.25\n"
    named = {"source_column": "target", "target_column": "source"}
    data = load(nodes, edges, weight_column="strength", directed=True, **named)
    assert data.edge_index.tolist() == [[1, 2], [0, 1]]
    schema = json.loads(json.dumps(data.table_schema))
    again = load(nodes, edges, schema=schema)
    assert again.edge_index.tolist() == data.edge_index.tolist()
    assert again.edge_weight.tolist() == [0.5, 0.25]
    # What is said now comes first.
    now = load(nodes, edges, schema=schema, weight_column="weight", source_column="source",
               target_column="target")  # fmt: skip
    assert now.edge_index.tolist() == [[0, 1], [1, 2]]
    assert now.edge_weight.tolist() == [9, 9]
    # Columns of other names: the usual ones, and weights that are missed.
    with pytest.raises(
        UserWarning, match=r"edges\.csv: no column 'strength'.* weigh 1"
    ):
        load(nodes, "src,dst\na,b\n", schema=schema)
    # A weight that the model was not trained with does not count.
    plain = load(nodes, "source,target\na,b\nb,c\n").table_schema
    assert load(nodes, edges, schema=plain).edge_weight is None
    for old in (None, ["source"], {"weight": 3}):
        before = load(nodes, edges, schema=schema | {"edge_columns": old})
        assert before.edge_index.tolist() == [[0, 1], [1, 2]]


def test_labels_are_the_same_in_every_kind_of_file(load: Callable[..., Data]) -> None:
    truths = load("id,label,f\na,True,1\nb,False,2\n", "u,v\na,b\n")
    assert truths.class_names == ["False", "True"]
    other = "id,label,f\na,true,1\nb,false,2\n"
    again = load(other, "u,v\na,b\n", schema=truths.table_schema)
    assert again.y.tolist() == truths.y.tolist() == [1, 0]
    # More digits than a float has.
    large = "id,label,f\na,12345678901234567.0,1\nb,12345678901234568.0,2\n"
    found = load(large, "u,v\na,b\n").class_names
    assert found == ["12345678901234567", "12345678901234568"]


def test_a_label_column_that_is_named_must_be_there(
    load: Callable[..., Data],
) -> None:
    schema = load().table_schema
    with pytest.raises(InputError, match=r"no column 'klass' \(label_column\)"):
        load(schema=schema, label_column="klass")


@pytest.mark.parametrize("long", ["header", "row", "cell"])
def test_lines_longer_than_a_block_are_read(
    long: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.data.delimited._BLOCKS", (2**10, 2**12, 2**20))
    wide = 4_000 if long != "cell" else 1
    names = [f"feature number {i}" if long == "header" else f"{i}" for i in range(wide)]
    cells = ["1" if long == "header" else "1.00000001"] * wide
    note = ",note" if long == "cell" else ""
    lines = [",".join(["id", "label", *names]) + note]
    for row, name in enumerate("abcd"):
        text = f",{'x' * 30_000}" if long == "cell" else ""
        lines.append(",".join([name, "xy"[row % 2], *cells]) + text)
    (tmp_path / "nodes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    data = load_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert data.x.shape[0] == 4
    assert data.x.to_dense()[:, :wide].min() == 1
    assert data.y.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,\xe2ge,label\na,1,x\n", "line 1: is not UTF-8"),
        (gzip.compress(b"id,label\n"), r"is compressed; call it nodes\.csv\.gz"),
        (b"PK\x03\x04\x14\0\0\0", "is a workbook or archive"),
    ],
)
def test_files_that_are_not_what_they_are_called(
    content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "nodes.csv").write_bytes(content)
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(InputError, match=rf"nodes\.csv.*{message}"):
        load_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")


def test_category_never_seen_warns(tmp_path: Path, load: Callable[..., Data]) -> None:
    schema = load().table_schema
    # Read as text although it looks like a number.
    (tmp_path / "nodes.csv").write_text("id,colour,member,age\nn1,3,true,1\n")
    (tmp_path / "edges.csv").write_text("source,target\nn1,n1\n")
    with pytest.warns(UserWarning, match="never seen|no edges") as caught:
        data = load_tables(
            tmp_path / "nodes.csv", tmp_path / "edges.csv", schema=schema
        )
    assert data.x.tolist() == [[1, 1, 0, 0]]
    told = [str(warning.message) for warning in caught]
    assert any("'colour'" in text and "1 rows, e.g. '3'" in text for text in told)
    assert any("edges.csv: no edges" in text for text in told)
    assert all(text in data.notes for text in told)


def test_zero_edges_go_on(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text("source,target,weight\n")
    with pytest.warns(UserWarning, match=r"edges\.csv: no edges"):
        data = load_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert data.edge_index.shape == (2, 0)
    assert data.edge_index.dtype == torch.int64


def test_index_columns_of_pandas_are_no_features(load: Callable[..., Data]) -> None:
    data = load(",id,Unnamed: 0,label,f\n0,a,9,x,1\n1,b,8,y,2\n", ",u,v\n0,a,b\n")
    assert data.feature_names == ["f"]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert any("columns without a name were left out" in note for note in data.notes)


def test_lines_are_those_of_an_editor(load: Callable[..., Data]) -> None:
    nodes = 'id,label,f,note\n\na,x,1,"two\nlines"\n\n,y,1,z\n'
    with pytest.raises(InputError, match=r"nodes\.csv, line 6, column 'id'"):
        load(nodes, "source,target\na,b\n")


def swap(old: str, new: str) -> dict[str, str]:
    assert old in NODES
    return {"nodes": NODES.replace(old, new)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            swap("id,label", "key,label"),
            r"nodes\.csv: no column 'id' \(id_column\).*key",
        ),
        (
            swap("id,label", "id,class"),
            r"nodes\.csv: no column 'label' \(label_column\)",
        ),
        ({"split_column": "part"}, r"nodes\.csv: no column 'part' \(split_column\)"),
        ({"source_column": "a"}, r"edges\.csv: no column 'a' \(source_column\)"),
        ({"target_column": "z"}, r"edges\.csv: no column 'z' \(target_column\)"),
        ({"weight_column": "w"}, r"edges\.csv: no column 'w' \(weight_column\)"),
        ({"source_column": "target"}, r"edges\.csv: source and target are one column"),
        ({"label_column": "id"}, r"nodes\.csv: id_column, label_column .* same column"),
        ({"features": "ones"}, "features is 'ones': expected None"),
        (
            {"val_fraction": 1.5, **swap("split", "age2"), "features": "degree"},
            "val_fraction",
        ),
        (swap("Valid", "later"), r"nodes\.csv, line 5, column 'split': 'later'"),
        (
            swap("c,,,", "c,,train,"),
            r"nodes\.csv, line 4, column 'split': a training node",
        ),
        (
            swap("c,,,3", ",,,3"),
            r"nodes\.csv, line 4, column 'id': the node id is missing",
        ),
        (swap("e,9", "b,9"), r"nodes\.csv, lines 3 and 6, column 'id': node id 'b'"),
        (
            swap("d,10,Valid,4", "d,10,Valid,"),
            r"nodes\.csv, line 5, column 'age': empty",
        ),
        (
            swap("d,10,Valid,4", "d,10,Valid,nan"),
            r"line 5, column 'age': empty cell or NaN",
        ),
        (
            swap("d,10,Valid,4", "d,10,Valid,inf"),
            r"line 5, column 'age': inf is not a finite",
        ),
        (
            swap("d,10,Valid,4", "d,10,Valid,1e60"),
            r"line 5, column 'age': 1e\+60 is not",
        ),
        (
            swap("d,10,Valid,4", "d,10,Valid,?"),
            r"line 5, column 'age': '\?' is not a number",
        ),
        (swap("4,false,red", "4,,red"), r"line 5, column 'member': empty cell"),
        (
            swap("d,10,Valid,4,false,red", "d,10"),
            r"nodes\.csv, line 5: 2 cells, expected 6",
        ),
        (swap("d,10,", "d,1.5,"), r"nodes\.csv, line 5, column 'label': label '1\.5'"),
        (
            swap("age,member", "age,age"),
            r"nodes\.csv: column 'age' is there more than once",
        ),
        (swap("e,9,test,-5,true,blue\n", "\u00e9\u00e9,9\n"), "line 6: 2 cells"),
        ({"nodes": "id,label,f\n"}, r"nodes\.csv: no nodes"),
        (
            {"nodes": "id,label,f\na,,1\nb,nan,2\n"},
            r"nodes\.csv: column 'label' holds no label at all",
        ),
        ({"nodes": ""}, r"nodes\.csv: cannot be read: Empty"),
        (
            {"nodes": "id;label;f\na;x;1\n"},
            r"no column 'id'.*by semicolons; expected commas",
        ),
        (
            {"nodes": "id,label\na,x\nb,y\n"},
            r'nodes\.csv: no feature column .*features="identity" or features="degree"',
        ),
        (
            {"nodes": "id,label,f\na,x,\nb,y,\n"},
            r"nodes\.csv, line 2, column 'f': empty",
        ),
        (
            {"nodes": "id,label,when\na,x,2020-01-01\nb,y,2020-01-02\n"},
            r"nodes\.csv: column 'when' has type date32.*encode it first",
        ),
        (
            {"edges": "source,target\nb,c\nb,nobody\n"},
            r"edges\.csv, line 3, column 'target': node id 'nobody'",
        ),
        (
            {"edges": "source,target\nb,c\nb,\n"},
            r"edges\.csv, line 3, column 'target': the node id is missing",
        ),
        (
            {"edges": "source,target\n7,c\n"},
            r"edges\.csv, line 2, column 'source': node id '7'",
        ),
        (
            {"edges": "source,target,weight\nb,c,1\nb,d,x\n"},
            r"edges\.csv, line 3, column 'weight': 'x'",
        ),
        (
            {"edges": "source,target,weight\nb,c,1\nb,d,nan\n"},
            r"edges\.csv, line 3, column 'weight': empty",
        ),
        (
            {"edges": "source,target,weight\nb,c,1\nb,d,\n"},
            r"edges\.csv, line 3, column 'weight': empty",
        ),
        (
            {"edges": "source,target,weight\nb,c,inf\n"},
            r"edges\.csv, line 2, column 'weight': inf",
        ),
        (
            {"edges": "source,target,weight\nb,c,1\nb,d,-2\n"},
            r"edges\.csv, line 3, column 'weight': weight -2",
        ),
        (
            {"edges": "source,weight\nb,1\n"},
            r"edges\.csv: columns source, weight: expected",
        ),
        (
            {"edges": "b,c\nc,d\n"},
            r"edges\.csv, line 1: 'b' and 'c' are node ids, expected a header",
        ),
        ({"edges": ""}, r"edges\.csv: cannot be read"),
    ],
)
def test_refusals_name_file_line_and_column(
    load: Callable[..., Data], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(**change)
    assert "\n" not in str(caught.value)


def test_text_columns_are_refused(load: Callable[..., Data]) -> None:
    edges = "source,target\n0,1\n"
    rows = [f"{i},{'xy'[i % 2]},word {i}" for i in range(20)]
    with pytest.raises(
        InputError, match=r"nodes\.csv: column 'title' is text \(20 .*TF-IDF"
    ):
        load("id,label,title\n" + "\n".join(rows), edges)
    # Nineteen rows are too few to judge by; a hundred and one values are too many.
    assert load("id,label,title\n" + "\n".join(rows[:19]), edges).x.shape == (19, 19)
    many = [f"{i},{'xy'[i % 2]},word {i % 101}" for i in range(404)]
    with pytest.raises(InputError, match=r"column 'title' is text \(101 "):
        load("id,label,title\n" + "\n".join(many), edges)
    hundred = [f"{i},{'xy'[i % 2]},word {i % 100}" for i in range(404)]
    assert load("id,label,title\n" + "\n".join(hundred), edges).x.shape == (404, 100)


def test_a_label_per_node_is_no_class(load: Callable[..., Data]) -> None:
    rows = "\n".join(f"{i},name {i},1" for i in range(20))
    with pytest.raises(
        InputError, match=r"nodes\.csv: column 'label' has 20 different"
    ):
        load("id,label,f\n" + rows, "source,target\n0,1\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap("age,", "old,"), r"nodes\.csv: no column 'age' \(feature in schema\)"),
        (swap("Valid,4", "Valid,four"), r"nodes\.csv, line 5, column 'age': 'four'"),
        ({"features": "degree"}, "features is 'degree' but the schema says 'columns'"),
        ({"schema": {"version": 0}}, "schema is not one of version 1"),
    ],
)
def test_schema_refusals(
    load: Callable[..., Data], change: dict[str, Any], message: str
) -> None:
    schema = load().table_schema
    with pytest.raises(InputError, match=message):
        load(**{"schema": schema, **change})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    good = tmp_path / "nodes.csv"
    good.write_text(NODES)
    with pytest.raises(InputError, match=r"edges file .*missing\.csv: does not exist"):
        load_tables(good, tmp_path / "missing.csv")
    with pytest.raises(
        InputError, match=r"nodes file .*nodes\.xlsx: unknown kind.*\.csv"
    ):
        load_tables(tmp_path / "nodes.xlsx", good)
    for name in ("broken.parquet", "broken.csv.gz"):
        (tmp_path / name).write_bytes(b"no such thing")
        with pytest.raises(InputError, match=f"{name}: cannot be read") as caught:
            load_tables(good, tmp_path / name)
        assert "\n" not in str(caught.value)
    (tmp_path / "latin.csv").write_bytes(
        "id,label,f\ncaf\u00e9,x,1\n".encode("latin-1")
    )
    with pytest.raises(InputError, match=r"latin\.csv, line 2: is not UTF-8"):
        load_tables(tmp_path / "latin.csv", good)


def test_parquet_refusals_name_rows(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")

    def refused(message: str, **columns: Any) -> None:
        table = pa.table({"id": [1, 2], "label": ["a", "b"], **columns})
        pa_parquet.write_table(table, tmp_path / "nodes.parquet")
        with pytest.raises(InputError, match=message):
            load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")

    refused(r"nodes\.parquet, row 2, column 'f': empty", f=[1.0, None])
    refused(r"nodes\.parquet, row 2, column 'f': nan", f=[1.0, float("nan")])
    refused(r"nodes\.parquet: column 'id' holds decimals", id=[0.5, 1.5], f=[1, 2])
    refused(r"nodes\.parquet: column 'v' has type list", v=[[1.0], [2.0]])
    refused(
        r"nodes\.parquet: column 'label' has type list", label=[["a"], ["b"]], f=[1, 2]
    )
    refused(r"nodes\.parquet: column 's' is empty", s=["", ""])


@pytest.mark.slow
def test_a_large_table_loads_in_seconds(tmp_path: Path) -> None:
    n, m = 200_000, 1_000_000
    generator = np.random.default_rng(0)
    nodes = {
        "id": np.arange(n),
        "label": generator.integers(0, 5, n),
        "colour": np.array(["red", "blue"])[generator.integers(0, 2, n)],
        **{f"f{i}": generator.random(n) for i in range(10)},
    }
    ends = generator.integers(0, n, (2, m))
    edges = {"source": ends[0], "target": ends[1], "weight": generator.random(m)}
    pa_csv.write_csv(pa.table(nodes), tmp_path / "nodes.csv")
    pa_csv.write_csv(pa.table(edges), tmp_path / "edges.csv")
    start = time.perf_counter()
    data = load_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    assert time.perf_counter() - start < 30
    assert data.x.shape == (n, 12)
    different = ends[:, ends[0] != ends[1]]
    pairs = np.sort(different, axis=0)
    assert data.edge_index.shape[1] == 2 * len(np.unique(pairs[0] * n + pairs[1]))


def test_minus_one_beside_numbers_is_no_class(load: Callable[..., Data]) -> None:
    rows = "id,label,f\na,0,1\nb,1,2\nc,-1,3\nd,-1.0,4\ne,1,5\nf,0,6\n"
    data = load(rows, "source,target\na,b\n", val_fraction=0.0, test_fraction=0.0)
    assert data.y.tolist() == [0, 1, -1, -1, 1, 0]
    assert data.class_names == ["0", "1"]
    assert "column 'label': -1 means unlabelled (2 nodes)" in data.notes
    # Signs are classes, not gaps.
    signs = rows.replace(",0,", ",-2,")
    data = load(signs, "source,target\na,b\n", val_fraction=0.0, test_fraction=0.0)
    assert data.class_names == ["-2", "-1", "1"]


def test_words_for_no_class_are_pointed_out(load: Callable[..., Data]) -> None:
    rows = "id,label,f\na,x,1\nb,y,2\nc,NA,3\nd,NA,4\n"
    data = load(rows, "source,target\na,b\n", val_fraction=0.0, test_fraction=0.0)
    assert data.class_names == ["NA", "x", "y"]
    assert any("'NA' is taken for a class (2 nodes)" in note for note in data.notes)


def test_other_separators_are_suspected(tmp_path: Path) -> None:
    semicolons, commas = tmp_path / "edges.csv", tmp_path / "nodes.tsv"
    good = tmp_path / "nodes.csv"
    good.write_text(NODES)
    semicolons.write_text(EDGES.replace(",", ";"))
    commas.write_text(NODES)
    with pytest.raises(
        InputError, match=r"edges\.csv.*separated by semicolons; expected commas\)"
    ):
        load_tables(good, semicolons)
    with pytest.raises(
        InputError, match=r"nodes\.tsv.*separated by commas; expected tabs, or .*\.csv"
    ):
        load_tables(commas, semicolons)


@pytest.mark.parametrize("values", [("1,5", "-2,25"), ("10%", "20 %"), ("€3", "4€")])
def test_almost_numbers_are_pointed_out(
    values: tuple[str, str], load: Callable[..., Data]
) -> None:
    rows = [f'{i},{"xy"[i % 2]},"{values[i // 2]}",{"pq"[i % 2]}' for i in range(4)]
    data = load("id,label,f,g\n" + "\n".join(rows), "source,target\n0,1\n")
    (note,) = [note for note in data.notes if "taken for a category" in note]
    assert note.startswith("column 'f'")
