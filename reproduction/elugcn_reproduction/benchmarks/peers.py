"""The contestants: PyG's GCN and GAT, and the paper's explicit graph.

The GCN and the GAT are written and trained as PyG's own examples do it: layers on an
edge list, the normalised adjacency cached, dense features, Adam. The fastest way that
PyG has for a GCN is a contestant too: sparse features, Â as a cached CSR tensor, fused
Adam. An epoch is a training step and a forward pass that validates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from elugcn.engine import CSR
from elugcn_reproduction.benchmarks.suite import HIDDEN

HEADS = 8


class PyGGCN(nn.Module):
    """Two ``GCNConv`` layers with cached normalisation."""

    def __init__(
        self, in_channels: int, out_channels: int, hidden: int = HIDDEN
    ) -> None:
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden, cached=True)
        self.conv2 = GCNConv(hidden, out_channels, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits, n×c."""
        x = F.dropout(x, 0.5, self.training)
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, 0.5, self.training)
        out: Tensor = self.conv2(x, edge_index)
        return out

    def optimizer(self) -> torch.optim.Optimizer:
        """Adam, with weight decay on the first layer."""
        return torch.optim.Adam(_groups(self.conv1, self.conv2), lr=0.01)


class PyGSparseGCN(nn.Module):
    """The same GCN in the fastest way that PyG and PyTorch have for it.

    Â is normalised once and passed as a ``torch.sparse_csr`` tensor to layers that do
    not normalise. X is a ``torch.sparse_csr`` tensor where most of it is zero; dropout
    is on its stored values. Adam is fused.
    """

    def __init__(
        self, in_channels: int, out_channels: int, hidden: int = HIDDEN
    ) -> None:
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden, normalize=False)
        self.conv2 = GCNConv(hidden, out_channels, normalize=False)

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        """Logits, n×c."""
        if self.training and x.layout == torch.sparse_csr:
            values = F.dropout(x.values(), 0.5)
            x = torch.sparse_csr_tensor(
                x.crow_indices(), x.col_indices(), values, x.shape,
                check_invariants=False,
            )  # fmt: skip
        else:
            x = F.dropout(x, 0.5, self.training)
        x = F.relu(self.conv1(x, adj))
        x = F.dropout(x, 0.5, self.training)
        out: Tensor = self.conv2(x, adj)
        return out

    def optimizer(self) -> torch.optim.Optimizer:
        """Fused Adam, with weight decay on the first layer."""
        return torch.optim.Adam(_groups(self.conv1, self.conv2), lr=0.01, fused=True)


class PyGGAT(nn.Module):
    """Two ``GATConv`` layers, eight heads in the first."""

    def __init__(
        self, in_channels: int, out_channels: int, hidden: int = HIDDEN
    ) -> None:
        super().__init__()
        width = hidden // HEADS
        self.conv1 = GATConv(in_channels, width, HEADS, dropout=0.6)
        self.conv2 = GATConv(hidden, out_channels, 1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits, n×c."""
        x = F.dropout(x, 0.6, self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, 0.6, self.training)
        out: Tensor = self.conv2(x, edge_index)
        return out

    def optimizer(self) -> torch.optim.Optimizer:
        """Adam, with weight decay on everything."""
        return torch.optim.Adam(self.parameters(), lr=0.005, weight_decay=5e-4)


def pyg_epochs(
    model: PyGGCN | PyGSparseGCN | PyGGAT, data: Data, x: Tensor, graph: Tensor
) -> Callable[[], float]:
    """A function that trains an epoch and returns the validation accuracy.

    Args:
        model: Trained in place.
        data: Labels and masks.
        x: Scaled features.
        graph: ``edge_index``, or Â for ``PyGSparseGCN``.
    """
    optimizer = model.optimizer()

    def epoch() -> float:
        model.train()
        optimizer.zero_grad()
        out = model(x, graph)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(x, graph).argmax(dim=1) == data.y
        return float(right[data.val_mask].float().mean())

    return epoch


def normalized_csr(data: Data) -> Tensor:
    """Â with self-loops as a ``torch.sparse_csr`` tensor, by PyG's own functions."""
    n = int(data.num_nodes or 0)
    edges, weight = gcn_norm(data.edge_index, None, n)
    # PyG multiplies by the transpose; Â of these graphs is symmetric.
    adj: Tensor = to_torch_csr_tensor(edges, weight, size=(n, n))
    return adj


def sparse_csr(x: CSR) -> Tensor:
    """Features as PyTorch's own sparse tensor."""
    return torch.sparse_csr_tensor(
        x.crow, x.col, x.value, size=x.shape, check_invariants=False
    )


def dense_graph(h: Tensor, q: Tensor, beta: float) -> Tensor:
    """S* by eq. 11 as it stands: all n² entries, O(n²·c) time and O(n²) memory.

    Args:
        h: H, n×c.
        q: Q⁽ᵏ⁾, n×c.
        beta: β.
    """
    gram = h.T @ h
    eye = torch.eye(h.size(1), dtype=h.dtype)
    p = h.T / beta - gram @ torch.linalg.inv(eye + gram / beta) @ h.T / beta**2
    s: Tensor = q @ p
    return s


def keep_largest(s: Tensor, keep: float = 0.1) -> Tensor:
    """The paper's threshold: all but the ``keep`` share of largest |entries| is zero.

    Selects without sorting and frees every n² array as soon as it can.
    """
    size = s.abs()
    entries = size.numpy().reshape(-1)
    # The slack makes 0.9 of 100 the 90th entry in spite of rounding.
    rank = max(1, math.ceil((1.0 - keep) * entries.size - 1e-6)) - 1
    entries.partition(rank)
    threshold = entries[rank]
    del size, entries
    # An entry equal to the threshold stays.
    s = F.hardshrink(s, float(np.nextafter(threshold, threshold.dtype.type(-1))))
    return s.to_sparse_csr()


def dense_bytes(n: int, keep: float = 0.1) -> float:
    """Memory that ``keep_largest`` of an n×n matrix needs at its peak, about."""
    # S and a copy of its size; then S, a mask, and the stored entries with their 64-bit
    # indices as they are made.
    return float(n) * n * max(8.0, 5.0 + keep * 40)


def _groups(first: nn.Module, second: nn.Module) -> list[dict[str, Any]]:
    return [
        {"params": first.parameters(), "weight_decay": 5e-4},
        {"params": second.parameters(), "weight_decay": 0.0},
    ]
