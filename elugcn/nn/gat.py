"""A graph attention network (Veličković et al., ICLR 2018) of two layers.

    e_ij = LeakyReLU(a₁ᵀ W x_i + a₂ᵀ W x_j),    α_i· = softmax of e_i· over N(i)
    out_i = Σ_j α_ij W x_j + b

Heads stand side by side in the first layer and are averaged in the second.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from elugcn.core.random import dropout, keep_mask
from elugcn.core.segments import attend
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features, drop_matmul

# Heads are taken together up to this many entries of all of them, which bounds the
# memory; more at a time is faster.
BLOCK = 2**23


class Attention(nn.Module):
    """One layer, with the names, shapes and first values of PyG's ``GATConv``.

    Args:
        in_channels: Width of what comes in; None if that is X W already, in which case
            the layer has no W of its own.
        out_channels: Width c of one head.
        heads: k.
        concat: The heads side by side (n×k·c), else their mean (n×c).
        dropout: Probability, on the coefficients α.
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
        out = []
        size = max(1, BLOCK // max(1, adj.nnz))
        for i in range(0, self.heads, size):
            part = slice(i, i + size)
            keep = self._mask(adj, z[:, part])
            out.append(attend(adj, z[:, part], to[:, part], of[:, part], keep=keep))
        heads = torch.cat(out, dim=1) if len(out) > 1 else out[0]
        return (heads.flatten(1) if self.concat else heads.mean(dim=1)) + self.bias

    def _mask(self, adj: CSR, z: Tensor) -> Tensor | None:
        if not self.training or self.dropout == 0.0:
            return None
        return keep_mask((z.size(1) * adj.nnz,), self.dropout, z)


class GAT(nn.Module):
    """Two attention layers with ELU between.

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
        # Not the layer's own, so that sparse X stays sparse.
        self.weight = nn.Parameter(torch.empty(in_channels, width))
        glorot(self.weight)
        p = attention_dropout
        self.first = Attention(None, hidden_channels, heads, True, p)
        self.second = Attention(width, out_channels, out_heads, False, p)

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·k·h + nnz(Â)·k·h) for k heads; memory nnz(Â)·k."""
        z = drop_matmul(x, self.weight, self.dropout, self.training)
        h = dropout(F.elu(self.first(z, adj)), self.dropout, self.training)
        out: Tensor = self.second(h, adj)
        return out

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return [self.weight, *self.first.parameters()]
