"""The DeepWalk matrix against its formula, with dense powers of D⁻¹A."""

import numpy as np
import pytest
import torch

from elugcn.core import netmf
from elugcn.core.netmf import WalkMatrix, netmf_embedding
from elugcn.core.refine import undirected
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.datasets import load_dataset


def graph(n: int = 60, seed: int = 0) -> CSR:
    """Two parts without an edge between them, a lone pair, and a lone node."""
    rng = np.random.default_rng(seed)
    half = n // 2
    first = rng.integers(0, half, (2, 3 * n))
    second = rng.integers(half, n - 3, (2, n))
    pair = np.array([[n - 3], [n - 2]])
    edges = torch.from_numpy(np.concatenate([first, second, pair], axis=1))
    return undirected(normalized_adjacency(edges, n, self_loops=False))


def dense(a: CSR, window: int, negative: float) -> np.ndarray:
    one = a.to_dense().double().numpy()
    degree = one.sum(axis=1)
    inverse = np.divide(1.0, degree, where=degree > 0, out=np.zeros_like(degree))
    walk = inverse[:, None] * one
    total = sum(np.linalg.matrix_power(walk, r) for r in range(1, window + 1))
    entries = degree.sum() / (negative * window) * total * inverse
    out: np.ndarray = np.log(np.maximum(entries, 1.0))
    return out


@pytest.mark.parametrize(("window", "negative"), [(1, 1.0), (3, 1.0), (10, 5.0)])
def test_with_all_eigenpairs_it_is_the_formula(
    window: int, negative: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = graph()
    monkeypatch.setattr(netmf, "BLOCK", 500)
    matrix = WalkMatrix.of(a, window, negative, rank=60)
    expected = dense(a, window, negative)
    assert 0.02 < (expected > 0).mean() < 0.9
    np.testing.assert_allclose(matrix.rows(0, 60), expected, atol=1e-4)
    z = torch.randn(60, 3)
    np.testing.assert_allclose(matrix @ z, expected @ z.double().numpy(), atol=1e-3)


def test_embedding_is_the_best_of_its_rank() -> None:
    a = graph()
    expected = dense(a, 5, 1.0)
    z = netmf_embedding(a, 8, window=5, rank=60).double().numpy()
    value, vector = np.linalg.eigh(expected)
    best = np.argsort(-np.abs(value))[:8]
    # Signs and order are free; the norms of the columns are not.
    found = np.sort(np.linalg.norm(z, axis=0) ** 2)
    np.testing.assert_allclose(found, np.sort(np.abs(value[best])), rtol=0.03)
    # The columns span what the dense eigenvectors do.
    span = vector[:, best] @ vector[:, best].T
    assert np.linalg.norm(z - span @ z) < 0.1 * np.linalg.norm(z)


def test_few_eigenpairs_come_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sparse solver: as the dense one for the same rank, near the truth."""
    a = graph(300, seed=1)
    expected = dense(a, 10, 1.0)
    every = WalkMatrix.of(a, rank=100)
    monkeypatch.setattr(netmf, "DENSE", 400)
    same = WalkMatrix.of(a, rank=100)
    np.testing.assert_allclose(every.rows(0, 300), same.rows(0, 300), atol=0.05)
    few = WalkMatrix.of(a, rank=20)
    wrong = [np.linalg.norm(m.rows(0, 300).numpy() - expected) for m in (few, same)]
    assert wrong[1] < 0.5 * wrong[0]
    assert wrong[1] < 0.3 * np.linalg.norm(expected)


def test_neighbours_in_the_graph_are_near_in_the_embedding() -> None:
    data = load_dataset("karate")
    a = undirected(normalized_adjacency(data.edge_index, 34, self_loops=False))
    z = torch.nn.functional.normalize(netmf_embedding(a, 8, window=3, rank=34))
    alike = z @ z.T
    linked = a.to_dense() > 0
    assert float(alike[linked].mean()) > float(alike[~linked].mean()) + 0.2


def test_small_and_empty_graphs() -> None:
    none = CSR.from_tensor(torch.zeros(5, 5))
    assert torch.equal(netmf_embedding(none, 3), torch.zeros(5, 3))
    pair = netmf_embedding(CSR.from_tensor(torch.tensor([[0.0, 1], [1, 0]])), 4)
    assert pair.shape == (2, 4)
    assert bool(torch.isfinite(pair).all())


def test_the_generator_decides() -> None:
    a = graph()
    one, two = (
        netmf_embedding(a, 8, generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert torch.equal(one, two)
    before = torch.get_rng_state()
    netmf_embedding(a, 8, generator=torch.Generator().manual_seed(4))
    assert torch.equal(torch.get_rng_state(), before)
