"""Scores of edges from the features of their two ends.

    joint     s_ij = wᵀ σ(U x_i + V x_j + b) + c               (NeuralSparse)
    separate  s_ij = wᵀ σ(U x_i + b) + vᵀ σ(V x_j + d) + c     (PTDNet)

Node i receives. An MLP on the features of both ends begins with a linear map, which is
the sum of one map per end. So nodes are projected once, and an edge holds at most h
numbers (joint) or one (separate).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import CSR, Features, dropout_linear

# Edges scored at once where no gradient is needed, so that they stay in the cache.
BLOCK = 8192


class Ends(NamedTuple):
    """The contribution of each node as receiver and as sender, n×h or (n,)."""

    receiver: Tensor
    sender: Tensor


class EdgeScorer(nn.Module):
    """An MLP on the two ends of an edge; ``joint``: hidden units see both ends."""

    def __init__(
        self, in_channels: int, hidden_channels: int, joint: bool = True
    ) -> None:
        super().__init__()
        h = hidden_channels
        width = h if joint else 2 * h
        self.joint = joint
        self.weight = nn.Parameter(torch.empty(in_channels, 2 * h))
        self.bias = nn.Parameter(torch.zeros(width))
        self.head = nn.Parameter(torch.empty(width))
        self.offset = nn.Parameter(torch.zeros(1))
        # Glorot's limits, as for one linear map of both ends.
        fan_in = 2 * in_channels if joint else in_channels
        for parameter, fan in ((self.weight, fan_in + h), (self.head, width + 1)):
            limit = (6 / fan) ** 0.5
            nn.init.uniform_(parameter, -limit, limit)

    def ends(self, x: Features) -> Ends:
        """What each node contributes, O(nnz(X)·h)."""
        z = dropout_linear(x, self.weight, 0.0)
        if self.joint:
            receiver, sender = z.chunk(2, dim=1)
            return Ends(receiver + self.bias, sender.contiguous())
        z = F.relu(z + self.bias) * self.head
        receiver, sender = (part.sum(dim=1) for part in z.chunk(2, dim=1))
        return Ends(receiver + self.offset, sender)

    def scores(self, ends: Ends, row: Tensor, col: Tensor) -> Tensor:
        """Scores of the edges from ``col`` to ``row``, with gradients; O(E·h)."""
        pair = ends.receiver.index_select(0, row) + ends.sender.index_select(0, col)
        return F.relu(pair) @ self.head + self.offset if self.joint else pair

    @torch.no_grad()
    def all_scores(self, ends: Ends, pattern: CSR) -> Tensor:
        """Scores of all stored entries without gradients: O(E·h) time, O(E) memory."""
        blocks = zip(
            *(torch.split(i, BLOCK) for i in (pattern.row, pattern.col)), strict=True
        )
        return torch.cat([self.scores(ends, row, col) for row, col in blocks])

    def forward(self, x: Features, pattern: CSR) -> Tensor:
        """Scores of all stored entries, with gradients."""
        return self.scores(self.ends(x), pattern.row, pattern.col)
