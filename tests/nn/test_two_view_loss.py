"""The loss of two views in one pass against the same formula, term by term."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.nn import ProjectionHead, two_view_loss
from elugcn.nn.two_view_loss import Terms

pytestmark = pytest.mark.usefixtures("either_way")

N, C = 9, 4
ELU, NELU = torch.tensor([0, 2, 3, 7]), torch.tensor([1, 8])


def terms(tau: float = 0.5, eta: float = 0.3) -> Terms:
    weight = torch.tensor([0.25, 0, 0, 0.25, 0, 0.5, 0, 0, 0]).double()
    target = torch.tensor([3, 0, 0, 1, 0, 2, 0, 0, 0])
    return Terms(target, weight, ELU, NELU, tau, eta)


def written_out(
    wide: Tensor, head: ProjectionHead, t: Terms, contrast: float, entropy: float
) -> Tensor:
    """Eq. 12 as printed, row by row."""
    a, b = wide.chunk(2, dim=1)
    p, q = (F.normalize(F.elu(head.linear(z)), dim=1) for z in (a, b))
    e = torch.exp((p * q).sum(dim=1) / t.tau)
    pos, neg = e[t.elu].mean(), e[t.nelu].mean()
    y = F.softmax((1 - t.eta) * a + t.eta * b, dim=1)
    picked = torch.log(y[torch.arange(len(y)), t.target])
    return (
        -(t.weight * picked).sum()
        - contrast * torch.log(pos / (pos + neg))
        - entropy * (y * torch.log(y)).sum() / len(y)
    )


def inputs(seed: int, scale: float = 1.0) -> tuple[Tensor, ProjectionHead]:
    torch.manual_seed(seed)
    head = ProjectionHead(C).double()
    return torch.randn(N, 2 * C).double().mul_(scale).requires_grad_(), head


@pytest.fixture(params=[1, 3, 100])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks of one node, of three, and all nodes at once."""
    monkeypatch.setattr(two_view_loss, "BLOCK_ENTRIES", request.param * 2 * C)
    return int(request.param)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from([0.1, 0.5, 2.0]),
    st.sampled_from([0.1, 5.0]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([(1.0, 0.0), (0.5, 0.7), (0.0, 1.0)]),
)
def check(
    seed: int, tau: float, scale: float, eta: float, factors: tuple[float, float]
) -> None:
    wide, head = inputs(seed, scale)
    twin, wide2 = copy.deepcopy(head), wide.detach().clone().requires_grad_()
    t = terms(tau, eta)
    loss = two_view_loss.two_view_loss(wide, head, t, *factors)
    truth = written_out(wide2, twin, t, *factors)
    torch.testing.assert_close(loss, truth)
    (3 * loss).backward()
    (3 * truth).backward()
    pairs = [(wide, wide2), *zip(head.parameters(), twin.parameters(), strict=True)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.usefixtures("block")
def test_value_and_gradients() -> None:
    check()


@pytest.mark.usefixtures("block")
def test_of_the_loss_alone() -> None:
    """Nothing scales it: the gradients that were computed are handed on as they are."""
    wide, head = inputs(5)
    wide2 = wide.detach().clone().requires_grad_()
    two_view_loss.two_view_loss(wide, head, terms(), 0.5, 0.7).backward()
    written_out(wide2, head, terms(), 0.5, 0.7).backward()
    torch.testing.assert_close(wide.grad, wide2.grad)


def test_small_temperature_does_not_overflow() -> None:
    wide, head = inputs(1)
    t = terms(tau=1e-3)
    t = Terms(t.target, t.weight.float(), t.elu, t.nelu, t.tau, t.eta)
    loss = two_view_loss.two_view_loss(wide.float(), head.float(), t, 1.0, 1.0)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(wide.grad).all()


def test_a_zero_row_has_a_zero_projection() -> None:
    wide, head = inputs(2)
    with torch.no_grad():
        head.linear.bias.zero_()
        wide[0] = 0.0
    loss = two_view_loss.two_view_loss(wide, head, terms(), 1.0, 1.0)
    loss.backward()
    assert torch.isfinite(wide.grad).all()
    torch.testing.assert_close(loss, written_out(wide, head, terms(), 1.0, 1.0))
