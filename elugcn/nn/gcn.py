"""A GCN that can look at several graphs with one set of weights.

    H̄ = Â σ(Â X W₁) W₂        the original view
    H̃ = Â σ(S* X W₁) W₂       the ELU view: S* in the first layer, Â after it

S* is already a high-order graph, hence only the first layer uses it. X W₁ is computed
once for all views, and the later layers of all views share one sparse product.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.propagation import MixedOrder
from elugcn.core.random import dropout, keep_mask
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features, drop_matmul


class Operator(Protocol):
    """Anything that multiplies a dense matrix: Â, S*, in factors or explicit."""

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an n×k matrix."""


class GCN(nn.Module):
    """GCN with shared weights over one or more first-layer graphs.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layers.
        out_channels: c.
        num_layers: Number of layers, at least 2.
        dropout: Probability, before every layer.
        norm: ``"none"``, ``"layer"`` or ``"batch"`` before each activation.
        residual: Adds the input of each inner layer to its output.
        order: 0: every layer propagates by Â (Kipf). K ≥ 1: the first layer
            propagates by the mean of Â⁰ … Âᴷ and the later layers not at all.
        drop_node: Probability of dropping a node's whole row before propagation
            (training only).
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        order: int = 0,
        drop_node: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.residual = residual
        self.order = order
        self.drop_node = drop_node
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.weights = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(b) for b in widths[1:])
        kinds = {"none": nn.Identity, "layer": nn.LayerNorm, "batch": nn.BatchNorm1d}
        self.norms = nn.ModuleList(kinds[norm](b) for b in widths[1:-1])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero biases."""
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)
        for bias in self.biases:
            nn.init.zeros_(bias)

    def forward(
        self, x: Features, adj: CSR, elu_graph: Operator | None = None, draws: int = 1
    ) -> list[Tensor]:
        """Logits n×c of each view: the original, then the ELU view if there is one.

        Args:
            x: X, sparse or dense.
            adj: Â.
            elu_graph: S*, for the first layer of a second view.
            draws: Repeats of the original view with fresh dropout, in training; they
                come first in the list, the ELU view last.

        Cost:
            O(nnz(X)·h + v·nnz(Â)·h) for v views; S* in factors adds O(n·c·h).
        """
        draws = draws if self.training else 1
        first: Operator = MixedOrder(adj, self.order) if self.order else adj
        zs = [self._first_product(x) for _ in range(draws)]
        hidden = _side_by_side(first, zs)
        if elu_graph is not None:
            hidden.append(elu_graph @ zs[0])
        # The views are stacked as rows (v·n × h): one dropout, one dense product.
        h = torch.cat(hidden) + self.biases[0]
        for i, (norm, weight, bias) in enumerate(
            zip(self.norms, self.weights[1:], self.biases[1:], strict=False)
        ):
            h = F.relu(norm(h))
            out = dropout(h, self.dropout, self.training) @ weight
            if not self.order:
                out = torch.cat(_side_by_side(adj, list(out.chunk(len(hidden)))))
            out = out + bias
            inner = i < len(self.norms) - 1
            h = h + out if self.residual and inner else out
        return list(h.chunk(len(hidden)))

    def _first_product(self, x: Features) -> Tensor:
        z = drop_matmul(x, self.weights[0], self.dropout, self.training)
        if self.training and self.drop_node:
            z = z * keep_mask((z.size(0), 1), self.drop_node, z)
        return z

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN alone decays."""
        return [self.weights[0], self.biases[0]]


def _side_by_side(operator: Operator, zs: Sequence[Tensor]) -> list[Tensor]:
    """The operator applied to several matrices by one product."""
    if len(zs) == 1:
        return [operator @ zs[0]]
    return list((operator @ torch.cat(list(zs), dim=1)).chunk(len(zs), dim=1))
