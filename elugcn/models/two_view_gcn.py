"""The two-view GCN of the paper; without the ELU graph it is Kipf and Welling's GCN.

    H̄ = Â σ(Â X W₁) W₂        the original view
    H̃ = Â σ(S* X W₁) W₂       the ELU view

Both views share their weights. S* replaces Â in the first layer only, because it is
already a high-order graph. σ is ReLU. Dropout precedes both weights, and both layers
have a bias.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elugcn.engine import (
    Features,
    GraphInputs,
    Views,
    propagate_linear,
    relu_dropout_linear_,
    spmm,
)


class TwoViewGCN(nn.Module):
    """Two graph convolutions with shared weights for one or two views.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layer.
        out_channels: c.
        dropout: Probability of dropping an entry before each weight.
        input_dropout: The same for X, where it differs.
    """

    num_layers = 2

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

    def views(self, g: GraphInputs, draws: int = 1) -> Views:
        """H̄ for each draw of dropout, then H̃ if ``g`` has an ELU graph; each n×c.

        Cost:
            O(nnz(X)·h + nnz(Â)·(h + v·c)) for v views, and O(n·c·h) for S* in factors.
        """
        p_input, p = (self.input_dropout, self.dropout) if self.training else (0.0, 0.0)
        Z = propagate_linear(g, self.W1, p_input, draws=draws)  # Â X W₁, S* X W₁
        Z = relu_dropout_linear_(Z, self.b1, self.W2, p)  # σ(Z + b₁) W₂
        return spmm(g.layer(1), Z, self.b2)  # Â Z + b₂

    def forward(self, g: GraphInputs) -> Tensor:
        """The logits H̄ of the original view, n×c."""
        out: Tensor = self.views(g)[0]
        return out

    def views_given(self, g: GraphInputs, elu_product: Tensor) -> Views:
        """Both views of nodes for which S* X W₁ is known, n×h; in evaluation mode."""
        Z = propagate_linear(g, self.W1, 0.0)
        Z = Views([*Z.tensors(), elu_product])
        Z = relu_dropout_linear_(Z, self.b1, self.W2, 0.0)
        return spmm(g.layer(1), Z, self.b2)

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN decays."""
        return [self.W1, self.b1]

    def first_product(self, x: Features) -> Tensor:
        """X W₁, what S* multiplies: n×h."""
        return x @ self.W1
