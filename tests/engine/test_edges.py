"""Sums, softmax, choice and attention over entries against scipy and dense twins."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.engine import (
    CSR,
    attend,
    pair_products,
    row_softmax,
    row_sum,
    row_topk,
    some_entries,
    weighted_spmm,
)
from tests.engine.conftest import assert_same, drawn, sparse


def pattern(n: int = 7, m: int = 6, density: float = 0.4) -> CSR:
    """A rectangular pattern with an empty row, an empty column and one full row."""
    rng = np.random.default_rng(0)
    dense = (rng.random((n, m)) < density).astype(np.float32)
    dense[0] = 1
    dense[n // 2] = 0
    dense[:, m // 2] = 0
    return CSR.from_scipy(sp.csr_matrix(dense))


def at(a: CSR, matrix: Tensor) -> Tensor:
    """The entries of a dense matrix where a pattern has some."""
    return matrix[a.row, a.col.long()]


def placed(a: CSR, value: Tensor, elsewhere: float = 0.0) -> Tensor:
    """The dense matrix with these entries."""
    out = torch.full(a.shape, elsewhere, dtype=value.dtype)
    return out.index_put((a.row, a.col.long()), value)


@pytest.mark.parametrize("k", [1, 5])
def test_pair_products(k: int) -> None:
    a = pattern()
    assert_same(
        lambda x, y: pair_products(a, x, y),
        lambda x, y: at(a, x @ y.T),
        [drawn(7, k), drawn(6, k, seed=1)],
    )


@pytest.mark.parametrize("k", [1, 5])
def test_weighted_spmm(k: int) -> None:
    a = pattern()
    assert_same(
        lambda w, z: weighted_spmm(a, w, z),
        lambda w, z: placed(a, w) @ z,
        [drawn(a.nnz), drawn(6, k, seed=1)],
    )


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_row_softmax(scale: float) -> None:
    a = pattern()

    def truth(scores: Tensor) -> Tensor:
        dense = placed(a, scores * scale, -torch.inf)
        return at(a, dense.softmax(dim=1))

    assert_same(lambda s: row_softmax(a, s * scale), truth, [drawn(a.nnz)], atol=1e-4)
    p = row_softmax(a, drawn(a.nnz) * scale)
    torch.testing.assert_close(row_sum(a, p), (torch.arange(7) != 3).float())


def test_operations_without_entries() -> None:
    a = CSR.from_scipy(sp.csr_matrix((4, 3)))
    nothing = torch.zeros(0)
    assert row_sum(a, nothing).tolist() == [0, 0, 0, 0]
    assert row_softmax(a, nothing).numel() == 0
    assert row_topk(a, nothing, 2).numel() == 0
    assert pair_products(a, drawn(4, 2), drawn(3, 2)).numel() == 0
    assert not weighted_spmm(a, nothing, drawn(3, 2)).any()
    leaves = [x.requires_grad_() for x in operands(a)]
    out = attend(a, *leaves)
    assert torch.equal(out, torch.zeros(4, 2, 3))
    assert not any(g.any() for g in torch.autograd.grad(out.sum(), leaves))


# --- attention -----------------------------------------------------------------------


def operands(
    a: CSR, k: int = 2, c: int = 3, dtype: torch.dtype = torch.float32
) -> list[Tensor]:
    """z, to and of."""
    n, m = a.shape
    return [drawn(*s).to(dtype) for s in ((m, k, c), (n, k), (m, k))]


def dense_attend(
    a: CSR, z: Tensor, to: Tensor, of: Tensor, keep: Tensor | None = None
) -> Tensor:
    """Every pair is scored, n×m×k; what isn't linked is struck before the softmax."""
    linked = (a.to_dense() != 0)[:, :, None]
    e = F.leaky_relu(to[:, None] + of[None], 0.2).masked_fill(~linked, -torch.inf)
    alpha = torch.where(linked, e.softmax(dim=1), 0.0)
    return torch.einsum("nmk,mkc->nkc", alpha if keep is None else alpha * keep, z)


def by_row_and_head(a: CSR, keep: Tensor, k: int) -> Tensor:
    """A mask as ``attend`` takes it, laid out as n×m×k."""
    out, place = torch.zeros(*a.shape, k, dtype=keep.dtype), 0
    for i in range(a.shape[0]):
        columns = a.col[a.crow[i] : a.crow[i + 1]].long()
        for h in range(k):
            out[i, columns, h] = keep[place : place + len(columns)]
            place += len(columns)
    return out


def test_attention_by_hand() -> None:
    """Scores of ln 3 and 0 give weights of 3/4 and 1/4; −5 ln 3 bends to −ln 3."""
    a = CSR.from_scipy(sp.csr_matrix([[9.0, 7.0], [0.0, 0.0], [-2.0, 0.0]]))
    z, to, ln3 = torch.tensor([[[4.0]], [[8.0]]]), torch.zeros(3, 1), np.log(3)
    for first, expected in ((ln3, [5.0, 0.0, 4.0]), (-5 * ln3, [7.0, 0.0, 4.0])):
        of = torch.tensor([[first], [0.0]], dtype=torch.float32)
        assert attend(a, z, to, of).flatten().tolist() == pytest.approx(expected)
    keep = torch.tensor([2.0, 0.0, 2.0])
    out = attend(a, z, to, of, keep=keep).flatten()
    assert out.tolist() == pytest.approx([2.0, 0.0, 8.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_attention_equals_the_dense_twin(
    dtype: torch.dtype, masked: bool, k: int
) -> None:
    a, keep, full = pattern(20, 15), None, None
    if masked:
        keep = (drawn(k * a.nnz) > 0).to(dtype) * 2
        full = by_row_and_head(a, keep, k)
    assert_same(
        lambda z, to, of: attend(a, z, to, of, keep=keep),
        lambda z, to, of: dense_attend(a, z, to, of, full),
        operands(a, k, dtype=dtype),
    )


@pytest.mark.parametrize(
    ("scale", "shift"), [(100.0, 0.0), (1.0, -500.0), (1e4, 500.0)]
)
def test_attention_beyond_the_range_of_exp(scale: float, shift: float) -> None:
    a = pattern(20, 15)
    z, to, of = operands(a)
    assert_same(
        lambda z, to, of: attend(a, z, to * scale + shift, of * scale),
        lambda z, to, of: dense_attend(a, z, to * scale + shift, of * scale),
        [z, to, of],
        rtol=1e-3,
        atol=scale * 1e-4,
    )


# --- the largest of each row --------------------------------------------------------


def rows(sizes: list[int]) -> CSR:
    """A pattern with rows of these sizes."""
    crow = torch.tensor(np.concatenate([[0], np.cumsum(sizes)]), dtype=torch.int32)
    columns = [torch.arange(s, dtype=torch.int32) for s in sizes]
    col = torch.cat([*columns, torch.zeros(0, dtype=torch.int32)])
    return CSR(crow, col, torch.ones(col.numel()), max([1, *sizes]))


@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=False), max_size=7), max_size=8),
    st.integers(0, 8),
)
def test_topk_is_numpys_row_by_row(lists: list[list[float]], k: int) -> None:
    """With equal scores any of them may stay: the scores kept are compared."""
    a = rows([len(r) for r in lists])
    scores = torch.tensor([s for r in lists for s in r], dtype=torch.float32)
    kept = row_topk(a, scores, k)
    assert bool((kept[1:] > kept[:-1]).all())
    for i, row in enumerate(lists):
        mine = kept[(kept >= a.crow[i]) & (kept < a.crow[i + 1])]
        expected = np.sort(np.float32(row))[::-1][:k]
        assert np.array_equal(np.sort(scores[mine].numpy())[::-1], expected)


def test_some_entries() -> None:
    a = sparse(9, 8)
    places = torch.tensor([0, 3, 3, a.nnz - 1])
    some = some_entries(a, places)
    expected = torch.zeros(9, 8)
    for i in places.tolist():
        expected[a.row[i], a.col[i]] += a.value[i]
    torch.testing.assert_close(some.to_dense(), expected)
    assert some.nnz == 4
