"""Polynomials of a sparse matrix against dense powers, values and gradients."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.baselines.polynomial import polynomial
from elugcn.engine import CSR, normalized_adjacency
from tests.baselines.helpers import gradient


def graph(directed: bool, n: int = 20, seed: int = 0) -> CSR:
    """Connected by chance; the last two nodes have no edges."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, n - 2, (2, 3 * n), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    adj = normalized_adjacency(torch.unique(edges, dim=1), n)
    assert adj.symmetric != directed
    return adj


def dense(a: Tensor, h: Tensor, c: Tensor) -> Tensor:
    terms = [ck * torch.linalg.matrix_power(a, k) @ h for k, ck in enumerate(c)]
    return torch.stack(terms).sum(dim=0)


@settings(max_examples=25)
@given(
    directed=st.booleans(),
    c=st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=7),
    seed=st.integers(0, 100),
)
def test_values_and_gradients_are_those_of_dense_powers(
    directed: bool, c: list[float], seed: int
) -> None:
    adj = graph(directed, seed=seed)
    given_h = torch.randn(20, 3, generator=torch.Generator().manual_seed(seed))
    h, k = given_h.clone().requires_grad_(), torch.tensor(c, requires_grad=True)
    z, expected = polynomial(adj, h, k), dense(adj.to_dense(), h, k)
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-5)
    for learned in (h, k):
        torch.testing.assert_close(
            gradient(z, learned), gradient(expected, learned), rtol=1e-4, atol=1e-4
        )
    assert torch.equal(h, given_h)
