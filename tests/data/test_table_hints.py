"""Mistakes of spreadsheets and of options: each is said in a line that helps."""

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from elugcn.data.checks import check_data
from elugcn.data.convert import to_data
from elugcn.data.features import as_features
from elugcn.data.tables import load_tables
from elugcn.errors import InputError

NODES = "id,label,f\na,x,1\nb,y,2\nc,x,3\nd,y,4\n"
EDGES = "source,target,weight\na,b,1\nc,d,2\n"
NO_SPLIT = {"val_fraction": 0.0, "test_fraction": 0.0}

Loader = Callable[..., Data]


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Write the two texts to files and load them, without a warning."""

    def loader(
        nodes: str | bytes = NODES, edges: str | bytes = EDGES, **options: Any
    ) -> Data:
        for name, text in (("nodes", nodes), ("edges", edges)):
            raw = text if isinstance(text, bytes) else text.encode()
            (tmp_path / f"{name}.csv").write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return load_tables(
                tmp_path / "nodes.csv", tmp_path / "edges.csv", **options
            )

    return loader


def column(values: list[Any], name: str = "f") -> str:
    """A node table with one quoted cell of each value."""
    rows = [f'n{i},{"xy"[i % 2]},"{value}"' for i, value in enumerate(values)]
    return "\n".join([f"id,label,{name}", *rows]) + "\n"


def refused(load: Loader, message: str, *texts: str | bytes, **options: Any) -> str:
    with pytest.raises(InputError, match=message) as caught:
        load(*texts, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# The columns of the edges


@pytest.mark.parametrize("end", ["source", "target"])
def test_a_weight_that_is_an_end_is_refused(end: str, load: Loader) -> None:
    refused(
        load,
        rf"edges\.csv: {end} and weight are one column, '{end}' .*weight_column",
        weight_column=end,
    )


def test_a_weight_that_nobody_named_gives_way_to_an_end(load: Loader) -> None:
    edges = "weight,target\na,b\nc,d\n"
    data = load(edges=edges, source_column="weight")
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert "edge_weight" not in data
    again = load(edges=edges, schema=data.table_schema)
    assert again.edge_index.tolist() == data.edge_index.tolist()


# Bytes that are no UTF-8


@pytest.mark.parametrize("compressed", [False, True])
def test_accents_of_windows_in_a_feature_name_the_line(
    compressed: bool, tmp_path: Path
) -> None:
    text = "id,label,country\na,x,Spain\nb,y,Fr\u00e9\nc,x,Spain\n".encode("cp1252")
    nodes = tmp_path / ("nodes.csv.gz" if compressed else "nodes.csv")
    nodes.write_bytes(gzip.compress(text) if compressed else text)
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(
        InputError, match=r"nodes\.csv.*, line 3: is not UTF-8; save it as CSV in UTF-8"
    ):
        load_tables(nodes, tmp_path / "edges.csv")


def test_accents_of_windows_in_a_weight_name_the_line(load: Loader) -> None:
    edges = "source,target,weight\na,b,1\nc,d,tr\u00e8s\n".encode("cp1252")
    refused(load, r"edges\.csv, line 3: is not UTF-8", NODES, edges)


def test_bytes_of_parquet_keep_their_message(tmp_path: Path) -> None:
    nodes = pa.table({"id": ["a", "b"], "label": ["x", "y"], "f": [b"\xe9", b"z"]})
    pa_parquet.write_table(nodes, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(InputError, match="column 'f' has type binary: expected num"):
        load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")


# Values that single precision can't tell apart

START = 1_700_000_000


def precision(notes: list[str]) -> list[str]:
    return [note for note in notes if "single precision" in note]


@pytest.mark.parametrize(
    "values",
    [
        [START + 50 * (i % 2) for i in range(40)],
        [START + 50.5 * (i % 2) for i in range(40)],
        [-START - 50 * (i % 3) for i in range(40)],
        [1 + 1e-9 * (i % 2) for i in range(40)],
        [START * 10**9 + 10**5 * (i % 2) for i in range(40)],
    ],
    ids=["integers", "decimals", "negative", "near 1", "nanoseconds"],
)
def test_a_column_that_collapses_is_noted(values: list[float], load: Loader) -> None:
    data = load(column(values, "when"), "source,target\nn0,n1\n")
    (note,) = precision(data.notes)
    assert note.startswith("column 'when': ")
    assert "subtract a constant" in note
    # The numbers are as they were; and who does as told keeps them apart.
    assert data.x[:, 0].tolist() == np.float32(values).tolist()
    small = [value - min(values) for value in values]
    data = load(column(small, "when"), "source,target\nn0,n1\n")
    assert not precision(data.notes)
    assert len(data.x.unique()) == len(set(values))


@pytest.mark.parametrize(
    "values",
    [
        [START] * 40,
        # Two values that stay two, and days, of which rounding takes little.
        [START + 1000 * (i % 2) for i in range(40)],
        [START + 86_400 * i + i for i in range(40)],
        # Rounding noise of double precision is no information.
        [0.1 + 0.2, 0.3] * 20,
        [0.0] * 40,
        list(np.random.default_rng(0).normal(size=3000)),
    ],
    ids=["constant", "far apart", "days", "noise", "zeros", "normal"],
)
def test_a_column_that_keeps_its_values_is_not_noted(
    values: list[float], load: Loader
) -> None:
    data = load(column(values), "source,target\nn0,n1\n")
    assert not precision(data.notes)


def test_several_columns_of_parquet_make_one_note(tmp_path: Path) -> None:
    times = [START + 50 * (i % 2) for i in range(40)]
    columns = {f"t{i}": times for i in range(7)}
    columns["coded"] = pa.array(times).dictionary_encode()
    nodes = pa.table(
        {
            "id": list(range(40)),
            "label": ["x", "y"] * 20,
            **columns,
            "single": np.float32(times),
        }
    )
    pa_parquet.write_table(nodes, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    data = load_tables(tmp_path / "nodes.parquet", tmp_path / "edges.csv")
    (note,) = precision(data.notes)
    assert note.startswith("columns 't0', 't1', 't2', 't3', 't4', ... (8 in all): ")
    # The graph to predict on has the columns of the one that was told of.
    again = load_tables(
        tmp_path / "nodes.parquet", tmp_path / "edges.csv", schema=data.table_schema
    )
    assert not precision(again.notes)


def times(kind: Any) -> Any:
    values = np.arange(80, dtype=np.float64).reshape(40, 2)
    values[:, 1] = START + 50 * (np.arange(40) % 2)
    return values.astype(kind)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32, np.uint64])
def test_an_array_that_collapses_warns(kind: Any) -> None:
    x = times(kind)
    for given in (x, np.asfortranarray(x), x.tolist(), torch.from_numpy(x)):
        with pytest.warns(
            UserWarning, match=r"X, column 1: .*single precision"
        ) as told:
            data = to_data(given, n_neighbors=2)
        assert len(told) == 1
        assert np.array_equal(data.x.numpy(), x.astype(np.float32))
    graph = Data(
        x=torch.from_numpy(x.astype(np.float64)),
        edge_index=torch.tensor([[0], [1]]),
        y=torch.arange(40) % 2,
    )
    with pytest.warns(UserWarning, match=r"data\.x, column 1: .*single precision"):
        check_data(graph)


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
            np.array([[START], [START + 5000.0]]),
            sp.csr_array(np.eye(4)),
            torch.eye(4, dtype=torch.float64).to_sparse(),
            np.array([[2**63 - 1], [-(2**63)]]),
            # numpy has no such kinds.
            torch.ones(4, 2).to(torch.bfloat16),
            torch.ones(4, 2).to(torch.float8_e5m2),
        ):
            as_features(x, "x")
        with pytest.raises(InputError, match="NaN or infinite"):
            as_features(np.array([[np.nan], [1.0]]), "x")


def test_of_usual_arrays_only_the_first_rows_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "elugcn.data.features.collapses", lambda values: asked.append(len(values))
    )
    x = np.random.default_rng(0).normal(size=(500, 300))
    x[:, 7] = 0
    as_features(x, "x")
    as_features(torch.from_numpy(x), "x")
    assert asked == []
    x[:, 7] = START
    as_features(x, "x")
    assert asked == [500]


# Separators


@pytest.mark.parametrize(
    ("mark", "looks"),
    [(";", "semicolons; expected commas"), ("\t", "tabs; expected commas, or call it"),
     ("|", "vertical bars; expected commas")],
)  # fmt: skip
def test_another_separator_is_named(mark: str, looks: str, load: Loader) -> None:
    refused(
        load,
        rf"nodes\.csv: no column 'id'.*\(it looks separated by {looks}",
        NODES.replace(",", mark),
    )
    refused(
        load,
        rf"edges\.csv: columns .*\(it looks separated by {looks}",
        NODES,
        EDGES.replace(",", mark),
    )


def test_semicolons_with_decimal_commas_are_named(load: Loader) -> None:
    nodes = NODES.replace(",", ";").replace(";2\n", ";2,5\n")
    refused(
        load,
        r"nodes\.csv, line 3: 2 cells, expected 1 as in the header \(it looks "
        r"separated by semicolons; expected commas\)",
        nodes,
    )


def test_a_quoted_header_is_not_taken_for_another_separator(load: Loader) -> None:
    told = refused(load, "no column 'id'", '"id,label"\n1\n2\n')
    assert "looks separated" not in told


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("line", "mark"),
    [("sep=,", ","), ("sep=;", ";"), ('"sep=;"', ";"), ("SEP=\t", ",")],
)
def test_the_separator_line_of_excel_is_named(
    line: str, mark: str, start: str, load: Loader
) -> None:
    text = f"{start}{line}\r\n" + NODES.replace(",", mark).replace("\n", "\r\n")
    told = refused(load, r"nodes\.csv, line 1: .*Excel.*delete", text)
    assert ("semicolons; expected commas" in told) == (";" in line)
    refused(load, r"edges\.csv, line 1: .*Excel.*delete", NODES, f"{line}\n{EDGES}")


def test_a_broken_archive_is_refused_as_before(tmp_path: Path) -> None:
    broken = bytearray(gzip.compress(NODES.encode() * 50))
    broken[12:40] = b"\xff" * 28
    (tmp_path / "nodes.csv.gz").write_bytes(bytes(broken))
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(InputError, match=r"nodes\.csv\.gz: cannot be read"):
        load_tables(tmp_path / "nodes.csv.gz", tmp_path / "edges.csv")


# Numbers that are almost ones


@pytest.mark.parametrize(
    "form",
    ["{},5", "1,{:03d}", "1.{:03d},50", "{} %", "{}€", "1 {:03d}", "1\u202f{:03d},5"],
)
def test_many_almost_numbers_say_how_to_write_them(form: str, load: Loader) -> None:
    values = ["", *(form.format(i) for i in range(40))]
    told = refused(
        load,
        r"nodes\.csv, line 3, column 'age': '.*' is text \(40 different values in 41 "
        r"rows\): if these are numbers, write them with a point and without",
        column(values, "age"),
        "source,target\nn0,n1\n",
    )
    assert repr(values[1]) in told


def test_more_almost_numbers_than_categories(load: Loader) -> None:
    values = [f"{i % 120},5" for i in range(480)]
    refused(load, "if these are numbers", column(values), "source,target\nn0,n1\n")


def test_a_few_gaps_among_almost_numbers_make_no_difference(load: Loader) -> None:
    values = ["n.a.", "17", *(f"{i},5" for i in range(40))]
    refused(
        load,
        r"line 4, column 'f': '0,5' is text .*if these are numbers",
        column(values),
        "source,target\nn0,n1\n",
    )


def test_words_are_not_taken_for_almost_numbers(load: Loader) -> None:
    for values in (
        [f"word {i}" for i in range(40)],
        [f"{i},5" if i % 2 else f"about {i}" for i in range(40)],
    ):
        told = refused(load, "TF-IDF", column(values), "source,target\nn0,n1\n")
        assert "numbers, write" not in told


def test_one_almost_number_among_numbers_says_how_to_write_it(load: Loader) -> None:
    values = [*range(30), "1,234"]
    refused(
        load,
        r"line 32, column 'f': '1,234' is not a number: .*with a point",
        column(values),
        "source,target\nn0,n1\n",
    )
    edges = 'source,target,weight\na,b,"0,5"\nc,d,"0,7"\n'
    refused(
        load, r"edges\.csv, line 2, column 'weight': '0,5' is .*point", NODES, edges
    )
    told = refused(load, "'x' is not a number$", column([*range(30), "x"]))
    assert "point" not in told


# Columns without a name


def test_ghost_columns_are_left_out(load: Loader) -> None:
    ghosts = NODES.replace("\n", ",, ,\n")
    data = load(ghosts, EDGES.replace("\n", ",,\n"))
    assert data.feature_names == ["f"]
    assert data.x.tolist() == load().x.tolist()
    assert data.edge_weight.tolist() == load().edge_weight.tolist()
    (note,) = [note for note in data.notes if "columns without a name" in note]
    assert note.endswith(": 3")


def test_ghost_columns_may_be_quoted_and_lines_blank(load: Loader) -> None:
    ghosts = 'id,label,"the\nfeature","",""\n\na,x,1,"",""\n\nb,y,2,,\n'
    data = load(ghosts, "source,target\na,b\n")
    assert data.feature_names == ["the\nfeature"]


def test_a_cell_without_a_name_is_refused(load: Loader) -> None:
    nodes = NODES.replace("\n", ",,\n").replace("c,x,3,,", "c,x,3,,stray")
    refused(
        load,
        r"nodes\.csv, line 4, column 5: 'stray' is in one of several columns without "
        "a name: expected a name for each",
        nodes,
    )
    edges = EDGES.replace("\n", ",,\n").replace("a,b,1,,", "a,b,1,stray,")
    refused(load, r"edges\.csv, line 2, column 4: 'stray'", NODES, edges)


def test_a_name_that_is_there_twice_comes_before_ghosts(load: Loader) -> None:
    nodes = NODES.replace("\n", ",1,,\n").replace("f,1,,", "f,f,,")
    refused(load, "column 'f' is there more than once", nodes)


# Labels


def test_minus_one_among_words_is_pointed_out(load: Loader) -> None:
    nodes = NODES + "e,-1,5\nf,-1,6\n"
    data = load(nodes, EDGES, **NO_SPLIT)
    assert data.class_names == ["-1", "x", "y"]
    (note,) = [note for note in data.notes if "taken for a class" in note]
    assert "'-1' is taken for a class (2 nodes)" in note


# Data frames of polars


class PolarsType:
    """A dtype that knows nothing of numpy's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class PolarsColumn:
    def __init__(self, values: Any) -> None:
        self.values = np.array(values)
        names = {"f": "Float64", "i": "Int64", "b": "Boolean", "U": "String"}
        self.dtype = PolarsType(names[self.values.dtype.kind])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values.astype(dtype or self.values.dtype)


class PolarsFrame:
    """As much of a polars frame as is looked at; its to_numpy takes no dtype."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.data = {name: PolarsColumn(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.dtypes = [column.dtype for column in self.data.values()]
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name: str) -> PolarsColumn:
        return self.data[name]

    def to_numpy(self) -> Any:
        kinds = {column.values.dtype.kind for column in self.data.values()}
        kind: Any = object if "U" in kinds else np.float64
        return np.stack([c.values.astype(kind) for c in self.data.values()], axis=1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        made = self.to_numpy()
        return made.astype(dtype or made.dtype)


def test_a_frame_of_polars_is_read() -> None:
    columns: dict[str, Any] = {"c0": [0.5, 2.0, 3.0], "c1": [1, 2, 3]}
    columns["c2"] = [True, False, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = as_features(PolarsFrame(columns), "X")
    assert x.dtype == torch.float32
    assert x.tolist() == [[0.5, 1, 1], [2, 2, 0], [3, 3, 1]]
    data = to_data(PolarsFrame(columns), [0, 1, 0], n_neighbors=1)
    assert torch.equal(data.x, x)


def test_a_frame_of_polars_is_checked() -> None:
    with pytest.raises(
        InputError, match="X, column 'c1' has dtype String: expected re"
    ):
        as_features(PolarsFrame({"c0": [0.5, 1], "c1": ["a", "b"]}), "X")
    with pytest.raises(InputError, match=r"X has a NaN .* node 1, column 0"):
        as_features(PolarsFrame({"c0": [0.5, np.nan], "c1": [1, 2]}), "X")
    columns = {"c0": [0.5, 1.0], "when": [START, START + 50]}
    with pytest.warns(UserWarning, match="X, column 'when': .*single precision"):
        as_features(PolarsFrame(columns), "X")
