"""A graph from two tables: one row per node, one row per edge."""

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.convert import clean_edges, count_isolated, made_features
from elugcn.data.holdout import stratified_holdout
from elugcn.data.table_features import (
    TableFile,
    describe_columns,
    encode_columns,
    looks_numeric,
    numbers_of,
    text_of,
)
from elugcn.errors import InputError

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
SPLIT_VALUES = {
    "": -1,
    "train": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
}
SCHEMA_VERSION = 1


def load_tables(
    nodes: str | Path,
    edges: str | Path,
    *,
    id_column: str = "id",
    label_column: str = "label",
    split_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    weight_column: str | None = None,
    directed: bool = False,
    features: str | None = None,
    val_fraction: float = 0.2,
    test_fraction: float = 0.2,
    seed: int = 0,
    schema: dict[str, Any] | None = None,
) -> Data:
    """Load a graph from a table of nodes and a table of edges.

    Args:
        nodes: CSV, TSV (either also .gz) or Parquet file with one row per node:
            id, label (empty: unknown), perhaps split, and feature columns.
            Numbers and booleans are used as they are, strings with few values
            become one column per value.
        edges: The same kinds of file with one row per edge.
        id_column: Column of node ids; ids are compared as strings.
        label_column: Column of classes.
        split_column: Column of train/val/test; None: "split" if there is one,
            else a stratified split of the labelled nodes is made.
        source_column: None: "source", "src" or "from", else the first column.
        target_column: None: "target", "dst" or "to", else the next column.
        weight_column: None: "weight" if there is one, else all weigh 1.
        directed: Keep the direction of the edges.
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
    node_file.require(id_column, "id_column")
    label: str | None = label_column
    if schema is None or label_column in node_file.names:
        node_file.require(label_column, "label_column")
    else:
        label = None
    split = _find(node_file, split_column, "split_column", ("split",))
    special = [name for name in (id_column, label, split) if name is not None]
    if len(set(special)) < len(special):
        raise InputError(
            f"{node_file.path}: id_column, label_column and split_column name the same "
            f"column ({', '.join(special)})"
        )

    columns = schema["columns"] if schema is not None else []
    wanted = _wanted_columns(node_file, features, special, schema)
    categories = [c["name"] for c in columns if c["kind"] == "category"]
    table = node_file.read([*special, *wanted], text=[*special, *categories])
    if not table.num_rows:
        raise InputError(f"{node_file.path}: no nodes, the file has a header only")

    ids = _node_ids(table, id_column, node_file)
    known = None if schema is None else list(schema["class_names"])
    y, class_names = _labels(table, label, node_file, known)
    masks, notes = _masks(
        table, split, node_file, y, val_fraction, test_fraction, seed, schema is None
    )
    alerts: list[str] = []
    if node_file.unnamed:
        notes.append(
            f"{node_file.path.name}: columns without a name were left out (an index "
            f"written by pandas?): {len(node_file.unnamed)}"
        )
    if features == "columns":
        if schema is None:
            columns = describe_columns(table, wanted, node_file)
        matrix, names, alerts = encode_columns(table, columns, node_file)
    edge_columns = _edge_columns(
        edge_file, source_column, target_column, weight_column, ids
    )
    edge_index, edge_weight, edge_notes = _edges(edge_file, edge_columns, ids, directed)
    if features == "columns":
        x = torch.from_numpy(matrix)
    else:
        x = made_features(features, edge_index, len(ids))
        names = [] if features == "identity" else ["log_degree"]
    if not edge_index.shape[1]:
        alerts.append(f"{edge_file.path}: no edges between different nodes")

    data = Data(x=x, edge_index=edge_index, y=y)
    if edge_weight is not None:
        data.edge_weight = edge_weight
    data.train_mask, data.val_mask, data.test_mask = masks
    data.name = node_file.path.name.split(".")[0]
    data.class_names = class_names
    data.directed = directed
    data.node_ids = ids.to_pylist()
    data.feature_names = names
    data.table_schema = {
        "version": SCHEMA_VERSION,
        "features": features,
        "columns": columns,
        "class_names": class_names,
        "id_column": id_column,
        "label_column": label_column,
        "directed": directed,
    }
    if features == "identity":
        _same_nodes(data, node_file, schema)
    for alert in alerts:
        warnings.warn(alert, UserWarning, stacklevel=2)
    data.notes = [*notes, *edge_notes, *alerts]
    return data


def _feature_kind(features: str | None, schema: dict[str, Any] | None) -> str:
    if features not in (None, "identity", "degree"):
        raise InputError(
            f'features is {features!r}: expected None, "identity" or "degree"'
        )
    if schema is None:
        return features or "columns"
    missing = {"version", "features", "columns", "class_names"} - set(schema)
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


def _wanted_columns(
    file: TableFile,
    features: str,
    special: Sequence[str],
    schema: dict[str, Any] | None,
) -> list[str]:
    """Names of the columns that become features."""
    if features != "columns":
        return []
    if schema is not None:
        return [file.require(c["name"], "feature in schema") for c in schema["columns"]]
    left_out = (*special, *file.unnamed)
    wanted = [name for name in file.names if name not in left_out]
    if not wanted:
        raise InputError(
            f"{file.path}: no feature column besides {', '.join(special)}: add some, "
            'or choose features="identity" or features="degree"'
        )
    return wanted


def _find(
    file: TableFile, name: str | None, option: str, usual: Sequence[str]
) -> str | None:
    """The column the user named, else one with a usual name, else None."""
    if name is not None:
        return file.require(name, option)
    lower = {column.lower(): column for column in reversed(file.names)}
    return next((lower[name] for name in usual if name in lower), None)


def _node_ids(table: pa.Table, name: str, file: TableFile) -> pa.Array:
    ids = text_of(table.column(name), name, file)
    empty = pc.index(ids, "").as_py()
    if empty >= 0:
        raise InputError(
            f"{file.place(empty)}, column {name!r}: the node id is missing"
        )
    first = pc.index_in(ids, value_set=ids).to_numpy()
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        row = int(again[0])
        raise InputError(
            f"{file.place(int(first[row]), row)}, column {name!r}: node id "
            f"{ids[row].as_py()!r} is there twice, expected each id once"
        )
    return ids


def _same_nodes(data: Data, file: TableFile, schema: dict[str, Any] | None) -> None:
    """Identity features mean nothing on nodes other than those trained on."""
    digest = hashlib.sha256("\n".join(data.node_ids).encode()).hexdigest()
    if schema is not None and schema.get("node_digest") != digest:
        raise InputError(
            f'{file.path}: the schema has features="identity", which belong to the '
            "nodes trained on; expected the same ids in the same order"
        )
    data.table_schema["node_digest"] = digest


def _labels(
    table: pa.Table, name: str | None, file: TableFile, known: list[str] | None
) -> tuple[Tensor, list[str]]:
    """Class numbers, -1 where unknown, and the class names."""
    if name is None:
        return torch.full((table.num_rows,), -1), known or []
    text = text_of(table.column(name), name, file)
    found = [v for v in pc.unique(text).to_pylist() if v and v.lower() != "nan"]
    plain = {value: value for value in found}
    if all(looks_numeric(value) for value in found):
        for value in found:
            if not float(value).is_integer():
                raise InputError(
                    f"{file.place(pc.index(text, value).as_py())}, column {name!r}: "
                    f"label {value!r} is a decimal: expected classes (label_column)"
                )
        if any("." in value for value in found):
            # pandas writes integers with gaps as 1.0: the same class as 1.
            plain = {value: str(int(float(value))) for value in found}
    if known is None and not found:
        raise InputError(f"{file.path}: column {name!r} holds no label at all")
    if known is None:
        classes = _sorted_classes(set(plain.values()))
        rows = table.num_rows - int(pc.sum(pc.equal(text, "")).as_py() or 0)
        if rows >= 20 and len(classes) > rows / 2:
            raise InputError(
                f"{file.path}: column {name!r} has {len(classes):,} different labels "
                f"on {rows:,} nodes: expected classes (label_column)"
            )
    else:
        classes = known
        for value in found:
            if plain[value] not in known:
                raise InputError(
                    f"{file.place(pc.index(text, value).as_py())}, column {name!r}: "
                    f"label {value!r} is not one of the schema: {', '.join(known)}"
                )
    number = {value: i for i, value in enumerate(classes)}
    codes = pc.index_in(text, value_set=pa.array(found, pa.large_string()))
    # The last entry, reached by -1, is for nodes without a label.
    lookup = np.array([*(number[plain[v]] for v in found), -1], dtype=np.int64)
    return torch.from_numpy(lookup[codes.fill_null(-1).to_numpy()]), classes


def _sorted_classes(names: set[str]) -> list[str]:
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _masks(
    table: pa.Table,
    name: str | None,
    file: TableFile,
    y: Tensor,
    val_fraction: float,
    test_fraction: float,
    seed: int,
    training: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor], list[str]]:
    labelled = y >= 0
    none = torch.zeros_like(labelled)
    if name is None and not training:
        return (none, none.clone(), labelled), []
    if name is None:
        masks = stratified_holdout(y, labelled, val_fraction, test_fraction, seed)
        sizes = [int(mask.sum()) for mask in masks]
        return masks, [
            f"there is no split column: a stratified split was made with seed {seed} "
            f"({sizes[0]:,} train, {sizes[1]:,} validation, {sizes[2]:,} test)"
        ]
    text = pc.utf8_lower(text_of(table.column(name), name, file))
    values = pa.array(list(SPLIT_VALUES), pa.large_string())
    codes = pc.index_in(text, value_set=values).fill_null(-1).to_numpy()
    if (codes < 0).any():
        row = int((codes < 0).argmax())
        raise InputError(
            f"{file.place(row)}, column {name!r}: {table.column(name)[row].as_py()!r} "
            "is no split, expected train, val, test or nothing"
        )
    part = torch.from_numpy(np.array(list(SPLIT_VALUES.values()))[codes])
    unlabelled = ((part == 0) & ~labelled).nonzero()
    if training and len(unlabelled):
        raise InputError(
            f"{file.place(int(unlabelled[0]))}, column {name!r}: a training node "
            f"without a label ({len(unlabelled):,} in all)"
        )
    notes = []
    if training and (lost := int(((part > 0) & ~labelled).sum())):
        notes.append(
            f"{lost:,} validation or test nodes have no label and were left out"
        )
    train, val, test = (labelled & (part == number) for number in range(3))
    return (train, val, test), notes


@dataclass(frozen=True)
class _EdgeColumns:
    source: str
    target: str
    weight: str | None


def _edge_columns(
    file: TableFile,
    source: str | None,
    target: str | None,
    weight: str | None,
    ids: pa.Array,
) -> _EdgeColumns:
    weight = _find(file, weight, "weight_column", ("weight",))
    source = _find(file, source, "source_column", SOURCE_NAMES)
    target = _find(file, target, "target_column", TARGET_NAMES)
    taken = (source, target, weight, *file.unnamed)
    free = [name for name in file.names if name not in taken]
    guessed = source is None and target is None
    if len(free) < (source is None) + (target is None):
        raise InputError(
            f"{file.path}: columns {', '.join(file.names)}: expected one for the "
            "source and one for the target of each edge (source_column, target_column)"
        )
    source = source or free.pop(0)
    target = target or free.pop(0)
    if source == target:
        raise InputError(f"{file.path}: source and target are one column, {source!r}")
    header = pa.array([source, target], pa.large_string())
    if guessed and pc.all(pc.is_in(header, value_set=ids)).as_py():
        raise InputError(
            f"{file.path}, line 1: {source!r} and {target!r} are node ids, expected a "
            "header such as source,target"
        )
    return _EdgeColumns(source, target, weight)


def _edges(
    file: TableFile, columns: _EdgeColumns, ids: pa.Array, directed: bool
) -> tuple[Tensor, Tensor | None, list[str]]:
    ends = [columns.source, columns.target]
    weights = [] if columns.weight is None else [columns.weight]
    table = file.read([*ends, *weights], text=ends)
    weight = None
    if columns.weight is not None and table.num_rows:
        weight = numbers_of(table.column(columns.weight), columns.weight, file)
        if (weight < 0).any():
            row = int((weight < 0).argmax())
            raise InputError(
                f"{file.place(row)}, column {columns.weight!r}: weight {weight[row]} "
                "is negative, expected a number >= 0"
            )
    source, target = (_positions(table, name, file, ids) for name in ends)
    edge_index, edge_weight, report = clean_edges(
        source, target, weight, len(ids), directed=directed
    )
    notes = report.dropped()
    if report.mutual and report.one_way:
        notes.append(
            f"{report.mutual:,} edges were given in both directions and "
            f"{report.one_way:,} in one: all count as undirected"
        )
    if directed:
        notes.append(f"edges keep their direction: {edge_index.shape[1]:,} edges")
    if edge_index.shape[1] and (alone := count_isolated(edge_index, len(ids))):
        notes.append(f"{alone:,} isolated nodes")
    return edge_index, edge_weight, notes


def _positions(
    table: pa.Table, name: str, file: TableFile, ids: pa.Array
) -> NDArray[np.int64]:
    text = text_of(table.column(name), name, file)
    found = pc.index_in(text, value_set=ids)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        value = text[row].as_py()
        what = f"node id {value!r} is not in the nodes file"
        raise InputError(
            f"{file.place(row)}, column {name!r}: "
            f"{what if value else 'the node id is missing'}"
        )
    positions: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions
