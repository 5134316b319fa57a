"""A GCN over edges whose weights are learned: gradients reach every weight.

    Â = D^-½ (W + I) D^-½,   D_i = 1 + Σ_j w_ij,   Z = Â σ(Â X W₁ + b₁) W₂ + b₂

Row i of W holds what node i gathers, so for a graph with directions both sides are
divided by the degree of the receiving end, as PyG's ``GCNConv`` does. Â is never
built: the degrees scale the rows before and after the product with W.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import Weighted, some_entries
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.field import Operator
from elugcn.nn.layers import Features, drop_matmul


@dataclass(frozen=True, eq=False)
class Edges:
    """The places of E edges in an n×n matrix, laid out once for many weights.

    Attributes:
        pattern: Row i has an entry for every edge into node i.
        order: Which edge each entry is; None where they stand in the same order.
    """

    pattern: CSR
    order: Tensor | None = None

    @classmethod
    def of_index(cls, edge_index: Tensor, num_nodes: int) -> Edges:
        """Edges as PyG has them, sources over targets; O(E log E)."""
        source, target = edge_index
        order = torch.argsort(target * num_nodes + source)
        count = torch.bincount(target, minlength=num_nodes)
        crow = F.pad(count.cumsum(0), (1, 0)).int()
        ones = torch.ones(order.numel(), device=order.device)
        return cls(CSR(crow, source[order].int(), ones, num_nodes), order)

    @classmethod
    def of(cls, adj: CSR) -> Edges:
        """The entries of a matrix off its diagonal, kept as long as ``adj`` is."""
        if adj not in _KEPT:
            off = adj.row != adj.col
            count = torch.bincount(adj.row[off], minlength=adj.shape[0])
            crow = F.pad(count.cumsum(0), (1, 0)).to(adj.crow.dtype)
            col = adj.col[off]
            ones = torch.ones(col.numel(), device=col.device)
            _KEPT[adj] = cls(CSR(crow, col, ones, adj.n_cols))
        return _KEPT[adj]

    def kept(self, places: Tensor) -> Edges:
        """Only some entries of the pattern, given by ascending places; O(E)."""
        order = None if self.order is None else self.order[places]
        return Edges(some_entries(self.pattern, places), order)

    def entries(self, weight: Tensor) -> Tensor:
        """A weight an edge as a value an entry."""
        return weight if self.order is None else weight.index_select(0, self.order)


_KEPT: WeakKeyDictionary[CSR, Edges] = WeakKeyDictionary()


class Propagation:
    """Â of one set of weights: what both layers multiply by.

    Args:
        edges: Where the weights stand.
        weight: Weights ≥ 0, (E,).
        self_loops: I is added; without it D may be small, and D^-½ is at most 10.
    """

    def __init__(self, edges: Edges, weight: Tensor, self_loops: bool = True) -> None:
        value = edges.entries(weight)
        self.weights = Weighted(edges.pattern, value)
        self.self_loops = self_loops
        degree = weight.new_full((edges.pattern.n_cols,), float(self_loops))
        degree = degree.index_add(0, edges.pattern.row, value)
        self.scale = degree.clamp(min=0.01).rsqrt()[:, None]

    def __matmul__(self, z: Tensor) -> Tensor:
        """Â z, O(E·h)."""
        z = z * self.scale
        out = self.weights @ z
        return (out + z if self.self_loops else out) * self.scale


class WeightedGCN(nn.Module):
    """Two layers of GCN on a graph with a learned weight an edge.

    Args:
        in_channels: d.
        hidden_channels: h.
        out_channels: c.
        dropout: Probability, on the input of both layers.
        input_dropout: Of X, where it differs from ``dropout``.
        self_loops: Each node has one, of weight 1.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        self_loops: bool = True,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.self_loops = self_loops
        ends = [in_channels, hidden_channels, out_channels]
        self.weights = nn.ParameterList(torch.empty(a, b) for a, b in pairwise(ends))
        self.biases = nn.ParameterList(torch.zeros(b) for b in ends[1:])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero biases."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            nn.init.xavier_uniform_(weight)
            nn.init.zeros_(bias)

    def forward(
        self, x: Features, edge_index: Tensor | Edges, edge_weight: Tensor
    ) -> Tensor:
        """Logits n×c, O(nnz(X)·h + E·h); memory O(n·h + E).

        Args:
            x: X, sparse or dense.
            edge_index: Sources over targets (2×E), self-loops left out; or ``Edges``,
                where the same edges are used many times.
            edge_weight: Weights ≥ 0, (E,).
        """
        if isinstance(edge_index, Tensor):
            edge_index = Edges.of_index(edge_index, x.shape[0])
        graph = Propagation(edge_index, edge_weight, self.self_loops)
        return self.classify(x, graph)

    def classify(self, x: Features, graph: Operator) -> Tensor:
        """Logits on anything that multiplies n×h matrices."""
        return self.last(self.hidden(self.first(x), graph), graph)

    def first(self, x: Features) -> Tensor:
        """X W₁, n×h, the only part that knows no graph."""
        return drop_matmul(x, self.weights[0], self.input_dropout, self.training)

    def hidden(self, z: Tensor, graph: Operator) -> Tensor:
        """σ(Â X W₁ + b₁), n×h."""
        return F.relu(graph @ z + self.biases[0])

    def last(self, h: Tensor, graph: Operator) -> Tensor:
        """Â H W₂ + b₂, n×c."""
        z = dropout(h, self.dropout, self.training) @ self.weights[1]
        logits: Tensor = graph @ z + self.biases[1]
        return logits

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return [self.weights[0], self.biases[0]]
