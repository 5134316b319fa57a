"""Who judges: validation nodes or folds, and never a test node."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.errors import InputError
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import Problem
from elugcn.recipe.judging import FEW, FOLDS, Judging, stratified_folds

CPU = torch.device("cpu")


@st.composite
def labels(draw: st.DrawFn) -> Tensor:
    """Some classes of very different sizes, and nodes without a label."""
    sizes = draw(st.lists(st.integers(0, 12), min_size=1, max_size=6))
    unknown = draw(st.integers(0, 10))
    y = np.repeat(np.arange(-1, len(sizes)), [unknown, *sizes])
    order = draw(st.permutations(range(len(y))))
    return torch.from_numpy(y[list(order)])


@given(labels(), st.integers(0, 2**32 - 1), st.data())
def test_stratified_folds(y: Tensor, seed: int, data: st.DataObject) -> None:
    sizes = np.bincount(y[y >= 0].numpy(), minlength=1)
    most = int(sizes.max())
    counts = [None, *range(2, most + 1)]
    count = data.draw(st.sampled_from(counts))
    folds = stratified_folds(y, seed, count)
    if most < 2:
        assert folds == []
        return
    asked = min(FOLDS, most) if count is None else count
    # Every fold has nodes of the largest class, so none is empty.
    assert len(folds) == asked
    times = torch.stack(folds).sum(dim=0)
    # Each label of a class with two is judged once; one label alone always trains.
    several = (y >= 0) & (torch.from_numpy(sizes)[y.clamp(min=0)] > 1)
    assert torch.equal(times, several.long())
    for label in np.flatnonzero(sizes):
        per_fold = [int((fold & (y == label)).sum()) for fold in folds]
        assert sum(per_fold) == (sizes[label] if sizes[label] > 1 else 0)
        assert max(per_fold) < sizes[label]  # never missing from what trains
        assert max(per_fold) - min(per_fold) <= 1  # evenly
    again = stratified_folds(y, seed, count)
    assert all(map(torch.equal, folds, again))


def test_another_seed_draws_other_folds() -> None:
    y = torch.arange(60) % 3
    one, two = (torch.stack(stratified_folds(y, seed)) for seed in (0, 1))
    assert not torch.equal(one, two)


@pytest.mark.parametrize(
    ("y", "count", "message"),
    [
        ([0, 0, 1, 1, 1], 4, "folds=4: expected 2 to 3, the labels of the largest cl"),
        ([0, 0, 1], 1, "folds=1: expected 2 to 2"),
        ([0, 1, -1], 2, "folds=2: no class has two labels to spread over folds"),
    ],
)
def test_refusals(y: list[int], count: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        stratified_folds(torch.tensor(y), 0, count)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# --- which nodes judge --------------------------------------------------------------


@pytest.fixture
def judging(checked: Callable[..., CheckedGraph]) -> Callable[..., tuple[Any, Any]]:
    """A graph of 300 nodes with so many validation nodes, and how it is judged."""

    def make(n_val: int, refit: bool, folds: int | None = None) -> tuple[Any, Any]:
        data = checked(0, n=300).data.clone()
        order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
        place = torch.empty(300, dtype=torch.long)
        place[order] = torch.arange(300)
        data.train_mask = place < 30
        data.val_mask = (place >= 30) & (place < 30 + n_val)
        data.test_mask = place >= 200
        problem = Problem.of(data, MethodConfig(), CPU)
        return data, Judging.of(problem, 3, refit, folds)

    return make


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("n_val", [FEW, FEW - 1, 0])
def test_many_validation_nodes_judge_alone(
    n_val: int, refit: bool, judging: Callable[..., tuple[Any, Any]]
) -> None:
    data, found = judging(n_val, refit)
    assert found.has_folds == (n_val < FEW)
    if n_val >= FEW:
        (only,) = found.splits
        assert torch.equal(only.train, data.train_mask)
        assert torch.equal(only.val, data.val_mask)
        assert str(found) == "100 validation nodes"
    else:
        known = data.train_mask | data.val_mask
        assert len(found.splits) == FOLDS
        for split in found.splits:
            assert torch.equal(split.train | split.val, known)
            assert not bool((split.train & split.val).any())
        assert str(found) == f"{30 + n_val} labelled nodes, in 5 folds"
    assert found.refit == refit
    trains = data.train_mask | data.val_mask if refit else data.train_mask
    assert torch.equal(found.final.train, trains)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize("n_val", [150, 40])
def test_test_nodes_take_no_part(
    n_val: int, folds: int | None, refit: bool, judging: Callable[..., tuple[Any, Any]]
) -> None:
    data, found = judging(n_val, refit, folds)
    known = data.train_mask | data.val_mask
    for split in (*found.splits, found.final):
        assert not bool(((split.train | split.val) & ~known).any())
    index = found.index
    assert len(index.unique()) == len(index)
    assert not bool((~known)[index].any())
    if folds:
        assert len(found.splits) == folds


def test_one_label_per_class_and_no_validation_node(path_graph: Any) -> None:
    data = path_graph.clone()
    data.val_mask = torch.zeros(6, dtype=torch.bool)
    found = Judging.of(Problem.of(data, MethodConfig(), CPU), 0, False)
    assert not found.has_folds
    assert found.index.numel() == 0
    assert torch.equal(found.final.train, data.train_mask)
