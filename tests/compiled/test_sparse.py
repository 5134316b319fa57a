"""The sparse product that asks for its rows early, against scipy."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from elugcn import compiled
from elugcn.core import products
from elugcn.core.sparse import CSR


def drawn(n: int, m: int, share: float, seed: int) -> CSR:
    """Some entries of n×m; the first row and the last have none."""
    matrix = sp.random_array((n, m), density=share, rng=seed, dtype=np.float32).tolil()
    matrix[0] = matrix[n - 1] = 0
    return CSR.from_scipy(matrix.tocsr())


def product(a: CSR, z: Tensor) -> Tensor:
    out = torch.full((a.shape[0], z.size(1)), torch.nan)
    compiled.sparse_product(a.crow, a.col, a.value, z, out)
    return out


@given(
    st.integers(1, 60),
    st.integers(1, 50),
    st.integers(compiled.LEAST_COLUMNS, 150),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from([1, 2, 3]),
    st.integers(0, 99),
)
@example(300, 40, 64, 0.3, 2, 0)  # further ahead than the row is long
@example(2, 3, 7, 0.0, 3, 0)  # no entry at all
@example(40, 30, 129, 0.2, 1, 0)
def test_equals_scipy(
    n: int, m: int, k: int, share: float, threads: int, seed: int
) -> None:
    a, z = drawn(n, m, share, seed), torch.randn(m, k)
    torch.set_num_threads(threads)
    try:
        out = product(a, z)
    finally:
        torch.set_num_threads(1)
    truth = a.to_scipy().astype(np.float64) @ z.double().numpy()
    torch.testing.assert_close(out.double(), torch.from_numpy(truth), rtol=0, atol=1e-5)


def test_it_is_for_what_no_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    a, z = drawn(30, 20, 0.3, 0), torch.randn(20, 8)
    calls = []
    real = compiled.sparse_product

    def counted(*args: Tensor) -> None:
        calls.append(args)
        real(*args)

    monkeypatch.setattr(compiled, "sparse_product", counted)
    before = a @ z
    assert not calls
    monkeypatch.setattr(products, "is_large", lambda shape, dtype: True)
    after = a @ z
    assert len(calls) == 1
    torch.testing.assert_close(after, before)
    place = torch.empty(30, 8)
    assert products.multiply(a.crow, a.col, a.value, 20, z, place) is place
    assert torch.equal(place, after)
    assert len(calls) == 2
    a @ z[:, :3]  # too few columns
    a @ z.double()
    products.multiply(a.crow.long(), a.col.long(), a.value, 20, z)
    assert len(calls) == 2


def test_gradients_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "is_large", lambda shape, dtype: True)
    a, z = drawn(30, 20, 0.3, 0), torch.randn(20, 8, requires_grad=True)
    scores = torch.randn(30, 8)
    (grad,) = torch.autograd.grad(((a @ z) * scores).sum(), z)
    torch.testing.assert_close(grad, a.to_dense().T @ scores)


def test_what_does_not_fit_is_refused() -> None:
    a, z = drawn(30, 20, 0.3, 0), torch.randn(20, 8)
    out = torch.empty(30, 8)
    right = [a.crow, a.col, a.value, z, out]
    wrong = {
        0: a.crow[:-1],
        1: a.col.long(),
        2: a.value[:-1],
        3: z[:, :7].contiguous(),
        4: torch.empty(29, 8),
    }
    for i, other in wrong.items():
        with pytest.raises(ValueError):
            compiled.sparse_product(*right[:i], other, *right[i + 1 :])
    with pytest.raises(ValueError):
        compiled.sparse_product(*right[:3], z[:, :3].contiguous(), torch.empty(30, 3))
