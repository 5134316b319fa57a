"""A graph attention network (Veličković et al., ICLR 2018) of two layers.

    e_ij = LeakyReLU(a₁ᵀ W x_i + a₂ᵀ W x_j),    α_i· = softmax of e_i· over N(i)
    out_i = Σ_j α_ij W x_j + b

Heads stand side by side in the first layer and are averaged in the second.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features, drop_matmul


class GAT(nn.Module):
    """Two PyG attention layers with ELU between.

    Attention looks at which edges there are, not at their weights. The neighbours are
    the stored entries of Â, which include the node itself unless Â was built without
    self-loops.

    Args:
        in_channels: d.
        hidden_channels: Width h of one head of the first layer.
        out_channels: c.
        heads: Heads of the first layer, side by side.
        out_heads: Heads of the second layer, averaged.
        dropout: Probability, on the input of both layers.
        attention_dropout: Probability, on the coefficients α of both layers.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: int = 8,
        out_heads: int = 1,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        width = heads * hidden_channels
        # The self-loops are in Â already; PyG would add them again in every step.
        self.first = GATConv(
            width,
            hidden_channels,
            heads,
            dropout=attention_dropout,
            add_self_loops=False,
        )
        # The layer's own X W would need X dense. It is replaced by a weight of ours,
        # for which sparse X stays sparse; the layer gets the product.
        self.first.lin = nn.Identity()
        self.weight = nn.Parameter(torch.empty(in_channels, width))
        nn.init.xavier_uniform_(self.weight)
        self.second = GATConv(
            width,
            out_channels,
            out_heads,
            concat=False,
            dropout=attention_dropout,
            add_self_loops=False,
        )

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·k·h + nnz(Â)·k·h) for k heads; memory nnz(Â)·k·h."""
        # PyG's convention: sources above, targets below; row i of Â gathers for i.
        edge_index = torch.stack([adj.col.long(), adj.row])
        z = drop_matmul(x, self.weight, self.dropout, self.training)
        h = F.elu(self.first(z, edge_index))
        out: Tensor = self.second(dropout(h, self.dropout, self.training), edge_index)
        return out

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return [self.weight, *self.first.parameters()]
