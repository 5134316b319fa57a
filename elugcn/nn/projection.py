"""The projection head of the contrastive loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Squared length below which a row is left short: it has no direction to keep.
TINY = 1e-24


class ProjectionHead(nn.Module):
    """p_θ: Linear(c, c) and ELU, rows scaled to length 1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, h: Tensor) -> Tensor:
        """The projected rows, n×c, each of length 1 (stored by columns)."""
        weight, bias = self.linear.weight, self.linear.bias
        z = F.elu(torch.addmm(bias.unsqueeze(1), weight, h.T))
        # As F.normalize, whose norm of short rows costs ten times the sum of squares.
        return (z * z.square().sum(dim=0).clamp_min(TINY).rsqrt()).T
