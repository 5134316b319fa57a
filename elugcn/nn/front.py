"""The MLP in front of a propagation, with dropout of X apart from the hidden layer's.

Without dropout on X the product X W₁ is the costliest of an epoch where X is dense, and
the one that validates an epoch is the one that the next epoch trains on: it is shared.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from elugcn.core.random import dropout
from elugcn.nn.layers import Features, SharedProduct, drop_matmul
from elugcn.nn.mlp import MLP


class FirstProduct(SharedProduct):
    """dropout(X) W, of which X W is shared where nothing is dropped."""

    def dropped(self, x: Features, weight: Tensor, p: float, training: bool) -> Tensor:
        """n×h, O(nnz(X)·h) unless it is known."""
        if training and p:
            return drop_matmul(x, weight, p, True)
        z = self(x, weight, training)
        if training:
            self.forget()
        return z


class FrontMLP(MLP):
    """An MLP of two layers whose input has its own dropout.

    Args:
        in_channels: d.
        hidden_channels: Width of the hidden layer.
        out_channels: c.
        dropout: Probability, of hidden units.
        input_dropout: Of X; None: as ``dropout``.
        linear: Leave the ReLU out.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        linear: bool = False,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, dropout, linear)
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self._first = FirstProduct()

    def forward(self, x: Features) -> Tensor:
        """Logits n×c, O(nnz(X)·h + n·h·c)."""
        p = self.input_dropout
        h = self._first.dropped(x, self.weight, p, self.training) + self.bias
        if not self.linear:
            h = F.relu(h)
        out: Tensor = self.out(dropout(h, self.dropout, self.training))
        return out
