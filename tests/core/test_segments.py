"""Attention on CSR against scipy, a dense twin, and finite differences."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.core.segments import Segments, attend, segment_topk
from elugcn.core.sparse import CSR


def pattern(n: int = 7, m: int = 6, seed: int = 0, density: float = 0.4) -> CSR:
    """A rectangular pattern with an empty row, an empty column and one full row."""
    rng = np.random.default_rng(seed)
    dense = (rng.random((n, m)) < density).astype(np.float32)
    dense[0] = 1
    dense[n // 2] = 0
    dense[:, m // 2] = 0
    return CSR.from_scipy(sp.csr_matrix(dense))


def inputs(
    adj: CSR, k: int = 2, c: int = 3, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """z, to and of, random and with gradients."""
    n, m = adj.shape
    shapes = ((m, k, c), (n, k), (m, k))
    z, to, of = (torch.randn(s, dtype=dtype).requires_grad_() for s in shapes)
    return z, to, of


def dense_attend(
    linked: Tensor, z: Tensor, to: Tensor, of: Tensor, keep: Tensor | None = None
) -> Tensor:
    """Every pair is scored, n×m×k; what isn't linked is struck before the softmax."""
    e = F.leaky_relu(to[:, None] + of[None], 0.2)
    e = e.masked_fill(~linked[:, :, None], -torch.inf)
    alpha = torch.where(linked[:, :, None], e.softmax(dim=1), 0.0)
    if keep is not None:
        alpha = alpha * keep
    return torch.einsum("nmk,mkc->nkc", alpha, z)


def spread(adj: CSR, keep: Tensor, k: int) -> Tensor:
    """A mask as ``attend`` takes it, laid out as n×m×k."""
    out = torch.zeros(*adj.shape, k, dtype=keep.dtype)
    place = 0
    for i in range(adj.shape[0]):
        columns = adj.col[adj.crow[i] : adj.crow[i + 1]].long()
        for h in range(k):
            out[i, columns, h] = keep[place : place + len(columns)]
            place += len(columns)
    assert place == keep.numel()
    return out


def assert_same(ours: Tensor, theirs: Tensor, leaves: tuple[Tensor, ...]) -> None:
    """Values, and gradients of a sum with random weights."""
    torch.testing.assert_close(ours, theirs)
    weight = torch.randn_like(ours)
    one = torch.autograd.grad((ours * weight).sum(), leaves)
    two = torch.autograd.grad((theirs * weight).sum(), leaves)
    for a, b in zip(one, two, strict=True):
        assert float(b.abs().max()) > 0
        torch.testing.assert_close(a, b)


# --- indices ---------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_indices_are_those_of_the_kronecker_product(
    seed: int, n: int, m: int, k: int
) -> None:
    rng = np.random.default_rng(seed)
    a = sp.csr_matrix((rng.random((n, m)) < 0.5).astype(np.float32))
    at = Segments.of(CSR.from_scipy(a), k)
    expected = sp.csr_matrix(sp.kron(a, sp.eye(k), format="csr"))
    expected.eliminate_zeros()
    expected.sort_indices()
    turned = sp.csr_matrix(expected.T)
    turned.sort_indices()
    assert at.crow.tolist() == expected.indptr.tolist()
    assert at.offset.tolist() == expected.indptr.tolist()
    assert at.col.tolist() == expected.indices.tolist()
    assert at.row.tolist() == sp.coo_matrix(expected).row.tolist()
    assert at.crow_t.tolist() == turned.indptr.tolist()
    assert at.col_t.tolist() == turned.indices.tolist()
    # Numbered entries, transposed by scipy, say where each one went.
    expected.data = np.arange(expected.nnz, dtype=np.float64)
    numbered = sp.csr_matrix(expected.T)
    numbered.sort_indices()
    assert at.perm.tolist() == numbered.data.tolist()


def test_indices_are_kept_as_long_as_the_matrix() -> None:
    adj = pattern()
    two = Segments.of(adj, 2)
    assert Segments.of(adj, 2) is two
    assert Segments.of(adj, 3) is not two
    assert Segments.of(pattern(), 2) is not two
    gone = weakref.ref(two)
    del adj, two
    gc.collect()
    assert gone() is None


def test_sums_and_maxima_of_rows() -> None:
    adj = CSR.from_scipy(sp.csr_matrix([[1.0, 1.0, 0.0], [0, 0, 0], [0, 1.0, 1.0]]))
    at = Segments.of(adj)
    value = torch.tensor([1.0, -3.0, -5.0, -4.0])
    assert at.sum(value).tolist() == [-2.0, 0.0, -9.0]
    assert at.max(value).tolist() == [1.0, -torch.inf, -4.0]


# --- attention -------------------------------------------------------------------


def test_by_hand() -> None:
    """Scores of ln 3 and 0 give weights of 3/4 and 1/4; −5 ln 3 bends to −ln 3."""
    adj = CSR.from_scipy(sp.csr_matrix([[9.0, 7.0], [0.0, 0.0], [-2.0, 0.0]]))
    z = torch.tensor([[[4.0]], [[8.0]]])
    ln3 = float(np.log(3))
    to, of = torch.zeros(3, 1), torch.tensor([[ln3], [0.0]])
    assert attend(adj, z, to, of).flatten().tolist() == pytest.approx([5.0, 0.0, 4.0])
    of = torch.tensor([[-5 * ln3], [0.0]])
    assert attend(adj, z, to, of).flatten().tolist() == pytest.approx([7.0, 0.0, 4.0])
    keep = torch.tensor([2.0, 0.0, 2.0])
    out = attend(adj, z, to, of, keep=keep).flatten()
    assert out.tolist() == pytest.approx([2.0, 0.0, 8.0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_values_and_gradients_equal_the_dense_twin(
    dtype: torch.dtype, masked: bool, k: int
) -> None:
    adj = pattern(20, 15)
    z, to, of = inputs(adj, k, dtype=dtype)
    keep = torch.randint(0, 2, (k * adj.nnz,)).to(dtype) * 2 if masked else None
    ours = attend(adj, z, to, of, keep=keep)
    full = None if keep is None else spread(adj, keep, k)
    theirs = dense_attend(adj.to_dense() != 0, z, to, of, full)
    assert ours.dtype == dtype
    assert torch.equal(ours[10], torch.zeros_like(ours[10]))
    assert_same(ours, theirs, (z, to, of))


def test_gradients_equal_finite_differences() -> None:
    adj = pattern()
    keep = torch.randint(0, 2, (2 * adj.nnz,)).double()
    for mask in (None, keep):
        assert torch.autograd.gradcheck(
            lambda z, to, of, m=mask: attend(adj, z, to, of, keep=m), inputs(adj)
        )


@pytest.mark.parametrize("scale", [1e2, 1e4])
@pytest.mark.parametrize("shift", [-500.0, 0.0, 500.0])
def test_scores_beyond_the_range_of_exp(scale: float, shift: float) -> None:
    """In float32, against the dense twin, whose softmax is safe."""
    adj = pattern(20, 15)
    z, to, of = inputs(adj, dtype=torch.float32)
    to_, of_ = to * scale + shift, of * scale
    ours = attend(adj, z, to_, of_)
    assert bool(ours.isfinite().all())
    theirs = dense_attend(adj.to_dense() != 0, z, to_, of_)
    torch.testing.assert_close(ours, theirs)
    (one,) = torch.autograd.grad(ours.square().sum(), z, retain_graph=True)
    (two,) = torch.autograd.grad(theirs.square().sum(), z)
    torch.testing.assert_close(one, two)
    (slope,) = torch.autograd.grad(ours.square().sum(), to)
    assert bool(slope.isfinite().all())


def test_one_row_far_below_the_others() -> None:
    """A shift by the largest score of all rows would leave 0/0 in the second."""
    adj = CSR.from_scipy(sp.csr_matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))
    z = torch.tensor([[[1.0]], [[2.0]], [[4.0]]])
    of = torch.tensor([[900.0], [-900.0], [-900.0]])
    out = attend(adj, z, torch.zeros(2, 1), of)
    assert out.flatten().tolist() == pytest.approx([1.0, 3.0])


def test_at_zero_the_slope_is_that_of_torch() -> None:
    """Nodes without features score exactly zero."""
    adj = pattern(20, 15)
    z, _, _ = inputs(adj)
    to = torch.zeros(20, 2, dtype=torch.float64, requires_grad=True)
    of = torch.zeros(15, 2, dtype=torch.float64, requires_grad=True)
    ours, theirs = (
        attend(adj, z, to, of),
        dense_attend(adj.to_dense() != 0, z, to, of),
    )
    assert_same(ours[:, :, :1], theirs[:, :, :1], (z, of))


def test_the_values_of_the_matrix_do_not_matter() -> None:
    adj = pattern()
    z, to, of = inputs(adj)
    other = adj.with_values(torch.randn(adj.nnz))
    assert torch.equal(attend(adj, z, to, of), attend(other, z, to, of))


def test_no_entries() -> None:
    adj = CSR.from_scipy(sp.csr_matrix((4, 3)))
    z, to, of = inputs(adj, dtype=torch.float32)
    out = attend(adj, z, to, of)
    assert torch.equal(out, torch.zeros(4, 2, 3))
    for g in torch.autograd.grad(out.sum(), (z, to, of)):
        assert torch.equal(g, torch.zeros_like(g))


def test_a_second_backward_is_refused() -> None:
    adj = pattern()
    z, to, of = inputs(adj)
    out = attend(adj, z, to, of).square().sum()
    (g,) = torch.autograd.grad(out, z, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()  # type: ignore[no-untyped-call]


# --- the largest of each row -------------------------------------------------------


def rows_of(sizes: list[int]) -> Tensor:
    return torch.tensor(np.concatenate([[0], np.cumsum(sizes)]), dtype=torch.int32)


def test_topk_by_hand() -> None:
    scores = torch.tensor([0.1, -2.0, 5.0, -1.0, -3.0, -2.0, 7.0])
    crow = rows_of([3, 0, 3, 1])
    assert segment_topk(scores, crow, 2).tolist() == [0, 2, 3, 5, 6]
    assert segment_topk(scores, crow, 1).tolist() == [2, 3, 6]
    assert segment_topk(scores, crow, 0).tolist() == []
    assert segment_topk(scores, crow, 3).tolist() == list(range(7))


@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=False), max_size=7), max_size=8),
    st.integers(0, 8),
)
@settings(deadline=None)
def test_topk_is_numpys_row_by_row(rows: list[list[float]], k: int) -> None:
    """With equal scores any of them may stay: the scores kept are compared."""
    sizes = [len(r) for r in rows]
    scores = torch.tensor([s for r in rows for s in r], dtype=torch.float32)
    kept = segment_topk(scores, rows_of(sizes), k)
    assert kept.dtype == torch.int64
    assert bool((kept[1:] > kept[:-1]).all())
    chosen = np.zeros(scores.numel(), dtype=bool)
    chosen[kept.numpy()] = True
    start = 0
    for row in rows:
        mine = chosen[start : start + len(row)]
        expected = np.sort(np.float32(row))[::-1][:k]
        got = np.sort(np.float32(row)[mine])[::-1]
        assert np.array_equal(got, expected)
        start += len(row)


def test_topk_of_equal_scores_is_always_the_same() -> None:
    scores = torch.tensor([0.0, -0.0, 0.0, 0.0, -0.0, 0.0] * 20)
    crow = rows_of([60, 60])
    one = segment_topk(scores, crow, 7)
    assert one.numel() == 14
    assert torch.equal(one, segment_topk(scores, crow, 7))
    # −0 is no smaller than 0: every place has the same score.
    assert torch.equal(one, segment_topk(torch.zeros(120), crow, 7))


def test_topk_sees_the_smallest_difference() -> None:
    """One bit of float32, both signs, beside a large score in another row."""
    up = np.nextafter(np.float32(1e-3), np.float32(1))
    down = np.nextafter(np.float32(-1e-3), np.float32(0))
    scores = torch.tensor([1e-3, up, 1e-3, down, -1e-3, -1e-3, 3e38, -3e38])
    assert segment_topk(scores, rows_of([3, 3, 2]), 1).tolist() == [1, 3, 6]
