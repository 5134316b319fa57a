"""NeuralSparse: each node keeps the k neighbours that help the task.

Zheng et al., "Robust Graph Representation Learning via Neural Sparsification", ICML
2020. An MLP scores every edge by the features of its ends. Node i draws k of its
neighbours without replacement, in proportion to the softmax of its scores s_i·:

    s_ij = wᵀ σ(U x_i + V x_j + b) + c
    the k largest of s_ij + g_ij,  g from Gumbel(0, 1)
    y_ij = softmax over the kept j of (s_ij + g_ij) / τ,   w_ij = y_ij · (number kept)

A node with k neighbours or fewer keeps all. The kept edges, with a self-loop of weight
1 at each node, carry a two-layer GCN (``edges``). τ = max(0.05, exp(−rate ·
epoch)) falls every ``refresh`` epochs. In evaluation g = 0.

The authors published no code. Where the paper leaves room: weights of a node sum to the
number of edges kept, so that its own features do not outweigh all of its neighbours;
scores look at features, not at the edges' own weights. In the public re-implementation
evaluation draws, too, and a node gathers from those that chose it; it has a third,
dense layer, a learning rate of 1e-3, a dropout of 0.5 and 3000 epochs. An epoch costs
O(nnz(X)·h + E·s + n·k·h) for a scorer of width s.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.baselines.common import (
    Baseline,
    BaselineObjective,
    InputDropoutConfig,
    PerGraph,
    Starts,
    suggest,
)
from elugcn.baselines.edges import EdgeScorer, Propagation, WeightedGCN, off_diagonal
from elugcn.engine import (
    CSR,
    Features,
    GraphInputs,
    dropout,
    dropout_linear,
    row_softmax,
    row_topk,
    some_entries,
)
from elugcn.methods.options import Count, NonNegative
from elugcn.methods.problem import GraphTraits, Shapes

COLDEST = 0.05
# Edges scored at once where no gradient is needed, so that they stay in the cache.
BLOCK = 8192


class NeuralSparseConfig(InputDropoutConfig):
    """Options of NeuralSparse."""

    k: Count = 5  # Edges that a node keeps
    scorer_channels: Count = 32  # Width of the scorer
    rate: NonNegative = 1e-3  # How fast the temperature falls
    refresh: Count = 50  # Epochs between two temperatures
    hidden_channels: Count = 128
    weight_decay: NonNegative = 1e-3

    def temperature(self, epoch: int) -> float:
        """τ of an epoch."""
        return max(COLDEST, math.exp(-self.rate * (epoch - epoch % self.refresh)))


class PairScorer(EdgeScorer):
    """The score s_ij: hidden units see both ends."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__(in_channels, channels, channels, 2 * in_channels)

    def ends(self, x: Features) -> tuple[Tensor, Tensor]:
        """What each node contributes as receiver and as sender, O(nnz(X)·s)."""
        receiver, sender = dropout_linear(x, self.weight, 0.0).chunk(2, dim=1)
        return receiver + self.bias, sender.contiguous()

    def forward(self, ends: tuple[Tensor, Tensor], row: Tensor, col: Tensor) -> Tensor:
        """Scores of the edges from ``col`` to ``row``, O(E·s)."""
        receiver, sender = ends
        pair = receiver.index_select(0, row) + sender.index_select(0, col)
        scores: Tensor = F.relu(pair) @ self.head + self.offset
        return scores


class NeuralSparseNetwork(nn.Module):
    """A scorer of edges, and a GCN on those that are kept."""

    temperature: Tensor

    def __init__(self, config: NeuralSparseConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config = config
        self.scorer = PairScorer(shapes.in_channels, config.scorer_channels)
        self.gcn = WeightedGCN(config, shapes, 0.0)
        # A buffer, so that it is selected, saved and restored with the weights.
        self.register_buffer("temperature", torch.ones(()))
        self.pattern = PerGraph(off_diagonal)

    def sparsify(self, x: Features, pattern: CSR) -> tuple[CSR, Tensor]:
        """The kept edges and their weights; drawn anew in training."""
        ends = self.scorer.ends(x)
        with torch.no_grad():
            at = (torch.split(i, BLOCK) for i in (pattern.row, pattern.col))
            scores = torch.cat([self.scorer(ends, *i) for i in zip(*at, strict=True)])
        noise = torch.zeros_like(scores)
        if self.training:
            # −log of an exponential variable; the smallest float keeps it finite.
            tiny = torch.finfo(noise.dtype).tiny
            noise = -noise.exponential_().clamp_(min=tiny).log_()
        places = row_topk(pattern, scores + noise, self.config.k)
        kept = some_entries(pattern, places)
        # The same scores with gradients, of the kept edges alone.
        some = self.scorer(ends, kept.row, kept.col) + noise[places]
        share = row_softmax(kept, some / self.temperature)
        count = (kept.crow[1:] - kept.crow[:-1]).to(share.dtype)
        return kept, share * count.index_select(0, kept.row)

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c; the neighbours of a node are the entries of its row of Â."""
        # One mask for scorer and GCN: to draw it costs as much as a product.
        x = dropout(inputs.x, self.config.first_dropout if self.training else 0.0)
        kept, weight = self.sparsify(x, self.pattern(inputs))
        logits: Tensor = self.gcn(x, Propagation(kept, weight, self.config.self_loops))
        return logits


class NeuralSparseObjective(BaselineObjective[NeuralSparseNetwork, NeuralSparseConfig]):
    """Cross-entropy at a temperature that falls."""

    def loss(self, epoch: int) -> Tensor:
        """Cross-entropy on the training nodes."""
        self.model.temperature.fill_(self.config.temperature(epoch))
        return super().loss(epoch)


class NeuralSparse(Baseline[NeuralSparseConfig]):
    """NeuralSparse with a GCN."""

    name = "neuralsparse"
    summary = "k learned edges per node"
    Config = NeuralSparseConfig
    Network = NeuralSparseNetwork
    Objective = NeuralSparseObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Edges per node, width, temperature, dropout and training."""
        dense = traits.is_dense
        values: dict[str, Any] = {
            "k": (5, 10, 15, 30, 40) if dense else (3, 5, 10, 15),
            "hidden_channels": (64, 128),
            "rate": (1e-4, 1e-3, 1e-2),
            "dropout": (0.5, 0.7, 0.8),
            "lr": (0.005, 0.01),
            "weight_decay": (0.0, 5e-4, 1e-3, 5e-3) if dense else (5e-4, 1e-3),
        }
        if dense:
            values["input_dropout"] = (None, 0.0, 0.5, 0.8)
        return suggest(trial, traits, **values)

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings for Cora, or more edges where nodes have many."""
        if traits.is_dense:
            more = {"k": 30, "dropout": 0.5, "weight_decay": 5e-4}
            return [{"k": 15, "input_dropout": 0.8}, more | {"input_dropout": 0.5}]
        return [{}, {"dropout": 0.5}]
