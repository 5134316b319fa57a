"""The block model has exactly the graph that was asked for."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from elugcn.data.datasets import load_dataset
from elugcn.data.sbm import SBMOptions, _pairs_inside, _pairs_outside
from elugcn.errors import InputError


@given(
    n=st.integers(40, 400),
    n_classes=st.integers(2, 8),
    mean_degree=st.floats(0.5, 4),
    homophily=st.floats(0, 1),
    split=st.integers(0, 2**40),
)
def test_graph_is_simple_and_as_homophilous_as_asked(
    n: int, n_classes: int, mean_degree: float, homophily: float, split: int
) -> None:
    options = {"n": n, "n_classes": n_classes, "mean_degree": mean_degree}
    # Half of the pairs inside classes must be enough for the edges there.
    size = n // n_classes
    pairs_inside = n_classes * size * (size - 1) / 2
    assume(homophily * n * mean_degree / 2 <= pairs_inside / 2)
    data = load_dataset("sbm", split, homophily=homophily, **options)
    a, b = data.edge_index
    n_edges = round(n * mean_degree / 2)
    assert data.num_edges == 2 * n_edges
    assert (a != b).all()
    keys = a * n + b
    assert (keys.diff() > 0).all()
    assert torch.equal(keys, (b * n + a).sort()[0])
    inside = int((data.y[a] == data.y[b]).sum()) // 2
    assert abs(inside - homophily * n_edges) <= 0.5
    counts = data.y.bincount(minlength=n_classes)
    assert counts.max() - counts.min() <= 1
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert (masks.sum(0) == 1).all()
    assert masks.any(1).all()


def test_every_pair_is_equally_likely() -> None:
    n, draws = 12, 1500
    seen = np.zeros((n, n))
    same = np.zeros((n, n))
    for split in range(draws):
        options: dict[str, Any] = {"n": n, "n_classes": 3, "mean_degree": 2}
        data = load_dataset("sbm", split, homophily=0.5, n_features=1, **options)
        seen[tuple(data.edge_index.numpy())] += 1
        same += (data.y[:, None] == data.y[None, :]).numpy()
    # 12 edges among 66 pairs, and node numbers mean nothing.
    pairs = np.triu_indices(n, 1)
    expected = draws * 12 / 66
    assert np.abs(seen[pairs] - expected).max() < 5 * np.sqrt(expected)
    expected = draws * 3 / 11
    assert np.abs(same[pairs] - expected).max() < 5 * np.sqrt(expected)


def test_classes_of_unequal_size_are_drawn_from_whole() -> None:
    o = SBMOptions(n=7, n_classes=2, mean_degree=1)  # places 0 2 4 6 and 1 3 5
    rng = np.random.default_rng(0)
    inside = {(a, b) for a in range(7) for b in range(a % 2, 7, 2) if a != b}
    outside = {(a, b) for a in range(7) for b in range(7) if (a - b) % 2}
    for draw, expected in ((_pairs_inside, inside), (_pairs_outside, outside)):
        a, b = draw(5000, o, rng)
        assert set(zip(a.tolist(), b.tolist(), strict=True)) == expected


def test_features_are_class_means_and_noise() -> None:
    data = load_dataset("sbm", n=6000, n_classes=3, n_features=200, feature_noise=0.5)
    means = torch.stack([data.x[data.y == label].mean(0) for label in range(3)])
    rest = data.x - means[data.y]
    assert float(rest.std()) == pytest.approx(0.5, rel=0.02)
    assert float(means.std()) == pytest.approx(1.0, rel=0.15)
    exact = load_dataset("sbm", feature_noise=0)
    assert len(exact.x.unique(dim=0)) == 5


def test_label_rate_and_classes() -> None:
    data = load_dataset("sbm", n=2000, n_classes=4, label_rate=0.1)
    assert data.y[data.train_mask].bincount().tolist() == [50] * 4
    assert data.y[data.val_mask].bincount().tolist() == [50] * 4
    tiny = load_dataset("sbm", n=6, n_classes=2, mean_degree=0.5, label_rate=0.49)
    assert tiny.y[tiny.test_mask].bincount().tolist() == [1, 1]


def test_split_is_the_seed() -> None:
    first, again, other = (load_dataset("sbm", split) for split in (5, 5, 6))
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("n", 14, "at least 15"),
        ("n", 100.0, "a whole number"),
        ("n", True, "a whole number"),
        ("n_classes", 1, "at least 2"),
        ("mean_degree", 0, "above 0 and at most 124"),
        ("mean_degree", 125, "above 0 and at most 124"),
        ("mean_degree", float("nan"), "above 0"),
        ("homophily", 1.01, "between 0 and 1"),
        ("homophily", "0.5", "a number"),
        ("n_features", 0, "at least 1"),
        ("feature_noise", -0.1, "0 or more"),
        ("feature_noise", float("inf"), "0 or more"),
        ("label_rate", 0.5, "above 0 and below 0.5"),
        ("label_rate", 0, "above 0 and below 0.5"),
    ],
)
def test_options_out_of_range_are_named(
    option: str, value: object, expected: str
) -> None:
    with pytest.raises(
        InputError, match=f"sbm option {option} must be {expected}"
    ) as e:
        load_dataset("sbm", **{option: value})
    assert repr(value) in str(e.value)


def test_the_densest_graph_allowed_is_drawn() -> None:
    # half of the 5·(200·199/2) pairs inside, which are 0.8 of the edges
    highest = 2 * 0.5 * (5 * 200 * 199 / 2) / 0.8 / 1000
    data = load_dataset("sbm", mean_degree=highest)
    assert data.num_edges == 2 * round(1000 * highest / 2)


@pytest.mark.slow
def test_a_million_nodes_take_seconds() -> None:
    start = time.process_time()
    data = load_dataset("sbm", n=1_000_000, n_features=16)
    assert time.process_time() - start < 30
    assert data.num_edges == 10_000_000
