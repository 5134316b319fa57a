"""The DeepWalk matrix against its dense formula, its factors against an SVD."""

import pytest
import torch
from torch import Tensor

from elugcn.baselines.netmf import WalkMatrix, netmf_embedding
from elugcn.engine import CSR


def drawn(n: int, parts: int = 1, share: float = 0.15) -> Tensor:
    """A symmetric pattern of several components, whose last node is isolated."""
    torch.manual_seed(n)
    a = torch.rand(n, n) < share
    own = torch.arange(n) * parts // n
    a &= own[:, None] == own
    a |= torch.diag(own[1:] == own[:-1], 1)  # a path through each part
    a = (a | a.T).float().fill_diagonal_(0.0)
    a[-1] = a[:, -1] = 0.0
    return a


def dense(a: Tensor, window: int) -> Tensor:
    """log max(vol(G)/T Σ_r (D⁻¹A)ʳ D⁻¹, 1) in double precision."""
    a = a.double()
    inverse = a.sum(dim=1).reciprocal().nan_to_num(posinf=0.0)
    walk = inverse[:, None] * a
    powers = sum(torch.linalg.matrix_power(walk, r) for r in range(1, window + 1))
    return (a.sum() / window * powers * inverse).clamp(min=1.0).log()


@pytest.mark.parametrize("window", [1, 2, 10])
@pytest.mark.parametrize("parts", [1, 3])
def test_entries_are_those_of_the_formula(parts: int, window: int) -> None:
    """With all eigenpairs nothing is lost."""
    a = drawn(60, parts)
    matrix = WalkMatrix.of(CSR.from_tensor(a), window, rank=60)
    expected = dense(a, window).float()
    torch.testing.assert_close(matrix.rows(0, 60), expected, rtol=1e-3, atol=1e-3)
    z = torch.randn(60, 3)
    torch.testing.assert_close(matrix @ z, expected @ z, rtol=1e-3, atol=1e-2)


def test_in_a_larger_graph_the_largest_eigenpairs_are_kept() -> None:
    """The eigenvalue 1 of each component is not one of the ``rank``."""
    a = drawn(400, 2, share=0.1)
    matrix = WalkMatrix.of(CSR.from_tensor(a), window=10, rank=100)
    d = a.double().sum(dim=1)
    root = d.rsqrt().nan_to_num(posinf=0.0)
    value, vector = torch.linalg.eigh(root[:, None] * a * root)
    value, vector = value[-102:], root[:, None] * vector[:, -102:]
    mean = sum(value**r for r in range(1, 11)) / 10
    walks = d.sum() * (vector * mean) @ vector.T
    expected = walks.clamp(min=1.0).log().float()
    torch.testing.assert_close(matrix.rows(0, 400), expected, rtol=1e-3, atol=1e-3)
    same = WalkMatrix.of(CSR.from_tensor(a), window=10, rank=100)
    assert torch.equal(same.left, matrix.left)


def test_the_embedding_is_the_root_of_the_largest_singular_values() -> None:
    a = drawn(80, 2)
    torch.manual_seed(0)
    z = netmf_embedding(CSR.from_tensor(a), dim=2, window=5, rank=80)
    value, vector = torch.linalg.eigh(dense(a, 5))
    best = value.abs().argsort(descending=True)[:2]
    root = vector[:, best] * value[best].abs()
    expected = (root @ vector[:, best].T).float()
    assert float((z @ z.T - expected).norm() / expected.norm()) < 0.02
    assert not z[-1].any()  # an isolated node is on no walk


def test_more_columns_than_nodes_are_zero() -> None:
    z = netmf_embedding(CSR.from_tensor(drawn(5)), dim=8, window=3)
    assert z.shape == (5, 8)
    assert not z[:, 5:].any()
    assert bool(z[:, 0].any())
