"""The contrast in one pass against the same formula written out, by autograd."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.nn import ProjectionHead
from elugcn.nn.contrast import projected_contrast
from elugcn.nn.losses import contrastive_loss

N, C = 9, 4
ELU, NELU = torch.tensor([0, 2, 3, 7]), torch.tensor([1, 8])


def written_out(
    head: ProjectionHead, a: Tensor, b: Tensor, elu: Tensor, nelu: Tensor, tau: float
) -> Tensor:
    """Eq. 12 as printed, row by row."""
    p, q = (F.normalize(F.elu(head.linear(z)), dim=1) for z in (a, b))
    e = torch.exp((p * q).sum(dim=1) / tau)
    pos, neg = e[elu].mean(), e[nelu].mean()
    return -torch.log(pos / (pos + neg))


def inputs(seed: int, scale: float = 1.0) -> tuple[ProjectionHead, Tensor, Tensor]:
    torch.manual_seed(seed)
    head = ProjectionHead(C).double()
    a, b = (torch.randn(N, C).double().mul_(scale).requires_grad_() for _ in "ab")
    return head, a, b


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000), st.sampled_from([0.1, 0.5, 2.0]), st.sampled_from([0.1, 5.0])
)
def test_value_and_gradients(seed: int, tau: float, scale: float) -> None:
    head, a, b = inputs(seed, scale)
    twin = copy.deepcopy(head)
    a2, b2 = (z.detach().clone().requires_grad_() for z in (a, b))
    loss = projected_contrast(head, a, b, ELU, NELU, tau)
    truth = written_out(twin, a2, b2, ELU, NELU, tau)
    torch.testing.assert_close(loss, truth)
    (3 * loss).backward()
    (3 * truth).backward()
    pairs = [(a, a2), (b, b2), *zip(head.parameters(), twin.parameters(), strict=True)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_small_temperature_does_not_overflow() -> None:
    head, a, b = inputs(1)
    loss = projected_contrast(head.float(), a.float(), b.float(), ELU, NELU, 1e-3)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()


def test_a_zero_row_has_a_zero_projection() -> None:
    head, a, b = inputs(2)
    with torch.no_grad():
        head.linear.bias.zero_()
        a[0] = 0.0
    loss = projected_contrast(head, a, b, ELU, NELU, 0.5)
    loss.backward()
    assert torch.isfinite(a.grad).all()
    torch.testing.assert_close(loss, written_out(head, a, b, ELU, NELU, 0.5))


@pytest.mark.parametrize("empty", ["elu", "nelu"])
def test_nothing_to_contrast(empty: str) -> None:
    head, a, b = inputs(3)
    none = torch.arange(0)
    sets = (none, NELU) if empty == "elu" else (ELU, none)
    loss = projected_contrast(head, a, b, *sets, 0.5)
    loss.backward()
    assert float(loss) == 0.0
    assert float(a.grad.abs().sum()) == 0.0


def test_distance_is_the_public_code_s() -> None:
    head, a, b = inputs(4)
    p, q = (F.normalize(F.elu(head.linear(z)), dim=1) for z in (a, b))
    truth = contrastive_loss(p, q, ELU, NELU, 0.5, "distance")
    loss = projected_contrast(head, a, b, ELU, NELU, 0.5, "distance")
    torch.testing.assert_close(loss, truth)
