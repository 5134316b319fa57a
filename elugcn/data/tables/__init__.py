"""A graph from two tables: one row per node, one row per edge."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from elugcn.data.described import SCHEMA_KEYS
from elugcn.data.features import check_kind, made_features
from elugcn.data.graph import make_data
from elugcn.data.tables.edges import find_edge_columns, read_edges
from elugcn.data.tables.features import (
    describe_columns,
    encode_columns,
    number_notes,
    precision_notes,
)
from elugcn.data.tables.files import TableFile
from elugcn.data.tables.labels import node_labels
from elugcn.data.tables.nodes import node_ids, node_masks
from elugcn.errors import InputError

SCHEMA_VERSION = 1


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
    val_fraction: float = 0.2,
    test_fraction: float = 0.2,
    seed: int = 0,
    schema: dict[str, Any] | None = None,
) -> Data:
    """Load a graph from a table of nodes and a table of edges.

    Args:
        nodes: CSV, TSV (either also .gz) or Parquet file with one row per node:
            id, label (unknown where empty, or -1 beside numbers), perhaps split, and
            feature columns. Numbers and booleans are used as they are (models scale
            them), strings with few values become one column per value.
        edges: The same kinds of file with one row per edge.
        id_column: Column of node ids, compared as strings; None: "id", or the
            schema's.
        label_column: Column of classes; None: "label", or the schema's.
        split_column: Column of train/val/test; None: "split" if there is one,
            else a stratified split of the labelled nodes is made.
        source_column: None: "source", "src" or "from", else the first column.
        target_column: None: "target", "dst" or "to", else the next column. (Neither is
            guessed where a further column holds node ids, too.)
        weight_column: None: "weight" if there is one, else all weigh 1.
        directed: Keep the direction of the edges; None: no, or as the schema says.
        features: None for the columns, "identity" or "degree" to make features.
        val_fraction: Share of each class for validation, where a split is made.
        test_fraction: Share of each class for testing, where a split is made.
        seed: Seed of a split that is made.
        schema: ``table_schema`` of the graph a model was trained on: encode this
            graph the same way. Labels may be absent; without a split column all
            labelled nodes are test nodes.

    Returns:
        The graph, with ``node_ids``, ``feature_names``, ``table_schema`` and
        ``notes`` on what was changed.

    Raises:
        InputError: A file or option is wrong; the message names the place.
    """
    node_file = TableFile.open(nodes, "nodes")
    edge_file = TableFile.open(edges, "edges")
    features = _feature_kind(features, schema)
    # A graph to predict on is read as the one that was trained on.
    like = schema or {}
    if id_column is None:
        id_column = str(like.get("id_column", "id"))
    wants_label = schema is None or label_column is not None
    if label_column is None:
        label_column = str(like.get("label_column", "label"))
    directed = bool(like.get("directed")) if directed is None else directed
    id_column = node_file.require(id_column, "id_column")
    label: str | None = None
    if wants_label or node_file.has(label_column):
        label = label_column = node_file.require(label_column, "label_column")
    split = node_file.find(split_column, "split_column", ("split",))
    special = [name for name in (id_column, label, split) if name is not None]
    if len(set(special)) < len(special):
        raise InputError(
            f"{node_file.path}: id_column, label_column and split_column name the same "
            f"column ({', '.join(special)})"
        )

    columns = _columns_before(node_file, features, schema)
    wanted = [column["name"] for column in columns]
    if schema is None and features == "columns":
        wanted = _feature_columns(node_file, special)
    categories = [c["name"] for c in columns if c["kind"] == "category"]
    table = node_file.read([*special, *wanted], text=[*special, *categories])
    if not table.num_rows:
        raise InputError(f"{node_file.path}: no nodes, the file has a header only")

    ids = node_ids(table, id_column, node_file)
    known = None if schema is None else list(schema["class_names"])
    y, class_names, doubts = node_labels(table, label, node_file, known)
    masks, notes = node_masks(
        table, split, node_file, y, val_fraction, test_fraction, seed, schema is None
    )
    # Nobody reads the notes of a graph to predict on: there, doubts are said aloud.
    notes, alerts = (doubts + notes, []) if schema is None else (notes, doubts)
    if node_file.unnamed:
        notes.append(
            f"{node_file.path.name}: columns without a name were left out (an index "
            "written by pandas, or empty ones of a spreadsheet?): "
            f"{len(node_file.unnamed)}"
        )
    if features == "columns":
        if schema is None:
            columns = describe_columns(table, wanted, node_file)
        matrix, names, odd = encode_columns(table, columns, node_file)
        if schema is None:
            notes += number_notes(columns) + precision_notes(table, columns)
        alerts += odd
    edge_columns, missing = find_edge_columns(
        edge_file,
        (source_column, target_column, weight_column),
        ids,
        _edges_before(schema),
    )
    alerts += missing
    edge_index, edge_weight, edge_notes = read_edges(
        edge_file, edge_columns, ids, directed
    )
    if features == "columns":
        x: Any = matrix
    else:
        x = made_features(features, edge_index, len(ids))
        names = [] if features == "identity" else ["log_degree"]
    if not edge_index.shape[1]:
        alerts.append(f"{edge_file.path}: no edges between different nodes")

    data = make_data(
        x,
        edge_index,
        y,
        edge_weight=edge_weight,
        masks=masks,
        name=node_file.path.name.split(".")[0],
        class_names=class_names,
        directed=directed,
        node_ids=ids.to_pylist(),
        feature_names=names,
    )
    data.table_schema = {
        "version": SCHEMA_VERSION,
        "features": features,
        "columns": columns,
        "class_names": class_names,
        "id_column": id_column,
        "label_column": label_column,
        "directed": directed,
        "edge_columns": asdict(edge_columns),
    }
    if features == "identity":
        _same_nodes(data, node_file, schema)
    for alert in alerts:
        warnings.warn(alert, UserWarning, stacklevel=2)
    data.notes = [*notes, *edge_notes, *alerts]
    return data


def _feature_kind(features: str | None, schema: dict[str, Any] | None) -> str:
    if features is not None:
        check_kind(features)
    if schema is None:
        return features or "columns"
    missing = SCHEMA_KEYS - set(schema)
    if missing or schema["version"] != SCHEMA_VERSION:
        raise InputError(
            f"schema is not one of version {SCHEMA_VERSION}: expected the table_schema "
            "of a loaded graph"
        )
    if features is not None and features != schema["features"]:
        raise InputError(
            f"features is {features!r} but the schema says {schema['features']!r}"
        )
    return str(schema["features"])


def _edges_before(schema: dict[str, Any] | None) -> dict[str, str] | None:
    """The columns of the edges trained on; None if that is not known."""
    columns = None if schema is None else schema.get("edge_columns")
    if not isinstance(columns, dict):
        return None
    return {key: name for key, name in columns.items() if isinstance(name, str)}


def _columns_before(
    file: TableFile, features: str, schema: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """The feature columns that a schema describes, as they are called in this file."""
    if schema is None or features != "columns":
        return []
    return [
        column | {"name": file.require(column["name"], "feature in schema")}
        for column in schema["columns"]
    ]


def _feature_columns(file: TableFile, special: Sequence[str]) -> list[str]:
    """All columns but the special ones, to train on; none is an error."""
    left_out = (*special, *file.unnamed)
    wanted = [name for name in file.names if name not in left_out]
    if not wanted:
        raise InputError(
            f"{file.path}: no feature column besides {', '.join(special)}: add some, "
            'or choose features="identity" or features="degree"'
        )
    return wanted


def _same_nodes(data: Data, file: TableFile, schema: dict[str, Any] | None) -> None:
    """Identity features mean nothing on nodes other than those trained on."""
    digest = hashlib.sha256("\n".join(data.node_ids).encode()).hexdigest()
    if schema is not None and schema.get("node_digest") != digest:
        raise InputError(
            f'{file.path}: the schema has features="identity", which belong to the '
            "nodes trained on; expected the same ids in the same order"
        )
    data.table_schema["node_digest"] = digest
