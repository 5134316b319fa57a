"""Edges with learned weights: a GCN over them, and the parameters of their scores.

    Â = D^-½ (W + I) D^-½,   D_i = 1 + Σ_j w_ij,   Z = Â σ(Â X W₁ + b₁) W₂ + b₂

Row i of W holds what node i receives. In a directed graph both sides are divided by the
degree of the receiving node, as in PyG's ``GCNConv``. Â is never formed: degrees scale
the rows before and after the product with W. Gradients reach every edge weight.
"""

from __future__ import annotations

from copy import copy
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.baselines.common import InputDropoutConfig
from elugcn.engine import CSR, Features, dropout, dropout_linear, some_entries
from elugcn.methods.problem import Shapes


class Operator(Protocol):
    """Anything that multiplies an n×h matrix."""

    def __matmul__(self, z: Tensor, /) -> Tensor:
        """The product."""


def off_diagonal(adj: CSR) -> CSR:
    """The edges of a matrix without its diagonal, as a pattern; O(nnz)."""
    return some_entries(adj, (adj.row != adj.col).nonzero().squeeze(1))


class Propagation:
    """Â of weights ≥ 0 of the entries of a pattern: ``matrix`` is W, ``scale`` D^-½.

    Without self-loops, I, D may be small; D^-½ is at most 10.
    """

    def __init__(self, pattern: CSR, weight: Tensor, self_loops: bool = True) -> None:
        self.matrix = pattern.with_values(weight)
        self.self_loops = self_loops
        degree = weight.new_full((pattern.n_cols,), float(self_loops))
        degree = degree.index_add(0, pattern.row, weight)
        self.scale = degree.clamp(min=0.01).rsqrt()[:, None]

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product Â Z, O(E·h)."""
        z = z * self.scale
        out = self.matrix @ z
        return (out + z if self.self_loops else out) * self.scale

    def entries(self, places: Tensor, pattern: CSR) -> Propagation:
        """Only the weights at some places, with a pattern of their own."""
        some = copy(self)
        some.matrix = pattern.with_values(self.matrix.value.index_select(0, places))
        return some


class EdgeScorer(nn.Module):
    """The parameters of an MLP on the two ends of an edge; see its subclasses.

    An MLP on both ends begins with a linear map, the sum of one map per end: nodes are
    projected once. Initial weights are Glorot's for the one map.
    """

    def __init__(self, in_channels: int, channels: int, width: int, fan: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, 2 * channels))
        self.bias = nn.Parameter(torch.zeros(width))
        self.head = nn.Parameter(torch.empty(width))
        self.offset = nn.Parameter(torch.zeros(1))
        for parameter, size in ((self.weight, fan + channels), (self.head, width + 1)):
            limit = (6 / size) ** 0.5
            nn.init.uniform_(parameter, -limit, limit)


class WeightedGCN(nn.Module):
    """A GCN of two layers on any propagation."""

    def __init__(
        self, config: InputDropoutConfig, shapes: Shapes, input_dropout: float
    ) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.input_dropout = input_dropout
        d, h, c = shapes.in_channels, config.hidden_channels, shapes.out_channels
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(ends)) for ends in ((d, h), (h, c))
        )
        self.biases = nn.ParameterList(torch.zeros(width) for width in (h, c))

    def forward(self, x: Features, graph: Operator) -> Tensor:
        """Logits n×c, O(nnz(X)·h + E·h)."""
        return self.last(self.hidden(self.first(x), graph), graph)

    def first(self, x: Features) -> Tensor:
        """The product drop(X) W₁, n×h: the part that does not depend on the graph."""
        p = self.input_dropout if self.training else 0.0
        return dropout_linear(x, self.weights[0], p)

    def hidden(self, z: Tensor, graph: Operator) -> Tensor:
        """σ(Â Z + b₁), n×h."""
        return F.relu(graph @ z + self.biases[0])

    def last(self, h: Tensor, graph: Operator) -> Tensor:
        """Â drop(H) W₂ + b₂, n×c."""
        z = dropout(h, self.dropout if self.training else 0.0) @ self.weights[1]
        logits: Tensor = graph @ z + self.biases[1]
        return logits
