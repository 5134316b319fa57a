"""A graph from two tables: one row per node, one row per edge.

``Table`` reads a file, ``fit_column`` decides and measures what each column is,
``TableSchema.encode`` makes features of them, and ``build`` reads ids, labels, splits
and edges. ``check_data`` then validates the graph, as every other.
"""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from elugcn.data.features import check_kind
from elugcn.data.tables.build import (
    find_edge_columns,
    read_edges,
    read_ids,
    read_labels,
    read_masks,
)
from elugcn.data.tables.columns import fit_column
from elugcn.data.tables.schema import TableSchema
from elugcn.data.tables.table import Table
from elugcn.errors import InputError

__all__ = ["TableSchema", "load_tables"]


def load_tables(
    nodes: str | Path,
    edges: str | Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    directed: bool | None = None,
    features: str | None = None,
    schema: TableSchema | dict[str, Any] | None = None,
) -> Data:
    """Load a graph from a table of nodes and a table of edges.

    Args:
        nodes: CSV, TSV (either also .gz) or Parquet file with one row per node: id,
            label (unknown where empty, or -1 beside numbers), optionally split, and
            feature columns. Each feature column is scaled on its own: numbers are
            standardised, 0/1 columns are kept, strings with few values become one
            column per value.
        edges: The same kinds of file with one row per edge.
        id_column: Column of node ids, compared as strings; None: "id", or the
            schema's.
        label_column: Column of classes; None: "label", or the schema's.
        split_column: Column of train/val/test; None: "split" if there is one.
        source_column: None: "source", "src" or "from", else the first column.
        target_column: None: "target", "dst" or "to", else the next column. Neither is
            guessed if a further column holds node ids.
        weight_column: None: "weight" if there is one, else all edges have weight 1.
        directed: Treat edges as directed; None: no, or as the schema says.
        features: None for the columns; ``"identity"`` or ``"degree"`` are made when
            the graph is checked.
        schema: ``table_schema`` of the graph that a model was trained on. This graph
            is then encoded the same way. Labels may be absent; without a split column
            all labelled nodes are test nodes.

    Returns:
        The graph with ``node_ids``, ``feature_names``, ``table_schema`` and ``notes``.
        ``check_data`` and every fit validate it and split it if there is no split.
    """
    training = schema is None
    check_kind(features)
    start = TableSchema.parse(schema or {"features": features or "columns"})
    if features not in (None, start.features):
        found = f"features={features!r}"
        raise InputError(f"{found}, but the schema has {start.features!r}")
    named = {"id_column": id_column, "label_column": label_column, "directed": directed}
    start = start.model_copy(update={k: v for k, v in named.items() if v is not None})

    node_table, edge_table = Table(nodes, "nodes"), Table(edges, "edges")
    wants_label = training or label_column is not None
    special = _find_special(node_table, start, wants_label, split_column)
    id_name, label, split = special
    wanted = _feature_columns(node_table, start, special, training)
    text = [name for name in special if name is not None]
    node_table.read([*text, *wanted], text={*text, *start.categories})
    if not node_table.rows:
        raise node_table.error("no nodes, the file has only a header")
    ids = read_ids(node_table, id_name)
    columns = start.columns
    if training:
        columns = tuple(fit_column(node_table, name) for name in wanted)
    fitted = start.model_copy(update={"columns": columns})
    matrix, alerts = fitted.encode(node_table)
    y, classes = torch.full((len(ids),), -1), list(fitted.class_names)
    doubts: list[str] = []
    if label is not None:
        known = None if training else classes
        y, classes, doubts = read_labels(node_table, label, known)
    masks = {} if training else {"test_mask": y >= 0}
    if split is not None:
        masks = read_masks(node_table, split, y, training)
    ends = {"source": source_column, "target": target_column, "weight": weight_column}
    edge_columns, lost = find_edge_columns(edge_table, ends, ids, fitted.edge_columns)
    edge_index, edge_weight = read_edges(edge_table, edge_columns, ids)

    notes: list[str] = []
    if training:
        notes += [note for column in columns for note in column.notes()]
        if unnamed := len(node_table.unnamed):
            notes.append(
                f"{node_table.path.name}: columns without a name were left out (an "
                "index written by pandas, or empty columns of a spreadsheet): "
                f"{unnamed}"
            )
    # Nobody reads the notes of a graph to predict on: doubts are warnings there.
    alerts += lost
    (notes if training else alerts).extend(doubts)
    for alert in alerts:
        warnings.warn(alert, UserWarning, stacklevel=2)
    node_ids, digest, made = ids.to_pylist(), None, fitted.features != "columns"
    if fitted.features == "identity":
        digest = hashlib.sha256("\n".join(node_ids).encode()).hexdigest()
        if not training and digest != fitted.node_digest:
            raise node_table.error(
                'the schema has features="identity", which belong to the training '
                "nodes; expected the same ids in the same order"
            )
    facts = {
        "id_column": id_name,
        "class_names": tuple(classes),
        "edge_columns": edge_columns,
        "node_digest": digest,
    }
    return Data(
        x=None if made else torch.from_numpy(matrix),
        edge_index=edge_index,
        edge_weight=edge_weight,
        y=y,
        **masks,
        num_nodes=len(ids),
        name=node_table.path.name.split(".")[0],
        class_names=classes,
        directed=fitted.directed,
        node_ids=node_ids,
        feature_names=fitted.feature_names,
        table_schema=fitted.model_copy(update=facts),
        features_scaled=fitted.scaled and not made,
        notes=notes + alerts,
    )


def _find_special(
    table: Table, schema: TableSchema, wants_label: bool, split_column: str | None
) -> tuple[str, str | None, str | None]:
    """The columns of ids, labels and splits."""
    id_name = table.require(schema.id_column, "id_column")
    label, split = None, table.find(["split"])
    if wants_label or schema.label_column in table.names:
        label = table.require(schema.label_column, "label_column")
    if split_column is not None:
        split = table.require(split_column, "split_column")
    names = [name for name in (id_name, label, split) if name is not None]
    if len(set(names)) < len(names):
        raise table.error(
            "id_column, label_column and split_column name the same column "
            f"({', '.join(map(repr, names))})"
        )
    return id_name, label, split


def _feature_columns(
    table: Table, schema: TableSchema, special: tuple[str | None, ...], training: bool
) -> list[str]:
    """Names of the columns that features are made of."""
    if schema.features != "columns":
        return []
    if not training:
        return [table.require(c.name, "feature in schema") for c in schema.columns]
    left_out = {*special, *table.unnamed}
    wanted = [name for name in table.names if name not in left_out]
    if not wanted:
        raise table.error(
            'no feature column: add some, or choose features="identity" or '
            f'features="degree"; the file has: {table.shown}'
        )
    return wanted
