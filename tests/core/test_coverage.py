"""The greedy choice against brute force and its definition; features against dense."""

from itertools import combinations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.core.coverage import greedy_cover, similarity, smoothed_directions
from elugcn.core.sparse import CSR, normalized_adjacency

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])


def test_directions_are_those_of_the_dense_product() -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(6, 4)).astype(np.float32))
    adj = normalized_adjacency(EDGES, 6)
    a = adj.to_dense()
    for hops in (0, 1, 3):
        expected = torch.linalg.matrix_power(a, hops) @ x
        expected /= expected.norm(dim=1, keepdim=True)
        for layout in (x, CSR.from_tensor(x)):
            got = smoothed_directions(adj, layout, hops)
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def test_a_node_that_nothing_reaches_has_no_direction() -> None:
    adj = normalized_adjacency(EDGES, 6, self_loops=False)
    z = smoothed_directions(adj, torch.ones(6, 2), 1)
    assert z[5].tolist() == [0.0, 0.0]
    assert torch.isfinite(z).all()
    assert similarity(z, z)[5].tolist() == [0.0] * 6


def test_wide_features_keep_their_angles() -> None:
    """600 columns of rank 5: 256 of them hold everything."""
    rng = np.random.default_rng(1)
    n, d = 300, 600
    x = (rng.normal(size=(n, 5)) @ rng.normal(size=(5, d))).astype(np.float32)
    edges = torch.from_numpy(rng.integers(0, n, size=(2, 900)))
    adj = normalized_adjacency(edges, n)
    z = smoothed_directions(adj, torch.from_numpy(x), 2)
    assert z.shape == (n, 256)
    dense = adj.to_dense().double()
    full = (dense @ dense @ torch.from_numpy(x).double()).numpy()
    full /= np.linalg.norm(full, axis=1, keepdims=True)
    np.testing.assert_allclose((z @ z.T).numpy(), full @ full.T, atol=1e-3)


def test_similarity_by_hand() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    columns = torch.tensor([[0.6, 0.8], [-1.0, 0.0]])
    expected = torch.tensor([[0.36, 0.0], [0.64, 0.0]])
    torch.testing.assert_close(similarity(rows, columns, 2.0), expected)


def value(kernel: np.ndarray, w: np.ndarray, covered: np.ndarray, s: tuple) -> float:
    """F(S) − F(∅) from its definition."""
    best = np.maximum(covered, kernel[list(s)].max(axis=0))
    return float(((best - covered) * w).sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), favoured=st.booleans())
def test_every_pick_has_the_largest_gain(seed: int, favoured: bool) -> None:
    """The lazy choice is the plain one, and near the best of all choices."""
    rng = np.random.default_rng(seed)
    m, t, count = 9, 12, 4
    kernel = rng.uniform(size=(m, t)) ** 3
    w, covered = rng.uniform(size=t), rng.uniform(size=t) * 0.3
    factor = rng.uniform(0.5, 1.5, size=m) if favoured else np.ones(m)
    picked, gains = greedy_cover(
        torch.from_numpy(kernel),
        torch.from_numpy(w),
        torch.from_numpy(covered),
        count,
        (lambda chosen: torch.from_numpy(factor)) if favoured else None,
    )
    chosen: tuple[int, ...] = ()
    for i, gain in zip(picked, gains, strict=True):
        before = value(kernel, w, covered, chosen) if chosen else 0.0
        adds = {
            j: value(kernel, w, covered, (*chosen, j)) - before
            for j in range(m)
            if j not in chosen
        }
        assert i not in chosen
        np.testing.assert_allclose(gain, adds[i], rtol=1e-9, atol=1e-12)
        best = max(adds, key=lambda j: adds[j] * factor[j])
        np.testing.assert_allclose(
            adds[i] * factor[i], adds[best] * factor[best], rtol=1e-9, atol=1e-12
        )
        chosen = (*chosen, i)
    if not favoured:
        most = max(value(kernel, w, covered, s) for s in combinations(range(m), count))
        assert value(kernel, w, covered, chosen) >= (1 - 1 / np.e) * most


def test_twins_are_not_both_taken() -> None:
    kernel = torch.tensor([[1.0, 1.0, 0.0, 0.0]] * 2 + [[0.0, 0.0, 0.5, 0.0]])
    picked, gains = greedy_cover(kernel, torch.ones(4), torch.zeros(4), 3)
    assert picked == [0, 2, 1]
    assert gains == [2.0, 0.5, 0.0]


def test_what_is_labelled_already_is_no_news() -> None:
    kernel = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.4]])
    covered = torch.tensor([0.9, 0.9, 0.0])
    picked, gains = greedy_cover(kernel, torch.ones(3), covered, 1)
    assert picked == [1]
    np.testing.assert_allclose(gains, [0.4])
