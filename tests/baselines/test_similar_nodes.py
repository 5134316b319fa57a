"""The best pairs of nodes against all pairs at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.baselines import similar_nodes
from elugcn.baselines.similar_nodes import best_pairs, best_partners, least_similarity
from elugcn.engine import CSR


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows."""
    monkeypatch.setattr(similar_nodes, "BLOCK", 64)


def drawn(n: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two sets of vectors, and a symmetric matrix of zeros and ones."""
    torch.manual_seed(seed)
    linked = torch.rand(n, n) < 0.3
    return torch.randn(n, 4), torch.randn(n, 4), (linked | linked.T).float()


CASES = given(n=st.integers(1, 30), k=st.integers(1, 40), seed=st.integers(0, 99))


@CASES
def test_best_partners_are_the_largest_products(n: int, k: int, seed: int) -> None:
    left, right, linked = drawn(n, seed)
    index, value = best_partners(left, right, k, CSR.from_tensor(linked))
    scores = left @ right.T
    scores[(linked > 0) | torch.eye(n, dtype=torch.bool)] = -torch.inf
    expected = scores.topk(min(k, n), dim=1).values
    torch.testing.assert_close(value.sort(dim=1, descending=True).values, expected)
    real = value > -torch.inf
    torch.testing.assert_close(value[real], scores.gather(1, index)[real])
    assert bool((index.diff(dim=1) > 0).all())


@CASES
def test_best_pairs_are_the_largest_products(n: int, k: int, seed: int) -> None:
    z, _, linked = drawn(n, seed)
    pairs = best_pairs(z, k, CSR.from_tensor(linked))
    i, j = torch.triu_indices(n, n, 1)
    free = linked[i, j] == 0
    i, j = i[free], j[free]
    best = (z[i] * z[j]).sum(dim=1).topk(min(k, i.numel())).indices.sort().values
    assert torch.equal(pairs, torch.stack([i[best], j[best]]))


def test_no_pairs_are_asked_for() -> None:
    z, _, linked = drawn(10, 0)
    assert best_pairs(z, 0, CSR.from_tensor(linked)).shape == (2, 0)


@given(n=st.integers(1, 30), seed=st.integers(0, 99))
def test_least_similarity_is_the_smallest_product(n: int, seed: int) -> None:
    z, _, _ = drawn(n, seed)
    assert least_similarity(z) == pytest.approx(float((z @ z.T).min()), rel=1e-5)
    assert least_similarity(z[:0]) == 0.0
