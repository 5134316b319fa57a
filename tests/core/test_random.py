"""Dropout masks drawn as bytes: probabilities, scale and independence."""

import pytest
import torch
from torch import Tensor

from elugcn.core.random import dropout, keep_mask

FLOAT = torch.zeros(1)


@pytest.mark.parametrize("p", [0.05, 0.25, 0.3, 0.5, 0.6, 0.8, 0.95])
def test_values_and_shares(p: float) -> None:
    mask = keep_mask((200, 1001), p, FLOAT)
    share = float((mask != 0).float().mean())
    # 1 − p to the nearest 1/256, and six standard errors.
    assert abs(share - (1 - p)) < 1 / 512 + 6 * (p * (1 - p) / mask.numel()) ** 0.5
    kept = mask[mask != 0].unique()
    assert kept.numel() == 1
    # The scale belongs to the rounded probability, so that the mean is exactly 1.
    level = round((1 - p) * 256)
    assert float(kept) == pytest.approx(256 / level, rel=1e-6)
    error = 6 * ((256 / level - 1) / mask.numel()) ** 0.5
    assert float(mask.mean()) == pytest.approx(1, abs=error)


def test_every_byte_of_a_word_is_random() -> None:
    # Eight entries come from one 64-bit word: each place must be drawn alike ...
    mask = (keep_mask((40_000, 8), 0.5, FLOAT) != 0).float()
    torch.testing.assert_close(
        mask.mean(dim=0), torch.full((8,), 0.5), atol=0.015, rtol=0
    )
    # ... and the eight independently of each other.
    correlation = torch.corrcoef(mask.T) - torch.eye(8)
    assert float(correlation.abs().max()) < 0.03


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (8,), (9,), (3, 5), (4, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    mask = keep_mask(shape, 0.5, FLOAT.double())
    assert mask.shape == shape
    assert mask.dtype == torch.float64
    assert set(mask.reshape(-1).tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("p", [1e-9, 0.001, 0.0019])
def test_a_probability_below_half_a_level_drops_nothing(p: float) -> None:
    assert torch.equal(keep_mask((500,), p, FLOAT), torch.ones(500))


def test_same_seed_same_mask() -> None:
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(keep_mask((50,), 0.5, FLOAT))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    # The generator moves on.
    assert not torch.equal(masks[2], keep_mask((50,), 0.5, FLOAT))


def test_dropout() -> None:
    x = torch.rand(30, 20) + 0.5
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
    leaf = x.clone().requires_grad_()
    out = dropout(leaf, 0.75, training=True)
    kept = out != 0
    torch.testing.assert_close(out[kept], 4 * x[kept])
    assert 0.15 < kept.float().mean() < 0.35
    out.sum().backward()
    assert isinstance(leaf.grad, Tensor)
    # The gradient has the mask of the forward pass.
    torch.testing.assert_close(leaf.grad, torch.where(kept, 4.0, 0.0))
