"""Best pairs against all pairs, made at once with numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.core import similarity
from elugcn.core.similarity import (
    blocked_topk_similarity,
    least_similarity,
    top_pairs,
)
from elugcn.core.sparse import CSR


def pattern(n: int, m: int, share: float, seed: int) -> CSR:
    drawn = np.random.default_rng(seed).random((n, m)) < share
    return CSR.from_scipy(sp.csr_array(drawn.astype(np.float32)))


def dense_scores(left: Tensor, right: Tensor, exclude: CSR | None) -> np.ndarray:
    scores = left.numpy().astype(np.float64) @ right.numpy().astype(np.float64).T
    if exclude is not None:
        scores[exclude.to_dense().numpy() != 0] = -np.inf
    return scores


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    k=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.2, 0.9, 1.0]),
    block=st.sampled_from([1, 50, 1000]),
    group=st.sampled_from([2, 32]),
    seed=st.integers(0, 1000),
)
def test_topk_is_that_of_all_scores(
    n: int, k: int, share: float, block: int, group: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(2, n, 5, generator=generator)
    exclude = pattern(n, n, share, seed)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(similarity, "BLOCK", block)
        m.setattr(similarity, "GROUP", group)
        index, score = blocked_topk_similarity(left, right, k, exclude)
    expected = dense_scores(left, right, exclude)
    np.fill_diagonal(expected, -np.inf)
    k = min(k, n)
    assert index.shape == score.shape == (n, k)
    for i in range(n):
        there = score[i] > -torch.inf
        best = np.argsort(-expected[i], kind="stable")[:k]
        best = best[expected[i][best] > -np.inf]
        assert index[i][there].tolist() == sorted(best.tolist())
        np.testing.assert_allclose(
            score[i][there], expected[i][index[i][there]], rtol=1e-4, atol=1e-5
        )


def test_rows_and_columns_may_be_of_different_kinds() -> None:
    torch.manual_seed(0)
    left, right = torch.randn(7, 3), torch.randn(300, 3)
    index, _ = blocked_topk_similarity(left, right, 4, exclude_self=False)
    expected = (left @ right.T).topk(4).indices.sort(dim=1).values
    assert torch.equal(index, expected)
    # Row 2 of both is the same node: it is left out, whatever its score.
    right[2] = 100 * left[2]
    assert 2 in blocked_topk_similarity(left, right, 4, exclude_self=False)[0][2]
    assert 2 not in blocked_topk_similarity(left, right, 4)[0][2]


def test_nothing_in_nothing_out() -> None:
    empty = torch.empty(0, 3)
    assert blocked_topk_similarity(empty, empty, 4)[0].shape == (0, 0)
    assert top_pairs(empty, 3).shape == (2, 0)
    assert top_pairs(torch.randn(5, 3), 0).shape == (2, 0)
    assert least_similarity(empty) == 0.0


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 30),
    m=st.integers(0, 60),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    block=st.sampled_from([1, 60, 5000]),
    seed=st.integers(0, 1000),
)
def test_top_pairs_are_those_of_all_pairs(
    n: int, m: int, share: float, block: int, seed: int
) -> None:
    z = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    exclude = pattern(n, n, share, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "BLOCK", block)
        found = top_pairs(z, m, exclude)
        assert least_similarity(z) == pytest.approx(
            dense_scores(z, z, None).min(), rel=1e-4, abs=1e-5
        )
    scores = dense_scores(z, z, None)
    struck = exclude.to_dense().numpy() != 0
    scores[struck | struck.T | ~np.triu(np.ones((n, n), dtype=bool), 1)] = -np.inf
    order = np.argsort(-scores, axis=None)[: min(m, int(np.isfinite(scores).sum()))]
    assert [i * n + j for i, j in found.T.tolist()] == sorted(order.tolist())


def test_ties_still_give_the_number_asked_for() -> None:
    exclude = pattern(20, 20, 0.3, 1)
    found = top_pairs(torch.ones(20, 2), 25, exclude)
    assert found.shape == torch.unique(found, dim=1).shape == (2, 25)
    assert bool((found[0] < found[1]).all())
    dense = exclude.to_dense()
    assert not bool((dense + dense.T)[found[0], found[1]].any())
