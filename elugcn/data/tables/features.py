"""Feature columns of a table: how each is encoded, and the matrix they make."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elugcn.data.features import collapses, merged_note, set_ones
from elugcn.data.tables.columns import (
    HINT,
    PLAIN,
    almost_numeric,
    exact_numbers,
    is_text,
    looks_numeric,
    not_a_number,
    numbers_of,
    refuse_breaks,
    text_of,
)
from elugcn.data.tables.files import TableFile
from elugcn.errors import InputError

# A column of strings with more values than this is text, not a category.
MOST_CATEGORIES = 100
# From this many rows on, a column that is nearly unique per row is text too.
ROWS_TO_JUDGE = 20


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
        text = text_of(column, name, file, breaks=True)
        values = pc.unique(text).to_pylist()
        values = sorted(value for value in values if value)
        if not values:
            raise InputError(f"{file.path}: column {name!r} is empty; leave it out")
        # Numbers with a slip among them are no categories; say where the slip is.
        odd = len(values) - sum(map(looks_numeric, values))
        if odd and len(values) > 2 and (odd == 1 or odd <= 0.1 * len(values)):
            raise not_a_number(column, name, file)
        rows = len(column)
        unique = rows >= ROWS_TO_JUDGE and len(values) > rows / 2
        if len(values) > MOST_CATEGORIES or unique:
            raise _too_many(text, values, name, file)
        refuse_breaks(text, name, file)
        columns.append({"name": name, "kind": "category", "categories": values})
    return columns


def _too_many(
    text: pa.Array, values: Sequence[str], name: str, file: TableFile
) -> InputError:
    """The error of a column with too many values for categories."""
    many = f"is text ({len(values):,} different values in {len(text):,} rows)"
    # A few may be gaps; the rest are numbers as a spreadsheet writes them.
    if sum(map(almost_numeric, values)) < 0.9 * len(values):
        return InputError(f"{file.path}: column {name!r} {many}: {HINT}")
    odd = [v for v in values if almost_numeric(v) and not looks_numeric(v)]
    if not odd:
        return InputError(
            f"{file.path}: column {name!r} {many}: if these are numbers, store them as "
            f"numbers, not as strings; else {HINT}"
        )
    first = pc.index(pc.is_in(text, value_set=pa.array(odd, text.type)), True).as_py()
    return InputError(
        f"{file.place(first)}, column {name!r}: {text[first].as_py()!r} {many}: if "
        f"these are numbers, write them {PLAIN}; else {HINT}"
    )


def number_notes(columns: Sequence[dict[str, Any]]) -> list[str]:
    """A note on categories that may be numbers: 1,5 or 20 %, or strings of Parquet."""
    return [
        f"column {column['name']!r} is taken for a category; if its values "
        f"({column['categories'][0]!r}, ...) are numbers, "
        + (
            "store them as numbers, not as strings"
            if all(map(looks_numeric, column["categories"]))
            else f"write them {PLAIN}"
        )
        for column in columns
        if column["kind"] == "category"
        and all(map(almost_numeric, column["categories"]))
    ]


def precision_notes(table: pa.Table, columns: Sequence[dict[str, Any]]) -> list[str]:
    """A note on columns of numbers that single precision can't tell apart.

    For columns that ``encode_columns`` accepted: they hold finite numbers.
    """
    lost = [
        repr(column["name"])
        for column in columns
        if column["kind"] == "number"
        and collapses(exact_numbers(table.column(column["name"])))
    ]
    return [merged_note(lost)] if lost else []


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
        set_ones(matrix, at, codes)
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
