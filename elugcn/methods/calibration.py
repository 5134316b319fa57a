"""A temperature that makes probabilities of scores: softmax(t·z)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

TEMPERATURES = torch.logspace(-1.0, 2.5, 71).tolist()
UNCALIBRATED = 10.0  # for scores of least squares, without nodes to calibrate on
ENOUGH = 30  # nodes below which a temperature that fits them is far too sure


def calibrate(
    scores: Tensor,
    y: Tensor,
    weight: Tensor | None = None,
    start: float = UNCALIBRATED,
) -> tuple[float, float]:
    """The temperature with the least log-loss on some nodes, and that loss.

    Args:
        scores: Scores of the nodes, m×c.
        y: Their classes, (m,). Of fewer than ``ENOUGH``, ``start`` is the answer.
        weight: Weight of each class.
        start: Where the search begins. The log-loss is convex in t, so that going
            downhill finds the best of ``TEMPERATURES`` from anywhere.
    """
    if y.numel() < ENOUGH:
        return start, float(F.cross_entropy(start * scores, y, weight))

    def loss(i: int) -> float:
        return float(F.cross_entropy(TEMPERATURES[i] * scores, y, weight))

    at = min(range(len(TEMPERATURES)), key=lambda i: abs(TEMPERATURES[i] - start))
    least = loss(at)
    for step in (-1, 1):
        moved = False
        while 0 <= at + step < len(TEMPERATURES) and (found := loss(at + step)) < least:
            at, least, moved = at + step, found, True
        if moved:
            break
    return TEMPERATURES[at], least
