"""What a pair of tables means: one frozen object, saved and reused by predict."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from elugcn.data.tables.columns import CategoryColumn, Column, Frozen, Matrix
from elugcn.data.tables.table import Table
from elugcn.errors import InputError, first_problem


class EdgeColumns(Frozen):
    """Columns of the edge table; ``weight=None``: all edges have weight 1."""

    source: str
    target: str
    weight: str | None = None


class TableSchema(Frozen):
    """How the two tables of a graph are read and encoded.

    ``model_dump(mode="json")`` saves it, ``TableSchema.parse`` reads it back.
    """

    version: Literal[2] = 2
    features: Literal["columns", "identity", "degree"] = "columns"
    columns: tuple[Column, ...] = ()  # each feature column of the table
    class_names: tuple[str, ...] = ()
    id_column: str = "id"
    label_column: str = "label"
    edge_columns: EdgeColumns | None = None
    directed: bool = False
    # False in models of version 0.1, which scale the encoded matrix instead.
    scaled: bool = True
    node_digest: str | None = None  # SHA-256 of the node ids, for features="identity"

    @classmethod
    def parse(cls, saved: TableSchema | dict[str, Any]) -> TableSchema:
        """A schema from its JSON form, of this version or of version 1."""
        if isinstance(saved, TableSchema):
            return saved
        try:
            if isinstance(saved, dict) and saved.get("version") == 1:
                saved = _from_version_1(saved)
            return cls.model_validate(saved)
        except ValidationError as error:
            raise InputError(
                f"schema is not a TableSchema ({first_problem(error).strip()}); "
                "expected the table_schema of a loaded graph"
            ) from None

    def encode(self, table: Table) -> tuple[Matrix, list[str]]:
        """Features [n, d] of a table with the same columns, and what is new in them."""
        alerts: list[str] = []
        matrix = np.zeros((table.rows, len(self.feature_names)), dtype=np.float32)
        start = 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            alert = column.encode(table, matrix[:, start:stop], missing=self.scaled)
            if alert:
                alerts.append(f"{table.path}: column {column.name!r} has {alert}")
            start = stop
        return matrix, alerts

    @property
    def categories(self) -> list[str]:
        """Names of the columns that are read as strings."""
        return [c.name for c in self.columns if isinstance(c, CategoryColumn)]

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


def _from_version_1(saved: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model saved by version 0.1: its columns are not scaled."""
    known = {k: v for k, v in saved.items() if k in TableSchema.model_fields}
    try:
        known["edge_columns"] = EdgeColumns.model_validate(known.get("edge_columns"))
    except ValidationError:
        known["edge_columns"] = None  # models older than that have none
    return {**known, "version": 2, "scaled": False}
