"""How much an edge is worth, judged by the features of its two ends.

    joint   s_ij = wᵀ σ(U x_i + V x_j + b) + c                 (NeuralSparse)
    apart   s_ij = wᵀ σ(U x_i + b) + vᵀ σ(V x_j + d) + c       (PTDNet)

i is the end that receives. An MLP on the features of both ends side by side starts
with a linear map, which is a sum of two maps, one of each end: nodes are projected
before edges look at them, so that no edge holds more than h numbers. In the second
form the whole score is a sum of two, and an edge holds one. A score opens the gate of
its edge by chance, and often exactly: fully, or not at all (hard concrete).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features

# Entries scored at a time where no gradient is wanted: what they gather stays in cache.
BLOCK = 8192


@dataclass(frozen=True)
class Sides:
    """What an edge needs to know of its ends: of the receiving and of the sending one.

    Both n×h (joint) or (n,) (apart).
    """

    to: Tensor
    of: Tensor


class EdgeScorer(nn.Module):
    """An MLP with one hidden layer on the two ends of an edge.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layer; of each end's own if apart.
        joint: The hidden units see both ends, else one each.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        joint: bool = True,
    ) -> None:
        super().__init__()
        h = hidden_channels
        self.joint = joint
        self.weight = nn.Parameter(torch.empty(in_channels, 2 * h))
        self.bias = nn.Parameter(torch.zeros(h if joint else 2 * h))
        self.head = nn.Parameter(torch.empty(h if joint else 2 * h))
        self.offset = nn.Parameter(torch.zeros(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights as of one linear map of both ends, zero biases."""
        d, h = self.weight.size(0), self.weight.size(1) // 2
        fan_in = 2 * d if self.joint else d
        nn.init.uniform_(self.weight, -1, 1).data *= (6 / (fan_in + h)) ** 0.5
        nn.init.uniform_(self.head, -1, 1).data *= (6 / (self.head.numel() + 1)) ** 0.5
        nn.init.zeros_(self.bias)
        nn.init.zeros_(self.offset)

    def sides(self, x: Features) -> Sides:
        """The part of each end, O(nnz(X)·h)."""
        z = x @ self.weight
        if self.joint:
            to, of = z.chunk(2, dim=1)
            return Sides(to + self.bias, of.contiguous())
        z = F.relu(z + self.bias) * self.head
        to, of = (part.sum(dim=1) for part in z.chunk(2, dim=1))
        return Sides(to + self.offset, of)

    def scores(self, sides: Sides, row: Tensor, col: Tensor) -> Tensor:
        """Scores of edges from ``col`` to ``row``, (E,), with gradients; O(E·h)."""
        pair = sides.to.index_select(0, row) + sides.of.index_select(0, col)
        return F.relu(pair) @ self.head + self.offset if self.joint else pair

    @torch.no_grad()
    def all_scores(self, sides: Sides, pattern: CSR) -> Tensor:
        """Scores s for every stored entry, without gradients, O(E·h); memory O(E)."""
        out = sides.to.new_empty(pattern.nnz)
        for i in range(0, pattern.nnz, BLOCK):
            row, col = pattern.row[i : i + BLOCK], pattern.col[i : i + BLOCK]
            out[i : i + BLOCK] = self.scores(sides, row, col)
        return out

    def forward(self, x: Features, pattern: CSR) -> Tensor:
        """Scores s for every stored entry, in their order, (E,)."""
        return self.scores(self.sides(x), pattern.row, pattern.col)


def hard_concrete(
    alpha: Tensor, tau: float | None, gamma: float, zeta: float
) -> Tensor:
    """Gates m in [0, 1] of scores α, O(E): drawn at temperature τ, fixed for None."""
    if tau is not None:
        u = torch.rand_like(alpha).clamp_(1e-7, 1 - 1e-7)
        alpha = (alpha + torch.logit(u)) / tau
    return (alpha.sigmoid() * (zeta - gamma) + gamma).clamp(0.0, 1.0)


def open_probability(alpha: Tensor, tau: float, gamma: float, zeta: float) -> Tensor:
    """P(m > 0) = σ(α − τ log(−γ/ζ)) of each gate."""
    return (alpha - tau * math.log(-gamma / zeta)).sigmoid()
