"""Random features against exact softmax attention, sums against loops."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elugcn.core import kernels
from elugcn.core.kernels import (
    EPSILON,
    gumbel_keys,
    kernel_attention,
    key_features,
    link_log_likelihood,
    mix,
    noisy_attention,
    orthogonal_features,
    query_features,
)
from elugcn.core.sparse import CSR


def attention(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.mT / q.size(2) ** 0.5).softmax(dim=2)


def error(count: int, draws: int) -> float:
    """Mean distance to exact softmax attention, over draws of the features."""
    q, k, v = torch.randn(3, 2, 40, 8) * 0.5
    exact = attention(q, k) @ v
    total = 0.0
    for _ in range(draws):
        w = orthogonal_features(count, 8)
        out = kernel_attention(query_features(q, w), key_features(k, w), v)
        total += float((out - exact).norm() / exact.norm())
    return total / draws


def test_attention_approaches_softmax_as_features_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With the floor under every feature the limit is a little flatter than softmax.
    monkeypatch.setattr(kernels, "EPSILON", 0.0)
    few, more, many = error(16, 20), error(512, 10), error(16384, 4)
    assert few > 3 * more > 9 * many
    assert many < 0.02


def test_rows_are_orthogonal_and_gaussian() -> None:
    w = orthogonal_features(20, 8, torch.Generator().manual_seed(0))
    assert w.shape == (20, 8)
    for block in w.split(8):
        gram = block @ block.T
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), rtol=0, atol=1e-4)
    many = orthogonal_features(40_000, 8)
    assert many.mean(dim=0).abs().max() < 0.03
    torch.testing.assert_close(many.T @ many / 40_000, torch.eye(8), rtol=0, atol=0.05)
    # The fourth moment of a standard normal number.
    assert float(many.pow(4).mean()) == pytest.approx(3.0, abs=0.15)


def test_shifts_of_the_exponent_cancel() -> None:
    """Large queries and keys, whose exp would overflow."""
    q, k, v = (
        torch.randn(3, 1, 30, 4) * torch.tensor([30.0, 3.0, 1.0])[:, None, None, None]
    )
    w = orthogonal_features(16, 4)
    out = kernel_attention(query_features(q, w), key_features(k, w), v)
    assert bool(torch.isfinite(out).all())
    assert float(out.abs().max()) <= float(v.abs().max()) + 1e-5  # a mean of values


def test_noisy_attention_is_a_mean_of_quotients() -> None:
    q, k = torch.rand(2, 3, 9, 5) + 0.1
    v, e = torch.randn(3, 9, 4), torch.rand(3, 6, 7)
    index = torch.stack([torch.randperm(9)[:7] for _ in range(18)]).view(3, 6, 7)
    expected = torch.zeros(3, 9, 4)
    for h in range(3):
        for s in range(6):
            weight = torch.zeros(9)
            weight[index[h, s]] = e[h, s]
            kernel = (q[h] @ k[h].T) * weight
            expected[h] += kernel @ v[h] / kernel.sum(dim=1, keepdim=True) / 6
    out = noisy_attention(q, k, v, index, e)
    torch.testing.assert_close(out, expected)


def test_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_ROWS", 3)  # more than one block
    query = torch.rand(2, 7, 3, dtype=torch.double).add_(0.1).requires_grad_()
    sums = torch.rand(2, 4, 3, 5, dtype=torch.double).add_(0.1).requires_grad_()
    drawn = torch.einsum("hnm,hsmd->hnsd", query, sums)
    expected = (drawn[..., :-1] / drawn[..., -1:]).mean(dim=2)
    torch.testing.assert_close(mix(query, sums), expected)
    assert torch.autograd.gradcheck(mix, (query, sums))


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("features", [query_features, key_features])
def test_features_have_the_values_and_gradients_of_their_equation(
    features: Callable[..., Tensor], beside: bool
) -> None:
    """Whether the heads of a node lie beside each other in memory or not."""
    x, w = torch.randn(2, 7, 4).double(), torch.randn(5, 4).double()
    if beside:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    x, tau = x.requires_grad_(), 0.25
    scaled = x / (tau**0.5 * 4**0.25)
    exponent = (
        torch.einsum("hnd,md->hnm", scaled, w) - scaled.pow(2).sum(-1)[..., None] / 2
    )
    over = (2,) if features is query_features else (1, 2)
    shifted = exponent - exponent.detach().amax(dim=over, keepdim=True)
    expected = shifted.exp() + EPSILON
    out = features(x, w, tau)
    torch.testing.assert_close(out, expected)
    pull = torch.randn_like(expected)
    for found, wanted in zip(
        torch.autograd.grad(out, x, pull),
        torch.autograd.grad(expected, x, pull),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


def test_noise_that_matters() -> None:
    n, tau = 5000, 0.25
    index, weight = gumbel_keys(2, n, 3, tau, torch.Generator().manual_seed(1))
    assert index.shape == weight.shape == (2, 3, 317)
    assert torch.equal(weight.amax(dim=2), torch.ones(2, 3))
    # The same draws with nothing left out.
    exponential = torch.empty(2, 3, n).exponential_(
        generator=torch.Generator().manual_seed(1)
    )
    g = -exponential.double().log() / tau
    full = (g - g.amax(dim=2, keepdim=True)).exp()
    left = full.scatter(2, index, 0.0)
    assert float(left.sum(dim=2).max()) < 1e-6
    kept = full.gather(2, index)
    torch.testing.assert_close(kept.float(), weight, rtol=1e-3, atol=1e-9)
    # Where weights fall slowly, all keys are kept.
    assert gumbel_keys(1, n, 1, 1.0, torch.Generator())[0].size(2) == n


def test_noise_is_gumbel() -> None:
    """A key is the largest of a draw with the probability of a softmax: 1/n."""
    index, weight = gumbel_keys(1, 4, 20_000, 0.5, torch.Generator().manual_seed(2))
    first = index.gather(2, weight.argmax(dim=2, keepdim=True)).view(-1)
    share = torch.bincount(first, minlength=4) / 20_000
    assert float((share - 0.25).abs().max()) < 0.015
    # log of the ratio of the two largest of two is logistic: E|x| = 2 log 2.
    _, two = gumbel_keys(1, 2, 20_000, 1.0, torch.Generator().manual_seed(3))
    gap = -two.amin(dim=2).log().mean()
    assert float(gap) == pytest.approx(2 * math.log(2), rel=0.03)


def test_likelihood_of_links() -> None:
    query, key = torch.rand(2, 3, 6, 5) + 0.1
    row, column = torch.tensor([0, 0, 2, 5]), torch.tensor([1, 4, 2, 0])
    crow = torch.tensor([0, 2, 2, 3, 3, 3, 4])
    links = CSR(crow, column, torch.ones(4), 6)
    weight = torch.tensor([0.5, 0.5, 1.0, 2.0])
    a = query @ key.mT
    a = a / a.sum(dim=2, keepdim=True)
    terms = [
        float(weight[e] * a[h, row[e], column[e]].log())
        for h in range(3)
        for e in range(4)
    ]
    out = link_log_likelihood(query, key, links, weight)
    assert float(out) == pytest.approx(sum(terms) / 12, rel=1e-5)
