"""CSV and TSV: what stands between cells, how a file is parsed, where its lines are."""

import csv
import gzip
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

# What may stand between cells, and what it is called.
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Bytes that are parsed at once. A line must fit into two blocks, the header into one.
_BLOCKS = (2**20, 2**25, 2**30)
_LONGEST_CELL = 2**31 - 1


def dialect(path: Path) -> pa_csv.ParseOptions:
    """Tabs in .tsv, commas in .csv; line breaks may stand in quotes."""
    tabs = ".tsv" in [suffix.lower() for suffix in path.suffixes]
    return pa_csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True)


def content(path: Path) -> Any:
    """What Arrow is to read: it knows a compressed file by .gz, not by .GZ."""
    compressed = path.suffix.lower() == ".gz" and path.suffix != ".gz"
    return pa.input_stream(str(path), compression="gzip") if compressed else str(path)


def header(path: Path, room: pa_csv.ReadOptions) -> list[str]:
    """Names of the columns, in order."""
    with pa_csv.open_csv(
        content(path), read_options=room, parse_options=dialect(path)
    ) as reader:
        names: list[str] = reader.schema.names
        return names


def with_room(path: Path, read: Callable[[pa_csv.ReadOptions], Any]) -> Any:
    """Read in blocks of the usual size, or, where a line is longer, in larger ones."""
    *usual, largest = _BLOCKS
    for size in usual if path.stat().st_size else ():
        try:
            return read(pa_csv.ReadOptions(block_size=size))
        except pa.ArrowInvalid as error:
            if not any(words in str(error) for words in ("straddl", "or block")):
                raise
    return read(pa_csv.ReadOptions(block_size=largest))


def records(path: Path) -> Iterable[tuple[int, list[str]]]:
    """First line and cells of each record; a loop, only for messages."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        # A quote that is not closed makes one cell of the rest of the file.
        usual = csv.field_size_limit(_LONGEST_CELL)
        try:
            reader = csv.reader(file, delimiter=dialect(path).delimiter)
            line = 1
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        finally:
            csv.field_size_limit(usual)


def lines(path: Path, rows: Sequence[int]) -> list[int]:
    """Lines of rows: blank lines and breaks in quotes make the two drift apart."""
    wanted, found = set(rows), {}
    for row, (line, _) in enumerate(records(path), start=-1):
        if row in wanted:
            found[row] = line
            if len(found) == len(wanted):
                break
    return [found.get(row, row + 2) for row in rows]


def first_wrong_line(path: Path) -> int:
    """The first line that is not UTF-8, from 1."""
    opener: Any = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def hint(path: Path, header: Sequence[str]) -> str:
    """What to say of a header of one cell that looks like several."""
    expected = str(dialect(path).delimiter)
    if len(header) != 1 or expected in header[0]:
        return ""
    found = max(MARKS, key=header[0].count)
    if found not in header[0]:
        return ""
    return f" ({looks(found, expected)})"


def looks(found: str, expected: str) -> str:
    """What to say where cells are apart by another mark than expected."""
    # The name of the file says what is between its cells.
    suffix = {",": ".csv", "\t": ".tsv"}.get(found)
    other = f", or call it {suffix}" if suffix else ""
    return f"it looks separated by {MARKS[found]}; expected {MARKS[expected]}{other}"
