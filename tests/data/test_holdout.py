"""Splits: the rules of sharing out labels, and what is refused about masks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.data.holdout import resolve_splits, stratified_holdout
from elugcn.errors import InputError

FRACTIONS = st.sampled_from([0.0, 0.05, 0.2, 0.3, 0.45])


@settings(max_examples=200, deadline=None)
@given(
    y=st.lists(st.integers(-1, 4), min_size=1, max_size=60),
    val=FRACTIONS,
    test=FRACTIONS,
    seed=st.integers(0, 5),
)
def test_rules_of_the_holdout(y: list[int], val: float, test: float, seed: int) -> None:
    labels = torch.tensor(y)
    labelled = labels >= 0
    masks = stratified_holdout(labels, labelled, val, test, seed)
    train_mask, val_mask, test_mask = masks
    # Every labelled node is in exactly one part, no other node in any.
    assert torch.equal(sum(mask.int() for mask in masks), labelled.int())
    for label in set(y) - {-1}:
        size, train_size, val_size, test_size = (
            int((mask & (labels == label)).sum()) for mask in (labelled, *masks)
        )
        assert train_size >= 1
        if size == 1:
            assert (val_size, test_size) == (0, 0)
        if size == 2:
            assert (val_size, test_size) == (int(val > 0), 0)
        if size >= 3:
            assert (val_size > 0) == (val > 0)
            assert (test_size > 0) == (test > 0)
        if size >= 20:
            assert abs(val_size - size * val) <= 1
            assert abs(test_size - size * test) <= 1
    again = stratified_holdout(labels, labelled, val, test, seed)
    assert all(torch.equal(a, b) for a, b in zip(masks, again, strict=True))
    assert train_mask.dtype == val_mask.dtype == test_mask.dtype == torch.bool


def test_exact_sizes_and_seed() -> None:
    y = torch.tensor([0] * 10 + [1] * 5)
    everyone = torch.ones(15, dtype=torch.bool)
    train, val, test = stratified_holdout(y, everyone, 0.2, 0.2, 0)
    sizes = [
        [int((mask & (y == c)).sum()) for c in (0, 1)] for mask in (train, val, test)
    ]
    assert sizes == [[6, 3], [2, 1], [2, 1]]
    other = stratified_holdout(y, everyone, 0.2, 0.2, 1)
    assert not torch.equal(train, other[0])


def test_no_labelled_node_gives_empty_masks() -> None:
    y = torch.full((4,), -1)
    masks = stratified_holdout(y, y >= 0, 0.2, 0.2, 0)
    assert [int(mask.sum()) for mask in masks] == [0, 0, 0]


@pytest.mark.parametrize(
    ("val", "test", "named"),
    [(-0.1, 0.2, "val_fraction"), (0.2, 1.0, "test_fraction"), (0.6, 0.4, "add up")],
)
def test_bad_fractions(val: float, test: float, named: str) -> None:
    y = torch.tensor([0, 1, 0, 1])
    with pytest.raises(InputError, match=named):
        stratified_holdout(y, y >= 0, val, test, 0)


def test_only_a_test_mask_leaves_the_rest_to_train() -> None:
    y = torch.tensor([0, 0, 0, 1, 1, 1, -1])
    test = torch.tensor([1, 0, 0, 1, 0, 0, 1], dtype=torch.bool)
    splits = resolve_splits(
        {"test_mask": test}, y, val_fraction=0.5, test_fraction=0.0, seed=0
    )
    assert splits.test.tolist() == [True, False, False, True, False, False, False]
    assert int(splits.train.sum()) == 2
    assert int(splits.val.sum()) == 2
    assert any("1 nodes of test_mask have no label" in note for note in splits.notes)
    assert any("no train_mask was given" in note for note in splits.notes)


def test_only_a_test_mask_over_all_labels_is_refused() -> None:
    y = torch.tensor([0, 1, -1])
    with pytest.raises(InputError, match=r"train_mask is missing.*no training node"):
        resolve_splits(
            {"test_mask": y >= 0}, y, val_fraction=0.2, test_fraction=0.0, seed=0
        )


def test_prediction_needs_no_training_node() -> None:
    y = torch.full((3,), -1)
    splits = resolve_splits(
        {}, y, val_fraction=0.2, test_fraction=0.0, seed=0, require_train=False
    )
    assert not (splits.train | splits.val | splits.test).any()
    assert splits.alerts == ()
