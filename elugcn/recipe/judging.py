"""Which nodes judge members: the validation nodes, or all labelled ones in folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elugcn.data.splits import generator
from elugcn.errors import InputError
from elugcn.methods.problem import Problem

FEW = 100  # validation nodes below which all labelled nodes judge, in folds
FOLDS = 5  # at most


@dataclass(frozen=True)
class Split:
    """Nodes to train on, and nodes to judge by, bool (n,) each."""

    train: Tensor
    val: Tensor


@dataclass(frozen=True)
class Judging:
    """How members are judged, and what the answer is trained on.

    ``splits`` holds one split, or one per fold. Nodes of ``final.train`` train the
    members of the answer; no node of it judges, unless it is the one split.
    """

    splits: tuple[Split, ...]
    final: Split
    refit: bool  # whether validation nodes train the answer, too

    @classmethod
    def of(
        cls, problem: Problem, seed: int, refit: bool, folds: int | None = None
    ) -> Judging:
        """Folds if ``folds`` asks for them or validation nodes are few; else none."""
        given = Split(problem.train_mask, problem.val_mask)
        known = given.train | given.val
        none = torch.zeros_like(given.val)
        final = Split(known if refit else given.train, none)
        if folds is None and int(given.val.sum()) >= FEW:
            return cls((given,), final if refit else given, refit)
        y = torch.where(known, problem.y, -1)
        judged = stratified_folds(y, seed, folds)
        if not judged:
            return cls((given,), given, False)
        splits = tuple(Split(known & ~fold, fold) for fold in judged)
        return cls(splits, final, refit)

    @property
    def has_folds(self) -> bool:
        """Whether the members are judged by cross-validation."""
        return len(self.splits) > 1

    @property
    def index(self) -> Tensor:
        """The judged nodes, split by split, (m,)."""
        return torch.cat([split.val.nonzero()[:, 0] for split in self.splits])

    def __str__(self) -> str:
        count = f"{int(self.index.numel()):,}"
        if not self.has_folds:
            return f"{count} validation nodes"
        return f"{count} labelled nodes, in {len(self.splits)} folds"


def stratified_folds(y: Tensor, seed: int, count: int | None = None) -> list[Tensor]:
    """Masks of disjoint folds of the labelled nodes (``y`` ≥ 0), drawn by the seed.

    Each class is spread evenly. A class with one label always trains. No class is
    missing from the training nodes of a fold. Without a class that has two labels
    there are no folds.
    """
    labels = y.numpy(force=True)
    sizes = np.bincount(labels[labels >= 0])
    most = int(sizes.max(initial=0))
    if count is not None and not 2 <= count <= most:
        raise InputError(
            f"folds={count}: expected 2 to {most}, the labels of the largest class"
            if most > 1
            else f"folds={count}: no class has two labels to spread over folds"
        )
    count = min(FOLDS, most) if count is None else count
    if count < 2:
        return []
    rng, start = generator(seed, "folds"), 0
    folds = np.full(len(labels), -1)
    for label in np.flatnonzero(sizes > 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        folds[members] = (start + np.arange(len(members))) % count
        start += len(members)
    masks = [torch.from_numpy(folds == i).to(y.device) for i in range(count)]
    return [mask for mask in masks if bool(mask.any())]
