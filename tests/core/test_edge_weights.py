"""Learned edges against dense softmax, dense products and their gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.utils import softmax

from elugcn.core.edge_weights import (
    Weighted,
    pair_products,
    row_products,
    row_softmax,
    some_entries,
)
from elugcn.core.sparse import CSR


def pattern(n: int, m: int, share: float, seed: int) -> CSR:
    """Random places; some rows are empty."""
    generator = torch.Generator().manual_seed(seed)
    return CSR.from_tensor((torch.rand(n, m, generator=generator) < share).float())


def dense_of(adj: CSR, value: Tensor) -> Tensor:
    out = value.new_zeros(adj.shape)
    return out.index_put((adj.row, adj.col.long()), value)


@settings(max_examples=25, deadline=None)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    share=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    scale=st.sampled_from([1.0, 30.0, 1000.0]),
    seed=st.integers(0, 1000),
)
def test_softmax_has_the_values_and_gradients_of_pygs(
    size: tuple[int, int], share: float, scale: float, seed: int
) -> None:
    adj = pattern(*size, share, seed)
    torch.manual_seed(seed)
    score, weight = scale * torch.randn(adj.nnz), torch.randn(adj.nnz)
    one, two = score.clone().requires_grad_(), score.clone().requires_grad_()
    p = row_softmax(adj, one)
    expected = softmax(two, adj.row, num_nodes=size[0])
    torch.testing.assert_close(p, expected, rtol=1e-4, atol=1e-6)
    (ours,) = torch.autograd.grad((p * weight).sum(), one)
    (theirs,) = torch.autograd.grad((expected * weight).sum(), two)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


def test_rows_sum_to_one_unless_empty() -> None:
    adj = CSR.from_tensor(torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]))
    p = dense_of(adj, row_softmax(adj, torch.tensor([0.0, 0.0, -700.0])))
    assert p.tolist() == [[0.5, 0.5], [0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("shape", [(6, 6), (7, 4), (3, 8)])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_products_are_dense_ones(shape: tuple[int, int], share: float) -> None:
    adj = pattern(*shape, share, 1)
    torch.manual_seed(0)
    value, z = torch.randn(adj.nnz), torch.randn(shape[1], 3)
    weight = torch.randn(shape[0], 3)
    ours = (value.clone().requires_grad_(), z.clone().requires_grad_())
    twin = (value.clone().requires_grad_(), z.clone().requires_grad_())
    out = Weighted(adj, ours[0]) @ ours[1]
    expected = dense_of(adj, twin[0]) @ twin[1]
    torch.testing.assert_close(out, expected)
    gradients = torch.autograd.grad((out * weight).sum(), ours)
    wanted = torch.autograd.grad((expected * weight).sum(), twin)
    for one, two in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one, two)


def test_several_products_add_up_in_one_gradient() -> None:
    """P (P Z): the same entries stand in both factors."""
    adj = pattern(6, 6, 0.5, 2)
    torch.manual_seed(0)
    score, z = torch.randn(adj.nnz), torch.randn(6, 2)
    one, two = score.clone().requires_grad_(), score.clone().requires_grad_()
    edges = Weighted(adj, row_softmax(adj, one))
    out = edges @ (edges @ z)
    p = dense_of(adj, softmax(two, adj.row, num_nodes=6))
    expected = p @ (p @ z)
    torch.testing.assert_close(out, expected)
    (ours,) = torch.autograd.grad(out.square().sum(), one)
    (theirs,) = torch.autograd.grad(expected.square().sum(), two)
    torch.testing.assert_close(ours, theirs)


def test_a_symmetric_matrix_gives_its_pattern_only() -> None:
    """Â is symmetric, the weights on its entries are not."""
    adj = CSR.from_tensor(torch.ones(3, 3))
    adj = CSR(adj.crow, adj.col, adj.value, 3, symmetric=True)
    value = torch.arange(9.0)
    z = torch.eye(3, requires_grad=True)
    out = Weighted(adj, value) @ z
    assert torch.equal(out, value.view(3, 3))
    (gradient,) = torch.autograd.grad(out[0].sum(), z)
    assert gradient[:, 0].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_row_products(dtype: torch.dtype) -> None:
    adj = pattern(7, 5, 0.4, 3)
    left, right = torch.randn(7, 3, dtype=dtype), torch.randn(5, 3, dtype=dtype)
    expected = (left @ right.T)[adj.row, adj.col.long()]
    for _ in range(2):  # the pattern is kept, its values are not written to
        torch.testing.assert_close(row_products(adj, left, right), expected)


def test_pair_products_have_the_gradients_of_dense_ones() -> None:
    adj = pattern(7, 5, 0.4, 3)
    # An entry may be there twice, and rows may be left out.
    places = torch.tensor([0, 2, 2, 3, adj.nnz - 1])
    pairs = some_entries(adj, places)
    assert pairs.row.tolist() == adj.row[places].tolist()
    assert pairs.col.tolist() == adj.col[places].tolist()
    assert pairs.shape == adj.shape
    left = torch.randn(7, 3, requires_grad=True)
    right = torch.randn(5, 3, requires_grad=True)
    weight = torch.randn(5)
    out = pair_products(pairs, left, right)
    expected = (left @ right.T)[pairs.row, pairs.col.long()]
    torch.testing.assert_close(out, expected)
    gradients = torch.autograd.grad((out * weight).sum(), (left, right))
    dense = torch.autograd.grad((expected * weight).sum(), (left, right))
    torch.testing.assert_close(gradients, dense)


def test_no_entries_at_all() -> None:
    adj = pattern(7, 5, 0.4, 3)
    none = some_entries(adj, torch.empty(0, dtype=torch.long))
    assert none.crow.tolist() == [0] * 8
    assert none.nnz == 0
