"""GAT: attention weighs the neighbours.

Veličković et al., "Graph Attention Networks", ICLR 2018. Two layers of

    e_ij = LeakyReLU(a₁ᵀ W x_i + a₂ᵀ W x_j),    α_i· = softmax of e_i· over N(i)
    out_i = Σ_j α_ij W x_j + b

with ELU between. The heads of the first layer stand side by side, those of the second
are averaged. Attention depends on which edges there are, not on their weights. The
defaults are the paper's for Cora and Citeseer. Two things differ: the paper also drops
entries of W x, and it trains until neither accuracy nor loss improves; here training
ends after ``patience`` epochs without a better accuracy. An epoch costs
O(nnz(X)·k·h + E·k·h) time and O(E·k) memory, for E edges and k heads of width h.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from elugcn.baselines.common import Baseline, BaselineConfig, Starts, adjacency, suggest
from elugcn.engine import CSR, GraphInputs, attend, dropout, dropout_linear
from elugcn.methods.options import Count, Positive, Probability
from elugcn.methods.problem import GraphTraits, Shapes


class GATConfig(BaselineConfig):
    """Options of GAT."""

    hidden_channels: Count = 8  # Width of one head of the first layer
    heads: Count = 8  # Heads of the first layer
    out_heads: Count = 1  # Heads of the second layer
    dropout: Probability = 0.6
    attention_dropout: Probability = 0.6  # Probability of dropping a coefficient α
    lr: Positive = 0.005
    epochs: Count = 1000


class Attention(nn.Module):
    """One layer, with the names, shapes and initial values of PyG's ``GATConv``.

    ``concat``: heads side by side (n×k·c), else their mean (n×c). With ``in_channels``
    None the input is X W, and the layer has no W.
    """

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        heads: int,
        concat: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.concat = concat
        self.dropout = dropout
        self.lin: nn.Module = nn.Identity()
        if in_channels is not None:
            self.lin = nn.Linear(in_channels, heads * out_channels, bias=False)
            glorot(self.lin.weight)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels * (heads if concat else 1)))
        glorot(self.att_src)
        glorot(self.att_dst)

    def forward(self, x: Tensor, adj: CSR) -> Tensor:
        """What each node gathers, O(nnz(Â)·k·c) after X W; memory O(nnz(Â)·k)."""
        z = self.lin(x).view(x.size(0), self.heads, -1)
        to = (z * self.att_dst).sum(dim=2)
        of = (z * self.att_src).sum(dim=2)
        keep = None
        if self.training and self.dropout:
            keep = dropout(z.new_ones(1, self.heads * adj.nnz), self.dropout).flatten()
        heads = attend(adj, z, to, of, keep=keep)
        return (heads.flatten(1) if self.concat else heads.mean(dim=1)) + self.bias


class GATNetwork(nn.Module):
    """Two attention layers with ELU between."""

    def __init__(self, config: GATConfig, shapes: Shapes) -> None:
        super().__init__()
        self.dropout = config.dropout
        width, p = config.heads * config.hidden_channels, config.attention_dropout
        # W of the first layer is here, so that X can be sparse.
        self.weight = nn.Parameter(torch.empty(shapes.in_channels, width))
        glorot(self.weight)
        self.first = Attention(None, config.hidden_channels, config.heads, True, p)
        self.second = Attention(width, shapes.out_channels, config.out_heads, False, p)

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c."""
        adj, p = adjacency(inputs), self.dropout if self.training else 0.0
        z = dropout_linear(inputs.x, self.weight, p)
        h = dropout(F.elu(self.first(z, adj)), p)
        out: Tensor = self.second(h, adj)
        return out


class GAT(Baseline[GATConfig]):
    """Graph attention network."""

    name = "gat"
    summary = "attention over neighbours"
    Config = GATConfig
    Network = GATNetwork

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Width, heads, dropout and training."""
        return suggest(
            trial,
            traits,
            hidden_channels=(8, 16),
            heads=(4, 8),
            out_heads=(1, 8),
            dropout=(0.0, 0.3, 0.6) if traits.keeps_features else (0.3, 0.5, 0.6),
            attention_dropout=(0.0, 0.3, 0.6),
            lr=(0.005, 0.01),
            weight_decay=(0.0, 5e-4, 1e-3, 5e-3),
        )

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings for Cora and Citeseer, and for Pubmed."""
        pubmed = {"out_heads": 8, "lr": 0.01, "weight_decay": 1e-3}
        kept = {"feature_norm": "none", "dropout": 0.0, "attention_dropout": 0.3}
        if traits.keeps_features:
            return [{}, kept | {"weight_decay": 5e-3}]
        return [pubmed, {}] if traits.is_large else [{}, pubmed]
