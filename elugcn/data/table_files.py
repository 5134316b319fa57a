"""Table files: opened, read, and the place of a row named as the user sees it."""

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from elugcn.errors import InputError

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
# What may stand between cells, and what it is called.
_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
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
                _refuse_separator_line(path)
                names = _with_room(path, lambda room: _header(path, room))
                _refuse_nameless_cells(path, names)
        except (pa.ArrowInvalid, OSError, EOFError, UnicodeError) as error:
            raise _unreadable(path, error) from error
        _refuse_repeats(path, names)
        return cls(path, tuple(names))

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns that are no data: row numbers of pandas, ghosts of a spreadsheet."""
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
        return "" if self.delimiter is None else _hint(self.path, self.names)

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
            table: pa.Table = _with_room(
                self.path,
                lambda room: pa_csv.read_csv(
                    str(self.path),
                    read_options=room,
                    parse_options=parse,
                    convert_options=convert,
                ),
            )
            # What no type was asked for is taken for bytes where it is not UTF-8.
            if any(_is_bytes(kind) for kind in table.schema.types):
                raise UnicodeError("not UTF-8")
            return table
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


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _hint(path: Path, header: Sequence[str]) -> str:
    """What to say of a header of one cell that looks like several."""
    expected = str(_dialect(path).delimiter)
    if len(header) != 1 or expected in header[0]:
        return ""
    found = max(_MARKS, key=header[0].count)
    if found not in header[0]:
        return ""
    return f" ({_looks(found, expected)})"


def _looks(found: str, expected: str) -> str:
    # The name of the file says what is between its cells.
    suffix = {",": ".csv", "\t": ".tsv"}.get(found)
    other = f", or call it {suffix}" if suffix else ""
    return f"it looks separated by {_MARKS[found]}; expected {_MARKS[expected]}{other}"


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


def _refuse_separator_line(path: Path) -> None:
    """Excel writes sep=; before the header, and reads it; nobody else does."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as file:
            line = file.readline(64)
    except zlib.error:
        return  # The reader says what is wrong with the archive.
    found = re.fullmatch(r'"?sep=(.)"?\s*', line, re.IGNORECASE)
    if found is None:
        return
    mark, expected = found[1], str(_dialect(path).delimiter)
    other = mark != expected and mark in _MARKS
    raise InputError(
        f"{path}, line 1: {line.strip()!r} is the separator line of Excel, expected "
        "the header: delete this line"
        + (f" ({_looks(mark, expected)})" if other else "")
    )


def _refuse_repeats(path: Path, names: Sequence[str]) -> None:
    """Refuse names that are there twice, but for ghosts, which nobody asks for."""
    ghosts = not path.name.lower().endswith(".parquet")
    for name, count in sorted(Counter(names).items()):
        if count > 1 and not (ghosts and not name.strip()):
            raise InputError(f"{path}: column {name!r} is there more than once")


def _refuse_nameless_cells(path: Path, names: Sequence[str]) -> None:
    """Several columns without a name must be empty, as a spreadsheet leaves them.

    One may hold cells: pandas writes its row numbers so.
    """
    at = [column for column, name in enumerate(names) if not name.strip()]
    if len({names[column] for column in at}) == len(at):
        return
    # The same name twice can't be asked for, so they are read by number, and the
    # header, in which they are empty too, as a row.
    numbers = [f"f{column}" for column in at]
    convert = pa_csv.ConvertOptions(
        include_columns=numbers,
        column_types={number: pa.large_string() for number in numbers},
    )

    def read(room: pa_csv.ReadOptions) -> pa.Table:
        room.autogenerate_column_names = True
        return pa_csv.read_csv(
            str(path),
            read_options=room,
            parse_options=_dialect(path),
            convert_options=convert,
        )

    table = _with_room(path, read)
    for column, cells in zip(at, table.columns, strict=True):
        text = pc.utf8_trim_whitespace(cells)
        row = pc.index(pc.not_equal(text, ""), True).as_py()
        if row >= 0:
            (line,) = _lines(path, [row - 1])
            raise InputError(
                f"{path}, line {line}, column {column + 1}: {text[row].as_py()!r} is "
                "in one of several columns without a name: expected a name for each, "
                "or no cells there"
            )


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error).splitlines()[0]
    if "UTF8" in reason or isinstance(error, UnicodeError):
        line = _first_wrong_line(path)
        return InputError(f"{path}, line {line}: is not UTF-8; save it as CSV in UTF-8")
    if "columns, got" in reason:
        header: list[str] = []
        for line, cells in _records(path):
            header = header or cells
            if len(cells) != len(header):
                return InputError(
                    f"{path}, line {line}: {len(cells)} cells, expected {len(header)} "
                    f"as in the header{_hint(path, header)}"
                )
    return InputError(f"{path}: cannot be read: {reason}")
