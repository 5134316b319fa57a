"""The terms of the objective against literal transcriptions."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.nn.losses import (
    consistency_loss,
    contrastive_loss,
    entropy_loss,
    info_nce,
    weighted_cross_entropy,
)


def equation_12(
    p: Tensor, q: Tensor, elu: list[int], nelu: list[int], tau: float
) -> float:
    """−log(Pos / (Pos + Neg)) as printed, with d the cosine, node by node."""

    def mean(nodes: list[int]) -> float:
        total = 0.0
        for i in nodes:
            a, b = p[i].double().numpy(), q[i].double().numpy()
            d = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
            total += math.exp(d / tau)
        return total / len(nodes)

    pos, neg = mean(elu), mean(nelu)
    return -math.log(pos / (pos + neg))


def public_code(
    p: Tensor, q: Tensor, elu: list[int], nelu: list[int], tau: float
) -> float:
    """Squared distances, averaged before the exponential."""

    def mean(nodes: list[int]) -> float:
        squares = [((p[i] - q[i]).double().numpy() ** 2).sum() for i in nodes]
        return math.exp(np.mean(squares) / tau)

    pos, neg = mean(elu), mean(nelu)
    return -math.log(pos / (pos + neg))


def projections(n: int = 12, c: int = 4) -> tuple[Tensor, Tensor]:
    return F.normalize(torch.randn(n, c), dim=1), F.normalize(torch.randn(n, c), dim=1)


@given(
    st.integers(0, 10**6),
    st.floats(0.1, 5),
    st.sampled_from(["similarity", "distance"]),
)
@settings(max_examples=40, deadline=None)
def test_contrast_equals_the_transcription(seed: int, tau: float, kind: str) -> None:
    torch.manual_seed(seed)
    p, q = projections()
    status = torch.randint(-1, 2, (12,))
    status[:3] = torch.tensor([-1, 0, 1])
    elu, nelu = (status == 1).nonzero().squeeze(1), (status == 0).nonzero().squeeze(1)
    truth = equation_12 if kind == "similarity" else public_code
    expected = truth(p, q, elu.tolist(), nelu.tolist(), tau)
    by_index = contrastive_loss(p, q, elu, nelu, tau, kind)
    by_mask = contrastive_loss(p, q, status == 1, status == 0, tau, kind)
    assert by_index.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert by_mask.item() == pytest.approx(by_index.item(), rel=1e-6)


def test_similarity_pulls_elu_nodes_together_and_nelu_nodes_apart() -> None:
    p = F.normalize(torch.rand(4, 3), dim=1)
    apart = -p
    elu, nelu = torch.tensor([0, 1]), torch.tensor([2, 3])
    wanted = torch.cat([p[:2], apart[2:]])
    unwanted = torch.cat([apart[:2], p[2:]])
    assert contrastive_loss(p, wanted, elu, nelu, 0.5) < contrastive_loss(
        p, unwanted, elu, nelu, 0.5
    )
    # The public code's kind pushes the other way.
    assert contrastive_loss(p, wanted, elu, nelu, 0.5, "distance") > contrastive_loss(
        p, unwanted, elu, nelu, 0.5, "distance"
    )


@pytest.mark.parametrize("kind", ["similarity", "distance"])
@pytest.mark.parametrize("empty", ["elu", "nelu", "both"])
@pytest.mark.parametrize("mask", [False, True])
def test_an_empty_set_gives_zero_and_finite_gradients(
    kind: str, empty: str, mask: bool
) -> None:
    p, q = projections()
    p.requires_grad_()
    q.requires_grad_()
    some, none = torch.tensor([0, 3, 5]), torch.empty(0, dtype=torch.long)
    if mask:
        chosen = torch.zeros(12, dtype=torch.bool)
        chosen[some] = True
        some, none = chosen, torch.zeros(12, dtype=torch.bool)
    elu = none if empty in ("elu", "both") else some
    nelu = none if empty in ("nelu", "both") else some
    value = contrastive_loss(p, q, elu, nelu, 0.2, kind)
    assert value.item() == 0
    value.backward()
    for grad in (p.grad, q.grad):
        assert grad is None or torch.equal(grad, torch.zeros_like(grad))
    assert p.grad is not None


@pytest.mark.parametrize("kind", ["similarity", "distance"])
@pytest.mark.parametrize("tau", [1e-2, 1e-6])
@pytest.mark.parametrize("swap", [False, True])
def test_tiny_tau_is_finite(kind: str, tau: float, swap: bool) -> None:
    p, q = projections()
    p.requires_grad_()
    elu, nelu = torch.arange(6), torch.arange(6, 12)
    sets = (nelu, elu) if swap else (elu, nelu)
    value = contrastive_loss(p, q, *sets, tau, kind)
    value.backward()
    assert math.isfinite(value.item())
    assert p.grad is not None
    assert bool(torch.isfinite(p.grad).all())
    p = p.detach()

    # As τ → 0 the largest similarity (the mean distance) of each set decides.
    def level(nodes: Tensor) -> float:
        if kind == "similarity":
            return float((p[nodes] * q[nodes]).sum(1).max())
        return float((p[nodes] - q[nodes]).square().sum(1).mean())

    expected = max(0.0, level(sets[1]) - level(sets[0]))
    assert value.item() * tau == pytest.approx(expected, abs=3 * tau)


def test_entropy_equals_scipy() -> None:
    logits = 3 * torch.randn(30, 5)
    p = logits.double().softmax(dim=1).numpy()
    expected = scipy.stats.entropy(p, axis=1).mean()
    assert entropy_loss(logits).item() == pytest.approx(expected, rel=1e-5)
    assert entropy_loss(torch.zeros(4, 7)).item() == pytest.approx(
        math.log(7), rel=1e-6
    )


def test_entropy_of_certain_rows_is_zero_with_finite_gradients() -> None:
    logits = torch.tensor([[1e4, 0.0, -1e4], [0.0, 300.0, 0.0]], requires_grad=True)
    value = entropy_loss(logits)
    value.backward()
    assert value.item() == 0
    assert logits.grad is not None
    assert bool(torch.isfinite(logits.grad).all())


def test_entropy_gradient() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entropy_loss, (logits,))


def test_weighted_cross_entropy() -> None:
    logits, target = torch.randn(8, 3), torch.randint(0, 3, (8,))
    weight = torch.rand(8)
    p = logits.double().softmax(dim=1)
    expected = -sum(float(weight[i]) * math.log(p[i, target[i]]) for i in range(8))
    assert weighted_cross_entropy(logits, target, weight).item() == pytest.approx(
        expected, rel=1e-5
    )
    even = torch.full((8,), 1 / 8)
    torch.testing.assert_close(
        weighted_cross_entropy(logits, target, even), F.cross_entropy(logits, target)
    )


@pytest.mark.parametrize("draws", [1, 2, 4])
@pytest.mark.parametrize("temperature", [0.3, 0.5, 1.0])
def test_consistency_equals_numpy(draws: int, temperature: float) -> None:
    outputs = [2 * torch.randn(9, 4) for _ in range(draws)]
    p = np.stack([o.double().softmax(dim=1).numpy() for o in outputs])
    sharp = p.mean(axis=0) ** (1 / temperature)
    sharp /= sharp.sum(axis=1, keepdims=True)
    expected = ((p - sharp) ** 2).sum(axis=2).mean()
    assert consistency_loss(outputs, temperature).item() == pytest.approx(
        expected, rel=1e-4, abs=1e-9
    )


def test_consistency_has_no_gradient_through_the_target() -> None:
    a, b = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3)
    consistency_loss([a, b], 0.5).backward()
    twin = a.detach().clone().requires_grad_()
    p = [twin.softmax(dim=1), b.softmax(dim=1)]
    target = ((p[0] + p[1]) / 2).detach() ** 2
    target = target / target.sum(dim=1, keepdim=True)
    (sum((x - target).square().sum(dim=1).mean() for x in p) / 2).backward()
    torch.testing.assert_close(a.grad, twin.grad)


def test_consistency_of_flat_rows_at_a_low_temperature() -> None:
    # 40 equal classes: the sharpened mean is the mean itself, so nothing differs.
    outputs = [torch.zeros(5, 40), torch.zeros(5, 40)]
    assert consistency_loss(outputs, 0.1).item() == pytest.approx(0, abs=1e-6)


# --- InfoNCE -----------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.8, 0.1, 0.02])
def test_info_nce_written_out(tau: float) -> None:
    """Every pair's similarity, a loop over nodes; small τ takes the other road."""
    torch.manual_seed(0)
    a = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    b = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    expected = torch.zeros((), dtype=torch.float64)
    for i in range(9):
        to_b = torch.stack([F.cosine_similarity(a[i], b[j], dim=0) for j in range(9)])
        to_a = torch.stack([F.cosine_similarity(b[i], a[j], dim=0) for j in range(9)])
        for alike in (to_b, to_a):
            share = (alike[i] / tau).exp() / (alike / tau).exp().sum()
            expected = expected - share.log() / 18
    ours = info_nce(a, b, tau)
    torch.testing.assert_close(ours, expected)
    one = torch.autograd.grad(ours, (a, b))
    two = torch.autograd.grad(expected, (a, b))
    for mine, theirs in zip(one, two, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_info_nce_of_equal_and_of_unrelated_rows() -> None:
    eye = torch.eye(5)
    assert float(info_nce(eye, eye, 0.01)) == pytest.approx(0.0, abs=1e-6)
    # All rows alike: a partner can't be told from the others.
    same = torch.ones(5, 3)
    assert float(info_nce(same, same, 0.5)) == pytest.approx(np.log(5), rel=1e-5)


def test_entropy_gradient_numerically() -> None:
    z = torch.randn(6, 4).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: 3 * entropy_loss(t), [z])
