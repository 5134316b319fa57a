"""Table files: CSV and TSV (plain or .gz) and Parquet, read with pyarrow.

Files come from anywhere. Whatever is wrong with one is said in one line that names the
file and, where possible, the line as an editor counts it.
"""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
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
ENCODE_FIRST = (
    "encode it first (e.g. TF-IDF or embeddings, one number per column) or leave it out"
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Bytes that are parsed at once. A line must fit into a block.
_BLOCK_SIZE = 2**26
_READ_ERRORS = (pa.ArrowException, csv.Error, zlib.error, EOFError, OSError)


class Table:
    """A table file. Opening it reads the header, ``read`` reads columns.

    ``names`` are those of its columns, without surrounding blanks.
    """

    def __init__(self, path: str | Path, argument: str) -> None:
        """Read the header; ``argument`` is what messages call the file."""
        self.path, self.rows = Path(path), 0
        name = self.path.name.lower()
        if not name.endswith(SUFFIXES):
            raise InputError(
                f"{argument} file {path}: unknown kind, expected one of "
                f"{', '.join(SUFFIXES)}"
            )
        if not self.path.is_file():
            raise InputError(f"{argument} file not found: {path}")
        self._gzip = name.endswith(".gz")
        self._parquet = name.endswith(".parquet")
        self._separator = "\t" if ".tsv" in name else ","
        self._cells: dict[str, pa.ChunkedArray] = {}
        with self._one_line_errors():
            self._refuse_other_kinds()
            if self._parquet:
                self._stored = pa_parquet.ParquetFile(self.path).schema_arrow.names
            else:
                records = self._records()
                _, self._header_lines, self._stored = next(records, (0, 0, []))
                self._header_only = next(records, None) is None
            self.names = tuple(name.strip() for name in self._stored)
            "".join(self.names).encode()  # UnicodeError where it is not UTF-8
            self._check_header()

    # Columns

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns without a name: row numbers of pandas, empty columns of Excel."""
        marks = ("__index_level_", "Unnamed: ")
        return tuple(n for n in self.names if not n or n.startswith(marks))

    def require(self, name: str, argument: str) -> str:
        """The column of this name, or an error that lists the columns there are."""
        if (stripped := name.strip()) and stripped in self.names:
            return stripped
        raise self.error(f"no column {name!r} ({argument}); the file has: {self.shown}")

    @property
    def shown(self) -> str:
        """The columns for a message, and what they seem to be separated by."""
        more = ", ..." if len(self.names) > 10 else ""
        return ", ".join(map(repr, self.names[:10])) + more + self._hint

    def find(self, usual: Sequence[str | None]) -> str | None:
        """The first column with one of these names, in whatever case, or None."""
        lower = {column.lower(): column for column in reversed(self.names)}
        return next((lower[n.lower()] for n in usual if n and n.lower() in lower), None)

    def read(self, columns: Sequence[str], text: Container[str] = ()) -> None:
        """Read some columns; those in ``text`` as the strings that a CSV file has."""
        position = {name: i for i, name in enumerate(self.names)}
        at = [position[name] for name in columns]
        with self._one_line_errors():
            if self._parquet:
                keys = [self._stored[i] for i in at]
                table = pa_parquet.ParquetFile(self.path).read(columns=keys)
            else:
                keys = [str(i) for i in at]
                table = self._read_csv(at, [i for i in at if self.names[i] in text])
        self.rows = table.num_rows
        for name, key in zip(columns, keys, strict=True):
            cells = table.column(key)
            coded = pa.types.is_dictionary(cells.type)
            self._cells[name] = cells.cast(cells.type.value_type) if coded else cells

    # Cells

    def holds_text(self, name: str) -> bool:
        """Whether a column holds strings."""
        return _is_kind(self._cells[name].type, "string")

    def text(self, name: str, breaks: bool = False) -> pa.Array:
        """Strings or integers as trimmed strings, "" where a cell is empty.

        Line breaks in a CSV file are refused unless ``breaks``: a quote that is not
        closed swallows the lines below.
        """
        cells = self._cells[name]
        if pa.types.is_floating(cells.type):
            # pandas turns integers with gaps into floats: 1.0 is a label 1.
            cells = pc.if_else(pc.is_nan(cells), None, cells)
            try:
                cells = cells.cast(pa.int64())
            except pa.ArrowInvalid:
                expected = "expected strings or integers"
                raise self.error(f"holds decimals: {expected}", name) from None
        if not _is_kind(cells.type, "string", "u?int", "bool", "null"):
            problem = f"has type {cells.type}: expected strings or integers"
            raise self.error(problem, name)
        try:
            strings = cells.cast(pa.large_string()).fill_null("")
            text = pc.utf8_trim_whitespace(strings).combine_chunks()
        except pa.ArrowInvalid:  # bytes that Parquet calls a string
            raise self.error("is not UTF-8", name) from None
        if not breaks and not self._parquet:
            problem = "the cell continues on the next line; is a quote not closed?"
            self.refuse(name, pc.match_substring_regex(text, r"[\r\n]"), problem)
        return text

    def numbers(self, name: str, missing: bool = True) -> NDArray[np.float64]:
        """Numbers and booleans in double precision, NaN where a cell is empty.

        Without ``missing`` empty cells and NaN are refused.
        """
        cells = self._cells[name]
        if self.holds_text(name):
            raise self.not_a_number(name)
        if _is_kind(cells.type, "bool"):
            cells = cells.cast(pa.int8())
        elif _is_kind(cells.type, "decimal", "null"):
            cells = cells.cast(pa.float64())
        elif not _is_kind(cells.type, "u?int", "double", "float", "halffloat"):
            problem = f"has type {cells.type}: expected numbers; {ENCODE_FIRST}"
            raise self.error(problem, name)
        values: NDArray[np.float64] = cells.to_numpy().astype(np.float64)
        if not missing:
            self.refuse(name, np.isnan(values), "empty cell or NaN, expected a number")
        too_large = np.abs(values) > np.finfo(np.float32).max
        self.refuse(name, too_large, "{} is not a finite number (float32)")
        return values

    # Messages

    def refuse(self, name: str, wrong: Any, problem: str) -> None:
        """Refuse the first row that is wrong; {} in the message is its cell."""
        rows = np.flatnonzero(wrong)
        if len(rows):
            cell = self._cells[name][int(rows[0])].as_py()
            raise self.error(problem.format(cell), name, int(rows[0]))

    def error(
        self, message: str, name: str | int | None = None, *rows: int
    ) -> InputError:
        """The error that names the file, the lines (of rows from 0) and the column."""
        if not rows:
            column = "" if name is None else f"column {name!r} "
            return InputError(f"{self.path}: {column}{message}")
        column = "" if name is None else f", column {name!r}"
        word = ("row" if self._parquet else "line") + "s" * (len(rows) > 1)
        lines = " and ".join(str(self._line(row)) for row in rows)
        return InputError(f"{self.path}, {word} {lines}{column}: {message}")

    def not_a_number(self, name: str) -> InputError:
        """The error that names the first string that is not a number."""
        cells = self._cells[name].to_pylist()
        row = next((i for i, c in enumerate(cells) if c and not is_number(c)), None)
        if row is None:
            return self.error("holds strings, expected numbers", name)
        problem = f"{cells[row]!r} is not a number; numbers are written as 1234.5"
        return self.error(problem, name, row)

    def _line(self, row: int) -> int:
        if self._parquet:
            return row + 1
        # Blank lines and line breaks in quotes set rows and lines apart.
        records = enumerate(self._records(), start=-1)
        return next((line for i, (line, *_) in records if i == row), row + 2)

    @property
    def _hint(self) -> str:
        """What to add to a message if the cells seem separated by something else."""
        if len(self.names) != 1 or self._parquet or self._separator in self.names[0]:
            return ""
        found = max(_SEPARATORS, key=self.names[0].count)
        if found not in self.names[0]:
            return ""
        suffix = {",": ", or name it .csv", "\t": ", or name it .tsv"}.get(found, "")
        wanted = f"expected {_SEPARATORS[self._separator]}{suffix}"
        return f" (cells look separated by {_SEPARATORS[found]}; {wanted})"

    # Reading

    def _open(self, mode: str, **options: Any) -> Any:
        opener: Any = gzip.open if self._gzip else open
        return opener(self.path, mode, **options)

    def _records(self) -> Iterator[tuple[int, int, list[str]]]:
        """First line, last line and cells of each record; for headers and messages."""
        options = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
        with self._open("rt", **options) as file:
            # A quote that is not closed makes one cell of the rest of the file.
            usual = csv.field_size_limit(2**31 - 1)
            try:
                reader = csv.reader(file, delimiter=self._separator)
                line = 1
                for cells in reader:
                    if cells:
                        yield line, reader.line_num, cells
                    line = reader.line_num + 1
            finally:
                csv.field_size_limit(usual)

    def _read_csv(self, at: Sequence[int], text: Sequence[int]) -> pa.Table:
        """Read columns by their position: names may be missing or repeated."""
        if self._header_only:
            return pa.table({str(i): pa.nulls(0) for i in at})
        convert = pa_csv.ConvertOptions(
            include_columns=[str(i) for i in at],
            column_types={str(i): pa.large_string() for i in text},
        )
        parse = pa_csv.ParseOptions(delimiter=self._separator, newlines_in_values=True)
        options = pa_csv.ReadOptions(
            block_size=_BLOCK_SIZE,
            skip_rows=self._header_lines,
            column_names=[str(i) for i in range(len(self.names))],
        )
        kind = "gzip" if self._gzip else None
        with pa.input_stream(str(self.path), compression=kind) as stream:
            table = pa_csv.read_csv(stream, options, parse, convert)
        # What is not UTF-8 is read as bytes where no type was asked for.
        if any(_is_kind(kind, "binary") for kind in table.schema.types):
            raise UnicodeError
        return table

    def _check_header(self) -> None:
        if not self.names:
            raise self.error("the file is empty")
        line = self._separator.join(self.names)
        if not self._parquet and re.fullmatch("(?i)sep=.?", line):
            problem = f"{line!r} is the separator line of Excel; delete it"
            raise self.error(problem, None, -1)
        for name, count in Counter(self.names).items():
            if count > 1 and (name or self._parquet):
                raise self.error(f"duplicate column name {name!r}")
        nameless = [i for i, name in enumerate(self.names) if not name]
        if len(nameless) < 2:
            return  # one may hold cells: the row numbers of pandas
        table = self._read_csv(nameless, nameless)
        for i, cells in zip(nameless, table.columns, strict=True):
            text = pc.utf8_trim_whitespace(cells.cast(pa.large_string()))
            row = pc.index(pc.not_equal(text, ""), True).as_py()
            if row >= 0:
                found = f"{text[row].as_py()!r} is in one of several columns"
                problem = f"{found} without a name; name them or clear the cell"
                raise self.error(problem, i + 1, row)

    def _refuse_other_kinds(self) -> None:
        """Refuse a file whose first bytes are of another kind than its name says."""
        try:
            str(self.path).encode()
        except UnicodeEncodeError:
            name = str(self.path).encode("utf-8", "backslashreplace").decode()
            raise InputError(f"{name}: the file name is not UTF-8; rename it") from None
        with self.path.open("rb") as file:
            head = file.read(64)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise self.error("is UTF-16; save it as CSV in UTF-8")
        if head[:2] == b"\x1f\x8b" and not self._gzip:
            raise self.error(f"is compressed; name it {self.path.name}.gz")
        if head[:2] == b"PK" and b"\0" in head:
            raise self.error("is a workbook or archive; save it as CSV in UTF-8")

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """Turn what a reader raises into one line, with the place where it is known."""
        try:
            yield
        except InputError:
            raise
        except (*_READ_ERRORS, UnicodeError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> InputError:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        if isinstance(error, UnicodeError) or "UTF8" in reason:
            with self._open("rb") as file:
                right = [raw.decode(errors="ignore").encode() == raw for raw in file]
            wrong = right.index(False) + 1 if False in right else 1
            problem = "is not UTF-8; save it as CSV in UTF-8"
            return InputError(f"{self.path}, line {wrong}: {problem}")
        if "columns, got" in reason:
            for line, last, cells in self._records():
                if len(cells) != len(self.names):
                    hint = "; is a quote not closed?" if last > line else self._hint
                    return InputError(
                        f"{self.path}, line {line}: {len(cells)} cells, expected "
                        f"{len(self.names)} as in the header{hint}"
                    )
        return self.error(f"cannot be read: {reason}")


def is_number(cell: str) -> bool:
    """Whether a cell is a number to Python and to Arrow: not 1_000, not ١٢."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def _is_kind(kind: pa.DataType, *families: str) -> bool:
    """Whether a type of Arrow is one of some families, whatever its width."""
    wanted = rf"(large_)?({'|'.join(families)})(_view)?\d*(\(.*\))?"
    return re.fullmatch(wanted, str(kind)) is not None
