"""Random bits depend on the seed, the stage, the epoch, the draw, the row and the
column; they are the same in C and in PyTorch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.engine import CSR, Workspace, dropout_linear, fast, reference, rows_of
from elugcn.training.threads import threads
from tests.engine.conftest import drawn, sparse, workspace


def dropped(x: Tensor | CSR, p: float, epoch: int = 0, seed: int = 3) -> Tensor:
    with workspace(seed) as current:
        current.begin_step(epoch)
        out = fast.dropout(x, p)
    return out if isinstance(out, Tensor) else out.to_dense()


@given(
    st.integers(0, 70),
    st.integers(1, 200),
    st.sampled_from([0.001, 0.1, 0.5, 0.6, 0.9, 0.999]),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=60)
def test_both_implementations_drop_the_same(
    n: int, d: int, p: float, seed: int
) -> None:
    x = drawn(n, d)
    with workspace(seed):
        found = fast.dropout(x, p)
    with workspace(seed):
        assert torch.equal(found, reference.dropout(x, p))


@pytest.mark.parametrize("x_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("width", [1, 7, 40])
def test_products_drop_what_dropout_drops(
    x_sparse: bool, count: int, width: int
) -> None:
    # Whole numbers: sums are exact in any order. Several blocks of rows.
    n, d = 5000, 90
    a = sparse(n, d, 0.1)
    a = a.with_values(torch.ones(a.nnz))
    x = a if x_sparse else a.to_dense()
    w = torch.randint(-8, 9, (d, width)).float().requires_grad_()
    g = torch.randint(-8, 9, (n, width)).float()
    with workspace(5), threads(count):
        out = dropout_linear(x, w, 0.5)
        (grad,) = torch.autograd.grad((out * g).sum(), w)
    with workspace(5):
        kept = reference.dropout(x, 0.5)
    kept = kept if isinstance(kept, Tensor) else kept.to_dense()
    assert torch.equal(out, kept @ w)
    assert torch.equal(grad, kept.T @ g)


def test_a_row_has_its_bits_whichever_rows_are_computed() -> None:
    x = torch.ones(300, 70)
    whole = dropped(x, 0.5)
    assert torch.equal(dropped(x[:123], 0.5), whole[:123])
    assert torch.equal(dropped(x[:, :30].contiguous(), 0.5), whole[:, :30])
    a = sparse(300, 70, 0.3)
    first = torch.arange(123)
    some = rows_of(a, first)
    assert torch.equal(dropped(some, 0.5), dropped(a, 0.5)[:123])


def test_different_seeds_stages_epochs_and_draws() -> None:
    x = torch.ones(50, 50)
    masks = [dropped(x, 0.5), dropped(x, 0.5, epoch=1), dropped(x, 0.5, seed=4)]
    with Workspace(3, stage=1):
        masks.append(fast.dropout(x, 0.5))
    with Workspace(3):
        fast.dropout(x, 0.5)
        masks.append(fast.dropout(x, 0.5))
    assert torch.equal(masks[0], dropped(x, 0.5))
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert float((a == b).float().mean()) == pytest.approx(0.5, abs=0.06)


def test_without_a_workspace_pytorchs_generator_decides() -> None:
    x = torch.ones(30, 30)
    torch.manual_seed(1)
    one, two = fast.dropout(x, 0.5), fast.dropout(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(fast.dropout(x, 0.5), one)
    assert not torch.equal(one, two)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_shares_and_independence(p: float) -> None:
    n, d = 2000, 130
    kept = dropped(torch.ones(n, d), p) > 0
    share = 1 - round((1 - p) * 256) / 256
    error = 5 * (p * (1 - p)) ** 0.5
    assert float(kept.float().mean()) == pytest.approx(1 - share, abs=error / 500)
    assert float(kept.float().mean(dim=0).std()) < 1.3 * error / 5 / n**0.5
    assert float(kept.float().mean(dim=1).std()) < 1.3 * error / 5 / d**0.5
    # Neighbours in a row, in a column, and the bytes of one word are uncorrelated.
    centred = kept.float() - kept.float().mean()
    for down, right in ((0, 1), (1, 0), (0, 16), (0, 64), (1, 1)):
        a = centred[down:, right:]
        b = centred[: n - down, : d - right]
        assert abs(float((a * b).mean())) < 5 * p * (1 - p) / (n * d / 4) ** 0.5
