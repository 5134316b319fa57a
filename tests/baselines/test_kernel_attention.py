"""Random features against exact softmax attention, sums against loops."""

import math

import pytest
import torch

from elugcn.baselines.kernel_attention import (
    BLOCK,
    EPSILON,
    gumbel_keys,
    kernel_attention,
    kernel_features,
    link_log_likelihood,
    mix,
    noisy_attention,
    orthogonal_features,
)
from elugcn.engine import CSR


def error(count: int, draws: int) -> float:
    """Mean distance to exact softmax attention, over draws of the features."""
    q, k, v = torch.randn(3, 2, 40, 8) * 0.5
    exact = (q @ k.mT / 8**0.5).softmax(dim=2) @ v
    total = 0.0
    for _ in range(draws):
        w = orthogonal_features(count, 8)
        # Without the floor, in which the limit is a little flatter than softmax.
        query, key = (
            kernel_features(q, w) - EPSILON,
            kernel_features(k, w, keys=True) - EPSILON,
        )
        out = kernel_attention(query, key, v)
        total += float((out - exact).norm() / exact.norm())
    return total / draws


def test_attention_approaches_softmax_as_features_grow() -> None:
    torch.manual_seed(0)
    few, more, many = error(16, 20), error(512, 10), error(16384, 4)
    assert few > 3 * more > 9 * many
    assert many < 0.02


def test_rows_are_orthogonal_and_gaussian() -> None:
    torch.manual_seed(0)
    w = orthogonal_features(20, 8)
    assert w.shape == (20, 8)
    for block in w.split(8):
        gram = block @ block.T
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), rtol=0, atol=1e-4)
    many = orthogonal_features(40_000, 8)
    assert many.mean(dim=0).abs().max() < 0.03
    torch.testing.assert_close(many.T @ many / 40_000, torch.eye(8), rtol=0, atol=0.05)
    # The fourth moment of a standard normal number.
    assert float(many.pow(4).mean()) == pytest.approx(3.0, abs=0.15)


def test_large_queries_and_keys_do_not_overflow() -> None:
    torch.manual_seed(0)
    size = torch.tensor([30.0, 3.0, 1.0])[:, None, None, None]
    q, k, v = torch.randn(3, 1, 30, 4) * size
    w = orthogonal_features(16, 4)
    out = kernel_attention(kernel_features(q, w), kernel_features(k, w, keys=True), v)
    assert bool(torch.isfinite(out).all())
    assert float(out.abs().max()) <= float(v.abs().max()) + 1e-5  # a mean of values


def test_noisy_attention_is_a_mean_of_quotients() -> None:
    torch.manual_seed(0)
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
    torch.testing.assert_close(noisy_attention(q, k, v, index, e), expected)


def test_gradients_of_the_quotients() -> None:
    torch.manual_seed(0)
    # More than one block of nodes.
    query = torch.rand(2, BLOCK + 3, 3).double().add_(0.1).requires_grad_()
    sums = torch.rand(2, 4, 3, 5).double().add_(0.1).requires_grad_()
    drawn = torch.einsum("hnm,hsmd->hnsd", query, sums)
    expected = (drawn[..., :-1] / drawn[..., -1:]).mean(dim=2)
    out = mix(query, sums)
    torch.testing.assert_close(out, expected)
    along = torch.randn_like(out)
    ours = torch.autograd.grad(out, (query, sums), along)
    theirs = torch.autograd.grad(expected, (query, sums), along)
    torch.testing.assert_close(ours, theirs)


def test_only_noise_that_matters_is_kept() -> None:
    n, tau = 5000, 0.25
    torch.manual_seed(1)
    index, weight = gumbel_keys(2, n, 3, tau)
    assert index.shape == weight.shape == (2, 3, 317)
    assert torch.equal(weight.amax(dim=2), torch.ones(2, 3))
    # The same draws with nothing left out.
    torch.manual_seed(1)
    g = -torch.empty(2, 3, n).exponential_().double().log() / tau
    full = (g - g.amax(dim=2, keepdim=True)).exp()
    assert float(full.scatter(2, index, 0.0).sum(dim=2).max()) < 1e-6
    kept = full.gather(2, index)
    torch.testing.assert_close(kept.float(), weight, rtol=1e-3, atol=1e-9)
    # Where weights fall slowly, all keys are kept.
    assert gumbel_keys(1, n, 1, 1.0)[0].size(2) == n


def test_noise_is_gumbel() -> None:
    """A key is the largest of a draw with the probability of a softmax: 1/n."""
    torch.manual_seed(2)
    index, weight = gumbel_keys(1, 4, 20_000, 0.5)
    first = index.gather(2, weight.argmax(dim=2, keepdim=True)).view(-1)
    share = torch.bincount(first, minlength=4) / 20_000
    assert float((share - 0.25).abs().max()) < 0.015
    # log of the ratio of two is logistic: E|x| = 2 log 2.
    _, two = gumbel_keys(1, 2, 20_000, 1.0)
    gap = -two.amin(dim=2).log().mean()
    assert float(gap) == pytest.approx(2 * math.log(2), rel=0.03)


def test_likelihood_of_links() -> None:
    torch.manual_seed(0)
    query, key = torch.rand(2, 3, 6, 5) + 0.1
    row, column = torch.tensor([0, 0, 2, 5]), torch.tensor([1, 4, 2, 0])
    links = CSR(torch.tensor([0, 2, 2, 3, 3, 3, 4]), column, torch.ones(4), 6)
    weight = torch.tensor([0.5, 0.5, 1.0, 2.0])
    a = query @ key.mT
    a = a / a.sum(dim=2, keepdim=True)
    expected = (weight * a[:, row, column].log()).mean()
    out = link_log_likelihood(query, key, links, weight)
    torch.testing.assert_close(out, expected)
    none = CSR(torch.zeros(7, dtype=torch.long), column[:0], torch.ones(0), 6)
    assert float(link_log_likelihood(query, key, none, weight[:0])) == 0.0
