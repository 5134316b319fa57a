"""Every refusal of the data package: one line that names what is wrong and where."""

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData

from elugcn.data.convert import to_data
from elugcn.data.datasets import load_dataset
from elugcn.data.tables import TableSchema, load_tables
from elugcn.data.validation import check_data
from elugcn.errors import InputError
from tests.data.conftest import EDGES, NODES
from tests.data.test_validation import N, graph

# Tables: what is changed, and what the message says.


def swap(old: str, new: str) -> dict[str, str]:
    assert old in NODES
    return {"nodes": NODES.replace(old, new)}


def column(values: list[Any], name: str = "f") -> dict[str, str]:
    """A node table with one quoted cell per value."""
    rows = [f'n{i},{"xy"[i % 2]},"{value}"' for i, value in enumerate(values)]
    nodes = "\n".join([f"id,label,{name}", *rows]) + "\n"
    return {"nodes": nodes, "edges": "source,target\nn0,n1\n"}


def labelled(labels: list[Any]) -> dict[str, str]:
    rows = [f"n{i},{label},{i}" for i, label in enumerate(labels)]
    return {"nodes": "\n".join(["id,label,age", *rows]), "edges": "u,v\nn0,n1\n"}


def edges(text: str | bytes) -> dict[str, str | bytes]:
    return {"edges": text}


NAMELESS = NODES.replace("\n", ",,\n")
TABLES: list[tuple[dict[str, Any], str]] = [
    # Columns and arguments
    (swap("id,label", "key,label"), r"nodes\.csv: no column 'id' \(id_column\).*key"),
    (swap("id,label", "id,kind"), r"nodes\.csv: no column 'label' \(label_column\)"),
    ({"split_column": "part"}, r"nodes\.csv: no column 'part' \(split_column\)"),
    ({"source_column": "a"}, r"edges\.csv: no column 'a' \(source_column\)"),
    ({"source_column": "target"}, r"edges\.csv: source and target are the same col"),
    ({"label_column": "id"}, r"nodes\.csv: id_column, label_column .* same column"),
    ({"features": "ones"}, "features='ones' is unknown: expected None"),
    ({"val_fraction": 1.5}, r"val_fraction=1\.5: expected a number in \[0, 1\)"),
    (swap("age,member", "age,age "), r"nodes\.csv: duplicate column name 'age'"),
    ({"nodes": "id,label\na,x\nb,y\n"}, 'no feature column: .*features="identity"'),
    (edges("source,weight\nb,1\n"), r"edges\.csv: expected one column .*: 'source', 'weight'"),
    (edges("b,c\nc,d\n"), r"edges\.csv, line 1: 'b' and 'c' are node ids; expected"),
    (edges("e,a,b\nb,c,d\n"), r"'e', 'a', 'b' all hold node ids; name the ends"),
    # Ids and splits
    (swap("c,,,3", ",,,3"), r"nodes\.csv, line 4, column 'id': missing node id"),
    (swap("e,9", "b,9"), r"nodes\.csv, lines 3 and 6, column 'id': duplicate node id"),
    (swap("Valid", "later"), r"nodes\.csv, line 5, column 'split': 'later' is not a"),
    (swap("c,,,", "c,,train,"), r"line 4, column 'split': training node without a l"),
    (swap(",train,", ",test,"), r"column 'split' has no training node \(train\)"),
    # Feature cells
    (swap("10,Valid,4", "10,Valid,inf"), r"line 5, column 'age': inf is not a finite"),
    (swap("10,Valid,4", "10,Valid,?"), r"line 5, column 'age': '\?' is not a number"),
    (swap("d,10,Valid,4,false,red", "d,10"), r"line 5: 2 cells, expected 6 as in the"),
    (column(["2020-01-01", "2020-01-02"]), r"has type date32.*encode it first"),
    (column(["", ""]), r"nodes\.csv: column 'f' is empty; leave it out"),
    (column([*range(30), "1,234"]), r"line 32, column 'f': '1,234' is not .* as 1234\.5"),
    (column(["0.1", "0.2", "١٢", "0.3"]), r"line 4, column 'f': '١٢' is not a num"),
    (column([f"word {i}" for i in range(20)]), r"'f' is text \(20 diff.*TF-IDF"),
    (column(["", *(f"{i},5" for i in range(40))]),
     r"nodes\.csv: column 'f' is text \(40 different values in 41 rows, e\.g\. '0,5'\): "
     r"encode it first .*; numbers are written as 1234\.5"),
    # Labels
    (swap("d,10,", "d,1.5,"), r"nodes\.csv, line 5, column 'label': label '1\.5'"),
    (labelled(["", "nan"]), "no node has a label: every entry of column 'label' is"),
    (labelled([1, 1, -1]), r"'label' holds only one class, '1' \(1 labels are unknown, such"),
    (labelled([f"n{i}" for i in range(20)]), "'label' has 20 different labels on 20 n"),
    # Edges
    (edges("source,target\nb,c\nb,nobody\n"), r"line 3, column 'target': node id 'nob"),
    (edges("source,target\nb,c\nb,\n"), r"line 3, column 'target': missing node id"),
    (edges("source,target\n7,c\n"), r"edges\.csv, line 2, column 'source': node id '7'"),
    (edges("source,target,weight\nb,c,1\nb,d,\n"), r"line 3, column 'weight': empty"),
    (edges("source,target,weight\nb,c,1\nb,d,-2\n"), "line 3, .*weight -2 is negative"),
    # Files
    ({"nodes": ""}, r"nodes\.csv: the file is empty"),
    ({"nodes": "id,label,f\n"}, r"nodes\.csv: no nodes, the file has only a header"),
    ({"nodes": b"id,\xe2ge,label\na,1,x\n"}, r"nodes\.csv, line 1: is not UTF-8"),
    ({"nodes": b"id,label,f\na,x,p\nb,y,\xe9\n"}, r"nodes\.csv, line 3: is not UTF-8"),
    (edges(b"u,v,weight\nb,c,1\nb,d,tr\xe8s\n"), r"edges\.csv, line 3: is not UTF-8"),
    ({"nodes": "a".encode("utf-16")}, r"nodes\.csv: is UTF-16; save it as CSV in UTF"),
    ({"nodes": gzip.compress(b"id")}, r"is compressed; name it nodes\.csv\.gz"),
    ({"nodes": b"PK\x03\x04\x14\0\0\0"}, r"nodes\.csv: is a workbook or archive"),
    ({"nodes": NODES.replace(",", ";")}, "'id'.*separated by semicolons; expected commas"),
    ({"nodes": NODES.replace(",", "\t")}, r"by tabs; expected commas, or name it \.tsv"),
    *(
        ({"nodes": f"{line}\r\n{NODES}"}, r"nodes\.csv, line 1: '(?i:sep)=.*Excel.*delete it")
        for line in ("sep=,", "\ufeffsep=;", "SEP=\t")
    ),
    # Cells that run on, and columns without a name
    ({"nodes": 'id,label,f\na,"x,1\nb,y,2\nc,x,3\n'}, "line 2: 2 cells.*is a quote not closed"),
    ({"nodes": 'id,label,f\na,"x,1\nb",y\n'}, "line 2, column 'label': the cell conti"),
    ({"nodes": 'id,label,f\n\na,x,"1\nb,y,2\n'}, r"nodes\.csv, line 3, .*not closed"),
    ({"nodes": NAMELESS.replace("3,true,,,", "3,true,,,stray")},
     r"nodes\.csv, line 4, column 8: 'stray' is in one of several columns without a n"),
    (edges(EDGES.replace("\n", ",,\n").replace("2.5,,", "2.5,stray,")),
     r"edges\.csv, line 4, column 4: 'stray'"),
    # Schemas
    ({"schema": {"version": 1, "class_names": [1, 2]}}, "schema is not a TableSchema"),
    ({"schema": {"id_column": 3}}, r"schema is not a TableSchema \(id_column must be text; got 3"),
    ({"schema": TableSchema(), "features": "degree"}, "the schema has 'columns'"),
    ({"schema": TableSchema(), "label_column": "kind"}, r"'kind' \(label_column\)"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), TABLES)
def test_tables(change: dict[str, Any], message: str, load: Any) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(**change)
    assert "\n" not in str(caught.value)


CELLS = [
    "a", "b", "1", "-1", "", "nan", "inf", "train", '"', '"x', "x,y", "\r", "é", "\0",
]  # fmt: skip


@given(
    table=st.sampled_from(["nodes", "edges"]),
    header=st.sampled_from(["id,label,split,f", "source,target", ",,", ""]),
    rows=st.lists(st.lists(st.sampled_from(CELLS), max_size=4), max_size=6),
    noise=st.binary(max_size=3),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_is_read_or_refused_in_one_line(
    table: str, header: str, rows: list[list[str]], noise: bytes, load: Any
) -> None:
    text = "\n".join([header, *map(",".join, rows)]).encode() + noise
    try:
        load(**{table: text})
    except InputError as error:
        message = str(error)
        assert "\n" not in message


def test_table_files(tmp_path: Path) -> None:
    good = tmp_path / "nodes.csv"
    good.write_text(NODES)
    (tmp_path / "nodes.tsv").write_text(NODES)
    (tmp_path / "broken.parquet").write_bytes(b"no such thing")
    (tmp_path / "broken.csv.gz").write_bytes(b"no such thing")
    rotten = bytearray(gzip.compress(NODES.encode() * 50))
    rotten[12:40] = b"\xff" * 28
    (tmp_path / "rotten.csv.gz").write_bytes(bytes(rotten))
    for name, message in (
        ("missing.csv", r"nodes file not found: .*missing\.csv"),
        ("nodes.xlsx", r"nodes file .*nodes\.xlsx: unknown kind.*\.csv"),
        ("nodes.tsv", r"nodes\.tsv.*by commas; expected tabs, or name it \.csv"),
        ("broken.parquet", r"broken\.parquet: cannot be read"),
        ("broken.csv.gz", r"broken\.csv\.gz: cannot be read"),
        ("rotten.csv.gz", r"rotten\.csv\.gz: cannot be read"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            load_tables(tmp_path / name, good)
        assert "\n" not in str(caught.value)
    odd = tmp_path / "n\udcff.csv"
    odd.touch()
    with pytest.raises(InputError, match="the file name is not UTF-8") as caught:
        load_tables(odd, good)
    str(caught.value).encode()


BYTES = pa.Array.from_buffers(
    pa.string(), 2, pa.array([b"\xffa", b"\xffb"]).buffers()
)  # bytes that a file calls a string


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"f": [1.0, float("-inf")]}, r"nodes\.parquet, row 2, column 'f': -inf is"),
        ({"id": [0.5, 1.5]}, r"nodes\.parquet: column 'id' holds decimals"),
        ({"v": [[1.0], [2.0]]}, r"nodes\.parquet: column 'v' has type list"),
        ({"label": [["a"], ["b"]]}, r"column 'label' has type list"),
        ({"s": ["", ""]}, r"nodes\.parquet: column 's' is empty"),
        ({"f": [b"\xe9", b"z"]}, "column 'f' has type binary: expected numbers"),
        *(({name: BYTES}, f"column '{name}' is not UTF-8") for name in ("id", "label")),
        ({"f": BYTES}, "column 'f' is not UTF-8"),
    ],
)
def test_parquet(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "label": ["a", "b"], "f": [1, 2]} | columns)
    pa_parquet.write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    with pytest.raises(InputError, match=message):
        load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")


# Graphs


def wrong_at(shape: tuple[int, ...], *place: int, value: float = float("nan")) -> Any:
    tensor = torch.ones(shape)
    tensor[place] = value
    return tensor


def mask(*entries: int) -> torch.Tensor:
    return torch.tensor(entries, dtype=torch.bool)


GRAPHS: list[tuple[dict[str, Any], str]] = [
    ({"x": None}, r'data\.x is missing.*features="identity" or features="degree"'),
    ({"x": torch.ones(N, 0)}, r"data\.x has shape \[6, 0\]: expected at least one"),
    ({"x": torch.ones(N)}, r"data\.x has shape \[6\]: expected two dimensions"),
    ({"x": np.full((N, 2), "a")}, r"data\.x has dtype <U1: expected real numbers"),
    ({"x": [[1.0], [1.0, 2.0]]}, r"data\.x is not a matrix of numbers"),
    ({"x": wrong_at((N, 2), 4, 1)}, r"NaN or infinite value at node 4, column 1"),
    ({"x": wrong_at((N, 2), 3, 1).to_sparse_csr()}, "at node 3, column 1"),
    ({"x": torch.ones(N, 2), "num_nodes": 9}, r"data\.x says 6 but data\.num_nodes say"),
    ({"edge_index": None}, r"data\.edge_index is missing: expected an int64 tensor"),
    ({"edge_index": None, "adj_t": torch.eye(N)}, "adj_t is not read"),
    ({"edge_index": torch.ones(2, 3)}, r"data\.edge_index has dtype torch.float32"),
    ({"edge_index": torch.ones(5, 2).long()}, r"shape \[5, 2\].*edge_index\.t\(\)"),
    ({"edge_index": torch.tensor([[0, 1], [1, 6]])}, r"edge 1 is \(1, 6\).*0\.\.5"),
    ({"edge_weight": torch.ones(3)}, r"edge_weight has shape \[3\]: .* of shape \[10\]"),
    ({"edge_weight": wrong_at((10,), 2)}, "edge 2 from node 1 to node 2 has weight nan"),
    ({"y": None}, r"data\.y is missing: expected one class number per node"),
    ({"y": torch.eye(N)}, r"data\.y has shape \[6, 6\].*argmax\(1\)"),
    ({"y": ["a"] * N}, r"data\.y is not numeric"),
    ({"y": torch.tensor([0, 1, 0.5, 1, 0, 1])}, r"data\.y is 0\.5 at node 2"),
    ({"y": torch.tensor([0, 1, 0, 10**12, 0, 1])}, "class 1000000000000 .* renumber"),
    ({"class_names": ["a"]}, r"data\.class_names has 1 names .*up to class 1"),
    ({"directed": "yes"}, r"data\.directed is a str: expected a boolean"),
    ({"node_ids": "abcdef"}, r"data\.node_ids is a str: expected 6 names"),
    ({"node_ids": list("abc")}, r"data\.node_ids has 3 entries: expected 6"),
    ({"train_mask": mask(1, 0, 1, 0)}, r"data\.train_mask has shape \[4\]"),
    ({"val_mask": torch.tensor([1, 3])}, r"data\.val_mask has dtype torch.int64"),
    ({"train_mask": torch.ones(N, 3, dtype=torch.bool)},
     r"train_mask has shape \[6, 3\].*pick one.*train_mask\[:, 0\]"),
    ({"val_mask": mask(1, 1, 1, 0, 0, 0)},
     r"train_mask and data\.val_mask overlap in 2 nodes \(2 and 3 in all\)"),
    ({"train_mask": mask(0, 0, 0, 0, 0, 0)}, "train_mask has no training node"),
    ({"y": torch.tensor([-1, 0, -1, 1, 0, 1])}, "2 nodes without.*no node with one"),
    ({"y": torch.tensor([0, 0, -1, 1, 0, 1])}, "1 nodes without a label .* node 2"),
    ({"train_mask": None, "val_mask": mask(1, 1, 1, 1, 0, 0)}, "no training node is l"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), GRAPHS)
def test_graphs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_data(graph(**changes))
    assert "\n" not in str(caught.value)


def test_arguments_of_check_data() -> None:
    named = [graph(class_names=names) for names in (["cat", "dog"], ["dog", "cat"])]
    pair = torch.tensor([[0], [1]])
    for data, options, message in (
        (graph(), {"features": "ones"}, "features='ones' is unknown"),
        (graph(), {"val_fraction": 2}, "val_fraction=2"),
        (graph(), {"test_fraction": -0.1}, r"test_fraction=-0\.1"),
        (graph(), {"val_fraction": 0.6, "test_fraction": 0.4}, "add up to 1 or more"),
        (HeteroData(), {}, "data is a HeteroData: expected torch_geometric"),
        (Data(edge_index=pair), {"features": "degree"}, "number of nodes is unknown"),
        (Data(num_nodes=0), {"features": "degree"}, "no nodes"),
        (Batch.from_data_list(named), {}, "class_names differ between the graphs"),
    ):
        with pytest.raises(InputError, match=message):
            check_data(data, **options)


# Arrays

X = np.arange(8.0).reshape(4, 2)
PAIRS = np.array([[0, 1], [1, 2]])
HEAVY = nx.Graph()
HEAVY.add_nodes_from(range(4))
HEAVY.add_edge(0, 3, weight="heavy")
ARRAYS: list[tuple[dict[str, Any], str]] = [
    ({"X": np.full((4, 2), "a", dtype=object)}, "X is not a matrix of numbers"),
    ({"y": [0, 1]}, "y has 2 labels but X has 4 rows"),
    ({"y": np.eye(4)}, r"y has shape \[4, 4\]: .*\[4\]"),
    ({"y": [0.5, 1.0, 2.0, 1.0]}, r"y holds 0\.5: expected classes"),
    ({"y": [[0], [1], [0], [1]]}, "y holds labels of type list"),
    ({"y": [0, "a", 1, "b"]}, "y holds labels of type int, str"),
    ({"adjacency": np.eye(3)}, r"adjacency has shape \[3, 3\] but X has 4 rows"),
    ({"adjacency": nx.Graph()}, "adjacency is a networkx graph without nodes"),
    ({"adjacency": HEAVY}, "adjacency has edges whose weight is not a number"),
    ({"adjacency": np.array([[0.0, 1], [1, 2]])}, "adjacency .* expected integers"),
    ({"n_neighbors": 4}, r"n_neighbors=4 does not fit X with 4 rows: .*1\.\.3"),
    # Values are checked with the graph.
    ({"y": [-1, 1, 1, -1]}, r"y holds only one class, '1' \(2 labels are unknown"),
    ({"adjacency": -np.eye(4)[::-1]}, r"from node 0 to node 3 has weight -1\.0"),
]


@pytest.mark.parametrize(("arguments", "message"), ARRAYS)
def test_arrays(arguments: dict[str, Any], message: str) -> None:
    given = {"X": X, "y": [0, 1, 0, 1], "n_neighbors": 2, **arguments}
    with pytest.raises(InputError, match=message) as caught:
        check_data(to_data(**given))
    assert "\n" not in str(caught.value)


# Datasets


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "core"}, r"unknown dataset 'core'; known: cora, .*mean 'cora'\?$"),
        ({"name": "cora", "colour": 1}, "unknown option 'colour' for dataset cora"),
        ({"name": "sbm", "nodes": 1}, "unknown option 'nodes'.*known: n, n_classes"),
        ({"name": "cora", "split": 1}, "split=1: dataset cora has one published split"),
        ({"name": "squirrel", "split": 10}, "split=10: .*expected 0 to 9"),
        ({"name": "digits", "split": -1}, "split=-1: expected a whole number, 0 or more"),
        ({"name": "digits", "labels_per_class": 0}, "labels_per_class=0: expected a whole number, 1"),
        ({"name": "photo", "directed": True}, "photo has no directed version"),
        ({"name": "cora", "data_dir": "no/place"}, "data_dir=no/place: directory not f"),
        ({"name": "sbm", "n": 14}, "sbm option n=14: expected at least 15, 3 per class"),
        ({"name": "sbm", "n": True}, "sbm option n must be a whole number; got True"),
        ({"name": "sbm", "n_classes": 1}, "n_classes must be at least 2; got 1"),
        ({"name": "sbm", "mean_degree": 125}, r"mean_degree=125.*: expected at most 124"),
    ],
)  # fmt: skip
def test_datasets(arguments: dict[str, Any], message: str, cache: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_dataset(**arguments)
    assert "\n" not in str(caught.value)
