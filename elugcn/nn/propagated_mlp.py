"""An MLP on propagated features, which can be asked row by row.

    Z = W₂ᵀ drop(N₂(σ(W₁ᵀ drop(N₁(x̄)))))        for a row x̄ of X̄ = Π X

N₁ and N₂ are batch norms or nothing (GRAND's authors normalise the propagated features
and the hidden layer on Pubmed). Where X̄ is known for the nodes of interest it is an
ordinary MLP. For a whole graph X̄ need not be formed: with fixed statistics N₁ is a
scale s and a shift t of the columns, and

    N₁(X̄) W₁ = Π (X · diag(s) W₁) + t W₁
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.propagation import MixedOrder
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features


class PropagatedMLP(nn.Module):
    """Two layers behind the mean of the powers of Â.

    Args:
        in_channels: d.
        hidden_channels: h.
        out_channels: c.
        dropout: Of the hidden layer.
        input_dropout: Of the propagated features; None: as ``dropout``.
        norm: ``"none"``, or ``"batch"`` before both dropouts.
        order: K, the highest power of Â.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        norm: str = "none",
        order: int = 1,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.order = order
        self.inner = nn.Linear(in_channels, hidden_channels)
        self.outer = nn.Linear(hidden_channels, out_channels)
        widths = (in_channels, hidden_channels) if norm == "batch" else ()
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths)

    def rows(self, x: Tensor) -> Tensor:
        """Logits m×c for m rows of X̄, m×d."""
        if self.norms:
            x = self.norms[0](x)
        h = F.relu(self.inner(dropout(x, self.input_dropout, self.training)))
        if self.norms:
            h = self.norms[1](h)
        out: Tensor = self.outer(dropout(h, self.dropout, self.training))
        return out

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c of all nodes, nothing dropped and with the norms' statistics.

        Cost:
            O(nnz(X)·h + K·nnz(Â)·h); never n×d.
        """
        weight: Tensor = self.inner.weight.T
        bias: Tensor = self.inner.bias
        if self.norms:
            scale, shift = _scale_and_shift(self.norms[0])
            weight, bias = weight * scale.unsqueeze(1), bias + shift @ weight
        h = F.relu(MixedOrder(adj, self.order) @ (x @ weight) + bias)
        if self.norms:
            scale, shift = _scale_and_shift(self.norms[1])
            h = h * scale + shift
        out: Tensor = self.outer(h)
        return out

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN alone decays."""
        return list(self.inner.parameters())


def _scale_and_shift(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """A batch norm with its running statistics, as x·s + t."""
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return scale, norm.bias - norm.running_mean * scale
