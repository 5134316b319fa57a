"""Sums of singular values against a dense decomposition."""

import pytest
import torch
from torch import Tensor

from elugcn.core.edge_weights import Weighted
from elugcn.core.singular import SingularSum
from elugcn.core.sparse import CSR


def weights(n: int = 12) -> tuple[Weighted, Tensor]:
    """A sparse matrix of gates, and its dense twin."""
    torch.manual_seed(0)
    at = CSR.from_tensor((torch.rand(n, n) < 0.4).float())
    value = torch.rand(at.nnz, dtype=torch.float64, requires_grad=True)
    dense = torch.zeros(n, n, dtype=torch.float64)
    return Weighted(at, value), dense.index_put((at.row, at.col.long()), value)


@pytest.mark.parametrize("rank", [1, 3, 12])
def test_values_and_gradients_are_those_of_svdvals(rank: int) -> None:
    at, dense = weights()
    ours = SingularSum(rank, steps=300)(at)
    theirs = torch.linalg.svdvals(dense)[:rank].sum()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
    (one,) = torch.autograd.grad(ours, at.value)
    (two,) = torch.autograd.grad(theirs, at.value)
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)


def test_it_goes_on_from_the_last_vectors() -> None:
    """Two steps are not enough at once, and are when they are repeated."""
    at, dense = weights()
    expected = float(torch.linalg.svdvals(dense)[:3].sum().detach())
    singular = SingularSum(3, steps=2)
    errors = [expected - float(singular(at).detach()) for _ in range(60)]
    assert errors[0] > 1e-2
    assert abs(errors[-1]) < 1e-6
    assert all(e > -1e-6 for e in errors)  # never above: fixed bases can't exceed it


def test_more_values_than_the_matrix_has() -> None:
    at, dense = weights(4)
    ours = SingularSum(9, steps=100)(at)
    torch.testing.assert_close(ours, torch.linalg.svdvals(dense).sum())
