"""A GCN and label propagation on one graph of learned edge weights: GCN-LPA.

    P_i· = softmax of w_i· over N(i),    one free w_ij for every edge and self-loop
    H⁽ˡ⁺¹⁾ = σ(P H⁽ˡ⁾ W_l)               the GCN, without biases
    Q⁽ᵏ⁺¹⁾ = P Q⁽ᵏ⁾                       label propagation from the training labels

(Wang and Leskovec, "Unifying Graph Convolutional Neural Networks and Label
Propagation", 2020.) Edges along which labels travel well are edges along which the GCN
should listen.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import Weighted, row_softmax
from elugcn.core.propagation import normalize_rows
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.front import FirstProduct
from elugcn.nn.layers import Features


class GCNLPA(nn.Module):
    """A GCN on learned edge weights.

    The weights belong to the edges of one graph. On any other all neighbours of a node
    count the same, which is where training starts from.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layers.
        out_channels: c.
        dropout: Probability, before every layer.
        input_dropout: Of X; None: as ``dropout``.
        num_layers: L, at least 1.
        num_nodes: Of the graph whose edges are learned.
        num_entries: Its edges in both directions, and self-loops: what Â stores.
    """

    crow: Tensor
    col: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        num_layers: int = 2,
        num_nodes: int = 0,
        num_entries: int = 0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self._first = FirstProduct()
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths)
        )
        bound = (6.0 / max(1, num_entries)) ** 0.5
        self.score = nn.Parameter(torch.empty(num_entries).uniform_(-bound, bound))
        self.register_buffer("crow", torch.zeros(num_nodes + 1, dtype=torch.int32))
        self.register_buffer("col", torch.zeros(num_entries, dtype=torch.int32))

    def learn_on(self, adj: CSR) -> None:
        """Say whose edges the weights are."""
        self.crow, self.col = adj.crow.clone(), adj.col.clone()

    def knows(self, adj: CSR) -> bool:
        """Whether this is the graph whose edges were learned."""
        return torch.equal(self.crow, adj.crow) and torch.equal(self.col, adj.col)

    def edges(self, adj: CSR) -> Weighted:
        """P, O(nnz): what both the GCN and the labels travel by."""
        known = self.knows(adj)
        score = self.score if known else self.score.new_zeros(adj.nnz)
        return Weighted(adj, row_softmax(adj, score))

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·h + L·nnz(Â)·h)."""
        return self.convolve(x, self.edges(adj))

    def convolve(self, x: Features, edges: Weighted) -> Tensor:
        """Logits n×c for edges that are there already."""
        p = self.input_dropout
        h = edges @ self._first.dropped(x, self.weights[0], p, self.training)
        for weight in list(self.weights)[1:]:
            h = dropout(F.relu(h), self.dropout, self.training)
            h = edges @ (h @ weight)
        return h

    def first_layer(self) -> list[nn.Parameter]:
        """W₁."""
        return [self.weights[0]]


def spread(edges: Weighted, labels: Tensor, steps: int) -> Tensor:
    """Pᴷ Y, n×c, O(K·nnz·c); gradients reach the weights of the edges.

    Training rows are not put back after a step: they are what the loss looks at.
    """
    for _ in range(steps):
        labels = edges @ labels
    return labels


def label_loss(q: Tensor, nodes: Tensor, target: Tensor, kind: str) -> Tensor:
    """Cross-entropy of propagated labels on the training nodes, O(|L|·c).

    Args:
        q: Pᴷ Y, n×c.
        nodes: Training nodes.
        target: Their classes.
        kind: ``"softmax"``: of the softmax of q, whose entries are shares in [0, 1];
            ``"share"``: of the shares themselves, scaled to sum 1.
    """
    if kind == "softmax":
        return F.cross_entropy(q[nodes], target)
    # A class that does not arrive has a share of zero.
    return F.nll_loss((normalize_rows(q[nodes]) + 1e-8).log(), target)
