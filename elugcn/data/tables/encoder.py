"""Columns of a table become features, each column scaled on its own.

Every source column gets comparable weight: a number has mean square 1 after
standardisation, and a category one 1 per row. A standardised column beside one-hot
columns is neither lost nor dominant.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elugcn.data.features import set_ones
from elugcn.data.tables.cells import number_cells, text_cells
from elugcn.data.tables.read import TableFile
from elugcn.data.tables.schema import (
    CategoryColumn,
    Column,
    NumberColumn,
    TableSchema,
)


class TableEncoder:
    """Encodes tables by a schema, in which the statistics of its columns live.

    Attributes:
        schema: The schema; ``fit`` fills in means, deviations and missing values.
    """

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema

    @classmethod
    def fit(cls, schema: TableSchema, table: pa.Table, file: TableFile) -> TableEncoder:
        """Measure each column on the training table."""
        columns: list[Column] = []
        for column in schema.columns:
            cells = table.column(column.name)
            if isinstance(column, CategoryColumn):
                text = text_cells(cells, column.name, file)
                missing = int(pc.sum(pc.equal(text, "")).as_py() or 0)
                columns.append(column.model_copy(update={"missing": missing}))
            else:
                columns.append(
                    _measured(column, number_cells(cells, column.name, file))
                )
        return cls(schema.model_copy(update={"columns": tuple(columns)}))

    def transform(
        self, table: pa.Table, file: TableFile
    ) -> tuple[NDArray[np.float32], list[str]]:
        """Encode a table with the same columns, in any order.

        Returns:
            Features [n, d], and a sentence per column that holds values or gaps which
            the training table does not.
        """
        alerts: list[str] = []
        matrix = np.zeros(
            (table.num_rows, len(self.schema.feature_names)), dtype=np.float32
        )
        at = 0
        for column in self.schema.columns:
            name, cells = column.name, table.column(column.name)
            if isinstance(column, CategoryColumn):
                text = text_cells(cells, name, file)
                categories = pa.array(column.categories, pa.large_string())
                codes = pc.index_in(text, value_set=categories).fill_null(-1).to_numpy()
                set_ones(matrix, at, codes)
                known = pc.equal(text, "").to_numpy(zero_copy_only=False)
                if len(unseen := np.flatnonzero((codes < 0) & ~known)):
                    first = text[int(unseen[0])].as_py()
                    alerts.append(
                        f"{file.path}: column {name!r} has values that are not in the "
                        f"training table in {len(unseen):,} rows, e.g. {first!r}: "
                        "encoded as zeros"
                    )
            else:
                values = number_cells(cells, name, file, missing=self.schema.scaled)
                gaps = np.isnan(values)
                if gaps.any() and not column.missing:
                    alerts.append(
                        f"{file.path}: column {name!r} has {int(gaps.sum()):,} missing "
                        "values; the training table has none: replaced by its mean"
                    )
                values[gaps] = column.mean
                if column.kind == "number":
                    values = (values - column.mean) / (column.std or 1.0)
                matrix[:, at] = values
            at += len(column.feature_names)
        return matrix, alerts


def _measured(column: NumberColumn, values: NDArray[np.float64]) -> NumberColumn:
    known = values[~np.isnan(values)]
    mean, std = float(known.mean()), float(known.std())
    # The rounding error of a constant column grows with its value.
    if std <= 1e-12 * (1 + abs(mean)):
        std = 0.0
    missing = len(values) - len(known)
    return column.model_copy(update={"mean": mean, "std": std, "missing": missing})
