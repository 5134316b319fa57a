"""Polynomials of a sparse matrix against dense powers, values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.core.polynomial import polynomial
from elugcn.core.sparse import CSR, normalized_adjacency


def graph(directed: bool, n: int = 20, seed: int = 0) -> CSR:
    """Connected by chance; the last two nodes have no edges."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, n - 2, (2, 3 * n), generator=generator)
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    if not directed:
        edges = torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1)
    adj = normalized_adjacency(edges, n)
    assert adj.symmetric != directed
    return adj


def dense(a: Tensor, h: Tensor, c: Tensor) -> Tensor:
    terms = [ck * torch.linalg.matrix_power(a, k) @ h for k, ck in enumerate(c)]
    return torch.stack(terms).sum(dim=0)


@settings(max_examples=25, deadline=None)
@given(
    directed=st.booleans(),
    c=st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=7),
    seed=st.integers(0, 100),
)
def test_values_and_gradients_are_those_of_dense_powers(
    directed: bool, c: list[float], seed: int
) -> None:
    adj = graph(directed, seed=seed)
    torch.manual_seed(seed)
    h, weight = torch.randn(20, 3), torch.randn(20, 3)
    ours = (h.clone().requires_grad_(), torch.tensor(c, requires_grad=True))
    twin = (h.clone().requires_grad_(), torch.tensor(c, requires_grad=True))
    z = polynomial(adj, *ours)
    expected = dense(adj.to_dense(), *twin)
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-5)
    gradients = torch.autograd.grad((z * weight).sum(), ours)
    wanted = torch.autograd.grad((expected * weight).sum(), twin)
    for one, two in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)
    assert torch.equal(ours[0], h)


@pytest.mark.parametrize("learned", ["h", "c"])
def test_only_what_is_asked_for_gets_a_gradient(learned: str) -> None:
    adj = graph(directed=True)
    h = torch.ones(20, 2, requires_grad=learned == "h")
    c = torch.tensor([1.0, -0.5, 0.25], requires_grad=learned == "c")
    polynomial(adj, h, c).sum().backward()  # type: ignore[no-untyped-call]
    assert (h.grad is None) == (learned == "c")
    assert (c.grad is None) == (learned == "h")


def test_one_coefficient_is_a_multiple() -> None:
    h = torch.randn(20, 2)
    torch.testing.assert_close(polynomial(graph(True), h, torch.tensor([-3.0])), -3 * h)
