"""APPNP: the logits of an MLP, spread by personalised PageRank.

Gasteiger, Bojchevski and Günnemann, "Predict then Propagate: Graph Neural Networks
meet Personalized PageRank", ICLR 2019:

    H = MLP(X),    Z⁽⁰⁾ = H,    Z⁽ᵏ⁺¹⁾ = (1 − α) Â Z⁽ᵏ⁾ + α H

The defaults are the paper's for its citation graphs. Here the layers have biases, and
training ends after ``patience`` epochs without a better accuracy. An epoch costs
O(nnz(X)·h + K·E·c) for K steps and E edges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from elugcn.baselines.common import Baseline, PerGraph, Starts, adjacency, suggest
from elugcn.engine import CSR, GraphInputs, dropout
from elugcn.methods.options import (
    Count,
    NetworkConfig,
    NonNegative,
    Probability,
    Share,
    Steps,
)
from elugcn.methods.problem import GraphTraits, Shapes
from elugcn.models.mlp import MLP


class APPNPConfig(NetworkConfig):
    """Options of APPNP."""

    steps: Steps = 10  # K, products with Â
    alpha: Share = 0.1  # α, the share of H in every step
    # Probability of dropping an entry of Â, drawn anew in each step
    edge_dropout: Probability = 0.5
    dropout: Probability = 0.5
    weight_decay: NonNegative = 5e-3
    decay: Literal["all", "first"] = "first"
    epochs: Count = 1000


def pagerank(adj: CSR, h: Tensor, steps: int, alpha: float, p: float = 0.0) -> Tensor:
    """Z after K ``steps``, O(K·nnz(Â)·c).

    Every step drops entries of the whole Â with probability p. If the masks piled up,
    step k would see only (1 − p)ᵏ of the edges.
    """
    matrices = [adj] * steps
    if p and adj.nnz:
        values = dropout(adj.value.expand(steps, adj.nnz), p)
        matrices = [adj.with_values(value) for value in values]
    z = h
    for matrix in matrices:
        z = torch.lerp(matrix @ z, h, alpha)
    return z


class APPNPNetwork(nn.Module):
    """An MLP, then personalised PageRank."""

    def __init__(self, config: APPNPConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config = config
        ends = (shapes.in_channels, config.hidden_channels, shapes.out_channels)
        self.mlp = MLP(*ends, config.dropout)
        # A masked Â is not symmetric. Its transposed indices are found once.
        self.asymmetric = PerGraph(lambda adj: replace(adj, symmetric=False))

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c."""
        config = self.config
        p = config.edge_dropout if self.training else 0.0
        adj = self.asymmetric(inputs) if p else adjacency(inputs)
        return pagerank(adj, self.mlp(inputs), config.steps, config.alpha, p)

    def first_layer(self) -> list[nn.Parameter]:
        """What the paper decays."""
        return self.mlp.first_layer()


class APPNP(Baseline[APPNPConfig]):
    """Predict, then propagate."""

    name = "appnp"
    summary = "an MLP spread by PageRank"
    Config = APPNPConfig
    Network = APPNPNetwork

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Restart, dropout and training."""
        unlike = traits.neighbours_unlike
        return suggest(
            trial,
            traits,
            hidden_channels=(64, 128),
            alpha=(0.1, 0.5, 0.9) if unlike else (0.05, 0.1, 0.2, 0.5),
            dropout=(0.0, 0.3, 0.5) if traits.keeps_features else (0.3, 0.5, 0.7),
            edge_dropout=(0.0, 0.5),
            lr=(0.005, 0.01, 0.02),
            weight_decay=(0.0, 5e-4, 5e-3),
        )

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings, and a common simplification of them."""
        if traits.keeps_features:
            whole = {"feature_norm": "none", "dropout": 0.0, "edge_dropout": 0.0}
            return [{}, whole]
        return [{}, {"weight_decay": 5e-4, "edge_dropout": 0.0}]
