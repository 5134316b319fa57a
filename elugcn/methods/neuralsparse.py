"""NeuralSparse: each node keeps the k neighbours that help the task.

Zheng et al., "Robust Graph Representation Learning via Neural Sparsification", ICML
2020. An MLP scores every edge by the features of its ends, and node i draws k of its
neighbours without replacement, in proportion to π_i· = softmax of the scores s_i·:

    the k largest of s_ij + g_ij,  g from Gumbel(0, 1)
    y_ij = softmax over the kept j of (s_ij + g_ij) / τ,   w_ij = y_ij · (number kept)

A node with k neighbours or fewer keeps all. The kept edges, with a self-loop of weight
1 at each node, carry a two-layer GCN (``elugcn.nn.weighted``) through which
cross-entropy trains both. τ = max(0.05, exp(−rate · epoch)) is lowered every
``refresh`` epochs. Evaluation draws nothing: g = 0, so a node keeps its k largest π.

Choices where the paper leaves room, or where its public re-implementation differs:
the softmax of a node is over what it kept and its weights sum to their number, as k
draws of one edge each would, so that a node's own features do not outweigh all of its
neighbours; scores look at features and not at the edges' own weights; noise is drawn
in training only, exactly k edges stay, and a node gathers from those it chose. The
learning rate (1e-3 there) and the dropout (0.5) are larger by default, epochs fewer
(3000 there), and the re-implementation has a dense layer behind the two that propagate.

An epoch costs O(nnz(X)·h + E·s) for a scorer of width s, and gradients only flow along
kept edges: O(n·k·(s + h)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import row_softmax
from elugcn.core.random import dropout
from elugcn.core.segments import segment_topk
from elugcn.core.sparse import CSR
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network, widths
from elugcn.nn.edges import EdgeScorer
from elugcn.nn.layers import Features
from elugcn.nn.weighted import Edges, WeightedGCN

COLDEST = 0.05


@dataclass(frozen=True, kw_only=True)
class NeuralSparseConfig(NetworkConfig):
    """How many edges a node keeps, who scores them, how fast the draws harden."""

    k: int = 5
    scorer_channels: int = 32
    rate: float = 1e-3
    refresh: int = 50
    hidden_channels: int = 128
    weight_decay: float = 1e-3
    input_dropout: float | None = None  # None: as dropout

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "k", "scorer_channels", "refresh")
        check_least(self, 0, "rate")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")

    def temperature(self, epoch: int) -> float:
        """τ of an epoch."""
        return max(COLDEST, math.exp(-self.rate * (epoch - epoch % self.refresh)))


def gumbel(like: Tensor) -> Tensor:
    """Standard Gumbel noise, from torch's default generator."""
    # −log of a standard exponential; the smallest float keeps it finite.
    tiny = torch.finfo(like.dtype).tiny
    return -torch.empty_like(like).exponential_().clamp_(min=tiny).log()


class NeuralSparse(nn.Module):
    """A scorer of edges and a GCN on those that are kept.

    Args:
        in_channels: d.
        hidden_channels: Width of the GCN.
        out_channels: c.
        dropout: Probability, on X, for scorer and GCN, and on the hidden units.
        k: Edges a node keeps.
        scorer_channels: Width of the scorer.
        self_loops: Each node keeps itself too, with weight 1.
        input_dropout: Of X, where it differs from ``dropout``.
    """

    temperature: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float,
        k: int,
        scorer_channels: int,
        self_loops: bool = True,
        input_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.k = k
        self.dropout = dropout if input_dropout is None else input_dropout
        self.scorer = EdgeScorer(in_channels, scorer_channels)
        widths = in_channels, hidden_channels, out_channels
        self.gcn = WeightedGCN(*widths, dropout, 0.0, self_loops)
        # A buffer, so that it is chosen, saved and restored with the weights.
        self.register_buffer("temperature", torch.ones(()))

    def sparsify(self, x: Features, edges: Edges) -> tuple[Edges, Tensor]:
        """The kept edges and their weights; a fresh draw in training."""
        sides = self.scorer.sides(x)
        everywhere = self.scorer.all_scores(sides, edges.pattern)
        noise = gumbel(everywhere) if self.training else torch.zeros_like(everywhere)
        places = segment_topk(everywhere + noise, edges.pattern.crow, self.k)
        kept = edges.kept(places)
        at = kept.pattern
        scores = self.scorer.scores(sides, at.row, at.col) + noise[places]
        share = row_softmax(at, scores / self.temperature)
        count = (at.crow[1:] - at.crow[:-1]).to(share.dtype)
        return kept, share * count.index_select(0, at.row)

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c; the neighbours of a node are the entries of its row of Â."""
        # One mask for both: on dense X drawing it costs as much as multiplying.
        p, training = self.dropout, self.training
        x = x.dropout(p, training) if isinstance(x, CSR) else dropout(x, p, training)
        kept, weight = self.sparsify(x, Edges.of(adj))
        logits: Tensor = self.gcn(x, kept, weight)
        return logits

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return self.gcn.first_layer()


class NeuralSparsePredictor(NetworkPredictor):
    """A trained scorer and GCN with the scaling of their features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"NeuralSparse": NeuralSparse}


def fit_neuralsparse(
    problem: Problem, config: NeuralSparseConfig, run: Run
) -> Prediction:
    """Train the scorer through the GCN, with cross-entropy on the training nodes."""
    facts = widths(problem, config) | {
        "k": config.k,
        "scorer_channels": config.scorer_channels,
        "self_loops": config.self_loops,
        "input_dropout": config.input_dropout,
    }
    nodes = problem.train_index
    target = problem.y[nodes]
    run.reseed()
    with run.clock("train"):
        model = NeuralSparse(**facts).to(run.device)

        def loss(epoch: int) -> Tensor:
            model.temperature.fill_(config.temperature(epoch))
            logits: Tensor = model(problem.x, problem.adj)
            return F.cross_entropy(logits[nodes], target)

        trained = train_network(
            problem,
            config,
            run,
            model,
            "NeuralSparse",
            loss=loss,
        )
    predictor = NeuralSparsePredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
