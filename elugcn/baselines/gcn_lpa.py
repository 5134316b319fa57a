"""GCN-LPA: a GCN on edge weights that also have to propagate the labels well.

Wang and Leskovec, "Unifying Graph Convolutional Neural Networks and Label Propagation",
2020. Every edge and self-loop has a free weight w_ij:

    P_i· = softmax of w_i· over N(i),    H⁽ˡ⁺¹⁾ = σ(P H⁽ˡ⁾ W_l),    Q = Pᴷ Y
    L = CE(H⁽ᴸ⁾) + λ CE(Q)        both on the training nodes, Y their labels

As in the authors' code, the shares in Q are the logits of the second term
(``lpa_loss="share"`` takes them as probabilities), labels are not clamped between the
steps, and a label returns to its own node by the self-loop. All weights decay, also
those of edges. The authors' settings are for 60 % of the nodes labelled; the defaults,
for 20 labels per class, are those of our GCN with λ = 1.

Weights belong to the edges of the training graph. On any other graph all neighbours of
a node count the same, as when training starts. An epoch costs
O(nnz(X)·h + E·(L·h + K·c)) for E edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

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
from elugcn.engine import (
    CSR,
    Features,
    GraphInputs,
    dropout,
    dropout_linear,
    row_softmax,
)
from elugcn.methods.options import Count, Layers, NonNegative
from elugcn.methods.problem import GraphTraits, Problem, Shapes


class GCNLPAConfig(InputDropoutConfig):
    """Options of GCN-LPA."""

    num_layers: Layers = 2  # L
    lpa_steps: Count = 5  # K, steps of label propagation
    lambda_lpa: NonNegative = 1.0  # λ, the weight of the labels' term
    # Q as logits (``"softmax"``) or as probabilities (``"share"``)
    lpa_loss: Literal["softmax", "share"] = "softmax"


class GCNLPANetwork(nn.Module):
    """A GCN on the softmax of learned edge weights."""

    crow: Tensor
    col: Tensor

    def __init__(self, config: GCNLPAConfig, shapes: Shapes) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.input_dropout = config.first_dropout
        hidden = [config.hidden_channels] * (config.num_layers - 1)
        ends = [shapes.in_channels, *hidden, shapes.out_channels]
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(ends)
        )
        # The transpose of a symmetric matrix is no use: P is not symmetric.
        self.pattern = PerGraph(lambda adj: replace(adj, symmetric=False))
        none = torch.zeros(0, dtype=torch.int32)
        self._set_edges(none, none, torch.zeros(0))

    def learn_on(self, adj: CSR) -> None:
        """Give every stored entry of Â a weight."""
        bound = (6.0 / max(1, adj.nnz)) ** 0.5
        score = torch.empty(adj.nnz).uniform_(-bound, bound).to(adj.col.device)
        self._set_edges(adj.crow.clone(), adj.col.clone(), score)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Load the edges too, however many there are."""
        crow, col = state_dict.get("crow"), state_dict.get("col")
        if crow is not None and col is not None and col.shape != self.col.shape:
            self._set_edges(crow, col, torch.zeros(col.shape))
        return super().load_state_dict(state_dict, strict, assign)

    def _set_edges(self, crow: Tensor, col: Tensor, score: Tensor) -> None:
        self.register_buffer("crow", crow)
        self.register_buffer("col", col)
        self.score = nn.Parameter(score)

    def edges(self, inputs: GraphInputs) -> CSR:
        """P, n×n, with gradients to the scores; O(nnz)."""
        adj = self.pattern(inputs)
        known = torch.equal(self.crow, adj.crow) and torch.equal(self.col, adj.col)
        score = self.score if known else self.score.new_zeros(adj.nnz)
        return adj.with_values(row_softmax(adj, score))

    def convolve(self, x: Features, edges: CSR) -> Tensor:
        """Logits n×c for a given P, O(nnz(X)·h + L·nnz(Â)·h)."""
        p, p_input = (self.dropout, self.input_dropout) if self.training else (0.0, 0.0)
        first, *others = self.weights
        h = edges @ dropout_linear(x, first, p_input)
        for weight in others:
            h = edges @ (dropout(F.relu(h), p) @ weight)
        return h

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c."""
        return self.convolve(inputs.x, self.edges(inputs))


class GCNLPAObjective(BaselineObjective[GCNLPANetwork, GCNLPAConfig]):
    """Cross-entropy of the GCN and of the propagated labels."""

    def __init__(
        self, model: GCNLPANetwork, problem: Problem, config: GCNLPAConfig
    ) -> None:
        super().__init__(model, problem, config)
        model.learn_on(problem.adj)
        known = F.one_hot(problem.y.clamp(min=0), problem.num_classes).float()
        self.labels = known * problem.train_mask[:, None]
        self.class_weight = problem.class_weight

    def loss(self, epoch: int) -> Tensor:
        """L."""
        config, edges = self.config, self.model.edges(self.inputs)
        logits = self.model.convolve(self.inputs.x, edges)
        loss = self.cross_entropy(logits)
        if not config.lambda_lpa:
            return loss
        q = self.labels
        for _ in range(config.lpa_steps):
            q = edges @ q
        q = q.index_select(0, self.train_index)
        return loss + config.lambda_lpa * label_loss(
            q, self.target, config.lpa_loss, self.class_weight
        )


def label_loss(
    q: Tensor, target: Tensor, kind: str, class_weight: Tensor | None = None
) -> Tensor:
    """Cross-entropy of rows of Pᴷ Y, as logits or as shares that are scaled to 1."""
    if kind == "softmax":
        return F.cross_entropy(q, target, class_weight)
    # The share of a class that does not arrive is zero.
    log_share = (F.normalize(q, p=1.0, dim=1) + 1e-8).log()
    return F.nll_loss(log_share, target, class_weight)


class GCNLPA(Baseline[GCNLPAConfig]):
    """GCN-LPA."""

    name = "gcn-lpa"
    summary = "edge weights that propagate labels"
    Config = GCNLPAConfig
    Network = GCNLPANetwork
    Objective = GCNLPAObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Width, label propagation, dropout and training."""
        keep = traits.keeps_features
        return suggest(
            trial,
            traits,
            hidden_channels=(16, 32, 64),
            lpa_steps=(1, 2, 5),
            lambda_lpa=(0.5, 1.0, 2.0, 10.0),
            lpa_loss=("softmax", "share"),
            dropout=(0.2, 0.5, 0.8),
            input_dropout=(None, 0.0, 0.5) if keep else (None,),
            lr=(0.005, 0.01, 0.05),
            weight_decay=(0.0, 1e-4, 5e-4, 5e-3),
        )

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The defaults, and the authors' settings for Coauthor with a smaller lr."""
        theirs = {"hidden_channels": 32, "lpa_steps": 2, "lambda_lpa": 2.0}
        theirs |= {"dropout": 0.2, "weight_decay": 1e-4}
        if not traits.keeps_features:
            return [{}, theirs]
        plain = {"feature_norm": "none", "input_dropout": 0.0}
        return [{}, theirs, plain | {"dropout": 0.5, "weight_decay": 5e-3}]
