"""The projection head of the contrastive loss."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class ProjectionHead(nn.Module):
    """p_θ: Linear(c, c) and ELU, rows scaled to length 1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, h: Tensor) -> Tensor:
        """The projected rows, n×c, each of length 1."""
        return F.normalize(F.elu(self.linear(h)), dim=1)
