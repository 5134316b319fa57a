"""A graph from two tables: one row per node, one row per edge.

``TableFile.open`` reads the headers, ``TableSchema.infer`` decides what columns mean,
``TableEncoder`` makes features of them, ``build`` reads ids, labels, splits and edges,
and ``check_data`` validates the graph.
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
from elugcn.data.tables.encoder import TableEncoder
from elugcn.data.tables.read import TableFile
from elugcn.data.tables.schema import CategoryColumn, TableSchema
from elugcn.data.validation import check_data
from elugcn.errors import InputError

__all__ = ["TableEncoder", "TableSchema", "load_tables"]


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
    schema: TableSchema | dict[str, Any] | None = None,
) -> Data:
    """Load a graph from a table of nodes and a table of edges.

    Args:
        nodes: CSV, TSV (either also .gz) or Parquet file with one row per node: id,
            label (unknown where empty, or -1 beside numbers), perhaps split, and
            feature columns. Each feature column is scaled on its own: numbers are
            standardised, 0/1 columns are kept, strings with few values become one
            column per value.
        edges: The same kinds of file with one row per edge.
        id_column: Column of node ids, compared as strings; None: "id", or the
            schema's.
        label_column: Column of classes; None: "label", or the schema's.
        split_column: Column of train/val/test; None: "split" if there is one, else a
            stratified split of the labelled nodes is made.
        source_column: None: "source", "src" or "from", else the first column.
        target_column: None: "target", "dst" or "to", else the next column. Neither is
            guessed if a further column holds node ids.
        weight_column: None: "weight" if there is one, else all edges have weight 1.
        directed: Treat edges as directed; None: no, or as the schema says.
        features: None for the columns; ``"identity"`` or ``"degree"`` make features.
        val_fraction: Share of each class for validation, if a split is made.
        test_fraction: Share of each class for testing, if a split is made.
        seed: Seed of a split that is made.
        schema: ``table_schema`` of the graph that a model was trained on. This graph
            is then encoded the same way. Labels may be absent; without a split column
            all labelled nodes are test nodes.

    Returns:
        The checked graph with ``node_ids``, ``feature_names``, ``table_schema``,
        ``features_scaled`` and ``notes`` on what was changed.

    Raises:
        InputError: A file or an argument is wrong; the message names the place.
    """
    node_file = TableFile.open(nodes, "nodes")
    edge_file = TableFile.open(edges, "edges")
    check_kind(features)
    before = None if schema is None else TableSchema.parse(schema)
    training = before is None
    like = before or TableSchema.model_validate({"features": features or "columns"})
    if features is not None and features != like.features:
        raise InputError(f"features={features!r}, but the schema has {like.features!r}")
    # A graph to predict on is read like the one that was trained on.
    if directed is None:
        directed = like.directed
    wants_label = training or label_column is not None
    id_name = like.id_column if id_column is None else id_column
    id_name = node_file.require(id_name, "id_column")
    label_name = like.label_column if label_column is None else label_column
    label = None
    if wants_label or node_file.has(label_name):
        label = label_name = node_file.require(label_name, "label_column")
    split = node_file.find(split_column, "split_column", ("split",))
    special = [name for name in (id_name, label, split) if name is not None]
    if len(set(special)) < len(special):
        raise InputError(
            f"{node_file.path}: id_column, label_column and split_column name the same "
            f"column ({', '.join(special)})"
        )
    table, wanted = _read_nodes(node_file, special, like, training)
    ids = read_ids(table, id_name, node_file)

    notes: list[str] = []
    alerts: list[str] = []
    x: Any = None
    described = like
    if like.features == "columns":
        if training:
            inferred = TableSchema.infer(table, wanted, node_file)
            described = described.model_copy(update={"columns": inferred})
            described = TableEncoder.fit(described, table, node_file).schema
            notes += described.notes()
        matrix, unknown = TableEncoder(described).transform(table, node_file)
        x = torch.from_numpy(matrix)
        alerts += unknown
    y, class_names = torch.full((len(ids),), -1), list(like.class_names)
    if label is not None:
        y, class_names, doubts = read_labels(
            table, label, node_file, None if training else class_names
        )
        # Nobody reads the notes of a graph to predict on: doubts are warnings there.
        (notes if training else alerts).extend(doubts)
    masks = {}
    if split is not None:
        masks = read_masks(table, split, node_file, y, training)
    elif not training:
        masks = {"test_mask": y >= 0}
    if node_file.unnamed and training:
        notes.append(
            f"{node_file.path.name}: columns without a name were left out (an index "
            "written by pandas, or empty columns of a spreadsheet): "
            f"{len(node_file.unnamed)}"
        )
    columns, missing_weight = find_edge_columns(
        edge_file, source_column, target_column, weight_column, ids, like.edge_columns
    )
    alerts += missing_weight
    edge_index, edge_weight = read_edges(edge_file, columns, ids)

    described = described.model_copy(
        update={
            "class_names": tuple(class_names),
            "id_column": id_name,
            "label_column": label_name,
            "edge_columns": columns,
            "directed": directed,
        }
    )
    node_ids = ids.to_pylist()
    if like.features == "identity":
        described = _same_nodes(described, node_ids, node_file, training)

    for alert in alerts:
        warnings.warn(alert, UserWarning, stacklevel=2)
    data = Data(x=x, edge_index=edge_index, edge_weight=edge_weight, y=y, **masks)
    data.num_nodes = len(ids)
    data.name = node_file.path.name.split(".")[0]
    data.class_names = class_names
    data.directed = directed
    data.node_ids = node_ids
    data.feature_names = described.feature_names
    data.table_schema = described
    data.features_scaled = described.scaled and like.features == "columns"
    data.notes = notes + alerts
    checked = check_data(
        data,
        features=None if like.features == "columns" else like.features,
        val_fraction=val_fraction,
        test_fraction=test_fraction,
        seed=seed,
        require_labels=training,
    )
    checked.data.notes = list(checked.notes)
    return checked.data


def _read_nodes(
    file: TableFile, special: list[str], like: TableSchema, training: bool
) -> tuple[Any, list[str]]:
    """The node table, and the names of its feature columns."""
    wanted: list[str] = []
    if like.features == "columns" and training:
        left_out = (*special, *file.unnamed)
        wanted = [name for name in file.names if name not in left_out]
        if not wanted:
            raise InputError(
                f"{file.path}: no feature column besides {', '.join(special)}: add "
                'some, or choose features="identity" or features="degree"'
            )
    elif like.features == "columns":
        wanted = [file.require(c.name, "feature in schema") for c in like.columns]
    categories = [c.name for c in like.columns if isinstance(c, CategoryColumn)]
    table = file.read([*special, *wanted], text=[*special, *categories])
    if not table.num_rows:
        raise InputError(f"{file.path}: no nodes, the file has only a header")
    return table, wanted


def _same_nodes(
    schema: TableSchema, node_ids: list[str], file: TableFile, training: bool
) -> TableSchema:
    """Identity features belong to the nodes trained on: refuse any others."""
    digest = hashlib.sha256("\n".join(node_ids).encode()).hexdigest()
    if not training and schema.node_digest != digest:
        raise InputError(
            f'{file.path}: the schema has features="identity", which belong to the '
            "training nodes; expected the same ids in the same order"
        )
    return schema.model_copy(update={"node_digest": digest})
