"""From two tables to the parts of a graph: ids, splits, labels and edges."""

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from elugcn.data.splits import SPLITS
from elugcn.data.tables.schema import EdgeColumns
from elugcn.data.tables.table import Table, is_number
from elugcn.errors import InputError

# Values of the split column, and the position of their mask in SPLITS.
_SPLIT_VALUES = {"": -1, "train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
# Words that often stand for an unknown class. Only an empty cell and NaN do here.
_NO_CLASS = re.compile("#?n/?a|none|null|nil|[?]|-1?|unknown|unlabeled", re.I)
# Usual names of the columns of an edge table.
_USUAL = {
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight",),
}

Roles = dict[str, str | None]


def read_ids(table: Table, name: str) -> pa.Array:
    """Node ids as strings, present and distinct."""
    ids = table.text(name)
    table.refuse(name, pc.equal(ids, ""), "missing node id")
    first = pc.index_in(ids, value_set=ids).to_numpy()
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        row = int(again[0])
        problem = f"duplicate node id {ids[row].as_py()!r}"
        raise table.error(problem, name, int(first[row]), row)
    return ids


def read_masks(table: Table, name: str, y: Tensor, training: bool) -> dict[str, Tensor]:
    """The masks of a split column; training needs labelled training nodes."""
    text = table.text(name)
    values = pa.array(list(_SPLIT_VALUES), pa.large_string())
    codes = pc.index_in(pc.utf8_lower(text), value_set=values)
    expected = "expected train, val, test or an empty cell"
    table.refuse(name, codes.is_null(), "{!r} is not a split; " + expected)
    part = torch.tensor(list(_SPLIT_VALUES.values()))[torch.tensor(codes.to_numpy())]
    if training:
        unlabelled = (part == 0) & (y < 0)
        problem = f"training node without a label ({int(unlabelled.sum()):,} in all)"
        table.refuse(name, unlabelled, problem)
        if not (part == 0).any():
            raise table.error("has no training node (train)", name)
    return {mask: part == number for number, mask in enumerate(SPLITS)}


def read_labels(
    table: Table, name: str, known: Sequence[str] | None
) -> tuple[Tensor, list[str], list[str]]:
    """Class numbers (-1 where unknown), class names, and what to tell the user.

    ``known`` are the class names of a trained model: other labels count as unknown.
    """
    text, notes = table.text(name), []
    counts: dict[str, int] = {
        count["values"]: count["counts"]
        for count in pc.value_counts(text).to_pylist()
        if count["values"].lower() not in ("", "nan")
    }
    class_of = {value: value for value in counts}
    if all(map(is_number, counts)):
        fractions = [value for value in counts if not float(value).is_integer()]
        wrong = pc.is_in(text, value_set=pa.array(fractions, pa.large_string()))
        problem = "label {!r} is a decimal; expected classes (label_column)"
        table.refuse(name, wrong, problem)
        # pandas writes integers with gaps as 1.0: the same class as 1.
        if any("." in value for value in counts):
            class_of = {value: str(int(Decimal(value))) for value in counts}
        minus = [value for value in counts if float(value) == -1]
        others = [value for value in counts if float(value) >= 0]
        # Beside the classes 0, 1, ..., -1 means unknown.
        unknown = minus and others and len(minus) + len(others) == len(counts)
        if unknown and "-1" not in (known or ()):
            class_of = {value: class_of[value] for value in others}
            count = sum(counts[value] for value in minus)
            notes.append(f"column {name!r}: -1 means unlabelled ({count:,} nodes)")
    else:
        notes += [
            f"column {name!r}: {value!r} is read as a class ({count:,} nodes); leave "
            "the cell empty where the class is unknown"
            for value, count in counts.items()
            if _NO_CLASS.fullmatch(value)
        ]
    if known is None:
        classes = _sorted_classes(table, name, class_of, counts)
    else:
        classes = list(known)
        # True in one kind of file is true in another.
        truths = {one.lower(): one for one in classes}
        if truths.keys() <= {"true", "false"}:
            class_of = {v: truths.get(c.lower(), c) for v, c in class_of.items()}
        strange = [value for value, one in class_of.items() if one not in classes]
        if strange:
            some = ", ".join(map(repr, strange[:5])) + ", ..." * (len(strange) > 5)
            notes.append(
                f"{table.path.name}: labels that the model does not know count as "
                f"unknown: {some}"
            )
    number = {value: i for i, value in enumerate(classes)}
    codes = pc.index_in(text, value_set=pa.array(list(class_of), pa.large_string()))
    # The last entry, reached by -1, is for nodes without a label.
    lookup = torch.tensor([*(number.get(c, -1) for c in class_of.values()), -1])
    return lookup[torch.tensor(codes.fill_null(-1).to_numpy())], classes, notes


def _sorted_classes(
    table: Table, name: str, class_of: dict[str, str], counts: dict[str, int]
) -> list[str]:
    """The classes in order; so many that they are hardly classes are refused."""
    names = set(class_of.values())
    rows = sum(counts[value] for value in class_of)
    if rows >= 20 and len(names) > rows / 2:
        found = f"has {len(names):,} different labels on {rows:,} nodes"
        raise table.error(f"{found}; expected classes (label_column)", name)
    if all(re.fullmatch(r"[+-]?\d+", one) for one in names):
        return sorted(names, key=lambda one: (int(one), one))
    return sorted(names)


def find_edge_columns(
    table: Table, given: Roles, ids: pa.Array, like: EdgeColumns | None
) -> tuple[EdgeColumns, list[str]]:
    """Which column is the source, the target and the weight, and what to warn of.

    What the user names in ``given`` comes first, then the columns that a model was
    trained on (``like``), then usual names.
    """
    alerts: list[str] = []
    roles: Roles = {}
    for role, usual in _USUAL.items():
        if (name := given[role]) is not None:
            roles[role] = table.require(name, f"{role}_column")
            continue
        before = getattr(like, role, None)
        # A weight that the model was not trained with does not count.
        others = () if like is not None and role == "weight" else usual
        roles[role] = table.find((before, *others))
        if role == "weight" and before is not None and roles[role] is None:
            alerts.append(
                f"{table.path}: no column {before!r}, which has the weights of the "
                "training graph: all edges have weight 1 (weight_column)"
            )
    source, target, weight = roles.values()
    if given["weight"] is None and weight in (source, target):
        roles["weight"] = None  # what the user calls an end is not the weight
    taken = {*roles.values(), *table.unnamed}
    free = [name for name in table.names if name not in taken]
    ends = [role for role in ("source", "target") if roles[role] is None]
    if len(free) < len(ends):
        raise table.error(
            "expected one column for the source and one for the target of each edge "
            f"(source_column, target_column); the file has: {table.shown}"
        )
    for role in ends:
        roles[role] = free.pop(0)
    for first, second in combinations(roles, 2):
        if roles[first] == roles[second]:
            raise table.error(
                f"{first} and {second} are the same column, {roles[first]!r} "
                f"({first}_column, {second}_column)"
            )
    if ends:
        _refuse_other_guesses(table, roles, free, ids, headless=len(ends) == 2)
    return EdgeColumns.model_validate(roles), alerts


def _refuse_other_guesses(
    table: Table, roles: Roles, others: list[str], ids: pa.Array, headless: bool
) -> None:
    """Refuse to guess the ends of edges where another column holds node ids, too."""
    ends = [roles["source"], roles["target"]]
    if headless and _all_in(pa.array(ends, pa.large_string()), ids):
        found = f"{ends[0]!r} and {ends[1]!r} are node ids"
        raise table.error(f"{found}; expected a header such as source,target", None, -1)
    table.read(others, text=others)
    for name in others:
        try:
            cells = table.text(name, breaks=True)
        except InputError:
            continue  # not a column of ids
        if _all_in(cells, ids):
            raise table.error(
                f"columns {', '.join(map(repr, (*ends, name)))} all hold node ids; "
                "name the ends of the edges (source_column, target_column)"
            )


def _all_in(cells: pa.Array, ids: pa.Array) -> bool:
    return bool(len(cells) and pc.all(pc.is_in(cells, value_set=ids)).as_py())


def read_edges(
    table: Table, columns: EdgeColumns, ids: pa.Array
) -> tuple[Tensor, Tensor | None]:
    """``edge_index`` [2, E] in the order of the file, and ``edge_weight`` or None."""
    ends = [columns.source, columns.target]
    table.read([*ends, *([columns.weight] if columns.weight else [])], text=ends)
    weight = None
    if columns.weight is not None and table.rows:
        values = table.numbers(columns.weight, missing=False)
        problem = "weight {} is negative; expected a number >= 0"
        table.refuse(columns.weight, values < 0, problem)
        weight = torch.from_numpy(values).float()
    positions = []
    for name in ends:
        text = table.text(name)
        found = pc.index_in(text, value_set=ids)
        table.refuse(name, pc.equal(text, ""), "missing node id")
        table.refuse(name, found.is_null(), "node id {!r} is not in the nodes file")
        positions.append(found.to_numpy().astype(np.int64))
    return torch.from_numpy(np.stack(positions)), weight
