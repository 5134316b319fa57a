"""Which labelled nodes train, validate and test: splits made and splits checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elugcn.errors import InputError

SPLITS = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True)
class Splits:
    """Three disjoint masks and what there is to say about them.

    Attributes:
        train: Training nodes, bool [n].
        val: Validation nodes, bool [n].
        test: Test nodes, bool [n].
        notes: What was done, for the record.
        alerts: What the user should look at.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    notes: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()


def check_fractions(val_fraction: float, test_fraction: float) -> None:
    """Refuse fractions that leave nothing to train on."""
    for option, value in (
        ("val_fraction", val_fraction),
        ("test_fraction", test_fraction),
    ):
        if not 0 <= value < 1:
            raise InputError(f"{option} is {value}: expected a number in [0, 1)")
    if val_fraction + test_fraction >= 1:
        raise InputError(
            f"val_fraction {val_fraction} and test_fraction {test_fraction} add up to "
            "1 or more: expected a rest for training"
        )


def stratified_holdout(
    y: Tensor,
    labelled: Tensor,
    val_fraction: float,
    test_fraction: float,
    seed: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Split the labelled nodes class by class.

    Every class keeps at least one training label. A class with one label only
    trains, one with two trains and validates, one with three or more also gives
    at least one test label; a fraction of 0 gives none.

    Args:
        y: Class of each node, int64 [n]; read only where ``labelled``.
        labelled: Nodes to be shared out, bool [n].
        val_fraction: Share of each class for validation.
        test_fraction: Share of each class for testing.
        seed: Same seed, same split.

    Returns:
        Train, validation and test mask, each bool [n].
    """
    check_fractions(val_fraction, test_fraction)
    generator = np.random.default_rng(seed)
    nodes = generator.permutation(np.flatnonzero(labelled.cpu().numpy()))
    classes = y.cpu().numpy()[nodes]
    order = np.argsort(classes, kind="stable")
    nodes, classes = nodes[order], classes[order]
    starts = np.flatnonzero(np.diff(classes, prepend=classes[:1] - 1))
    masks = np.zeros((3, len(y)), dtype=bool)
    for members in np.split(nodes, starts[1:]):
        val, test = _holdout_sizes(len(members), val_fraction, test_fraction)
        masks[1, members[:val]] = True
        masks[2, members[val : val + test]] = True
        masks[0, members[val + test :]] = True
    train_mask, val_mask, test_mask = (torch.from_numpy(mask) for mask in masks.copy())
    return train_mask, val_mask, test_mask


def split_note(masks: Iterable[Tensor], seed: int) -> str:
    """The end of a sentence on a split that was made."""
    train, val, test = (int(mask.sum()) for mask in masks)
    return (
        f"a stratified split was made with seed {seed} "
        f"({train:,} train, {val:,} validation, {test:,} test)"
    )


def _holdout_sizes(
    size: int, val_fraction: float, test_fraction: float
) -> tuple[int, int]:
    """How many of ``size`` labels of one class validate and test."""
    val = max(1, int(size * val_fraction + 0.5)) if val_fraction and size > 1 else 0
    test = max(1, int(size * test_fraction + 0.5)) if test_fraction and size > 2 else 0
    # Rounding up can use up a small class; the larger part gives way.
    while val + test >= size and val + test > 0:
        if test >= val:
            test -= 1
        else:
            val -= 1
    return val, test


def check_mask(name: str, mask: Any, n: int) -> Tensor:
    """Return the mask as a bool tensor [n] on the CPU, or say what is wrong."""
    if isinstance(mask, np.ndarray):
        mask = torch.from_numpy(mask)
    if not isinstance(mask, Tensor):
        raise InputError(
            f"data.{name} is a {type(mask).__name__}: expected a bool tensor of "
            f"shape [{n}]"
        )
    if mask.dim() == 2 and mask.shape[0] == n and mask.shape[1] > 1:
        raise InputError(
            f"data.{name} has shape {list(mask.shape)}, one column per split: pick "
            f"one, e.g. data.{name} = data.{name}[:, 0]"
        )
    if mask.dtype != torch.bool:
        raise InputError(
            f"data.{name} has dtype {mask.dtype}: expected torch.bool, one entry per "
            f"node; of zeros and ones data.{name}.bool() makes one"
        )
    if mask.shape == (n, 1):
        mask = mask[:, 0]
    if mask.shape != (n,):
        raise InputError(
            f"data.{name} has shape {list(mask.shape)}: expected [{n}], one entry per "
            "node"
        )
    kept: Tensor = mask.cpu().clone()  # the user's own may change later
    return kept


def resolve_splits(
    given: Mapping[str, Any],
    y: Tensor,
    *,
    val_fraction: float,
    test_fraction: float,
    seed: int,
    require_train: bool = True,
    class_names: Sequence[str] | None = None,
) -> Splits:
    """Check the masks that are there and make the ones that are not.

    Args:
        given: ``train_mask``, ``val_mask`` and ``test_mask``; None where absent.
        y: Class of each node, -1 where unknown.
        val_fraction: Share for validation where no mask says it.
        test_fraction: Share for testing where there is no mask at all.
        seed: Seed of the split that is made.
        require_train: Whether a graph without training nodes is refused.
        class_names: What messages call the classes; None: their numbers.
    """
    check_fractions(val_fraction, test_fraction)
    n, labelled, notes = len(y), y >= 0, []
    masks = {
        name: check_mask(name, given[name], n)
        for name in SPLITS
        if given.get(name) is not None
    }
    _refuse_overlap(masks)
    if require_train and "train_mask" in masks:
        _check_train(masks["train_mask"], labelled)
    none = torch.zeros(n, dtype=torch.bool)
    train = masks.get("train_mask", none) & labelled
    val, test = masks.get("val_mask", none), masks.get("test_mask", none)
    for name, mask in (("val_mask", val), ("test_mask", test)):
        if lost := int((mask & ~labelled).sum()):
            notes.append(f"{lost:,} nodes of {name} have no label and were left out")
    val, test = val & labelled, test & labelled
    if not require_train:
        return Splits(train, val, test, tuple(notes))
    if not masks:
        train, val, test = stratified_holdout(
            y, labelled, val_fraction, test_fraction, seed
        )
        made = split_note((train, val, test), seed)
        notes.append(f"no masks were given: {made}")
    else:
        if "train_mask" not in masks:
            train = labelled & ~val & ~test
            if not train.any():
                raise InputError(
                    "data.train_mask is missing and every labelled node is in "
                    "val_mask or test_mask: no training node is left"
                )
            notes.append(
                "no train_mask was given: the labelled nodes outside the other masks "
                f"train ({int(train.sum()):,})"
            )
        if not val.any() and val_fraction:
            train, val, _ = stratified_holdout(y, train, val_fraction, 0.0, seed)
            if val.any():
                notes.append(
                    f"no validation nodes were given: {int(val.sum()):,} training "
                    f"nodes were taken for it (stratified, seed {seed}), "
                    f"{int(train.sum()):,} are left to train"
                )
    alerts = _alerts(y, train, val, test, class_names)
    return Splits(train, val, test, tuple(notes), alerts)


def _refuse_overlap(masks: Mapping[str, Tensor]) -> None:
    names = list(masks)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if both := int((masks[first] & masks[second]).sum()):
                raise InputError(
                    f"data.{first} and data.{second} overlap in {both:,} nodes "
                    f"({int(masks[first].sum()):,} and {int(masks[second].sum()):,} "
                    "in all): expected disjoint masks"
                )


def _check_train(train: Tensor, labelled: Tensor) -> None:
    size = int(train.sum())
    if not size:
        raise InputError("data.train_mask names no training node")
    unlabelled = (train & ~labelled).nonzero().flatten()
    if len(unlabelled) == size:
        raise InputError(
            f"data.train_mask names {size:,} nodes and none has a label (y is -1): "
            "the labels lie on other nodes only"
        )
    if len(unlabelled):
        raise InputError(
            f"data.train_mask names {len(unlabelled):,} nodes without a label (y is "
            f"-1), the first is node {int(unlabelled[0])}"
        )


def _alerts(
    y: Tensor,
    train: Tensor,
    val: Tensor,
    test: Tensor,
    class_names: Sequence[str] | None,
) -> tuple[str, ...]:
    alerts = []
    if unseen := sorted(set(y[val | test].tolist()) - set(y[train].tolist())):
        if class_names is not None and unseen[-1] < len(class_names):
            unseen = [class_names[number] for number in unseen]
        alerts.append(
            f"classes {', '.join(map(str, unseen))} occur in validation or test but "
            "have no training label: nothing tells the model about them"
        )
    if not val.any():
        alerts.append(
            "there is no validation node: the best epoch cannot be chosen; label more "
            "nodes or hold out a larger share for validation"
        )
    return tuple(alerts)
