"""Columns of a table as strings or as finite numbers; a wrong cell is named."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elugcn.data.tables.files import TableFile
from elugcn.errors import InputError

HINT = (
    "encode it first (e.g. TF-IDF or embeddings, one number per column) or leave it out"
)
# How to write a cell that is almost a number.
PLAIN = "with a point and without thousands separators and signs, as 1234.5"
# With a decimal comma, thousands apart, or a sign of percent or money.
_ALMOST = re.compile(r"[+-]?[$€£]?\s*\d+([.,]\d+|['’\s]\d{3})*\s*[%$€£]?")


def text_of(
    column: pa.ChunkedArray, name: str, file: TableFile, breaks: bool = False
) -> pa.Array:
    """Ids or labels as trimmed strings, "" where there is none.

    Cells that swallowed a part of the next line are refused unless ``breaks``.
    """
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
        is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected strings or "
            "integers"
        )
    try:
        strings = column.cast(pa.large_string()).combine_chunks()
        if isinstance(strings, pa.ChunkedArray):
            strings = pa.concat_arrays(strings.chunks)
        text = pc.utf8_trim_whitespace(strings.fill_null(""))
    except pa.ArrowInvalid:  # bytes that Parquet calls a string
        raise InputError(f"{file.path}: column {name!r} is not UTF-8") from None
    if not breaks:
        refuse_breaks(text, name, file)
    return text


def refuse_breaks(text: pa.Array, name: str, file: TableFile) -> None:
    """Refuse a cell that holds part of the next line: a quote was not closed."""
    if file.delimiter is None:
        return
    swallowed = rf"[\r\n][^\r\n]*{re.escape(file.delimiter)}"
    row = pc.index(pc.match_substring_regex(text, swallowed), True).as_py()
    if row >= 0:
        raise InputError(
            f"{file.place(row)}, column {name!r}: the cell goes on over the end of the "
            "line; is a quote not closed?"
        )


def numbers_of(
    column: pa.ChunkedArray, name: str, file: TableFile
) -> NDArray[np.float32]:
    """A column as finite float32; the first cell that is none is named."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if is_text(kind):
        raise not_a_number(column, name, file)
    if column.null_count or pa.types.is_null(kind):
        row = pc.index(column.is_null(), True).as_py() if len(column) else 0
        raise InputError(
            f"{file.place(row)}, column {name!r}: empty cell or NaN, expected a number"
        )
    if not is_number(kind):
        raise InputError(
            f"{file.path}: column {name!r} has type {kind}: expected numbers; {HINT}"
        )
    with np.errstate(over="ignore"):
        values: NDArray[np.float32] = exact_numbers(column).astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(finite.argmin())
        raise InputError(
            f"{file.place(row)}, column {name!r}: {column[row].as_py()} is not a "
            "finite number (float32)"
        )
    return values


def exact_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column of numbers without gaps, in the precision of the file."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy()
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
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    )


def looks_numeric(cell: str) -> bool:
    """Whether a cell can be read as a number, by Arrow too: not 1_000, not ١٢."""
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
    """The error that names the first cell of strings that is no number."""
    for row, cell in enumerate(column.to_pylist()):
        if cell is None or not looks_numeric(cell):
            hint = f": write it {PLAIN}" if cell and almost_numeric(cell) else ""
            return InputError(
                f"{file.place(row)}, column {name!r}: {cell or ''!r} is not a number"
                + hint
            )
    return InputError(f"{file.path}: column {name!r} holds strings, expected numbers")
