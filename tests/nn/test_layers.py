"""The first product with dropout on dense features, against its two steps."""

import pytest
import torch

from elugcn.core.random import dropout
from elugcn.nn import dropped
from elugcn.nn.layers import SharedProduct, drop_matmul

pytestmark = pytest.mark.usefixtures("either_way")


def check_drop_matmul(x: torch.Tensor, p: float) -> None:
    start, g = torch.randn(x.size(1), 4), torch.randn(x.size(0), 4)
    results = []
    for blocked in (True, False):
        w = start.clone().requires_grad_()
        torch.manual_seed(8)
        out = drop_matmul(x, w, p, True) if blocked else dropout(x, p, True) @ w
        out.backward(g)
        results.append((out.detach(), w.grad))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("p", [0.0, 0.001, 0.3, 0.75])
@pytest.mark.parametrize("entries", [1, 40, 2**18])
@pytest.mark.parametrize("binary", [True, False])
def test_blocks_equal_the_whole(
    p: float, entries: int, binary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped, "_BLOCK_ENTRIES", entries)
    x = torch.randn(11, 7)
    check_drop_matmul((x > 0).float() if binary else x, p)


def test_zeros_and_ones_are_recognised_again_when_they_change() -> None:
    x = (torch.rand(30, 8) < 0.5).float()
    for change in (
        None,
        (2, 3, 1.0),
        (2, 3, 0.0),
        (4, 4, 0.5),
        (5, 5, 2.0),
        (6, 0, -1),
    ):
        if change is not None:
            i, j, value = change
            x[i, j] = value
        check_drop_matmul(x, 0.5)
    ones = torch.ones(4, 3)
    assert dropped._zeros_of(ones) is not None
    kept = len(dropped._KEPT)
    del ones
    assert len(dropped._KEPT) < kept  # nothing outlives its matrix


def test_nothing_is_dropped_in_evaluation() -> None:
    x, w = torch.randn(5, 3), torch.randn(3, 2)
    torch.testing.assert_close(drop_matmul(x, w, 0.5, False), x @ w)


def test_features_may_have_gradients() -> None:
    x, w = torch.randn(6, 3, requires_grad=True), torch.randn(3, 2)
    drop_matmul(x, w, 0.5, True).sum().backward()
    assert x.grad is not None
    rows = (2 * w.sum(dim=1)).expand(6, 3)
    kept = x.grad != 0
    torch.testing.assert_close(x.grad[kept], rows[kept])


@pytest.mark.parametrize("sparse", [True, False])
def test_shared_product_has_the_gradient_of_the_product(sparse: bool) -> None:
    from elugcn.core.sparse import CSR

    dense = torch.randn(9, 4) * (torch.rand(9, 4) < 0.4)
    x = CSR.from_tensor(dense) if sparse else dense
    w = torch.randn(4, 3, requires_grad=True)
    g = torch.randn(9, 3)
    SharedProduct()(x, w, True).backward(g)
    torch.testing.assert_close(w.grad, dense.T @ g)
