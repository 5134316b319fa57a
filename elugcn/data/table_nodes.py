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
) -> tuple[Tensor, list[str]]:
    """Class numbers, -1 where unknown, and the class names.

    Args:
        table: The node table.
        name: Column of labels; None: all are unknown.
        file: Where the table is from.
        known: Class names a schema prescribes, or None.
    """
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
    notes = []
    if training and (lost := int(((part > 0) & ~labelled).sum())):
        notes.append(
            f"{lost:,} validation or test nodes have no label and were left out"
        )
    train, val, test = (labelled & (part == number) for number in range(3))
    return (train, val, test), notes
