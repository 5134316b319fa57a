"""Which nodes train, validate and test: every random split in one place.

All draws are numpy on node numbers, seeded by an integer and nothing else: the same
seed gives the same nodes on every machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elugcn.errors import InputError

Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]

SPLITS = ("train_mask", "val_mask", "test_mask")

# Each kind of draw has its own random stream: labels drawn with seed 3 do not repeat
# the choices that made split 3.
_STREAMS = {"split": 0, "labels": 1, "validation": 2, "graph": 3, "folds": 4}


class Split(NamedTuple):
    """Three disjoint masks over the nodes, bool [n] each."""

    train: Mask
    val: Mask
    test: Mask


def generator(seed: int, stream: str) -> np.random.Generator:
    """Random numbers of a stream, such as "split" or "labels"."""
    return np.random.default_rng([seed, _STREAMS[stream]])


def draw_per_class(
    y: Labels,
    count: ArrayLike,
    eligible: Mask,
    rng: np.random.Generator,
    class_names: Sequence[str],
    what: str,
) -> Mask:
    """Draw eligible nodes of each class: ``count`` is one number, or one per class.

    A class that has too few is refused; ``what`` names the argument in the message.
    """
    chosen = np.zeros(y.size, dtype=np.bool_)
    counts = np.broadcast_to(count, len(class_names)).tolist()
    for label, (name, size) in enumerate(zip(class_names, counts, strict=True)):
        members = np.flatnonzero(eligible & (y == label))
        if members.size < size:
            found = f"has only {members.size} labelled nodes to draw from"
            raise InputError(f"{what}={size}: class {str(name)!r} {found}")
        chosen[rng.choice(members, size=size, replace=False)] = True
    return chosen


def per_class_split(
    y: Labels,
    n_train: ArrayLike,
    n_val: ArrayLike,
    seed: int,
    class_names: Sequence[str],
) -> Split:
    """``n_train`` and ``n_val`` random nodes per class; the other known ones test."""
    rng = generator(seed, "split")
    known, total = y >= 0, np.add(n_train, n_val)
    both = draw_per_class(y, total, known, rng, class_names, "train + val")
    train = draw_per_class(y, n_train, both, rng, class_names, "train")
    return Split(train, both & ~train, known & ~both)


def random_split(y: Labels, train: float, val: float, seed: int) -> Split:
    """Shares of the known nodes, whatever their class; the rest test.

    Small classes may be absent from the training nodes.
    """
    order = generator(seed, "split").permutation(np.flatnonzero(y >= 0))
    n_train = round(train * order.size)
    n_val = min(round(val * order.size), order.size - n_train)
    parts = np.split(order, [n_train, n_train + n_val])
    return Split(*(np.isin(np.arange(y.size), part) for part in parts))


def check_fractions(val_fraction: float, test_fraction: float) -> None:
    """Refuse fractions that leave nothing to train on."""
    given = {"val_fraction": val_fraction, "test_fraction": test_fraction}
    for name, value in given.items():
        if not 0 <= value < 1:
            raise InputError(f"{name}={value}: expected a number in [0, 1)")
    if val_fraction + test_fraction >= 1:
        raise InputError(
            f"val_fraction={val_fraction} and test_fraction={test_fraction} add up to "
            "1 or more: nothing is left for training"
        )


def stratified_split(
    y: Labels, labelled: Mask, val_fraction: float, test_fraction: float, seed: int
) -> Split:
    """Split the labelled nodes class by class.

    Every class keeps at least one training label. A class with one label only trains;
    with two it trains and validates; with three or more it also tests. A fraction of 0
    gives none.
    """
    nodes = np.random.default_rng(seed).permutation(np.flatnonzero(labelled))
    masks = np.zeros((3, len(y)), dtype=bool)
    for label in np.unique(y[nodes]):
        members = nodes[y[nodes] == label]
        size = len(members)
        val = max(1, int(size * val_fraction + 0.5)) * (val_fraction > 0 and size > 1)
        test = max(1, int(size * test_fraction + 0.5))
        test *= test_fraction > 0 and size > 2
        # Rounding up can use up a small class; the larger part gives way.
        while val + test >= size and val + test > 0:
            if test >= val:
                test -= 1
            else:
                val -= 1
        masks[1, members[:val]] = True
        masks[2, members[val : val + test]] = True
        masks[0, members[val + test :]] = True
    return Split(*masks.copy())


def complete_split(
    given: dict[str, Mask],
    y: Labels,
    val_fraction: float,
    test_fraction: float,
    seed: int,
    notes: list[str],
) -> Split:
    """Make the masks that are missing from the labelled nodes, and note what was made.

    The fractions are shares of the labels: for validation if no validation node is
    given, for testing if no mask is given.
    """
    labelled = y >= 0
    if not given:
        split = stratified_split(y, labelled, val_fraction, test_fraction, seed)
        train, val, test = (int(mask.sum()) for mask in split)
        notes.append(
            f"no split was given: a stratified split was made with seed {seed} "
            f"({train:,} train, {val:,} validation, {test:,} test)"
        )
        return split
    none = np.zeros_like(labelled)
    val_mask, test_mask = given.get("val_mask", none), given.get("test_mask", none)
    train_mask = given.get("train_mask")
    if train_mask is None:
        train_mask = labelled & ~val_mask & ~test_mask
        if not train_mask.any():
            raise InputError(
                "train_mask is missing, and every labelled node is in val_mask or "
                "test_mask: no training node is left"
            )
        notes.append(
            "no train_mask was given: the labelled nodes outside the other masks train "
            f"({int(train_mask.sum()):,})"
        )
    if not val_mask.any() and val_fraction:
        total = int(train_mask.sum())
        train_mask, val_mask, _ = stratified_split(
            y, train_mask, val_fraction, 0.0, seed
        )
        if val_mask.any():
            notes.append(
                f"no validation nodes were given: {int(val_mask.sum()):,} of {total:,} "
                f"training nodes validate (stratified, seed {seed})"
            )
    return Split(train_mask, val_mask, test_mask)
