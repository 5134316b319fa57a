"""The node table besides features and labels: ids, and who trains."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from elugcn.data.holdout import split_note, stratified_holdout
from elugcn.data.tables.columns import text_of
from elugcn.data.tables.files import TableFile
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
