"""From two tables to the parts of a graph: ids, labels, masks and edges."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from elugcn.data.splits import SPLITS
from elugcn.data.tables.cells import looks_numeric, number_cells, text_cells
from elugcn.data.tables.read import TableFile
from elugcn.data.tables.schema import EdgeColumns
from elugcn.errors import InputError

SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
# Values of the split column, and the position of their mask in SPLITS.
_SPLIT_VALUES = {"": -1, "train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
# Words that often stand for an unknown class. Only an empty cell and NaN do here.
_NO_CLASS = {
    *("na", "n/a", "#n/a", "none", "null", "nil", "?", "-", "-1"),
    *("unknown", "unlabeled"),
}


# Nodes


def read_ids(table: pa.Table, name: str, file: TableFile) -> pa.Array:
    """Node ids as strings, present and distinct."""
    ids = text_cells(table.column(name), name, file)
    empty = pc.index(ids, "").as_py()
    if empty >= 0:
        raise InputError(f"{file.place(empty)}, column {name!r}: missing node id")
    first = pc.index_in(ids, value_set=ids).to_numpy()
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        row = int(again[0])
        raise InputError(
            f"{file.place(int(first[row]), row)}, column {name!r}: duplicate node id "
            f"{ids[row].as_py()!r}"
        )
    return ids


def read_masks(
    table: pa.Table, name: str, file: TableFile, y: Tensor, training: bool
) -> dict[str, Tensor]:
    """The masks that a split column describes.

    Args:
        table: The node table.
        name: The split column.
        file: Where the table is from.
        y: Class numbers, -1 where unknown.
        training: Whether training nodes must be there and have a label.
    """
    text = pc.utf8_lower(text_cells(table.column(name), name, file))
    values = pa.array(list(_SPLIT_VALUES), pa.large_string())
    codes = pc.index_in(text, value_set=values).fill_null(-1).to_numpy()
    if (codes < 0).any():
        row = int((codes < 0).argmax())
        raise InputError(
            f"{file.place(row)}, column {name!r}: {table.column(name)[row].as_py()!r} "
            "is not a split; expected train, val, test or an empty cell"
        )
    part = torch.from_numpy(np.array(list(_SPLIT_VALUES.values()))[codes])
    unlabelled = ((part == 0) & (y < 0)).nonzero()
    if training and len(unlabelled):
        raise InputError(
            f"{file.place(int(unlabelled[0]))}, column {name!r}: training node without "
            f"a label ({len(unlabelled):,} in all)"
        )
    if training and not bool((part == 0).any()):
        raise InputError(f"{file.path}: column {name!r} has no training node (train)")
    return {mask: part == number for number, mask in enumerate(SPLITS)}


# Labels


def read_labels(
    table: pa.Table, name: str, file: TableFile, known: list[str] | None
) -> tuple[Tensor, list[str], list[str]]:
    """Class numbers (-1 where unknown), class names, and what to tell the user.

    Args:
        table: The node table.
        name: The label column.
        file: Where the table is from.
        known: Class names of a trained model, or None. Other labels then count as
            unknown.
    """
    text = text_cells(table.column(name), name, file)
    counts = {
        count["values"]: count["counts"]
        for count in pc.value_counts(text).to_pylist()
        if count["values"] and count["values"].lower() != "nan"
    }
    notes: list[str] = []
    if all(map(looks_numeric, counts)):
        class_of = _numeric_classes(counts, text, name, file, known, notes)
    else:
        class_of = {value: value for value in counts}
        notes += [
            f"column {name!r}: {value!r} is read as a class ({count:,} nodes); leave "
            "the cell empty where the class is unknown"
            for value, count in counts.items()
            if value.lower() in _NO_CLASS
        ]
    if known is None:
        classes = _classes(class_of, counts, name, file)
    else:
        classes = known
        # True in one kind of file is true in another.
        truths = {one.lower(): one for one in known}
        if truths.keys() <= {"true", "false"}:
            class_of = {v: truths.get(c.lower(), c) for v, c in class_of.items()}
        strange = [value for value, one in class_of.items() if one not in known]
        if strange:
            some = ", ".join(map(repr, strange[:5])) + ", ..." * (len(strange) > 5)
            notes.append(
                f"{file.path.name}: labels that the model does not know count as "
                f"unknown: {some}"
            )
        class_of = {v: c for v, c in class_of.items() if c in known}
    number = {value: i for i, value in enumerate(classes)}
    codes = pc.index_in(text, value_set=pa.array(list(class_of), pa.large_string()))
    # The last entry, reached by -1, is for nodes without a label.
    lookup = np.array([*(number[c] for c in class_of.values()), -1], dtype=np.int64)
    return torch.from_numpy(lookup[codes.fill_null(-1).to_numpy()]), classes, notes


def _numeric_classes(
    counts: dict[str, int],
    text: pa.Array,
    name: str,
    file: TableFile,
    known: list[str] | None,
    notes: list[str],
) -> dict[str, str]:
    """The class of each cell that is a number; -1 beside classes 0, 1, ... is none."""
    for value in counts:
        if not float(value).is_integer():
            raise InputError(
                f"{file.place(pc.index(text, value).as_py())}, column {name!r}: label "
                f"{value!r} is a decimal; expected classes (label_column)"
            )
    class_of = {value: value for value in counts}
    if any("." in value for value in counts):
        # pandas writes integers with gaps as 1.0: the same class as 1.
        class_of = {value: str(int(Decimal(value))) for value in counts}
    minus = [value for value in counts if float(value) == -1]
    others = [value for value in counts if value not in minus]
    unknown = minus and others and all(float(value) >= 0 for value in others)
    if not unknown or (known is not None and "-1" in known):
        return class_of
    count = sum(counts[value] for value in minus)
    notes.append(f"column {name!r}: -1 means unlabelled ({count:,} nodes)")
    return {value: class_of[value] for value in others}


def _classes(
    class_of: dict[str, str], counts: dict[str, int], name: str, file: TableFile
) -> list[str]:
    """The classes in order; too many, or fewer than two, are refused."""
    names = set(class_of.values())
    rows = sum(counts[value] for value in class_of)
    if not names:
        raise InputError(f"{file.path}: column {name!r} has no labels")
    if rows >= 20 and len(names) > rows / 2:
        raise InputError(
            f"{file.path}: column {name!r} has {len(names):,} different labels on "
            f"{rows:,} nodes; expected classes (label_column)"
        )
    if len(names) == 1:
        aside = " (-1 means unlabelled)" if len(counts) > len(class_of) else ""
        raise InputError(
            f"{file.path}: column {name!r} has only one class, {min(names)!r}{aside}; "
            "expected at least two"
        )
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


# Edges


def find_edge_columns(
    file: TableFile,
    source: str | None,
    target: str | None,
    weight: str | None,
    ids: pa.Array,
    like: EdgeColumns | None,
) -> tuple[EdgeColumns, list[str]]:
    """Decide which column is which, from what the user named and usual names.

    Args:
        file: The edge table.
        source: Column that the user named, or None.
        target: Likewise.
        weight: Likewise.
        ids: Node ids, to recognise a file without a header.
        like: Columns of the edge table that a model was trained on, or None. They
            come before usual names.

    Returns:
        The columns, and what to warn of.
    """
    alerts: list[str] = []
    if weight is not None or like is None:
        found = file.find(weight, "weight_column", ("weight",))
        # What the user calls an end is not the weight, whatever its name.
        weight = None if weight is None and found in (source, target) else found
    elif like.weight is not None and not file.has(like.weight):
        alerts.append(
            f"{file.path}: no column {like.weight!r}, which has the weights of the "
            "training graph: all edges have weight 1 (weight_column)"
        )
    else:
        weight = like.weight
    unnamed = source is None and target is None
    if unnamed and like and file.has(like.source) and file.has(like.target):
        source, target = like.source, like.target
    source = file.find(source, "source_column", SOURCE_NAMES)
    target = file.find(target, "target_column", TARGET_NAMES)
    free = [n for n in file.names if n not in (source, target, weight, *file.unnamed)]
    open_ends = (source is None) + (target is None)
    if len(free) < open_ends:
        raise InputError(
            f"{file.path}: columns {', '.join(file.names)}: expected one for the "
            "source and one for the target of each edge (source_column, "
            f"target_column){file.separator_hint}"
        )
    source = source or free.pop(0)
    target = target or free.pop(0)
    if open_ends:
        _refuse_further_ends(file, (source, target), free, ids)
    roles = {"source": source, "target": target, "weight": weight}
    for first, second in (
        ("source", "target"),
        ("source", "weight"),
        ("target", "weight"),
    ):
        if roles[first] == roles[second]:
            raise InputError(
                f"{file.path}: {first} and {second} are the same column, "
                f"{roles[first]!r} ({first}_column, {second}_column)"
            )
    header = pa.array([source, target], pa.large_string())
    if open_ends == 2 and pc.all(pc.is_in(header, value_set=ids)).as_py():
        raise InputError(
            f"{file.path}, line 1: {source!r} and {target!r} are node ids; expected a "
            "header such as source,target"
        )
    return EdgeColumns(source=source, target=target, weight=weight), alerts


def _refuse_further_ends(
    file: TableFile, taken: tuple[str, str], others: list[str], ids: pa.Array
) -> None:
    """Refuse to guess the ends of edges where another column holds node ids, too."""
    table = file.read(others, text=others) if others else pa.table({})
    for name in others:
        try:
            cells = text_cells(table.column(name), name, file)
        except InputError:
            continue  # not a column of ids
        if len(cells) and pc.all(pc.is_in(cells, value_set=ids)).as_py():
            raise InputError(
                f"{file.path}: columns {', '.join(map(repr, (*taken, name)))} all hold "
                "node ids; name the ends of the edges (source_column, target_column)"
            )


def read_edges(
    file: TableFile, columns: EdgeColumns, ids: pa.Array
) -> tuple[Tensor, Tensor | None]:
    """``edge_index`` [2, E] in the order of the file, and ``edge_weight`` or None.

    Args:
        file: The edge table.
        columns: Which column is which.
        ids: Node ids in the order of the nodes.
    """
    ends = [columns.source, columns.target]
    names = ends if columns.weight is None else [*ends, columns.weight]
    table = file.read(names, text=ends)
    weight = None
    if columns.weight is not None and table.num_rows:
        cells = table.column(columns.weight)
        values = number_cells(cells, columns.weight, file, missing=False)
        if (values < 0).any():
            row = int((values < 0).argmax())
            raise InputError(
                f"{file.place(row)}, column {columns.weight!r}: weight {values[row]:g} "
                "is negative; expected a number >= 0"
            )
        weight = torch.from_numpy(values).float()
    positions = [_positions(table, name, file, ids) for name in ends]
    return torch.from_numpy(np.stack(positions)), weight


def _positions(
    table: pa.Table, name: str, file: TableFile, ids: pa.Array
) -> NDArray[np.int64]:
    text = text_cells(table.column(name), name, file)
    found = pc.index_in(text, value_set=ids)
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        value = text[row].as_py()
        problem = f"node id {value!r} is not in the nodes file"
        raise InputError(
            f"{file.place(row)}, column {name!r}: "
            f"{problem if value else 'missing node id'}"
        )
    positions: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions
