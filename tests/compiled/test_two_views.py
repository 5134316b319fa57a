"""The compiled loss against its twin in double precision."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from elugcn import compiled
from elugcn.nn import ProjectionHead
from elugcn.nn.two_view_loss import Terms, two_view_loss


def drawn(n: int, c: int, scale: float = 2.0) -> tuple[Tensor, ProjectionHead, Terms]:
    kind = torch.randint(0, 3, (n,))
    kind[:2] = torch.tensor([1, 2])  # neither set is empty
    weight = torch.rand(n) * (torch.rand(n) < 0.3)
    elu, nelu = ((kind == k).nonzero().squeeze(1) for k in (1, 2))
    terms = Terms(torch.randint(0, c, (n,)), weight, elu, nelu, 0.3, 0.4)
    return torch.randn(n, 2 * c) * scale, ProjectionHead(c), terms


def results(
    wide: Tensor, head: ProjectionHead, terms: Terms, contrast: float, entropy: float
) -> list[Tensor]:
    """The loss and its gradients, by whatever is used for this dtype."""
    leaf = wide.clone().requires_grad_()
    loss = two_view_loss(leaf, head, terms, contrast, entropy)
    return [loss.detach(), *torch.autograd.grad(loss, [leaf, *head.parameters()])]


def in_double(head: ProjectionHead, terms: Terms) -> tuple[ProjectionHead, Terms]:
    twin = ProjectionHead(head.linear.in_features).double()
    twin.load_state_dict(head.state_dict())
    rest = terms.elu, terms.nelu, terms.tau, terms.eta
    return twin, Terms(terms.target, terms.weight.double(), *rest)


@pytest.mark.parametrize("room", [0, 2**19], ids=["computed twice", "kept"])
@given(
    st.integers(2, 70),
    st.integers(2, compiled.MAX_CLASSES),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.1, 2.0, 20.0]),
)
@example(2000, 7, 0.7, 0.5, 2.0)  # sums are carried over
@example(16, 2, 0.7, 0.5, 2.0)
@example(17, 32, 0.7, 0.5, 2.0)
def test_equals_its_twin(
    room: int, n: int, c: int, contrast: float, entropy: float, scale: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_ROOM", room)
        wide, head, terms = drawn(n, c, scale)
        ours = results(wide, head, terms, contrast, entropy)
    theirs = results(wide.double(), *in_double(head, terms), contrast, entropy)
    for a, b in zip(ours, theirs, strict=True):
        error = float((a.double() - b).abs().max())
        assert error <= 2e-5 * max(1.0, float(b.abs().max()))


def test_it_is_the_compiled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, head, terms = drawn(9, 3)
    monkeypatch.setattr(compiled, "two_views", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        two_view_loss(wide, head, terms, 1.0, 1.0)
    wide, head, terms = drawn(9, compiled.MAX_CLASSES + 1)
    two_view_loss(wide, head, terms, 1.0, 1.0)  # too many classes for it


def test_scores_that_are_far_apart() -> None:
    wide, head, terms = drawn(40, 5, scale=300.0)
    far = Terms(terms.target, terms.weight, terms.elu, terms.nelu, 0.01, 0.4)
    ours = results(wide, head, far, 1.0, 1.0)
    theirs = results(wide.double(), *in_double(head, far), 1.0, 1.0)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-3)


def test_what_is_projected_near_zero_has_a_direction() -> None:
    wide, head, terms = drawn(40, 5, scale=1e-4)
    with torch.no_grad():
        head.linear.bias.zero_()
    ours = results(wide, head, terms, 1.0, 0.0)
    theirs = results(wide.double(), *in_double(head, terms), 1.0, 0.0)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_no_number_is_not_hidden(value: float) -> None:
    wide, head, terms = drawn(40, 5)
    wide[23, 7] = value
    loss, grad, *_ = results(wide, head, terms, 1.0, 1.0)
    assert loss.isnan()
    assert grad[23].isnan().any()


def test_what_does_not_fit_is_refused() -> None:
    wide, head, terms = drawn(9, 3)
    weight, bias = head.linear.weight.detach(), head.linear.bias.detach()
    right = [wide, wide, weight, bias, terms.target, terms.weight, terms.kind]
    wrong = {
        0: wide[:, :4].contiguous(),
        1: wide[:5],
        4: terms.target.int(),
        5: terms.weight[:5],
        6: terms.kind.long(),
    }
    for i, other in wrong.items():
        with pytest.raises(ValueError):
            compiled.two_views(*right[:i], other, *right[i + 1 :], 1.0, 0.5, 1.0, 1.0)
