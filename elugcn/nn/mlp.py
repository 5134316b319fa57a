"""The multi-layer perceptron that gives H, the paper's pre-trained predictor."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.random import dropout
from elugcn.nn.layers import Features, drop_matmul


class MLP(nn.Module):
    """Two linear maps, ReLU between, dropout before both.

    The paper's appendix writes H = XΘ₁Θ₂ without a non-linearity; the authors' code
    has one. ``linear=True`` is the literal form.

    Args:
        in_channels: d.
        hidden_channels: Width of the hidden layer.
        out_channels: c.
        dropout: Probability, before both layers.
        linear: Leave the ReLU out.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        linear: bool = False,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.linear = linear
        self.weight = nn.Parameter(torch.empty(in_channels, hidden_channels))
        self.bias = nn.Parameter(torch.zeros(hidden_channels))
        self.out = nn.Linear(hidden_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero biases."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Features) -> Tensor:
        """Logits, n×c."""
        h = drop_matmul(x, self.weight, self.dropout, self.training) + self.bias
        if not self.linear:
            h = F.relu(h)
        out: Tensor = self.out(dropout(h, self.dropout, self.training))
        return out

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN alone decays."""
        return [self.weight, self.bias]
