"""Products with a transpose, in blocks of rows, against the dense matrix."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elugcn.core import transpose
from elugcn.core.products import transposed_product
from elugcn.core.sparse import CSR
from elugcn.core.transpose import Pattern


@given(
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 50),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_blocks_equal_the_dense_product(
    n: int, m: int, k: int, rows: int, seed: int
) -> None:
    torch.manual_seed(seed)
    dense = torch.randn(n, m) * (torch.rand(n, m) < 0.5)
    dense[0, 0] = 1.0
    z = torch.randn(n, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transpose, "ROWS", rows)
        patch.setattr(transpose, "_CACHE_BYTES", -1)
        patch.setattr(transpose, "_ENTRIES", 0)
        a = CSR.from_tensor(dense)
        assert a.pattern.worth_blocking(z)
        product = transposed_product(a, a.value, z)
        blocks = a.pattern.blocked.blocks
    torch.testing.assert_close(product, dense.T @ z, atol=1e-5, rtol=1e-5)
    last = int(dense.ne(0).any(dim=1).nonzero().max())
    assert blocks == last // rows + 1


def test_values_other_than_the_stored_ones() -> None:
    dense = torch.randn(50, 6) * (torch.rand(50, 6) < 0.5)
    a = CSR.from_tensor(dense)
    z = torch.randn(50, 3)
    product = transposed_product(a, 2 * a.value, z)
    torch.testing.assert_close(product, 2 * dense.T @ z)


def test_small_matrices_and_thin_blocks_stay_whole() -> None:
    crow, col = torch.arange(0, 8_193, dtype=torch.int32), torch.zeros(8192).int()
    thin = CSR(crow, col, torch.ones(8192), 5000)
    wide = torch.zeros(8192, 128)
    assert not thin.pattern.worth_blocking(wide)  # 1 entry a column and block
    narrow = CSR(crow, col, torch.ones(8192), 2)
    assert narrow.pattern.worth_blocking(wide)
    assert not narrow.pattern.worth_blocking(wide[:, :4])  # fits the cache


def test_a_backward_pass_large_enough_for_blocks() -> None:
    torch.manual_seed(0)
    n, m, k = 6000, 20, 100
    dense = torch.randn(n, m) * (torch.rand(n, m) < 0.5)
    a = CSR.from_tensor(dense)
    w = torch.randn(m, k, requires_grad=True)
    g = torch.randn(n, k)
    assert a.pattern.worth_blocking(g)
    (a @ w).backward(g)
    torch.testing.assert_close(w.grad, dense.T @ g, atol=2e-3, rtol=1e-4)


def test_pattern_by_hand() -> None:
    # [[1, 2], [0, 3]] by columns: 1 | 2, 3
    p = Pattern.of(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, torch.int64)
    assert p.crow_t.tolist() == [0, 1, 3]
    assert p.col_t.tolist() == [0, 0, 1]
    assert p.perm.tolist() == [0, 1, 2]
    assert p.inverse.tolist() == [0, 1, 2]
