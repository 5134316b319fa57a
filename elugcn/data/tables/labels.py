"""The labels of the node table: which cells are classes, and which say nothing."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from elugcn.data.tables.columns import looks_numeric, text_of
from elugcn.data.tables.files import TableFile
from elugcn.errors import InputError

# What often stands for no class; beside words only an empty cell and NaN do here.
NO_CLASS = {
    "na",
    "n/a",
    "#n/a",
    "none",
    "null",
    "nil",
    "?",
    "-",
    "-1",
    "unknown",
    "unlabeled",
}


def node_labels(
    table: pa.Table, name: str | None, file: TableFile, known: list[str] | None
) -> tuple[Tensor, list[str], list[str]]:
    """Class numbers, -1 where unknown, the class names, and what to tell the user.

    Args:
        table: The node table.
        name: Column of labels; None: all are unknown.
        file: Where the table is from.
        known: Class names a schema prescribes, or None.
    """
    if name is None:
        return torch.full((table.num_rows,), -1), known or [], []
    text = text_of(table.column(name), name, file)
    found = [v for v in pc.unique(text).to_pylist() if v and v.lower() != "nan"]
    if all(looks_numeric(value) for value in found):
        class_of, notes = _numbers(found, text, name, file, known)
    else:
        class_of, notes = {value: value for value in found}, _doubts(found, text, name)
    if known is None:
        classes = _classes(class_of, text, name, file)
    else:
        # True in one kind of file is true in another.
        truths = {name.lower(): name for name in known}
        if truths.keys() <= {"true", "false"}:
            class_of = {v: truths.get(c.lower(), c) for v, c in class_of.items()}
        # A graph to predict on needs no labels: others than the model's don't count.
        classes, notes = known, _strangers(class_of, known, file)
        class_of = {v: c for v, c in class_of.items() if c in known}
    number = {value: i for i, value in enumerate(classes)}
    codes = pc.index_in(text, value_set=pa.array(list(class_of), pa.large_string()))
    # The last entry, reached by -1, is for nodes without a label.
    lookup = np.array([*(number[c] for c in class_of.values()), -1], dtype=np.int64)
    y = torch.from_numpy(lookup[codes.fill_null(-1).to_numpy()])
    return y, classes, notes


def _numbers(
    found: list[str],
    text: pa.Array,
    name: str,
    file: TableFile,
    known: list[str] | None,
) -> tuple[dict[str, str], list[str]]:
    """The class of each cell that is a number; -1 beside others from 0 on is none."""
    for value in found:
        if not float(value).is_integer():
            raise InputError(
                f"{file.place(pc.index(text, value).as_py())}, column {name!r}: "
                f"label {value!r} is a decimal: expected classes (label_column)"
            )
    class_of = {value: value for value in found}
    if any("." in value for value in found):
        # pandas writes integers with gaps as 1.0: the same class as 1.
        class_of = {value: str(int(Decimal(value))) for value in found}
    minus = [value for value in found if float(value) == -1]
    others = [value for value in found if value not in minus]
    means_none = minus and others and all(float(value) >= 0 for value in others)
    if not means_none or (known is not None and "-1" in known):
        return class_of, []
    count = sum(_count(text, value) for value in minus)
    note = f"column {name!r}: -1 means unlabelled ({count:,} nodes)"
    return {value: class_of[value] for value in others}, [note]


def _doubts(found: list[str], text: pa.Array, name: str) -> list[str]:
    """A note on words that are classes here and may be meant to be none."""
    return [
        f"column {name!r}: {value!r} is taken for a class ({_count(text, value):,} "
        "nodes); leave cells empty where the class is unknown"
        for value in found
        if value.lower() in NO_CLASS
    ]


def _classes(
    class_of: dict[str, str], text: pa.Array, name: str, file: TableFile
) -> list[str]:
    """The classes in order; too many, or only one, are refused."""
    names = set(class_of.values())
    if not names:
        raise InputError(f"{file.path}: column {name!r} holds no label at all")
    labels = pa.array(list(class_of), pa.large_string())
    rows = pc.sum(pc.is_in(text, value_set=labels)).as_py()
    if rows >= 20 and len(names) > rows / 2:
        raise InputError(
            f"{file.path}: column {name!r} has {len(names):,} different labels "
            f"on {rows:,} nodes: expected classes (label_column)"
        )
    if len(names) == 1:
        only = min(names)
        cells = [v for v in pc.unique(text).to_pylist() if looks_numeric(v)]
        minus = only != "-1" and any(float(v) == -1 for v in cells)
        aside = " (-1 means unlabelled)" if minus else ""
        raise InputError(
            f"{file.path}: column {name!r} has only one class, {only!r}{aside}: "
            "expected at least two"
        )
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def _strangers(
    class_of: dict[str, str], known: list[str], file: TableFile
) -> list[str]:
    """A note on labels that a model does not know."""
    strange = [value for value, one in class_of.items() if one not in known]
    if not strange:
        return []
    some = ", ".join(map(repr, strange[:5])) + ", ..." * (len(strange) > 5)
    return [
        f"{file.path.name}: labels that the model does not know count as unlabelled: "
        f"{some}"
    ]


def _count(text: pa.Array, value: str) -> int:
    return int(pc.sum(pc.equal(text, value)).as_py() or 0)
