"""Feature columns of a table: measured on one table, encoded alike in every other.

Each column is scaled on its own, so that all have comparable weight: a number has mean
square 1 after standardisation, and a category one 1 per row. A standardised column
beside one-hot columns is neither lost nor dominant.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from elugcn.data.tables.table import ENCODE_FIRST, Table, is_number

# A column of strings with more values than this is text, not a category.
MAX_CATEGORIES = 100
# From this many rows on, a column in which most values differ is text too.
_ROWS_TO_JUDGE = 20
# Perhaps a number: with a decimal comma, thousands apart, a sign of percent or money.
_ALMOST_NUMBER = re.compile(r"[^A-Za-z]*\d[^A-Za-z]*")

Matrix = NDArray[np.float32]


class Frozen(BaseModel):
    """Immutable, without unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, str_strip_whitespace=True
    )


class NumberColumn(Frozen):
    """Numbers: one feature, (value - mean) / std."""

    kind: Literal["number", "binary"]  # binary: 0 and 1 only, kept as they are
    name: str
    mean: float = 0.0  # takes the place of missing values
    std: float = Field(1.0, ge=0)  # 0 if the column is constant
    missing: int = 0  # empty cells in the training table

    @classmethod
    def fit(cls, table: Table, name: str) -> NumberColumn:
        """Measure a column of the training table."""
        values = table.numbers(name)
        known = values[~np.isnan(values)]
        if not len(known):
            raise table.error("is empty; leave it out", name)
        mean, std = float(known.mean()), float(known.std())
        return cls(
            kind="binary" if np.isin(known, (0, 1)).all() else "number",
            name=name,
            mean=mean,
            # The rounding error of a constant column grows with its value.
            std=std if std > 1e-12 * (1 + abs(mean)) else 0.0,
            missing=len(values) - len(known),
        )

    def encode(self, table: Table, out: Matrix, missing: bool) -> str | None:
        """Fill the columns ``out`` [n, 1]; returns what to warn of."""
        values = table.numbers(self.name, missing)
        gaps = np.isnan(values)
        values[gaps] = self.mean
        if self.kind == "number":
            values = (values - self.mean) / (self.std or 1.0)
        out[:, 0] = values
        if not gaps.any() or self.missing:
            return None
        found = f"{int(gaps.sum()):,} missing values"
        return f"{found}; the training table has none: replaced by its mean"

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

    def notes(self) -> list[str]:
        """What a user should know about the column."""
        notes = []
        if not self.std:
            notes.append(f"column {self.name!r} is constant and carries no information")
        if self.missing:
            notes.append(
                f"column {self.name!r}: {self.missing:,} missing values were replaced "
                f"by the mean, {self.mean:.6g}"
            )
        return notes


class CategoryColumn(Frozen):
    """Strings with few values: one 0/1 feature per value; all 0 where missing."""

    kind: Literal["category"] = "category"
    name: str
    categories: tuple[str, ...]  # the values of the training table, sorted
    missing: int = 0  # empty cells in the training table
    scaling: ClassVar[str] = "one-hot"

    @classmethod
    def fit(cls, table: Table, name: str) -> CategoryColumn:
        """Collect the values of a column of the training table."""
        text = table.text(name, breaks=True)
        values = sorted(value for value in pc.unique(text).to_pylist() if value)
        if not values:
            raise table.error("is empty; leave it out", name)
        # Numbers with a slip among them are not categories; say where the slip is.
        odd = len(values) - sum(map(is_number, values))
        if odd and len(values) > 2 and (odd == 1 or odd <= 0.1 * len(values)):
            raise table.not_a_number(name)
        unique = len(text) >= _ROWS_TO_JUDGE and len(values) > len(text) / 2
        if len(values) > MAX_CATEGORIES or unique:
            found = f"{len(values):,} different values in {len(text):,} rows"
            problem = f"is text ({found}, e.g. {values[0]!r}): {ENCODE_FIRST}"
            raise table.error(f"{problem}; numbers are written as 1234.5", name)
        missing = pc.sum(pc.equal(text, "")).as_py() or 0
        return cls(name=name, categories=tuple(values), missing=missing)

    def encode(self, table: Table, out: Matrix, missing: bool) -> str | None:
        """Fill the columns ``out`` [n, values]; returns what to warn of."""
        text = table.text(self.name)
        known = pa.array(self.categories, pa.large_string())
        codes = pc.index_in(text, value_set=known).fill_null(-1).to_numpy()
        rows = np.flatnonzero(codes >= 0)
        out[rows, codes[rows]] = 1
        empty = pc.equal(text, "").to_numpy(zero_copy_only=False)
        unseen = np.flatnonzero((codes < 0) & ~empty)
        if not len(unseen):
            return None
        some = f"in {len(unseen):,} rows, e.g. {text[int(unseen[0])].as_py()!r}"
        return f"values that are not in the training table {some}: encoded as zeros"

    @property
    def feature_names(self) -> list[str]:
        """One feature per value: ``colour=red``."""
        return [f"{self.name}={value}" for value in self.categories]

    def notes(self) -> list[str]:
        """What a user should know about the column."""
        if not all(map(_ALMOST_NUMBER.fullmatch, self.categories)):
            return []
        return [
            f"column {self.name!r} is read as a category; if its values "
            f"({self.categories[0]!r}, ...) are numbers, write them as 1234.5, not as "
            "strings"
        ]


Column = Annotated[NumberColumn | CategoryColumn, Field(discriminator="kind")]


def fit_column(table: Table, name: str) -> Column:
    """Decide the kind of a column of the training table, and measure it."""
    kind: Any = CategoryColumn if table.holds_text(name) else NumberColumn
    fitted: Column = kind.fit(table, name)
    return fitted
