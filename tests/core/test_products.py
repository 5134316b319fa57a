"""Products that go to a given place, block by block, against dense ones."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.core import products
from elugcn.core.products import multiply, narrow_product, transposed_product
from elugcn.core.sparse import CSR


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(1, 12),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.2, 0.9]),
    st.sampled_from([torch.float32, torch.float64]),
)
def check(seed: int, n: int, m: int, density: float, dtype: torch.dtype) -> None:
    torch.manual_seed(seed)
    dense = torch.randn(n, m) * (torch.rand(n, m) < density)
    a = CSR.from_tensor(dense)
    z, out = torch.randn(m, 4, dtype=dtype), torch.full((n, 4), 7.0, dtype=dtype)
    given = multiply(a.crow, a.col, a.value, m, z, out)
    assert given is out
    torch.testing.assert_close(out, dense.to(dtype) @ z)
    z, out = torch.randn(n, 4, dtype=dtype), torch.full((m, 4), 7.0, dtype=dtype)
    transposed_product(a, a.value, z, out)
    torch.testing.assert_close(out, dense.to(dtype).T @ z)


@pytest.mark.parametrize("entries", [1, 12, 10**6])
def test_to_a_place(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, of three, and of all."""
    monkeypatch.setattr(products, "_BLOCK_ENTRIES", entries)
    check()


def test_transposed_in_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from elugcn.core import transpose

    monkeypatch.setattr(transpose, "ROWS", 2)
    monkeypatch.setattr(transpose, "_CACHE_BYTES", 0)
    monkeypatch.setattr(transpose, "_ENTRIES", 0)
    dense, z = torch.randn(7, 3), torch.randn(7, 4)
    a, out = CSR.from_tensor(dense), torch.empty(3, 4)
    assert a.pattern.worth_blocking(z)
    transposed_product(a, a.value, z, out)
    torch.testing.assert_close(out, dense.T @ z)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 20), st.booleans())
def test_narrow_products(n: int, h: int, k: int, placed: bool) -> None:
    """Narrow or not, alone or into some columns of a matrix that keeps the others."""
    torch.manual_seed(n + 10 * h + 100 * k)
    left, weight, wide = torch.randn(n, h), torch.randn(h, k), torch.ones(n, 2 * k)
    out = narrow_product(left, weight, wide[:, k:] if placed else None)
    truth = torch.einsum("nh,hk->nk", left.double(), weight.double())
    torch.testing.assert_close(out.double(), truth, rtol=1e-5, atol=1e-5)
    assert out.is_contiguous() or placed
    torch.testing.assert_close(wide[:, k:], out if placed else torch.ones(n, k))
    assert bool((wide[:, :k] == 1).all())
