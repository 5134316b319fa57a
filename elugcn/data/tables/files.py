"""Table files: opened, read, and the place of a row named as the user sees it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from elugcn.data.tables.delimited import content, dialect, header, hint, lines, with_room
from elugcn.data.tables.refusals import (
    refuse_nameless_cells,
    refuse_other_kinds,
    refuse_repeats,
    refuse_separator_line,
    unreadable,
)
from elugcn.errors import InputError

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


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
            refuse_other_kinds(path)
            if path.name.lower().endswith(".parquet"):
                names = pa_parquet.ParquetFile(path).schema_arrow.names
            else:
                refuse_separator_line(path)
                names = with_room(path, lambda room: header(path, room))
                refuse_nameless_cells(path, names)
        except (pa.ArrowInvalid, OSError, EOFError, UnicodeError) as error:
            raise unreadable(path, error) from error
        refuse_repeats(path, names)
        return cls(path, tuple(names))

    @property
    def unnamed(self) -> tuple[str, ...]:
        """Columns that are no data: row numbers of pandas, ghosts of a spreadsheet."""
        marks = ("__index_level_", "Unnamed: ")
        return tuple(
            name for name in self.names if not name.strip() or name.startswith(marks)
        )

    def has(self, name: str) -> bool:
        """Whether there is such a column."""
        return self._named(name) is not None

    def _named(self, name: str) -> str | None:
        if name in self.names:
            return name
        # Blanks around a name are no part of it, as around any cell.
        wanted = name.strip()
        return next((c for c in self.names if wanted and c.strip() == wanted), None)

    def require(self, name: str, option: str) -> str:
        """Return the column name, or say which columns there are."""
        found = self._named(name)
        if found is not None:
            return found
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
        return str(dialect(self.path).delimiter)

    @property
    def separator_hint(self) -> str:
        """What to say of a file with one column whose name looks like several."""
        return "" if self.delimiter is None else hint(self.path, self.names)

    def find(self, name: str | None, option: str, usual: Sequence[str]) -> str | None:
        """The column the user named, else one with a usual name, else None."""
        if name is not None:
            return self.require(name, option)
        lower = {column.strip().lower(): column for column in reversed(self.names)}
        return next((lower[name] for name in usual if name in lower), None)

    def read(self, columns: Sequence[str], text: Iterable[str] = ()) -> pa.Table:
        """Read some columns, those in ``text`` as the strings in the file."""
        try:
            if self.path.name.lower().endswith(".parquet"):
                return pa_parquet.ParquetFile(self.path).read(columns=list(columns))
            parse = dialect(self.path)
            convert = pa_csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: pa.large_string() for name in text},
            )
            table: pa.Table = with_room(
                self.path,
                lambda room: pa_csv.read_csv(
                    content(self.path),
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
            raise unreadable(self.path, error) from error

    def place(self, *rows: int) -> str:
        """Where rows (from 0) are: lines of a CSV file as an editor counts them."""
        if self.path.name.lower().endswith(".parquet"):
            found, word = [row + 1 for row in rows], "row"
        else:
            found, word = lines(self.path, rows), "line"
        numbers = " and ".join(str(number) for number in found)
        return f"{self.path}, {word}{'s' if len(rows) > 1 else ''} {numbers}"


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )
