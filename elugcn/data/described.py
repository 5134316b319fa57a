"""What a graph says about itself: its name, the names of its nodes and classes.

A ``Data`` object can carry anything under these names. What is of another kind than
expected is refused or left behind when the graph is checked, not when a trained model
is saved or loaded. A ``Batch`` of graphs has a list of what each of them says.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from elugcn.errors import InputError

# What the ``table_schema`` of a graph from tables has at least (see tables.py).
SCHEMA_KEYS = {"version", "features", "columns", "class_names"}
_COLUMN_KEYS = ("id_column", "label_column")


def described(data: Data, n: int, notes: list[str]) -> dict[str, Any]:
    """Names as the package keeps them, of a graph with n nodes.

    Args:
        data: Any graph.
        n: Its number of nodes.
        notes: Gets a sentence on what was left behind.
    """
    kept: dict[str, Any] = {"name": _name(data.get("name", None))}
    ids = data.get("node_ids", None)
    if ids is not None:
        kept["node_ids"] = _node_ids(ids, n)
    classes = data.get("classes", None)
    if isinstance(classes, np.ndarray):  # PyG datasets use the name for other things
        kept["classes"] = classes
    names = data.get("feature_names", None)
    if isinstance(names, list | tuple):
        kept["feature_names"] = [str(name) for name in names]
    schema = data.get("table_schema", None)
    if is_schema(schema):
        kept["table_schema"] = schema
    elif schema is not None:
        notes.append("table_schema is not that of a graph from tables: not used")
    return kept


def is_schema(schema: Any) -> bool:
    """Whether this is a ``table_schema`` as tables.py makes it."""
    if not isinstance(schema, dict) or not schema.keys() >= SCHEMA_KEYS:
        return False
    columns, names = schema["columns"], schema["class_names"]
    return (
        isinstance(columns, list)
        and all(map(_is_column, columns))
        and _are_strings(names)
        and all(isinstance(schema.get(key, ""), str) for key in _COLUMN_KEYS)
    )


def _is_column(column: Any) -> bool:
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        return False
    kind = column.get("kind")
    return kind == "number" or (
        kind == "category" and _are_strings(column.get("categories"))
    )


def _are_strings(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, str) for v in values)


def is_directed(data: Data) -> bool:
    """What ``data.directed`` says; False where it is absent."""
    value = data.get("directed", None)
    if isinstance(value, Tensor) and len(set(value.flatten().tolist())) == 1:
        value = value.flatten()[0].item()  # several: of a batch
    if value is None or isinstance(value, bool | np.bool_ | int):
        return bool(value)
    raise InputError(f"data.directed is a {type(value).__name__}: expected a boolean")


def one_of_batch(names: Any) -> Any:
    """Names of classes that all graphs of a batch share; anything else as it is."""
    several = isinstance(names, list) and names
    if several and isinstance(names[0], list | tuple | dict):
        if any(other != names[0] for other in names):
            raise InputError(
                "data.class_names differ between the graphs of the batch: expected one "
                "name for a class number"
            )
        return names[0]
    return names


def _name(given: Any) -> str:
    if isinstance(given, list):
        given = "+".join(dict.fromkeys(map(str, given)))
    return "graph" if given is None else str(given)


def _node_ids(ids: Any, n: int) -> list[str]:
    wanted = f"expected {n} names, one per node"
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    if isinstance(ids, str | bytes | dict) or not isinstance(ids, Iterable):
        raise InputError(f"data.node_ids is a {type(ids).__name__}: {wanted}")
    found = [str(one) for one in ids]
    if all(isinstance(one, list) for one in ids):  # of a batch
        found = [str(one) for each in ids for one in each]
    if len(found) != n:
        raise InputError(f"data.node_ids has {len(found)} entries: {wanted}")
    return found
