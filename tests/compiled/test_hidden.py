"""One pass over the hidden layer against the same in double precision, step by step."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from elugcn import compiled

sizes = st.tuples(
    st.integers(1, 40),  # rows
    st.integers(1, 20).map(lambda quarter: 4 * quarter),  # width
    st.integers(1, compiled.MAX_CLASSES),  # classes
)


def written_out(
    z: Tensor, bias: Tensor, kept: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """H and H W in double precision."""
    h = (z.double() + bias.double()).clamp_min(0.0) * kept
    return h, h @ weight.double()


@given(sizes, st.integers(1, 256), st.booleans())
@example((17, 64, 7), 128, True)
@example((8, 16, 8), 128, False)
@example((5, 20, 9), 1, False)
@example((9, 4, 32), 256, True)
def test_forward(size: tuple[int, int, int], level: int, in_place: bool) -> None:
    rows, width, c = size
    z, bias, weight = (
        torch.randn(rows, width),
        torch.randn(width),
        torch.randn(width, c),
    )
    drawn = torch.randint(0, 256, z.shape, dtype=torch.uint8)
    truth = written_out(z, bias, drawn.int() < level, weight)
    # One of several views side by side; what is beside it must not be touched.
    beside = torch.full((rows, c + 3), 7.0)
    h = z if in_place else torch.empty_like(z)
    compiled.activated_product(
        z, bias, drawn, level, h, compiled.filled(weight), beside[:, 2 : 2 + c]
    )
    torch.testing.assert_close(h.double(), truth[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(beside[:, 2:-1].double(), truth[1], rtol=1e-5, atol=1e-4)
    assert (beside[:, [0, 1, -1]] == 7.0).all()
    assert torch.equal(h == 0, (truth[0] == 0))


def test_without_bytes_nothing_is_dropped() -> None:
    z, bias, weight = torch.randn(9, 8), torch.randn(8), torch.randn(8, 3)
    h, out = torch.empty_like(z), torch.empty(9, 3)
    compiled.activated_product(z, bias, None, 1, h, compiled.filled(weight), out)
    assert torch.equal(h, (z + bias).clamp_min(0.0))
    torch.testing.assert_close(out, h @ weight)


@given(sizes, st.booleans())
@example((17, 64, 7), True)
@example((4, 16, 1), False)
@example((3, 12, 32), True)
def test_backward(size: tuple[int, int, int], in_place: bool) -> None:
    rows, width, c = size
    h = torch.randn(rows, width).clamp_min(0.0)
    weight = torch.randn(c, width)
    grad = torch.randn(rows, c + 2)[:, 1 : c + 1]
    sums, bias = torch.randn(c, width), torch.randn(width)
    back = grad.double() @ weight.double() * (h > 0)
    truth = (
        back,
        sums.double() + grad.double().T @ h.double(),  # added to what is there
        bias.double() + back.sum(dim=0),
    )
    out = h if in_place else torch.empty_like(h)
    compiled.activated_backward(grad, weight, h, out, sums, bias)
    for ours, theirs in zip((out, sums, bias), truth, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-4)


def test_what_is_no_number_is_not_hidden() -> None:
    z, bias, weight = torch.randn(9, 8), torch.zeros(8), torch.randn(8, 3)
    z[4, 5] = torch.nan
    h, out = torch.empty_like(z), torch.empty(9, 3)
    compiled.activated_product(z, bias, None, 1, h, compiled.filled(weight), out)
    bad = torch.zeros(9, dtype=torch.bool)
    bad[4] = True
    assert torch.equal(h.isnan().any(dim=1), bad)
    assert torch.equal(out.isnan().any(dim=1), bad)
    sums, gathered = torch.zeros(3, 8), torch.zeros(8)
    compiled.activated_backward(
        out, weight.T.contiguous(), h, torch.empty_like(h), sums, gathered
    )
    assert sums.isnan().any()
    assert gathered.isnan().any()


@given(st.integers(0, 300), st.integers(1, 256))
def test_dropout(count: int, level: int) -> None:
    x = torch.randn(count)
    drawn = torch.randint(0, 256, (count,), dtype=torch.uint8)
    out = torch.empty(count)
    compiled.keep(x, drawn, level, out)
    assert torch.equal(out, torch.where(drawn.int() < level, x, 0.0))
    binary = (x > 0).float()
    never = (binary == 0).to(torch.uint8) * 255
    compiled.ones(drawn, never, min(level, 255), out)
    assert torch.equal(out, torch.where(drawn < min(level, 255), binary, 0.0))


def test_what_does_not_fit_is_refused() -> None:
    z, bias, weight = torch.randn(9, 8), torch.randn(8), torch.randn(8, 3)
    h, out, filled = torch.empty(9, 8), torch.empty(9, 3), compiled.filled(weight)
    wrong = (
        (z[:5], bias, None, 1, h, filled, out),
        (z, bias[:4], None, 1, h, filled, out),
        (z, bias, torch.zeros(9, 7, dtype=torch.uint8), 1, h, filled, out),
        (z, bias, torch.zeros(9, 8), 1, h, filled, out),
        (z, bias, None, 1, h, weight, out),
        (z, bias, None, 1, h, torch.zeros(8, 40), torch.empty(9, 33)),
        (z, bias, None, 1, h, filled, out[:5]),
        (z, bias, None, 1, h, filled, torch.empty(3, 9).T),
        (z.double(), bias, None, 1, h, filled, out),
        (torch.randn(8, 9).T, bias, None, 1, h, filled, out),
    )
    for arguments in wrong:
        with pytest.raises(ValueError):
            compiled.activated_product(*arguments)
    right = [out, weight.T.contiguous(), h, torch.empty(9, 8), torch.zeros(3, 8), bias]
    for i, other in enumerate(
        (out[:5], weight, h[:5], torch.empty(9, 7), torch.zeros(2, 8), bias[:7])
    ):
        with pytest.raises(ValueError):
            compiled.activated_backward(*right[:i], other, *right[i + 1 :])
    odd = [x[..., :6].contiguous() for x in right[1:]]
    with pytest.raises(ValueError):
        compiled.activated_backward(out, *odd)
    with pytest.raises(ValueError):
        compiled.keep(z, torch.zeros(9, 7, dtype=torch.uint8), 1, h)
    with pytest.raises(ValueError):
        compiled.ones(torch.zeros(9, 8), torch.zeros(9, 8), 1, h)
