"""Random propagation (GRAND, Feng et al., NeurIPS 2020): an MLP behind Π.

    Π = (I + Â + … + Âᴷ) / (K + 1)        ``MeanPropagation``, in ``GraphInputs``
    Z = σ(Π drop(X) W₁) W₂

In training, whole rows of X W₁ are dropped before they are propagated, in several
draws whose outputs should agree. Multiplying by W₁ first is cheaper, since h columns
cost less than d, and gives the same values: Π acts on rows and W₁ on columns.

``SampledPropagation`` propagates X itself, for a few nodes at a time. That is the
order of the paper, in which norms and dropout come after Π.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from elugcn.engine import (
    CSR,
    Features,
    GraphInputs,
    MeanPropagation,
    Views,
    dropout,
    propagate_linear,
    relu_dropout_linear_,
    spmm,
)
from elugcn.models.two_view_gcn import TwoViewGCN


class RandomPropagation(TwoViewGCN):
    """The two layers of ``TwoViewGCN`` behind Π; S* replaces Π in the ELU view.

    In training a node's row of X W₁ is dropped with probability ``drop_node``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        drop_node: float = 0.5,
    ) -> None:
        sizes = (in_channels, hidden_channels, out_channels)
        super().__init__(*sizes, dropout, input_dropout)
        self.drop_node = drop_node

    def views(self, g: GraphInputs, draws: int = 1) -> Views:
        """Logits n×c for each draw, then for the ELU view if ``g`` has one.

        Cost:
            O(nnz(X)·h + draws·K·nnz(Â)·h).
        """
        p_input, p = (self.input_dropout, self.dropout) if self.training else (0.0, 0.0)
        drop_rows = self.drop_node if self.training else 0.0
        Z = propagate_linear(g, self.W1, p_input, drop_rows=drop_rows, draws=draws)
        Z = relu_dropout_linear_(Z, self.b1, self.W2, p)
        return spmm(g.layer(1), Z, self.b2)  # layer 1 does not propagate


class SampledPropagation(nn.Module):
    """Z = drop(N₂(σ(drop(N₁(x̄)) W₁ + b₁))) W₂ + b₂ for a row x̄ of X̄ = Π X.

    N₁ and N₂ are batch norms or nothing. For rows of X̄ that are known it is an MLP.
    For a whole graph X̄ is never formed: with fixed statistics N₁ is a scale s and a
    shift t of the columns, and N₁(X̄) W₁ = Π (X diag(s) W₁) + t W₁.

    Args:
        in_channels: d.
        hidden_channels: h.
        out_channels: c.
        dropout: Of the hidden layer.
        input_dropout: Of X̄, where it differs.
        norm: ``"none"``, or ``"batch"`` before both dropouts.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        norm: str = "none",
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.inner = nn.Linear(in_channels, hidden_channels)
        self.outer = nn.Linear(hidden_channels, out_channels)
        widths = (in_channels, hidden_channels) if norm == "batch" else ()
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths)

    def rows(self, x: Tensor) -> Tensor:
        """Logits m×c for m rows of X̄, m×d."""
        p_input, p = (self.input_dropout, self.dropout) if self.training else (0.0, 0.0)
        if self.norms:
            x = self.norms[0](x)
        h = F.relu(self.inner(dropout(x, p_input)))
        if self.norms:
            h = self.norms[1](h)
        out: Tensor = self.outer(dropout(h, p))
        return out

    def forward(self, g: GraphInputs) -> Tensor:
        """Logits n×c in evaluation mode, O(nnz(X)·h + K·nnz(Â)·h)."""
        weight: Tensor = self.inner.weight.T
        bias: Tensor = self.inner.bias
        if self.norms:
            scale, shift = _scale_and_shift(self.norms[0])
            weight, bias = weight * scale.unsqueeze(1), bias + shift @ weight
        h = F.relu(spmm(g.layer(0), g.x @ weight, bias))
        if self.norms:
            scale, shift = _scale_and_shift(self.norms[1])
            h = h * scale + shift
        out: Tensor = self.outer(h)
        return out

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return list(self.inner.parameters())


def _scale_and_shift(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """A batch norm with its running statistics, as x·s + t."""
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return scale, norm.bias - norm.running_mean * scale


# Columns of X̄ that are propagated at once.
_COLUMNS = 64


def propagated_rows(x: Features, mean: MeanPropagation, nodes: Tensor) -> Tensor:
    """Rows of X̄ = Π X, m×d, some columns at a time: never n×d."""
    out = torch.empty(nodes.numel(), x.shape[1], device=nodes.device)
    for columns in _blocks(x.shape[1], _COLUMNS):
        if isinstance(x, Tensor):
            part = x[:, columns]
        else:
            width = columns.stop - columns.start
            one = torch.zeros(x.shape[1], width, device=nodes.device)
            one[columns] = torch.eye(width, device=nodes.device)
            part = x @ one
        out[:, columns] = (mean @ part)[nodes]
    return out


# Rows of Π that are computed at once, and the share of 1/k below which entries are let
# go on the way: a hub would drag its thousands of neighbours along.
_ROWS = 1024
_NEGLIGIBLE = 0.05


def topk_propagation(
    adj: CSR, order: int, k: int, negligible: float = _NEGLIGIBLE
) -> tuple[Tensor, Tensor]:
    """Columns and values of the k largest entries of every row of Π, each n×k.

    Most of the weight of a row is in a few entries (GRAND+, Feng et al., WWW 2022).
    Rows with fewer entries are filled up with zeros at column 0.

    Args:
        adj: Â, n×n, without negative entries.
        order: K.
        k: Entries kept per row.
        negligible: Entries of a power of Â below ``negligible / k`` are let go before
            the next product; 0 keeps all.

    Cost:
        O(n·K·m·deg) time for m ≤ k/negligible entries per row, O(n·k) memory.
    """
    n = adj.shape[0]
    k = min(k, n)
    a = sp.csr_array(adj.to_scipy())
    column, value = np.zeros((n, k), np.int64), np.zeros((n, k), np.float32)
    for rows in _blocks(n, _ROWS):
        size = rows.stop - rows.start
        walk = sp.eye_array(size, n, k=rows.start, format="csr", dtype=np.float32)
        total = walk
        for _ in range(order):
            walk = walk @ a
            walk.data[walk.data < negligible / k] = 0.0
            walk.eliminate_zeros()
            total = total + walk
        row, at, rank, entry = _ranked(sp.csr_array(total))
        kept = rank < k
        column[rows.start + row[kept], rank[kept]] = at[kept]
        value[rows.start + row[kept], rank[kept]] = entry[kept] / (order + 1)
    device = adj.value.device
    return torch.from_numpy(column).to(device), torch.from_numpy(value).to(device)


def _ranked(matrix: sp.csr_array) -> tuple[NDArray[Any], ...]:
    """Row, column, rank within the row and value of every entry."""
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    # Equal entries by column, so that the result does not depend on the blocks.
    order = np.lexsort((matrix.indices, -matrix.data, row))
    rank = np.arange(matrix.nnz) - matrix.indptr[row]
    return row, matrix.indices[order], rank, matrix.data[order]


def _blocks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
