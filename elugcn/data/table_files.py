"""Table files: opened, read, and the place of a row named as the user sees it."""

import csv
import gzip
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from elugcn.errors import InputError

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
# Bytes that are parsed at once. A line must fit into two blocks, the header into one.
_BLOCKS = (2**20, 2**25, 2**30)


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
            _refuse_other_kinds(path)
            if path.name.lower().endswith(".parquet"):
                names = pa_parquet.ParquetFile(path).schema_arrow.names
            else:
                names = _with_room(path, lambda room: _header(path, room))
        except (pa.ArrowInvalid, OSError, EOFError, UnicodeError) as error:
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
        raise InputError(
            f"{self.path}: no column {name!r} ({option}); the file has: {shown}"
            + self.separator_hint
        )

    @property
    def delimiter(self) -> str | None:
        """What stands between cells; None in Parquet."""
        if self.path.name.lower().endswith(".parquet"):
            return None
        return str(_dialect(self.path).delimiter)

    @property
    def separator_hint(self) -> str:
        """What to say of a file with one column whose name looks like several."""
        if len(self.names) != 1 or not any(mark in self.names[0] for mark in ",;\t|"):
            return ""
        between = "tabs" if self.delimiter == "\t" else "commas"
        return f" (is it separated by {between}?)"

    def find(self, name: str | None, option: str, usual: Sequence[str]) -> str | None:
        """The column the user named, else one with a usual name, else None."""
        if name is not None:
            return self.require(name, option)
        lower = {column.lower(): column for column in reversed(self.names)}
        return next((lower[name] for name in usual if name in lower), None)

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
            return _with_room(
                self.path,
                lambda room: pa_csv.read_csv(
                    str(self.path),
                    read_options=room,
                    parse_options=parse,
                    convert_options=convert,
                ),
            )
        except (pa.ArrowInvalid, OSError, EOFError, UnicodeError) as error:
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


def _first_wrong_line(path: Path) -> int:
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def _lines(path: Path, rows: Sequence[int]) -> list[int]:
    """Blank lines and line breaks in quotes make line and row drift apart."""
    wanted, found = set(rows), {}
    for row, (line, _) in enumerate(_records(path), start=-1):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return [found.get(row, row + 2) for row in rows]


def _header(path: Path, room: pa_csv.ReadOptions) -> list[str]:
    with pa_csv.open_csv(
        str(path), read_options=room, parse_options=_dialect(path)
    ) as reader:
        names: list[str] = reader.schema.names
        return names


def _with_room(path: Path, read: Callable[[pa_csv.ReadOptions], Any]) -> Any:
    """Read in blocks of the usual size, or, where a line is longer, in larger ones."""
    *usual, largest = _BLOCKS
    for size in usual if path.stat().st_size else ():
        try:
            return read(pa_csv.ReadOptions(block_size=size))
        except pa.ArrowInvalid as error:
            if not any(words in str(error) for words in ("straddl", "or block")):
                raise
    return read(pa_csv.ReadOptions(block_size=largest))


def _refuse_other_kinds(path: Path) -> None:
    """Say of a file by its first bytes that it is not what its name says."""
    with path.open("rb") as file:
        head = file.read(64)
    start, name = head[:2], path.name.lower()
    if start in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path}: is UTF-16; save it as CSV in UTF-8")
    if start == b"\x1f\x8b" and not name.endswith(".gz"):
        raise InputError(f"{path}: is compressed; call it {path.name}.gz")
    if start == b"PK" and b"\0" in head:
        raise InputError(f"{path}: is a workbook or archive; save it as CSV in UTF-8")


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).splitlines()[0]
    if "UTF8" in reason or isinstance(error, UnicodeError):
        line = _first_wrong_line(path)
        return InputError(f"{path}, line {line}: is not UTF-8; save it as CSV in UTF-8")
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
