"""Cells of a table as strings or as numbers; a wrong cell is named with its line."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elugcn.data.tables.read import TableFile, is_kind
from elugcn.errors import InputError

ENCODE_FIRST = (
    "encode it first (e.g. TF-IDF or embeddings, one number per column) or leave it out"
)
# How to write a cell that is almost a number.
PLAIN_NUMBER = "with a point and without thousands separators and signs, as 1234.5"
# With a decimal comma, thousands apart, or a sign of percent or money.
_ALMOST = re.compile(r"[+-]?[$€£]?\s*\d+([.,]\d+|['’\s]\d{3})*\s*[%$€£]?")


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds strings."""
    return is_kind(_plain(column).type, "string")


def text_cells(
    column: pa.ChunkedArray, name: str, file: TableFile, breaks: bool = False
) -> pa.Array:
    """Strings or integers as trimmed strings, "" where a cell is empty.

    Cells that swallowed a part of the next line are refused unless ``breaks``.
    """
    column = _plain(column)
    kind = column.type
    if pa.types.is_floating(kind):
        # pandas turns integers with gaps into floats: 1.0 is a label 1.
        column = pc.if_else(pc.is_nan(column), None, column)
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(
                f"{file.path}: column {name!r} holds decimals: expected strings or "
                "integers"
            ) from None
    elif not (
        is_text(column) or pa.types.is_integer(kind) or is_kind(kind, "bool", "null")
    ):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected strings or "
            "integers"
        )
    try:
        strings = column.cast(pa.large_string()).fill_null("")
        text = pc.utf8_trim_whitespace(strings).combine_chunks()
    except pa.ArrowInvalid:  # bytes that Parquet calls a string
        raise InputError(f"{file.path}: column {name!r} is not UTF-8") from None
    if isinstance(text, pa.ChunkedArray):
        text = pa.concat_arrays(text.chunks)
    if not breaks:
        refuse_breaks(text, name, file)
    return text


def refuse_breaks(text: pa.Array, name: str, file: TableFile) -> None:
    """Refuse a cell that holds part of the next line: a quote was not closed."""
    if file.separator is None:
        return
    row = pc.index(pc.match_substring_regex(text, r"[\r\n]"), True).as_py()
    if row >= 0:
        raise InputError(
            f"{file.place(row)}, column {name!r}: the cell continues on the next line; "
            "is a quote not closed?"
        )


def number_cells(
    column: pa.ChunkedArray, name: str, file: TableFile, missing: bool = True
) -> NDArray[np.float64]:
    """Numbers and booleans in double precision, NaN where a cell is empty.

    Args:
        column: The column.
        name: Its name.
        file: Where it is from.
        missing: False refuses empty cells and NaN.
    """
    column = _plain(column)
    kind = column.type
    if is_text(column):
        raise not_a_number(column, name, file)
    if is_kind(kind, "bool"):
        column = column.cast(pa.int8())
    elif is_kind(kind, "decimal", "null"):
        column = column.cast(pa.float64())
    elif not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected numbers; "
            f"{ENCODE_FIRST}"
        )
    values: NDArray[np.float64] = column.to_numpy().astype(np.float64)
    if not missing and np.isnan(values).any():
        raise InputError(
            f"{file.place(int(np.isnan(values).argmax()))}, column {name!r}: empty "
            "cell or NaN, expected a number"
        )
    too_large = np.abs(values) > np.finfo(np.float32).max
    if too_large.any():
        row = int(too_large.argmax())
        raise InputError(
            f"{file.place(row)}, column {name!r}: {column[row].as_py()} is not a "
            "finite number (float32)"
        )
    return values


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def looks_numeric(cell: str) -> bool:
    """Whether a cell is a number to Python and to Arrow: not 1_000, not ١٢."""
    if "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def almost_numeric(cell: str) -> bool:
    """Whether a cell is a number, or one to people but not to this package: 1,5 %."""
    return looks_numeric(cell) or _ALMOST.fullmatch(cell.strip()) is not None


def not_a_number(column: pa.ChunkedArray, name: str, file: TableFile) -> InputError:
    """The error that names the first string that is not a number."""
    for row, cell in enumerate(column.to_pylist()):
        if cell and not looks_numeric(cell):
            hint = f": write it {PLAIN_NUMBER}" if almost_numeric(cell) else ""
            return InputError(
                f"{file.place(row)}, column {name!r}: {cell!r} is not a number{hint}"
            )
    return InputError(f"{file.path}: column {name!r} holds strings, expected numbers")
