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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from elugcn.errors import InputError

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Bytes that are parsed at once. A line must fit into two blocks.
_BLOCKS = (2**20, 2**25, 2**30)


@dataclass(frozen=True)
class TableFile:
    """A CSV, TSV or Parquet file whose header has been read.

    Attributes:
        path: The file.
        names: Its column names in order, without surrounding blanks.
        header_lines: Lines of a CSV file up to the end of its header.
    """

    path: Path
    names: tuple[str, ...]
    header_lines: int = 0

    @classmethod
    def open(cls, path: str | Path, argument: str) -> "TableFile":
        """Read the header; ``argument`` is what messages call the file."""
        path = Path(path)
        if not path.name.lower().endswith(SUFFIXES):
            raise InputError(
                f"{argument} file {path}: unknown kind, expected one of "
                f"{', '.join(SUFFIXES)}"
            )
        if not path.is_file():
            raise InputError(f"{argument} file not found: {path}")
        with _one_line_errors(path):
            _refuse_other_kinds(path)
            if _is_parquet(path):
                names, last = pa_parquet.ParquetFile(path).schema_arrow.names, 0
            else:
                _, last, names = next(_records(path), (0, 0, []))
            file = cls(path, tuple(name.strip() for name in names), last)
            file._check_header()
        return file

    @property
    def separator(self) -> str | None:
        """What separates cells; None in Parquet."""
        if _is_parquet(self.path):
            return None
        return "\t" if ".tsv" in self.path.name.lower() else ","

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns that are no data: row numbers of pandas, empty ones of Excel."""
        marks = ("__index_level_", "Unnamed: ")
        return tuple(n for n in self.names if not n or n.startswith(marks))

    @property
    def separator_hint(self) -> str:
        """What to add to a message if the cells seem separated by something else."""
        if len(self.names) != 1 or self.separator is None:
            return ""
        found = max(_SEPARATORS, key=self.names[0].count)
        if self.separator in self.names[0] or found not in self.names[0]:
            return ""
        suffix = {",": ", or name it .csv", "\t": ", or name it .tsv"}.get(found, "")
        return (
            f" (cells look separated by {_SEPARATORS[found]}; expected "
            f"{_SEPARATORS[self.separator]}{suffix})"
        )

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return bool(name.strip()) and name.strip() in self.names

    def require(self, name: str, argument: str) -> str:
        """The column of this name, or an error that lists the columns there are."""
        if self.has(name):
            return name.strip()
        shown = ", ".join(map(repr, self.names[:10]))
        more = ", ..." if len(self.names) > 10 else ""
        raise InputError(
            f"{self.path}: no column {name!r} ({argument}); the file has: {shown}{more}"
            f"{self.separator_hint}"
        )

    def find(self, name: str | None, argument: str, usual: Sequence[str]) -> str | None:
        """The column that the user named, else one with a usual name, else None."""
        if name is not None:
            return self.require(name, argument)
        lower = {column.lower(): column for column in reversed(self.names)}
        return next((lower[name] for name in usual if name in lower), None)

    def read(self, columns: Sequence[str], text: Container[str] = ()) -> pa.Table:
        """Read some columns; those in ``text`` as the strings that a CSV file has."""
        with _one_line_errors(self.path):
            at = [self.names.index(name) for name in columns]
            if _is_parquet(self.path):
                file = pa_parquet.ParquetFile(self.path)
                table = file.read(columns=[file.schema_arrow.names[i] for i in at])
            else:
                table = self._read_csv(at, [i for i in at if self.names[i] in text])
            return table.rename_columns(list(columns))

    def place(self, *rows: int) -> str:
        """Where rows (from 0) are: lines of a CSV file as an editor counts them."""
        if _is_parquet(self.path):
            found, word = {row: row + 1 for row in rows}, "row"
        else:
            # Blank lines and line breaks in quotes set rows and lines apart.
            records = enumerate(_records(self.path), start=-1)
            found = {row: line for row, (line, *_) in records if row in rows}
            word = "line"
        numbers = " and ".join(str(found.get(row, row + 2)) for row in rows)
        return f"{self.path}, {word}{'s' if len(rows) > 1 else ''} {numbers}"

    def _read_csv(self, at: Sequence[int], text: Sequence[int]) -> pa.Table:
        """Read columns by their position: names may be missing or repeated."""
        everything = [str(i) for i in range(len(self.names))]
        convert = pa_csv.ConvertOptions(
            include_columns=[str(i) for i in at],
            column_types={str(i): pa.large_string() for i in text},
        )
        parse = pa_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True)
        for size in _BLOCKS:
            options = pa_csv.ReadOptions(
                block_size=size, skip_rows=self.header_lines, column_names=everything
            )
            try:
                with _stream(self.path) as stream:
                    table = pa_csv.read_csv(stream, options, parse, convert)
                break
            except pa.ArrowInvalid as error:
                too_long = any(w in str(error) for w in ("straddl", "block size"))
                if "Could not skip" in str(error) and size == _BLOCKS[-1]:
                    # A header without a line break after it.
                    return pa.table({str(i): pa.nulls(0) for i in at})
                if not too_long or size == _BLOCKS[-1]:
                    raise
        # What is not UTF-8 is read as bytes where no type was asked for.
        if any(is_kind(kind, "binary") for kind in table.schema.types):
            raise UnicodeError
        return table

    def _check_header(self) -> None:
        if not self.names:
            raise InputError(f"{self.path}: the file is empty")
        "".join(self.names).encode()  # UnicodeError where it is not UTF-8
        line = (self.separator or "").join(self.names)
        if re.fullmatch(r"sep=.?", line, re.IGNORECASE):
            other = line[4:] not in ("", self.separator)
            aside = f", and save with {_SEPARATORS[self.separator or ',']}"
            raise InputError(
                f"{self.path}, line 1: {line!r} is the separator line of Excel, "
                f"expected the header: delete it{aside if other else ''}"
            )
        for name, count in sorted(Counter(self.names).items()):
            if count > 1 and (name or self.separator is None):
                raise InputError(f"{self.path}: duplicate column name {name!r}")
        nameless = [i for i, name in enumerate(self.names) if not name]
        if len(nameless) < 2:
            return  # one may hold cells: the row numbers of pandas
        for i, cells in zip(nameless, self._read_csv(nameless, nameless), strict=True):
            text = pc.utf8_trim_whitespace(cells.cast(pa.large_string()))
            row = pc.index(pc.not_equal(text, ""), True).as_py()
            if row >= 0:
                raise InputError(
                    f"{self.place(row)}, column {i + 1}: {text[row].as_py()!r} is in "
                    "one of several columns without a name; name them or clear the cell"
                )


def is_kind(kind: pa.DataType, *families: str) -> bool:
    """Whether a type of Arrow is one of some families, whatever its width."""
    wanted = rf"(large_)?({'|'.join(families)})(_view)?(\d+\(.*\))?"
    return re.fullmatch(wanted, str(kind)) is not None


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _stream(path: Path) -> Any:
    return pa.input_stream(str(path), compression="gzip" if _is_gzip(path) else None)


def _open(path: Path, mode: str, **options: Any) -> Any:
    opener: Any = gzip.open if _is_gzip(path) else open
    return opener(path, mode, **options)


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _records(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """First line, last line and cells of each record; for headers and messages."""
    options = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    with _open(path, "rt", **options) as file:
        # A quote that is not closed makes one cell of the rest of the file.
        usual = csv.field_size_limit(2**31 - 1)
        try:
            separator = "\t" if ".tsv" in path.name.lower() else ","
            reader = csv.reader(file, delimiter=separator)
            line = 1
            for cells in reader:
                if cells:
                    yield line, reader.line_num, cells
                line = reader.line_num + 1
        finally:
            csv.field_size_limit(usual)


def _refuse_other_kinds(path: Path) -> None:
    """Refuse a file whose first bytes are those of another kind than its name says."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        name = str(path).encode("utf-8", "backslashreplace").decode()
        raise InputError(f"{name}: the file name is not UTF-8; rename it") from None
    with path.open("rb") as file:
        head = file.read(64)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: is UTF-16; save it as CSV in UTF-8")
    if head[:2] == b"\x1f\x8b" and not _is_gzip(path):
        raise InputError(f"{path}: is compressed; name it {path.name}.gz")
    if head[:2] == b"PK" and b"\0" in head:
        raise InputError(f"{path}: is a workbook or archive; save it as CSV in UTF-8")


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """Turn what a reader raises into one line, with the place where it is known."""
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    if isinstance(error, UnicodeError) or "UTF8" in reason:
        with _open(path, "rb") as file:
            wrong = (n for n, raw in enumerate(file, start=1) if not _is_utf8(raw))
            line = next(wrong, 1)
        return InputError(f"{path}, line {line}: is not UTF-8; save it as CSV in UTF-8")
    if "columns, got" in reason:
        header = None
        for line, last, cells in _records(path):
            header = header or cells
            if len(cells) != len(header):
                hint = TableFile(path, tuple(header)).separator_hint
                hint = "; is a quote not closed?" if last > line else hint
                return InputError(
                    f"{path}, line {line}: {len(cells)} cells, expected {len(header)} "
                    f"as in the header{hint}"
                )
    return InputError(f"{path}: cannot be read: {reason}")
