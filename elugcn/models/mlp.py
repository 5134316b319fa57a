"""The multi-layer perceptron that gives H, the paper's pre-trained predictor.

    H = σ(X W₁) W₂

with dropout before both weights and biases. The paper's text has no σ; the authors'
public code has ReLU.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elugcn.engine import (
    Features,
    GraphInputs,
    Views,
    dropout,
    dropout_linear,
    relu_dropout_linear_,
)


class TwoLayers(nn.Module):
    """The parameters of a network of two layers: W₁, b₁, W₂, b₂.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layer.
        out_channels: c.
        dropout: Probability of dropping an entry before each weight.
        input_dropout: The same for X, where it differs.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.W1 = nn.Parameter(torch.empty(in_channels, hidden_channels))
        self.b1 = nn.Parameter(torch.zeros(hidden_channels))
        self.W2 = nn.Parameter(torch.empty(hidden_channels, out_channels))
        self.b2 = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.W1)
        nn.init.xavier_uniform_(self.W2)

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN decays."""
        return [self.W1, self.b1]


class MLP(TwoLayers):
    """Two linear maps with ReLU between, or nothing if ``linear`` is set."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        linear: bool = False,
    ) -> None:
        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(*sizes, dropout, input_dropout)
        self.linear = linear

    def rows(self, x: Features) -> Tensor:
        """Logits m×c of m rows of features, O(nnz(x)·h + m·h·c)."""
        p_input, p = (self.input_dropout, self.dropout) if self.training else (0.0, 0.0)
        Z = dropout_linear(x, self.W1, p_input)  # X W₁
        if self.linear:
            return dropout(Z + self.b1, p) @ self.W2 + self.b2
        H: Tensor = relu_dropout_linear_(Views([Z]), self.b1, self.W2, p)[0]
        return H + self.b2

    def forward(self, g: GraphInputs) -> Tensor:
        """Logits n×c; the graph is not used."""
        return self.rows(g.x)
