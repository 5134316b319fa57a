"""What the columns of a table mean: one frozen object, saved and reused by predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from elugcn.data.tables.cells import (
    ENCODE_FIRST,
    PLAIN_NUMBER,
    almost_numeric,
    is_text,
    looks_numeric,
    not_a_number,
    number_cells,
    refuse_breaks,
    text_cells,
)
from elugcn.data.tables.read import TableFile
from elugcn.errors import InputError

# A column of strings with more values than this is text, not a category.
MAX_CATEGORIES = 100
# From this many rows on, a column in which most values differ is text too.
_ROWS_TO_JUDGE = 20


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NumberColumn(_Frozen):
    """Numbers: one feature, (value - mean) / std.

    Attributes:
        kind: ``"number"``; ``"binary"`` columns hold 0 and 1 only and are kept.
        name: Name of the column.
        mean: Of the training table; takes the place of missing values.
        std: Of the training table; 0 if the column is constant.
        missing: Empty cells in the training table.
    """

    kind: Literal["number", "binary"]
    name: str
    mean: float = 0.0
    std: float = Field(1.0, ge=0)
    missing: int = 0

    @property
    def feature_names(self) -> list[str]:
        """One feature, named as the column."""
        return [self.name]

    @property
    def scaling(self) -> str:
        """How the column was scaled, in words."""
        if self.kind == "binary":
            return "kept as 0 and 1"
        if not self.std:
            return "constant: encoded as 0"
        return f"standardised: mean {self.mean:.6g}, standard deviation {self.std:.6g}"


class CategoryColumn(_Frozen):
    """Strings with few values: one 0/1 feature per value; all 0 where missing.

    Attributes:
        kind: ``"category"``.
        name: Name of the column.
        categories: The values of the training table, sorted.
        missing: Empty cells in the training table.
    """

    kind: Literal["category"]
    name: str
    categories: tuple[str, ...]
    missing: int = 0

    @property
    def feature_names(self) -> list[str]:
        """One feature per value: ``colour=red``."""
        return [f"{self.name}={value}" for value in self.categories]

    @property
    def scaling(self) -> str:
        """How the column was scaled, in words."""
        return "one-hot"


Column = Annotated[NumberColumn | CategoryColumn, Field(discriminator="kind")]


class EdgeColumns(_Frozen):
    """Columns of the edge table; ``weight=None``: all edges have weight 1."""

    source: str
    target: str
    weight: str | None = None


class TableSchema(_Frozen):
    """How the two tables of a graph are read and encoded.

    ``model_dump(mode="json")`` saves it, ``TableSchema.parse`` reads it back.

    Attributes:
        version: Version of this format.
        features: ``"columns"`` of the table, or made: ``"identity"``, ``"degree"``.
        columns: Each feature column of the table.
        class_names: One name per class.
        id_column: Column of node ids.
        label_column: Column of labels.
        edge_columns: Columns of the edge table; None if not known.
        directed: Whether edges are treated as directed.
        scaled: Whether columns are scaled when they are encoded. False in models of
            version 0.1, which scale the encoded matrix.
        node_digest: SHA-256 of the node ids, where ``features="identity"``.
    """

    version: Literal[2] = 2
    features: Literal["columns", "identity", "degree"] = "columns"
    columns: tuple[Column, ...] = ()
    class_names: tuple[str, ...] = ()
    id_column: str = "id"
    label_column: str = "label"
    edge_columns: EdgeColumns | None = None
    directed: bool = False
    scaled: bool = True
    node_digest: str | None = None

    @classmethod
    def infer(
        cls, table: pa.Table, names: Sequence[str], file: TableFile
    ) -> tuple[Column, ...]:
        """Decide the kind of each column; the encoder measures its statistics."""
        return tuple(_infer(table.column(name), name, file) for name in names)

    @classmethod
    def parse(cls, saved: TableSchema | dict[str, Any]) -> TableSchema:
        """A schema from its JSON form, of this version or of version 1."""
        if isinstance(saved, TableSchema):
            return saved
        if isinstance(saved, dict) and saved.get("version") == 1:
            return cls.from_version_1(saved)
        try:
            return cls.model_validate(saved)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "schema"
            raise InputError(
                f"schema is not a TableSchema ({place}: {first['msg']}); expected the "
                "table_schema of a loaded graph"
            ) from None

    @classmethod
    def from_version_1(cls, saved: dict[str, Any]) -> TableSchema:
        """The schema of a model saved by version 0.1: its columns are not scaled."""
        known = {k: v for k, v in saved.items() if k in cls.model_fields}
        edges = known.pop("edge_columns", None)
        try:
            known["edge_columns"] = EdgeColumns.model_validate(edges)
        except ValidationError:
            known["edge_columns"] = None  # models older than that have none
        if isinstance(columns := known.get("columns"), list):
            known["columns"] = [
                {**c, "name": str(c.get("name")).strip()} if isinstance(c, dict) else c
                for c in columns
            ]
        return cls.parse({**known, "version": 2, "scaled": False})

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features: ``age``, ``colour=red``, ..."""
        if self.features == "degree":
            return ["log_degree"]
        return [name for column in self.columns for name in column.feature_names]

    def report(self) -> list[dict[str, Any]]:
        """What each column became: column, kind, features, scaling, missing."""
        return [
            {
                "column": column.name,
                "kind": column.kind,
                "features": len(column.feature_names),
                "scaling": column.scaling if self.scaled else "not scaled",
                "missing": column.missing,
            }
            for column in self.columns
        ]

    def notes(self) -> list[str]:
        """What a user should know about the columns, one sentence each."""
        notes = []
        for column in self.columns:
            name = repr(column.name)
            if isinstance(column, CategoryColumn):
                if all(map(almost_numeric, column.categories)):
                    plain = all(map(looks_numeric, column.categories))
                    advice = (
                        "store them as numbers, not as strings"
                        if plain
                        else f"write them {PLAIN_NUMBER}"
                    )
                    notes.append(
                        f"column {name} is read as a category; if its values "
                        f"({column.categories[0]!r}, ...) are numbers, {advice}"
                    )
                continue
            if not column.std:
                notes.append(f"column {name} is constant and tells nothing")
            if column.missing:
                notes.append(
                    f"column {name}: {column.missing:,} missing values were replaced "
                    f"by the mean, {column.mean:.6g}"
                )
        return notes


def _infer(cells: pa.ChunkedArray, name: str, file: TableFile) -> Column:
    if not is_text(cells):
        numbers = number_cells(cells, name, file)
        known = numbers[~np.isnan(numbers)]
        if not len(known):
            raise InputError(f"{file.path}: column {name!r} is empty; leave it out")
        binary = bool(((known == 0) | (known == 1)).all())
        kind: Literal["binary", "number"] = "binary" if binary else "number"
        return NumberColumn(kind=kind, name=name, mean=0.0, std=1.0)
    text = text_cells(cells, name, file, breaks=True)
    values = sorted(value for value in pc.unique(text).to_pylist() if value)
    if not values:
        raise InputError(f"{file.path}: column {name!r} is empty; leave it out")
    # Numbers with a slip among them are not categories; say where the slip is.
    odd = len(values) - sum(map(looks_numeric, values))
    if odd and len(values) > 2 and (odd == 1 or odd <= 0.1 * len(values)):
        raise not_a_number(cells, name, file)
    rows = len(cells)
    unique = rows >= _ROWS_TO_JUDGE and len(values) > rows / 2
    if len(values) > MAX_CATEGORIES or unique:
        raise _too_many(text, values, name, file)
    refuse_breaks(text, name, file)
    return CategoryColumn(kind="category", name=name, categories=tuple(values))


def _too_many(
    text: pa.Array, values: Sequence[str], name: str, file: TableFile
) -> InputError:
    """The error of a column with too many values for categories."""
    many = f"is text ({len(values):,} different values in {len(text):,} rows)"
    # A few may be gaps; the rest are numbers as a spreadsheet writes them.
    if sum(map(almost_numeric, values)) < 0.9 * len(values):
        return InputError(f"{file.path}: column {name!r} {many}: {ENCODE_FIRST}")
    odd = [v for v in values if almost_numeric(v) and not looks_numeric(v)]
    if not odd:
        return InputError(
            f"{file.path}: column {name!r} {many}: if these are numbers, store them as "
            f"numbers, not as strings; else {ENCODE_FIRST}"
        )
    first = pc.index(pc.is_in(text, value_set=pa.array(odd, text.type)), True).as_py()
    return InputError(
        f"{file.place(first)}, column {name!r}: {text[first].as_py()!r} {many}: if "
        f"these are numbers, write them {PLAIN_NUMBER}; else {ENCODE_FIRST}"
    )
