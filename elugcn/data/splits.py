"""Who is labelled, who validates, who tests: draws shared by the dataset loaders.

Everything here is numpy on node numbers, seeded by an integer and nothing else:
the same seed gives the same nodes on every machine.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elugcn.errors import InputError

Labels = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Each kind of draw has its own random stream, so that drawing labels with seed 3
# does not repeat the choices that made split 3.
_STREAMS = {"split": 0, "labels": 1, "validation": 2, "graph": 3}


class Split(NamedTuple):
    """Three disjoint masks over the nodes."""

    train: Mask
    val: Mask
    test: Mask


def generator(seed: int, stream: str) -> np.random.Generator:
    """The random numbers of one kind of draw.

    Args:
        seed: non-negative; usually the number of the split.
        stream: "split", "labels", "validation" or "graph".
    """
    return np.random.default_rng([seed, _STREAMS[stream]])


def as_mask(index: npt.NDArray[np.integer], n: int) -> Mask:
    """A mask of n nodes that is true at `index`."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[index] = True
    return mask


def draw_per_class(
    y: Labels,
    count: int,
    eligible: Mask,
    rng: np.random.Generator,
    class_names: Sequence[str],
    what: str = "labels_per_class",
) -> Mask:
    """Draw `count` eligible nodes of every class, without replacement.

    Args:
        y: class of every node, -1 = unknown.
        count: how many nodes of each class.
        eligible: who may be drawn; nodes of unknown class never are.
        rng: source of the draw.
        class_names: one name per class; all of them are drawn from.
        what: the option that asked for the draw, named when a class is too small.

    Raises:
        InputError: a class has fewer than `count` eligible nodes.
    """
    chosen = np.zeros(y.size, dtype=np.bool_)
    for label, name in enumerate(class_names):
        members = np.flatnonzero(eligible & (y == label))
        if members.size < count:
            raise InputError(
                f"{what}={count}: class {name!r} has only {members.size} labelled "
                "nodes to draw from"
            )
        chosen[rng.choice(members, size=count, replace=False)] = True
    return chosen


def per_class_split(
    y: Labels, n_train: int, n_val: int, seed: int, class_names: Sequence[str]
) -> Split:
    """`n_train` + `n_val` nodes of every class at random; the other known ones test."""
    rng = generator(seed, "split")
    known = y >= 0
    # One draw of both together: a class that is too small is refused before either.
    both = draw_per_class(y, n_train + n_val, known, rng, class_names, "train + val")
    train = draw_per_class(y, n_train, both, rng, class_names, "train")
    return Split(train, both & ~train, known & ~both)


def validation_split(
    y: Labels, train: Mask, n_val: int, seed: int, class_names: Sequence[str]
) -> Split:
    """Keep `train`; `n_val` other nodes of every class validate, the rest test."""
    rng = generator(seed, "validation")
    rest = (y >= 0) & ~train
    val = draw_per_class(y, n_val, rest, rng, class_names, "val")
    return Split(train, val, rest & ~val)


def random_split(y: Labels, train: float, val: float, seed: int) -> Split:
    """Shares of the known nodes at random, whatever their class; the rest test.

    Classes with few nodes may be absent from the training nodes.

    Args:
        y: class of every node, -1 = unknown (in none of the three masks).
        train: share for training, rounded to the nearest number of nodes.
        val: share for validation, rounded likewise.
        seed: of the draw.
    """
    order = generator(seed, "split").permutation(np.flatnonzero(y >= 0))
    n_train = round(train * order.size)
    n_val = min(round(val * order.size), order.size - n_train)
    parts = np.split(order, [n_train, n_train + n_val])
    return Split(*(as_mask(part, y.size) for part in parts))


def draw_labels(
    y: Labels,
    labels_per_class: int,
    seed: int,
    eligible: Mask,
    class_names: Sequence[str],
) -> Mask:
    """A training mask of `labels_per_class` random eligible nodes of every class.

    Args:
        y: class of every node, -1 = unknown.
        labels_per_class: at least 1.
        seed: of the draw.
        eligible: the nodes outside validation and test.
        class_names: one name per class.

    Raises:
        InputError: the number is below 1, or a class has fewer eligible nodes.
    """
    if labels_per_class < 1:
        raise InputError(f"labels_per_class must be at least 1, not {labels_per_class}")
    rng = generator(seed, "labels")
    return draw_per_class(y, labels_per_class, eligible, rng, class_names)
