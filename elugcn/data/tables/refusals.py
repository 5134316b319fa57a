"""Table files that are not what they seem: each refused in one line."""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from elugcn.data.tables.delimited import (
    MARKS,
    content,
    dialect,
    first_wrong_line,
    hint,
    lines,
    looks,
    records,
    with_room,
)
from elugcn.errors import InputError


def refuse_other_kinds(path: Path) -> None:
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


def refuse_separator_line(path: Path) -> None:
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
    mark, expected = found[1], str(dialect(path).delimiter)
    other = mark != expected and mark in MARKS
    raise InputError(
        f"{path}, line 1: {line.strip()!r} is the separator line of Excel, expected "
        "the header: delete this line"
        + (f" ({looks(mark, expected)})" if other else "")
    )


def refuse_repeats(path: Path, names: Sequence[str]) -> None:
    """Refuse names that are there twice, but for ghosts, which nobody asks for."""
    ghosts = not path.name.lower().endswith(".parquet")
    for name, count in sorted(Counter(name.strip() for name in names).items()):
        if count > 1 and not (ghosts and not name.strip()):
            raise InputError(f"{path}: column {name!r} is there more than once")


def refuse_nameless_cells(path: Path, names: Sequence[str]) -> None:
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
            content(path),
            read_options=room,
            parse_options=dialect(path),
            convert_options=convert,
        )

    table = with_room(path, read)
    for column, cells in zip(at, table.columns, strict=True):
        text = pc.utf8_trim_whitespace(cells)
        row = pc.index(pc.not_equal(text, ""), True).as_py()
        if row >= 0:
            (line,) = lines(path, [row - 1])
            raise InputError(
                f"{path}, line {line}, column {column + 1}: {text[row].as_py()!r} is "
                "in one of several columns without a name: expected a name for each, "
                "or no cells there"
            )


def unreadable(path: Path, error: Exception) -> InputError:
    """What a reader stumbled over, with its line where there is one."""
    if isinstance(error, UnicodeEncodeError):
        name = str(path).encode("utf-8", "backslashreplace").decode()
        return InputError(f"{name}: the name of the file is not UTF-8; rename it")
    reason = str(error).splitlines()[0]
    if "UTF8" in reason or isinstance(error, UnicodeError):
        line = first_wrong_line(path)
        return InputError(f"{path}, line {line}: is not UTF-8; save it as CSV in UTF-8")
    if "columns, got" in reason:
        header: list[str] = []
        for line, cells in records(path):
            header = header or cells
            if len(cells) != len(header):
                return InputError(
                    f"{path}, line {line}: {len(cells)} cells, expected {len(header)} "
                    f"as in the header{hint(path, header)}"
                )
    return InputError(f"{path}: cannot be read: {reason}")
