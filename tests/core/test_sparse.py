"""CSR products, transposes, dropout and Â against scipy, dense torch and PyG."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_undirected

from elugcn.core.sparse import CSR, features, normalized_adjacency


@st.composite
def matrices(draw: st.DrawFn) -> sp.coo_matrix:
    """Random scipy matrices: any shape, empty rows, duplicates, no entries at all."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    nnz = draw(st.integers(0, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    row, col = rng.integers(0, n, nnz), rng.integers(0, m, nnz)
    return sp.coo_matrix((rng.normal(size=nnz), (row, col)), shape=(n, m))


def sample(n: int = 7, m: int = 5, seed: int = 0) -> CSR:
    """A fixed matrix with an empty row and an empty column."""
    dense = sp.random(n, m, 0.5, random_state=seed).toarray() - 0.0
    dense[n // 2] = 0
    dense[:, m // 2] = 0
    return CSR.from_scipy(sp.csr_matrix(dense))


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# --- products and transposes ---------------------------------------------------


@given(matrices(), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=60, deadline=None)
def test_products_equal_scipy(matrix: sp.coo_matrix, dtype: torch.dtype) -> None:
    a = CSR.from_scipy(matrix)
    dense = matrix.toarray()
    z = normal(dense.shape[1], 3, dtype=dtype)
    zt = normal(dense.shape[0], 2, seed=1, dtype=dtype)
    assert a.shape == dense.shape
    assert (a @ z).dtype == dtype
    np.testing.assert_allclose((a @ z).numpy(), dense @ z.numpy(), atol=1e-5)
    np.testing.assert_allclose((a.T @ zt).numpy(), dense.T @ zt.numpy(), atol=1e-5)
    np.testing.assert_allclose(a.to_dense().numpy(), dense, atol=1e-6)
    np.testing.assert_allclose(a.T.to_dense().numpy(), dense.T, atol=1e-6)
    np.testing.assert_allclose(a.to_scipy().toarray(), dense, atol=1e-6)


@given(matrices())
@settings(max_examples=40, deadline=None)
def test_transpose_is_canonical_and_its_own_inverse(matrix: sp.coo_matrix) -> None:
    a = CSR.from_scipy(matrix)
    expected = sp.csr_matrix(matrix).T.tocsr()
    expected.sort_indices()
    assert a.T.crow.tolist() == expected.indptr.tolist()
    assert a.T.col.tolist() == expected.indices.tolist()
    back = a.T.T
    assert back.shape == a.shape
    for name in ("crow", "col", "value"):
        assert torch.equal(getattr(back, name), getattr(a, name))


def test_duplicates_are_summed_and_columns_ascend() -> None:
    row, col = [0, 0, 0, 2], [3, 1, 3, 0]
    a = CSR.from_scipy(sp.coo_matrix(([1.0, 5.0, 2.0, 7.0], (row, col)), shape=(3, 4)))
    assert a.crow.tolist() == [0, 2, 2, 3]
    assert a.col.tolist() == [1, 3, 0]
    assert a.value.tolist() == [5.0, 3.0, 7.0]
    assert a.row.tolist() == [0, 0, 2]
    assert a.nnz == 3


def test_from_scipy_does_not_change_its_input() -> None:
    matrix = sp.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3])),
        shape=(2, 2),
    )
    CSR.from_scipy(matrix)
    np.testing.assert_array_equal(matrix.toarray(), [[0, 3], [4, 0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_no_entries(shape: tuple[int, int], dtype: torch.dtype) -> None:
    n, m = shape
    a = CSR.from_scipy(sp.csr_matrix(shape))
    z = normal(m, 3, dtype=dtype).requires_grad_()
    out = a @ z
    out.sum().backward()
    assert torch.equal(out, torch.zeros(n, 3, dtype=dtype))
    assert z.grad is not None
    assert torch.equal(z.grad, torch.zeros(m, 3, dtype=dtype))
    assert a.T.shape == (m, n)
    assert torch.equal(a.T @ normal(n, 2), torch.zeros(m, 2))


def test_empty_rows_give_zero_rows() -> None:
    a = CSR.from_scipy(sp.csr_matrix(([2.0], ([1], [0])), shape=(3, 2)))
    out = a @ torch.tensor([[1.0, 3.0], [100.0, 100.0]])
    assert out.tolist() == [[0, 0], [2, 6], [0, 0]]


def test_non_contiguous_operand() -> None:
    a = sample()
    z = normal(3, 5).T
    torch.testing.assert_close(a @ z, a.to_dense() @ z)


@pytest.mark.parametrize("layout", ["dense", "pairs", "csr"])
def test_from_tensor(layout: str) -> None:
    dense = sample().to_dense()
    x = {"dense": dense, "pairs": dense.to_sparse(), "csr": dense.to_sparse_csr()}[
        layout
    ]
    a = CSR.from_tensor(x)
    assert torch.equal(a.to_dense(), dense)
    assert a.nnz == int(dense.count_nonzero())


def test_to_keeps_everything() -> None:
    a = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 3)
    moved = a.to(torch.device("cpu"))
    assert moved.symmetric
    assert torch.equal(moved.to_dense(), a.to_dense())


def test_repr() -> None:
    a = CSR.from_scipy(sp.csr_matrix(([2.0], ([1], [0])), shape=(3, 2)))
    assert repr(a) == "CSR(3×2, nnz=1, symmetric=False)"


def test_wrong_number_of_rows_is_refused() -> None:
    a = sample(7, 5)
    with pytest.raises((RuntimeError, ValueError)):
        a @ normal(9, 3)


# --- gradients -------------------------------------------------------------------


def test_gradcheck_float64() -> None:
    a = sample()
    value = a.value.double().requires_grad_()
    z = normal(5, 3, dtype=torch.float64).requires_grad_()

    def product(value: Tensor, z: Tensor) -> Tensor:
        return a.with_values(value) @ z

    assert torch.autograd.gradcheck(product, (value, z))


def test_gradcheck_through_the_transpose() -> None:
    a = sample()
    value = a.value.double().requires_grad_()
    z = normal(7, 2, dtype=torch.float64).requires_grad_()

    def product(value: Tensor, z: Tensor) -> Tensor:
        return a.with_values(value).T @ z

    assert torch.autograd.gradcheck(product, (value, z))


@pytest.mark.parametrize("symmetric", [False, True])
def test_float32_gradients_equal_dense_autograd(symmetric: bool) -> None:
    if symmetric:
        # with_values on a symmetric matrix: the new values need not be symmetric.
        edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        a = normalized_adjacency(edges, 5)
        assert a.symmetric
    else:
        a = sample()
    n, m = a.shape
    weight = normal(n, 4, seed=5)
    value = normal(a.nnz, seed=2).requires_grad_()
    z = normal(m, 4, seed=3).requires_grad_()
    (a.with_values(value) @ z * weight).sum().backward()

    value_d = value.detach().clone().requires_grad_()
    z_d = z.detach().clone().requires_grad_()
    dense = torch.zeros(n, m).index_put((a.row, a.col.long()), value_d)
    (dense @ z_d * weight).sum().backward()
    torch.testing.assert_close(value.grad, value_d.grad)
    torch.testing.assert_close(z.grad, z_d.grad)


def test_gradient_of_constant_values_is_not_computed() -> None:
    a = sample()
    z = normal(5, 2).requires_grad_()
    (a @ z).sum().backward()
    assert a.value.grad is None
    torch.testing.assert_close(z.grad, a.to_dense().T @ torch.ones(7, 2))


def test_with_values_shares_the_pattern_and_leaves_the_original() -> None:
    a = sample()
    before = a.value.clone()
    b = a.with_values(a.value * 3)
    assert b.pattern is a.pattern
    assert torch.equal(a.value, before)
    torch.testing.assert_close(b.T.to_dense(), 3 * a.to_dense().T)


# --- dropout ---------------------------------------------------------------------


def test_dropout_in_evaluation_or_with_zero_is_the_matrix_itself() -> None:
    a = sample()
    assert a.dropout(0.5, training=False) is a
    assert a.dropout(0.0) is a


def test_dropout_scales_what_it_keeps() -> None:
    torch.manual_seed(0)
    a = CSR.from_tensor(torch.where(normal(40, 50) > 0.5, normal(40, 50, seed=1), 0.0))
    dropped = a.dropout(0.25)
    kept = dropped.value != 0
    torch.testing.assert_close(dropped.value[kept], a.value[kept] / 0.75)
    assert 0.68 < kept.float().mean() < 0.82
    # Zeros stay zero: nothing is stored outside the pattern.
    assert torch.equal(
        dropped.to_dense() != 0, (dropped.to_dense() != 0) & (a.to_dense() != 0)
    )
    assert torch.equal(dropped.col, a.col)


def test_dropout_follows_its_probability_and_the_values() -> None:
    # The scaled values are kept between epochs: they must not outlive what made them.
    a = CSR.from_tensor(normal(30, 20))
    for p, factor in ((0.5, 1.0), (0.75, 1.0), (0.75, 3.0), (0.5, 3.0)):
        a.value.copy_(factor * normal(30, 20).flatten())
        for _ in range(2):
            value = a.dropout(p).value
            kept = value != 0
            assert 0 < kept.sum() < a.nnz
            torch.testing.assert_close(value[kept], a.value[kept] / (1 - p))


def test_dropout_has_the_right_mean() -> None:
    torch.manual_seed(0)
    a = sample()
    mean = sum(a.dropout(0.4).value for _ in range(4000)) / 4000
    # Standard deviation of the mean: |v|·sqrt(.4/.6/4000) ≈ 0.013 |v|.
    torch.testing.assert_close(mean, a.value, rtol=0.06, atol=0)


@pytest.mark.parametrize("symmetric", [False, True])
def test_dropout_gradient_uses_the_mask_of_the_forward_pass(symmetric: bool) -> None:
    torch.manual_seed(3)
    a = sample()
    if symmetric:
        a = normalized_adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 4)
    w = normal(a.n_cols, 3).requires_grad_()
    dropped = a.dropout(0.5)
    assert bool((dropped.value == 0).any())
    assert bool((dropped.value != 0).any())
    (dropped @ w).sum().backward()
    torch.testing.assert_close(w.grad, dropped.to_dense().T @ torch.ones(a.shape[0], 3))
    torch.testing.assert_close(dropped.T.to_dense(), dropped.to_dense().T)


def test_dropout_passes_gradients_to_the_values() -> None:
    a = sample()
    value = a.value.clone().requires_grad_()
    dropped = a.with_values(value).dropout(0.5)
    z, weight = normal(5, 2), normal(7, 2, seed=1)
    (dropped @ z * weight).sum().backward()
    # d/dv of Σ weight · (mask ∘ v) z, with the mask read off the result.
    mask = dropped.value.detach() / a.value
    expected = mask * (weight @ z.T)[a.row, a.col.long()]
    torch.testing.assert_close(value.grad, expected)
    assert 0 < int((mask != 0).sum()) < a.nnz


# --- normalized adjacency ----------------------------------------------------------


def undirected(weighted: bool, seed: int = 0) -> tuple[Tensor, Tensor | None, int]:
    """30 nodes, the last three isolated, no self-loops."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 27, (2, 60))
    edges = torch.from_numpy(edges[:, edges[0] != edges[1]])
    weight = torch.from_numpy(rng.uniform(0.1, 3, edges.size(1)).astype(np.float32))
    edges, weight = to_undirected(edges, weight, num_nodes=30, reduce="mean")
    return edges, weight if weighted else None, 30


def dense_of(edges: Tensor, weight: Tensor, n: int) -> Tensor:
    """Row = target, column = source; repeated edges add up."""
    dense = torch.zeros(n, n, dtype=torch.float64)
    return dense.index_put_((edges[1], edges[0]), weight.double(), accumulate=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_equals_gcn_norm_of_pyg(weighted: bool, loops: bool) -> None:
    edges, weight, n = undirected(weighted)
    a = normalized_adjacency(edges, n, weight, self_loops=loops)
    expected = dense_of(*gcn_norm(edges, weight, n, add_self_loops=loops), n)
    assert a.symmetric
    torch.testing.assert_close(a.to_dense().double(), expected, rtol=1e-6, atol=1e-7)
    isolated = a.to_dense()[27:, 27:]
    assert torch.equal(isolated, torch.eye(3) if loops else torch.zeros(3, 3))


@pytest.mark.parametrize("loops", [False, True])
def test_row_norm_rows_sum_to_one(loops: bool) -> None:
    edges, weight, n = undirected(weighted=True)
    a = normalized_adjacency(edges, n, weight, self_loops=loops, norm="row")
    assert weight is not None
    dense = dense_of(edges, weight, n) + loops * torch.eye(n)
    degree = dense.sum(dim=1, keepdim=True)
    expected = torch.where(degree > 0, dense / degree.clamp(min=1e-9), 0.0)
    torch.testing.assert_close(a.to_dense().double(), expected, rtol=1e-6, atol=1e-7)
    sums = a.to_dense().sum(dim=1)
    reached = slice(0, n if loops else 27)
    has_edges = degree[reached, 0] > 0
    torch.testing.assert_close(sums[reached], has_edges.float())
    assert not a.symmetric


@pytest.mark.parametrize("loops", [False, True])
def test_directed_equals_the_dense_formula(loops: bool) -> None:
    # 0→1, 0→2, 2→1, 3→0 with weights; node 4 has no edges at all.
    edges = torch.tensor([[0, 0, 2, 3], [1, 2, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 0.5, 4.0])
    dense = dense_of(edges, weight, 5) + loops * torch.eye(5)
    into, out = dense.sum(dim=1), dense.sum(dim=0)
    left = torch.where(into > 0, into.clamp(min=1e-9).rsqrt(), 0.0)
    right = torch.where(out > 0, out.clamp(min=1e-9).rsqrt(), 0.0)
    a = normalized_adjacency(edges, 5, weight, self_loops=loops)
    assert not a.symmetric
    expected = left[:, None] * dense * right[None]
    torch.testing.assert_close(a.to_dense().double(), expected, rtol=1e-6, atol=1e-7)
    # A row gathers from the sources of the edges that point to it.
    assert a.to_dense()[1, 0] > 0
    assert a.to_dense()[0, 1] == 0
    z = normal(5, 2)
    torch.testing.assert_close(a.T @ z, a.to_dense().T @ z)


def test_existing_self_loops_and_repeated_edges_add_up() -> None:
    # A + I by its letter: a self-loop of the data counts beside the one of I.
    edges = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 0, 0, 0]])
    both = torch.cat([edges, edges[:, 3:].flip(0)], dim=1)
    a = normalized_adjacency(both, 2)
    # A + I = [[2, 3], [3, 1]], degrees 5 and 4.
    expected = torch.tensor([[2 / 5, 3 / 20**0.5], [3 / 20**0.5, 1 / 4]])
    torch.testing.assert_close(a.to_dense(), expected)


def test_no_edges() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(normalized_adjacency(none, 3).to_dense(), torch.eye(3))
    bare = normalized_adjacency(none, 3, self_loops=False)
    assert bare.nnz == 0
    assert torch.equal(bare @ normal(3, 2), torch.zeros(3, 2))


def test_permuting_nodes_permutes_the_matrix() -> None:
    edges, weight, n = undirected(weighted=True)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    new_name = torch.argsort(order)
    a = normalized_adjacency(edges, n, weight).to_dense()
    b = normalized_adjacency(new_name[edges], n, weight).to_dense()
    torch.testing.assert_close(b, a[order][:, order])


# --- layout of the features ----------------------------------------------------------


@pytest.mark.parametrize(("stored", "sparse"), [(24, True), (25, False), (100, False)])
def test_features_layout_follows_the_density(stored: int, sparse: bool) -> None:
    x = torch.zeros(100)
    x[:stored] = torch.arange(1.0, stored + 1)
    x = x.reshape(10, 10)
    out = features(x)
    assert isinstance(out, CSR) == sparse
    assert torch.equal(out.to_dense() if isinstance(out, CSR) else out, x)


def test_features_threshold_and_special_inputs() -> None:
    x = torch.eye(4)
    assert isinstance(features(x, threshold=0.1), Tensor)
    assert isinstance(features(x, threshold=0.3), CSR)
    out = features(torch.ones(4, 4).to_sparse())
    assert isinstance(out, CSR)
    assert torch.equal(out.to_dense(), torch.ones(4, 4))
    assert features(torch.empty(3, 0)).shape == (3, 0)
    turned = features(torch.ones(4, 3).T)
    assert isinstance(turned, Tensor)
    assert turned.is_contiguous()
