"""Slips that would be read as something else: blanks, quotes, guesses, bytes."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from torch_geometric.data import Data

from elugcn.data.described import is_schema
from elugcn.data.tables import load_tables
from elugcn.errors import InputError

NODES = "id,label,f\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"
EDGES = "source,target,weight\na,b,1\nc,d,2\n"


def load(folder: Path, nodes: str = NODES, edges: str = EDGES, **options: Any) -> Data:
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return load_tables(folder / "nodes.csv", folder / "edges.csv", **options)


def parquet(folder: Path, **columns: Any) -> Path:
    n = len(next(iter(columns.values())))
    ids = {"id": [f"n{i}" for i in range(n)], "label": ["x", "y"] * (n // 2)}
    pa_parquet.write_table(pa.table(ids | columns), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("source,target\nn0,n1\n")
    return folder / "nodes.parquet"


def test_blanks_around_names_are_no_part_of_them(tmp_path: Path) -> None:
    plain = load(tmp_path)
    assert plain.edge_weight.tolist() == [1, 1, 2, 2]
    spaced = load(tmp_path, edges=EDGES.replace(",", " , "))
    assert spaced.edge_weight.tolist() == [1, 1, 2, 2]
    nodes = "id , label,f, split\na,x,1,train\nb,y,2,train\nc,x,3,val\nd,y,4,test\n"
    data = load(tmp_path, nodes)
    assert data.feature_names == ["f"]
    assert data.train_mask.tolist() == [True, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True]
    # A graph to predict on may be written without the blanks.
    again = load(tmp_path, schema=data.table_schema)
    assert again.x.equal(plain.x)
    assert again.y.equal(plain.y)
    spaced = load(
        tmp_path, "id,label,f ,g \na,x,1,r\nb,y,2,s\n", "source,target, weight\na,b,3\n"
    )
    again = load(
        tmp_path,
        "id,label,g,f\na,x,r,1\nb,y,s,2\n",
        "source,target,weight\na,b,3\n",
        schema=spaced.table_schema,
    )
    assert again.x.tolist() == spaced.x.tolist() == [[1, 1, 0], [2, 0, 1]]
    assert again.edge_weight.tolist() == [3, 3]
    named = load(tmp_path, NODES.replace("label", " kind "), label_column="kind")
    assert named.y.equal(plain.y)
    with pytest.raises(InputError, match="'f' is there more than once"):
        load(tmp_path, "id,label,f,f \na,x,1,2\nb,y,2,3\n")
    with pytest.raises(InputError, match=r"no column '' \(id_column\)"):
        load(tmp_path, id_column="")


@pytest.mark.parametrize("column", ["label", "f"])
def test_a_quote_that_swallows_a_large_file(column: str, tmp_path: Path) -> None:
    rows = [f"n{i},{'xy'[i % 2]},{i}" for i in range(30_000)]
    rows[5] = 'n5,"y,5' if column == "label" else 'n5,y,"5'
    text = "\n".join(["id,label,f", *rows]) + "\n"
    assert len(text) > 2 * 131_072  # the longest cell of Python's reader, by default
    with pytest.raises(InputError, match=r"nodes\.csv, line 7\b") as caught:
        load(tmp_path, text, "source,target\nn0,n1\n")
    assert "\n" not in str(caught.value)


def test_ends_of_edges_are_not_guessed_among_three(tmp_path: Path) -> None:
    nodes = "id,label,f\n" + "".join(f"{i},{'xy'[i % 2]},{i}\n" for i in range(6))
    with pytest.raises(InputError, match="'e', 'a', 'b' all hold node ids: which are"):
        load(tmp_path, nodes, "e,a,b\n0,4,5\n1,2,3\n")
    named = {"source_column": "a", "target_column": "b"}
    data = load(tmp_path, nodes, "e,a,b\n0,4,5\n1,2,3\n", **named)
    assert set(map(tuple, data.edge_index.T.tolist())) == {
        (4, 5), (5, 4), (2, 3), (3, 2),
    }  # fmt: skip
    # What can't be an end is none: no question.
    data = load(tmp_path, nodes, "a,b,year\n4,5,1999\n2,3,2001\n")
    assert data.edge_index.size(1) == 4


def test_numbers_that_parquet_has_as_strings(tmp_path: Path) -> None:
    few = parquet(tmp_path, age=[str(i % 3) for i in range(20)])
    data = load_tables(few, tmp_path / "edges.csv")
    assert data.x.shape == (20, 3)
    assert any("'age' is taken for a category" in note for note in data.notes)
    assert any("store them as numbers, not as strings" in note for note in data.notes)
    many = parquet(tmp_path, age=[f"{i}.5" for i in range(40)])
    with pytest.raises(InputError, match="store them as numbers, not as") as caught:
        load_tables(many, tmp_path / "edges.csv")
    assert "row" not in str(caught.value).split("column 'age'")[0]


@pytest.mark.parametrize("slip", ["1_000", "١٢"])
def test_numbers_of_python_are_not_those_of_tables(slip: str, tmp_path: Path) -> None:
    cells = [f"0.{i}" for i in range(30)]
    cells[3] = slip
    rows = [f"n{i},{'xy'[i % 2]},{cell}" for i, cell in enumerate(cells)]
    with pytest.raises(InputError, match=rf"line 5, column 'f': '{slip}' is not a num"):
        load(tmp_path, "\n".join(["id,label,f", *rows]), "source,target\nn0,n1\n")


@pytest.mark.parametrize("name", ["id", "label", "f"])
def test_strings_of_parquet_that_are_no_text(name: str, tmp_path: Path) -> None:
    raw = pa.array([b"\xff" + bytes([65 + i]) for i in range(4)])
    bad = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    file = parquet(tmp_path, **{"f": ["a", "b"] * 2, name: bad})
    with pytest.raises(InputError, match=f"column '{name}' is not UTF-8"):
        load_tables(file, tmp_path / "edges.csv")


def test_names_of_files(tmp_path: Path) -> None:
    load(tmp_path)
    shouted = tmp_path / "NODES.CSV.GZ"
    shouted.write_bytes(gzip.compress(NODES.encode()))
    data = load_tables(shouted, tmp_path / "edges.csv")
    assert data.x.flatten().tolist() == [1, 2, 3, 4]
    odd = tmp_path / "n\udcff.csv"
    try:
        odd.write_text(NODES)
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    with pytest.raises(InputError, match="name of the file is not UTF-8") as caught:
        load_tables(odd, tmp_path / "edges.csv")
    str(caught.value).encode()


def test_descriptions_of_tables(tmp_path: Path) -> None:
    nodes = "id,label,f,g\na,x,1,r\nb,y,2,s\nc,x,3,r\n"
    schema = load(tmp_path, nodes, "source,target\na,b\n").table_schema
    assert is_schema(schema)
    for wrong in (
        {"columns": [{}]},
        {"columns": [{"name": "g", "kind": "category"}]},
        {"columns": [{"name": "f", "kind": "date"}]},
        {"columns": {"f": 1}},
        {"class_names": None},
        {"class_names": [1, 2]},
        {"id_column": 3},
    ):
        assert not is_schema(schema | wrong)
    assert not is_schema([])
    assert not is_schema({k: v for k, v in schema.items() if k != "version"})
