"""The node table besides its features: ids, labels and who trains."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from elugcn.data.holdout import split_note, stratified_holdout
from elugcn.data.table_columns import looks_numeric, text_of
from elugcn.data.table_files import TableFile
from elugcn.errors import InputError

SPLIT_VALUES = {
    "": -1,
    "train": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
}

# Words that often stand for no class; only an empty cell and NaN do here.
NO_CLASS = {
    "na",
    "n/a",
    "#n/a",
    "none",
    "null",
    "nil",
    "?",
    "-",
    "unknown",
    "unlabeled",
}


def node_ids(table: pa.Table, name: str, file: TableFile) -> pa.Array:
    """The ids as strings, each there and there once."""
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


def node_labels(
    table: pa.Table, name: str | None, file: TableFile, known: list[str] | None
) -> tuple[Tensor, list[str], list[str]]:
    """Class numbers, -1 where unknown, the class names, and notes.

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
        found, plain, notes = _without_minus_one(found, plain, known, text, name)
    else:
        notes = _doubtful(found, text, name)
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
        if len(classes) == 1:
            raise InputError(
                f"{file.path}: column {name!r} has only one class, {classes[0]!r}: "
                "expected at least two"
            )
    else:
        # A graph to predict on needs no labels: others than the model's don't count.
        classes, notes = known, []
        if strange := [value for value in found if plain[value] not in known]:
            some = ", ".join(map(repr, strange[:5])) + ", ..." * (len(strange) > 5)
            notes.append(
                f"{file.path.name}: labels that the model does not know count as "
                f"unlabelled: {some}"
            )
        found = [value for value in found if plain[value] in known]
    number = {value: i for i, value in enumerate(classes)}
    codes = pc.index_in(text, value_set=pa.array(found, pa.large_string()))
    # The last entry, reached by -1, is for nodes without a label.
    lookup = np.array([*(number[plain[v]] for v in found), -1], dtype=np.int64)
    y = torch.from_numpy(lookup[codes.fill_null(-1).to_numpy()])
    return y, classes, notes


def _without_minus_one(
    found: list[str],
    plain: dict[str, str],
    known: list[str] | None,
    text: pa.Array,
    name: str,
) -> tuple[list[str], dict[str, str], list[str]]:
    """Labels that are numbers from 0 on: -1 beside them is how many say unlabelled."""
    minus = {value for value in found if float(value) == -1}
    others = [value for value in found if value not in minus]
    means_none = minus and others and all(float(value) >= 0 for value in others)
    if not means_none or (known is not None and "-1" in known):
        return found, plain, []
    count = sum(int(pc.sum(pc.equal(text, value)).as_py()) for value in minus)
    note = f"column {name!r}: -1 means unlabelled ({count:,} nodes)"
    return others, {value: plain[value] for value in others}, [note]


def _doubtful(found: list[str], text: pa.Array, name: str) -> list[str]:
    """A note on words that are classes here and may be meant to be none."""
    notes = []
    for value in (v for v in found if v.lower() in NO_CLASS):
        count = int(pc.sum(pc.equal(text, value)).as_py())
        notes.append(
            f"column {name!r}: {value!r} is taken for a class ({count:,} nodes); leave "
            "cells empty where the class is unknown"
        )
    return notes


def _sorted_classes(names: set[str]) -> list[str]:
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def node_masks(
    table: pa.Table,
    name: str | None,
    file: TableFile,
    y: Tensor,
    val_fraction: float,
    test_fraction: float,
    seed: int,
    training: bool,
) -> tuple[tuple[Tensor, Tensor, Tensor], list[str]]:
    """Who trains, validates and tests, and notes on it.

    Args:
        table: The node table.
        name: Column of the split; None: a split is made.
        file: Where the table is from.
        y: Class numbers, -1 where unknown.
        val_fraction: Share for validation where a split is made.
        test_fraction: Share for testing where a split is made.
        seed: Seed of a split that is made.
        training: False for a graph to predict on: without a split column, all
            labelled nodes test.
    """
    labelled = y >= 0
    none = torch.zeros_like(labelled)
    if name is None and not training:
        return (none, none.clone(), labelled), []
    if name is None:
        masks = stratified_holdout(y, labelled, val_fraction, test_fraction, seed)
        return masks, [f"there is no split column: {split_note(masks, seed)}"]
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
    if training and not bool((part == 0).any()):
        raise InputError(
            f"{file.path}: column {name!r} names no training node (expected train)"
        )
    notes = []
    if training and (lost := int(((part > 0) & ~labelled).sum())):
        notes.append(
            f"{lost:,} validation or test nodes have no label and were left out"
        )
    train, val, test = (labelled & (part == number) for number in range(3))
    return (train, val, test), notes
