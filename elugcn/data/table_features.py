"""Table files and their columns: read, checked and encoded as numbers."""

import csv
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

from elugcn.errors import InputError

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
# A column of strings with more values than this is text, not a category.
MOST_CATEGORIES = 100
# From this many rows on, a column that is nearly unique per row is text too.
ROWS_TO_JUDGE = 20
HINT = (
    "encode it first (e.g. TF-IDF or embeddings, one number per column) or leave it out"
)


@dataclass(frozen=True)
class TableFile:
    """A CSV, TSV or Parquet file: its columns by name and where its rows are.

    Attributes:
        path: The file, as the user named it.
        names: Its column names in order.
    """

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path, option: str) -> "TableFile":
        """Look at the header only.

        Args:
            path: File with one of the known suffixes.
            option: What the user calls this file, for the message.
        """
        path = Path(path)
        if not path.name.lower().endswith(SUFFIXES):
            raise InputError(
                f"{option} file {path}: unknown kind, expected one of "
                f"{', '.join(SUFFIXES)}"
            )
        if not path.is_file():
            raise InputError(f"{option} file {path}: does not exist or is no file")
        try:
            if path.name.lower().endswith(".parquet"):
                names = pa_parquet.ParquetFile(path).schema_arrow.names
            else:
                with pa_csv.open_csv(str(path), parse_options=_dialect(path)) as reader:
                    names = reader.schema.names
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            raise _unreadable(path, error) from error
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"{path}: column {twice[0]!r} is there more than once")
        return cls(path, tuple(names))

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns pandas writes for its index: row numbers, not data."""
        marks = ("__index_level_", "Unnamed: ")
        return tuple(
            name for name in self.names if not name.strip() or name.startswith(marks)
        )

    def require(self, name: str, option: str) -> str:
        """Return the column name, or say which columns there are."""
        if name in self.names:
            return name
        shown = ", ".join(map(repr, self.names[:10])) + (
            ", ..." if len(self.names) > 10 else ""
        )
        one = len(self.names) == 1 and any(mark in self.names[0] for mark in ";\t|")
        raise InputError(
            f"{self.path}: no column {name!r} ({option}); the file has: {shown}"
            + (" (is it separated by commas?)" if one else "")
        )

    def read(self, columns: Sequence[str], text: Iterable[str] = ()) -> pa.Table:
        """Read some columns, those in ``text`` as the strings in the file."""
        try:
            if self.path.name.lower().endswith(".parquet"):
                return pa_parquet.ParquetFile(self.path).read(columns=list(columns))
            parse = _dialect(self.path)
            convert = pa_csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: pa.large_string() for name in text},
            )
            return pa_csv.read_csv(
                str(self.path), parse_options=parse, convert_options=convert
            )
        except (pa.ArrowInvalid, OSError, EOFError) as error:
            raise _unreadable(self.path, error) from error

    def place(self, *rows: int) -> str:
        """Where rows (from 0) are: lines of a CSV file as an editor counts them."""
        if self.path.name.lower().endswith(".parquet"):
            found, word = [row + 1 for row in rows], "row"
        else:
            found, word = _lines(self.path, rows), "line"
        numbers = " and ".join(str(number) for number in found)
        return f"{self.path}, {word}{'s' if len(rows) > 1 else ''} {numbers}"


def _dialect(path: Path) -> pa_csv.ParseOptions:
    tabs = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    return pa_csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True)


def _records(path: Path) -> Iterable[tuple[int, list[str]]]:
    """First line and cells of each record; a loop, only for messages."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=_dialect(path).delimiter)
        line = 1
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1


def _lines(path: Path, rows: Sequence[int]) -> list[int]:
    """Blank lines and line breaks in quotes make line and row drift apart."""
    wanted, found = set(rows), {}
    for row, (line, _) in enumerate(_records(path), start=-1):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return [found.get(row, row + 2) for row in rows]


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).splitlines()[0]
    if "columns, got" in reason:
        expected = None
        for line, cells in _records(path):
            expected = expected or len(cells)
            if len(cells) != expected:
                return InputError(
                    f"{path}, line {line}: {len(cells)} cells, expected {expected} "
                    "as in the header"
                )
    return InputError(f"{path}: cannot be read: {reason}")


def text_of(column: pa.ChunkedArray, name: str, file: TableFile) -> pa.Array:
    """Ids or labels as trimmed strings, "" where there is none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_floating(kind):
        # pandas turns integers with gaps into floats: 1.0 is a label 1.
        column = pc.if_else(pc.is_nan(column), None, column)
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InputError(
                f"{file.path}: column {name!r} holds decimals: expected strings or "
                "integers"
            ) from error
    elif not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected strings or "
            "integers"
        )
    strings = column.cast(pa.large_string()).combine_chunks()
    if isinstance(strings, pa.ChunkedArray):
        strings = pa.concat_arrays(strings.chunks)
    return pc.utf8_trim_whitespace(strings.fill_null(""))


def numbers_of(
    column: pa.ChunkedArray, name: str, file: TableFile
) -> NDArray[np.float32]:
    """A column as finite float32; the first cell that is none is named."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if is_text(kind):
        raise _not_a_number(column, name, file)
    if column.null_count or pa.types.is_null(kind):
        row = pc.index(column.is_null(), True).as_py() if len(column) else 0
        raise InputError(
            f"{file.place(row)}, column {name!r}: empty cell or NaN, expected a number"
        )
    if not is_number(kind):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected numbers; {HINT}"
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    with np.errstate(over="ignore"):
        values: NDArray[np.float32] = column.to_numpy().astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(finite.argmin())
        raise InputError(
            f"{file.place(row)}, column {name!r}: {column[row].as_py()} is not a "
            "finite number (float32)"
        )
    return values


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type is taken as numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def looks_numeric(cell: str) -> bool:
    """Whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _not_a_number(column: pa.ChunkedArray, name: str, file: TableFile) -> InputError:
    for row, cell in enumerate(column.to_pylist()):
        if cell is None or not looks_numeric(cell):
            return InputError(
                f"{file.place(row)}, column {name!r}: {cell or ''!r} is not a number"
            )
    return InputError(f"{file.path}: column {name!r} holds strings, expected numbers")


def describe_columns(
    table: pa.Table, names: Sequence[str], file: TableFile
) -> list[dict[str, Any]]:
    """Decide for each column how it is encoded.

    Returns:
        For each column ``{"name", "kind": "number"}`` or ``{"name", "kind":
        "category", "categories": [...]}``.
    """
    columns: list[dict[str, Any]] = []
    for name in names:
        column = table.column(name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not is_text(kind):
            # Other types are refused, with the cell or the type, on encoding.
            columns.append({"name": name, "kind": "number"})
            continue
        values = pc.unique(text_of(column, name, file)).to_pylist()
        values = sorted(value for value in values if value)
        if not values:
            raise InputError(f"{file.path}: column {name!r} is empty; leave it out")
        # Numbers with a slip among them are no categories; say where the slip is.
        odd = len(values) - sum(map(looks_numeric, values))
        if odd and len(values) > 2 and (odd == 1 or odd <= 0.1 * len(values)):
            raise _not_a_number(column, name, file)
        rows = len(column)
        unique = rows >= ROWS_TO_JUDGE and len(values) > rows / 2
        if len(values) > MOST_CATEGORIES or unique:
            raise InputError(
                f"{file.path}: column {name!r} is text ({len(values):,} different "
                f"values in {rows:,} rows): {HINT}"
            )
        columns.append({"name": name, "kind": "category", "categories": values})
    return columns


def encode_columns(
    table: pa.Table, columns: Sequence[dict[str, Any]], file: TableFile
) -> tuple[NDArray[np.float32], list[str], list[str]]:
    """Encode columns as they were described.

    A cell that is empty or holds a category never seen has zeros for all.

    Returns:
        The matrix [n, d], the names of its columns, and a sentence for each
        column with categories never seen.
    """
    names = feature_names(columns)
    matrix = np.zeros((table.num_rows, len(names)), dtype=np.float32)
    alerts, at = [], 0
    for column in columns:
        name, cells = column["name"], table.column(column["name"])
        if column["kind"] == "number":
            matrix[:, at] = numbers_of(cells, name, file)
            at += 1
            continue
        text = text_of(cells, name, file)
        categories = pa.array(column["categories"], pa.large_string())
        codes = pc.index_in(text, value_set=categories).fill_null(-1).to_numpy()
        rows = np.flatnonzero(codes >= 0)
        matrix[rows, at + codes[rows]] = 1
        at += len(categories)
        unseen = np.flatnonzero((codes < 0) & (pc.binary_length(text).to_numpy() > 0))
        if len(unseen):
            first = int(unseen[0])
            alerts.append(
                f"{file.path}: column {name!r} holds values never seen in training in "
                f"{len(unseen):,} rows, e.g. {text[first].as_py()!r}: encoded as zeros"
            )
    return matrix, names, alerts


def feature_names(columns: Sequence[dict[str, Any]]) -> list[str]:
    """Names of the encoded columns: "age", "colour=red", ..."""
    names: list[str] = []
    for column in columns:
        if column["kind"] == "number":
            names.append(column["name"])
        else:
            names += [f"{column['name']}={value}" for value in column["categories"]]
    return names
