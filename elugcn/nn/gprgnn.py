"""Generalised PageRank with learned weights: GPR-GNN (Chien et al., ICLR 2021).

    H = MLP(X),    Z = Σ_{k=0..K} γ_k Âᵏ H

γ is learned and may be negative, so the filter can be a high-pass one where neighbours
are unlike. It starts as the weights of personalised PageRank, that is, as APPNP.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elugcn.core.polynomial import polynomial
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.front import FrontMLP
from elugcn.nn.layers import Features


def pagerank_weights(steps: int, alpha: float) -> Tensor:
    """γ_k = α (1 − α)ᵏ for k < K and γ_K = (1 − α)ᴷ: they sum to one, shape (K+1,)."""
    # In double precision: 0⁰ is 1 there and α = 1 is the identity.
    power = (1.0 - alpha) ** torch.arange(steps + 1, dtype=torch.float64)
    power[:-1] *= alpha
    return power.float()


class GPRGNN(nn.Module):
    """An MLP whose logits are propagated by a learned polynomial of Â.

    Args:
        in_channels: d.
        hidden_channels: Width of the hidden layer.
        out_channels: c.
        dropout: Probability, of hidden units.
        input_dropout: Of X; None: as ``dropout``.
        propagation_dropout: Of the entries of H.
        steps: K.
        alpha: Of the PageRank that γ starts as.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        propagation_dropout: float = 0.5,
        steps: int = 10,
        alpha: float = 0.1,
    ) -> None:
        super().__init__()
        self.mlp = FrontMLP(
            in_channels, hidden_channels, out_channels, dropout, input_dropout
        )
        self.propagation_dropout = propagation_dropout
        self.gamma = nn.Parameter(pagerank_weights(steps, alpha))

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·h + K·nnz(Â)·c)."""
        h = dropout(self.mlp(x), self.propagation_dropout, self.training)
        return polynomial(adj, h, self.gamma)

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return self.mlp.first_layer()
