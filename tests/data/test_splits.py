"""Splits keep their rules; the block model has exactly the graph that was asked for."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch_geometric.utils import homophily as edge_homophily

from elugcn.data.datasets import load_dataset
from elugcn.data.splits import (
    draw_per_class,
    generator,
    per_class_split,
    random_split,
    stratified_split,
)

FRACTIONS = st.sampled_from([0.0, 0.05, 0.2, 0.3, 0.45])


@st.composite
def labels(draw: st.DrawFn) -> tuple[np.ndarray, list[str], int]:
    """Classes of at least six nodes each, shuffled, and some nodes of none."""
    counts = draw(st.lists(st.integers(6, 20), min_size=1, max_size=6))
    unknown, seed = draw(st.integers(0, 10)), draw(st.integers(0, 2**32))
    y = np.repeat(np.arange(-1, len(counts)), [unknown, *counts])
    names = [f"c{label}" for label in range(len(counts))]
    return np.random.default_rng(seed).permutation(y), names, seed


Problem = tuple[np.ndarray, list[str], int]


@given(labels(), st.integers(1, 3), st.integers(1, 3))
def test_per_class_split(problem: Problem, n_train: int, n_val: int) -> None:
    y, names, seed = problem
    split = per_class_split(y, n_train, n_val, seed, names)
    assert np.array_equal(np.sum(split, axis=0), y >= 0)
    assert np.bincount(y[split.train]).tolist() == [n_train] * len(names)
    assert np.bincount(y[split.val]).tolist() == [n_val] * len(names)
    again = per_class_split(y, [n_train] * len(names), n_val, seed, names)
    assert all(np.array_equal(a, b) for a, b in zip(split, again, strict=True))


@given(labels(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_random_split(problem: Problem, train: float, val: float) -> None:
    y, _, seed = problem
    split = random_split(y, train, val, seed)
    assert np.array_equal(np.sum(split, axis=0), y >= 0)
    n = int((y >= 0).sum())
    assert abs(split.train.sum() - train * n) <= 0.5
    assert abs(split.val.sum() - val * n) <= 1.0


def test_the_draws_are_those_of_numpy() -> None:
    """Each kind of draw has a stream of its own."""
    y, names = np.arange(40) % 2, ["a", "b"]
    everyone = np.ones(40, dtype=bool)
    drawn = draw_per_class(y, 3, everyone, generator(7, "labels"), names, "k")
    rng = np.random.default_rng([7, 1])
    expected = [rng.choice(np.flatnonzero(y == c), 3, replace=False) for c in (0, 1)]
    assert drawn.nonzero()[0].tolist() == sorted(np.concatenate(expected))
    split = random_split(y, 0.5, 0.25, 7)
    order = np.random.default_rng([7, 0]).permutation(40)
    assert split.train.nonzero()[0].tolist() == sorted(order[:20])
    assert split.test.nonzero()[0].tolist() == sorted(order[30:])


@given(
    y=st.lists(st.integers(-1, 4), min_size=1, max_size=60),
    val=FRACTIONS,
    test=FRACTIONS,
    seed=st.integers(0, 5),
)
def test_rules_of_the_stratified_split(
    y: list[int], val: float, test: float, seed: int
) -> None:
    classes = np.array(y)
    labelled = classes >= 0
    masks = stratified_split(classes, labelled, val, test, seed)
    # Every labelled node is in exactly one part, no other node in any.
    assert np.array_equal(np.sum(masks, axis=0), labelled)
    for label in set(y) - {-1}:
        size, train_size, val_size, test_size = (
            int((mask & (classes == label)).sum()) for mask in (labelled, *masks)
        )
        assert train_size >= 1
        assert val_size == 0 or size >= 2
        assert test_size == 0 or size >= 3
        assert (val_size > 0) == (val > 0 and size >= 2)
        assert (test_size > 0) == (test > 0 and size >= 3)
        if size >= 20:
            assert abs(val_size - size * val) <= 1
            assert abs(test_size - size * test) <= 1
    again = stratified_split(classes, labelled, val, test, seed)
    assert all(np.array_equal(a, b) for a, b in zip(masks, again, strict=True))


def test_exact_sizes_and_seed_of_the_stratified_split() -> None:
    y = np.array([0] * 10 + [1] * 5 + [2] * 7)
    masks = stratified_split(y, y >= 0, 0.25, 0.2, 0)
    sizes = [np.bincount(y[mask], minlength=3).tolist() for mask in masks]
    # Shares are rounded to the nearest number: 0.25 of 10 is 3, of 7 is 2.
    assert sizes == [[5, 3, 4], [3, 1, 2], [2, 1, 1]]
    # Where rounding up would use up a class, the larger part gives way.
    for shares in ((0.6, 0.3), (0.3, 0.6)):
        three = stratified_split(np.zeros(3, int), np.ones(3, bool), *shares, 0)
        assert [int(mask.sum()) for mask in three] == [1, 1, 1]
    other = stratified_split(y, y >= 0, 0.25, 0.2, 1)
    assert not np.array_equal(masks.train, other.train)
    assert not any(mask.any() for mask in stratified_split(y, y < 0, 0.2, 0.2, 0))


# The stochastic block model


@given(
    n=st.integers(40, 300),
    n_classes=st.integers(2, 8),
    mean_degree=st.floats(0.5, 4),
    homophily=st.floats(0, 1),
    split=st.integers(0, 2**40),
)
def test_graph_is_simple_and_as_homophilous_as_asked(
    n: int, n_classes: int, mean_degree: float, homophily: float, split: int
) -> None:
    # Half of the pairs inside classes must be enough for the edges there.
    size = n // n_classes
    pairs_inside = n_classes * size * (size - 1) / 2
    assume(homophily * n * mean_degree / 2 <= pairs_inside / 2)
    options = {"n": n, "n_classes": n_classes, "mean_degree": mean_degree}
    data = load_dataset("sbm", split, homophily=homophily, n_features=2, **options)
    n_edges = round(n * mean_degree / 2)
    assert data.num_edges == 2 * n_edges
    assert data.is_coalesced()
    assert data.is_undirected()
    assert not data.has_self_loops()
    share = edge_homophily(data.edge_index, data.y, method="edge") if n_edges else 0
    assert abs(share * n_edges - homophily * n_edges) <= 0.51
    counts = data.y.bincount(minlength=n_classes)
    assert counts.max() - counts.min() <= 1
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert (masks.sum(0) == 1).all()
    assert masks.any(1).all()


def test_every_pair_is_equally_likely() -> None:
    n, draws = 11, 800  # classes of 4, 4 and 3 nodes
    seen, same = np.zeros((n, n)), np.zeros((n, n))
    options: dict[str, Any] = {"n": n, "n_classes": 3, "mean_degree": 24 / 11}
    for split in range(draws):
        data = load_dataset("sbm", split, homophily=0.5, n_features=1, **options)
        seen[tuple(data.edge_index.numpy())] += 1
        same += (data.y[:, None] == data.y[None, :]).numpy()
    # 12 edges among 55 pairs, 15 of which are inside a class; numbers mean nothing.
    pairs = np.triu_indices(n, 1)
    for counts, expected in ((seen, draws * 12 / 55), (same, draws * 15 / 55)):
        assert np.abs(counts[pairs] - expected).max() < 5 * np.sqrt(expected)


def test_features_and_labels_of_the_block_model() -> None:
    data = load_dataset("sbm", n=6000, n_classes=3, n_features=200, feature_noise=0.5)
    means = torch.stack([data.x[data.y == label].mean(0) for label in range(3)])
    assert float((data.x - means[data.y]).std()) == pytest.approx(0.5, rel=0.02)
    assert float(means.std()) == pytest.approx(1.0, rel=0.15)
    assert data.y[data.train_mask].bincount().tolist() == [100] * 3
    assert data.y[data.val_mask].bincount().tolist() == [100] * 3
    # Every class has a test node, however many labels are asked for.
    tiny = load_dataset("sbm", n=11, n_classes=3, mean_degree=1.0, label_rate=0.49)
    assert tiny.y[tiny.train_mask].bincount().tolist() == [1, 1, 1]
    assert tiny.y[tiny.test_mask].bincount().tolist() == [2, 2, 1]
