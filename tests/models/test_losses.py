"""Terms of objectives against literal transcriptions."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from elugcn.models.losses import consistency_loss, info_nce, weighted_cross_entropy


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
