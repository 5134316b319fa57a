"""Those we are measured against: PyG's GCN and GAT, and the paper's dense graph.

The two models are written and trained as PyG's own examples do it: layers on an edge
list, the normalised adjacency cached, dense features, Adam. An epoch is a training step
and a forward pass that validates.
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

from elugcn.bench.base import HIDDEN
from elugcn.core.operators import ExplicitGraph, LowRankGraph
from elugcn.core.sparse import CSR
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_gcn import fit_elu_graph
from elugcn.methods.elu_objective import Objective
from elugcn.methods.neural import build
from elugcn.nn import GCN

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
        groups: list[dict[str, Any]] = [
            {"params": self.conv1.parameters(), "weight_decay": 5e-4},
            {"params": self.conv2.parameters(), "weight_decay": 0.0},
        ]
        return torch.optim.Adam(groups, lr=0.01)


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
    model: PyGGCN | PyGGAT, data: Data, x: Tensor | None = None
) -> Callable[[], float]:
    """A function that trains an epoch and returns the validation accuracy.

    Args:
        model: Trained in place.
        data: The graph.
        x: Its features, scaled and dense; by default the graph's own.
    """
    x = data.x if x is None else x
    optimizer = model.optimizer()

    def epoch() -> float:
        model.train()
        optimizer.zero_grad()
        out = model(x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = model(x, data.edge_index).argmax(dim=1) == data.y
        return float(right[data.val_mask].float().mean())

    return epoch


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


def keep_largest(s: Tensor, keep: float = 0.1) -> CSR:
    """The paper's threshold: all but the ``keep`` share of largest |entries| is zero.

    Selects without sorting and gives every n² array back as soon as it can.
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
    sparse = s.to_sparse_csr()
    return CSR(
        sparse.crow_indices().to(torch.int32),
        sparse.col_indices().to(torch.int32),
        sparse.values(),
        s.size(1),
    )


def dense_bytes(n: int, keep: float = 0.1) -> float:
    """Memory that ``keep_largest`` of an n×n matrix needs at its peak, about."""
    entries = float(n) * n
    # S and a copy of its size; then S, a mask, and the stored entries with their
    # 64-bit indices as they are made.
    return entries * max(8.0, 5.0 + keep * 40)


def fit_dense(problem: Problem, config: ELUGCNConfig, run: Run) -> Prediction:
    """The two-view pipeline on the explicit graph, every stage else as ours."""
    found = fit_elu_graph(problem, config, run)
    graph, utilization = found.graph, found.utilization
    assert isinstance(graph, LowRankGraph)
    assert utilization is not None
    with run.clock("graph"):
        explicit = ExplicitGraph(
            keep_largest(graph.left @ graph.right.T, config.keep), "paper"
        )
    ((_, member),) = config.members()
    run.reseed(2)
    with run.clock("train"):
        model, _ = build(problem, member, run.device)
        assert isinstance(model, GCN)
        objective = Objective(problem, member, model, explicit, utilization, None)
        trained = objective.train()
    return Prediction(trained.logits, trained.n_iter, seconds=run.seconds)
