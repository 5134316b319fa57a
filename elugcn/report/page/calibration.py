"""Do the probabilities mean what they say?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Bin:
    """Nodes whose confidence lies in one interval."""

    nodes: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """Confidence beside accuracy on judged nodes.

    ``error`` is the expected calibration error, Σ_b (n_b/n)·|accuracy − confidence|.
    """

    bins: tuple[Bin, ...]
    nodes: int
    confidence: float
    accuracy: float
    error: float


def reliability(
    proba: Tensor, y: Tensor, mask: Tensor, bins: int = 10
) -> Reliability | None:
    """The calibration curve on the labelled nodes of a mask, None if there are none.

    Bins have equal width and empty ones are left out; O(n·c).
    """
    chosen = mask & (y >= 0)
    n = int(chosen.sum())
    if not n:
        return None
    confidence, predicted = proba[chosen].double().max(dim=1)
    right = (predicted == y[chosen]).double()
    place = (confidence * bins).long().clamp(max=bins - 1)
    count = torch.bincount(place, minlength=bins)
    filled = count > 0
    size = count[filled].double()
    mean = torch.bincount(place, confidence, bins)[filled] / size
    share = torch.bincount(place, right, bins)[filled] / size
    found = zip(count[filled].tolist(), mean.tolist(), share.tolist(), strict=True)
    return Reliability(
        bins=tuple(Bin(*one) for one in found),
        nodes=n,
        confidence=float(confidence.mean()),
        accuracy=float(right.mean()),
        error=float((size / n * (share - mean).abs()).sum()),
    )
