"""PTDNet: each layer learns which edges to drop.

Luo et al., "Learning to Drop: Robust Graph Neural Network via Topological Denoising",
WSDM 2021. Layer l scores every edge by the layer's input h and passes the score α
through a gate that is often exactly 0 or 1 (hard concrete):

    α_ij = wᵀ σ(U h_i + b) + vᵀ σ(V h_j + d) + c
    s_ij = σ((log ε − log(1 − ε) + α_ij) / τ), ε uniform;  in evaluation s_ij = σ(α_ij)
    m_ij = clip(s_ij (ζ − γ) + γ, 0, 1)

A layer of the GCN propagates by the gated edges and a self-loop of weight 1 at each
node. Every epoch draws ``draws`` times, and with logits Z_d of mean Z:

    L = CE(Z) + λ_edges Σ_d Σ_l mean_e σ(α_e − τ log(−γ/ζ))    few open gates
        + λ_rank Σ_l σ₁(M_l)                                   gated graphs of low rank
        + λ_cons ½ Σ_d mean_i ‖Z_d,i − Z_i‖²                   draws that agree

with τ = max(0.05, 2 · 0.99^epoch).

Differences from the public code: γ = −0.1 and ζ = 1.1, because the code's γ = 0 makes
the second term a constant without a gradient; the last term is a mean over nodes where
the code has a sum (0.01 there is 27 here, for Cora's 2708 nodes), so that its weight
means the same on every graph; layers have biases; scores look at features and hidden
units, not at the edges' own weights. The code's defaults are 0.1, 0.01 and 27 for the
weights of the terms, lr 0.001, 256 hidden units, no dropout and 1000 epochs.

Without noise a gate with α below log(−γ/ζ) is shut; with noise it is often open, so
evaluation can see far fewer edges than training. Dropout on X is drawn once per epoch,
that of the hidden layer in every pass. An epoch costs O(nnz(X)·h + draws·E·h) time and
O(draws·(E + n·h)) memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from elugcn.baselines.common import (
    Baseline,
    BaselineObjective,
    InputDropoutConfig,
    PerGraph,
    Starts,
    suggest_learned,
)
from elugcn.baselines.edges import EdgeScorer, Propagation, WeightedGCN, off_diagonal
from elugcn.engine import CSR, Features, GraphInputs, dropout_linear
from elugcn.methods.options import Count, NonNegative, Probability
from elugcn.methods.problem import GraphTraits, Problem, Shapes

HOTTEST, COLDEST = 2.0, 0.05


class PTDNetConfig(InputDropoutConfig):
    """Options of PTDNet."""

    scorer_channels: Count = 16  # Width of the scorers
    draws: Count = 3  # Passes per epoch
    lambda_edges: NonNegative = 0.01  # Weight of the term of open gates
    lambda_rank: NonNegative = 1e-3  # Weight of the largest singular values
    lambda_cons: NonNegative = 1.0  # Weight of the term of draws that agree
    # γ, how far gates reach below 0 before they are clipped
    gamma: float = Field(-0.1, lt=0)
    zeta: float = Field(1.1, gt=1)  # ζ, how far above 1
    hidden_channels: Count = 128
    dropout: Probability = 0.5

    def temperature(self, epoch: int) -> float:
        """τ of an epoch."""
        return max(COLDEST, HOTTEST * 0.99**epoch)


class EndScorer(EdgeScorer):
    """The score α_ij: hidden units see one end, so an edge holds one number."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__(in_channels, channels, 2 * channels, in_channels)

    def forward(self, x: Features, pattern: CSR) -> Tensor:
        """Scores of all stored entries, O(nnz(X)·s + E)."""
        z = F.relu(dropout_linear(x, self.weight, 0.0) + self.bias) * self.head
        receiver, sender = (part.sum(dim=1) for part in z.chunk(2, dim=1))
        receiver = (receiver + self.offset).index_select(0, pattern.row)
        return receiver + sender.index_select(0, pattern.col)


def hard_concrete(
    alpha: Tensor, tau: float | None, gamma: float, zeta: float
) -> Tensor:
    """Gates m in [0, 1] of scores α, O(E): drawn at temperature τ, fixed for None."""
    if tau is not None:
        u = torch.rand_like(alpha).clamp_(1e-7, 1 - 1e-7)
        alpha = (alpha + torch.logit(u)) / tau
    return (alpha.sigmoid() * (zeta - gamma) + gamma).clamp(0.0, 1.0)


def open_probability(alpha: Tensor, tau: float, gamma: float, zeta: float) -> Tensor:
    """P(m > 0) = σ(α − τ log(−γ/ζ)) of each gate."""
    return (alpha - tau * math.log(-gamma / zeta)).sigmoid()


class Draw(NamedTuple):
    """One pass: logits n×c, and of both layers the scores α and the gated graph."""

    logits: Tensor
    scores: tuple[Tensor, Tensor]
    graphs: tuple[Propagation, Propagation]


class PTDNetNetwork(nn.Module):
    """A two-layer GCN with a gate per edge in each layer."""

    def __init__(self, config: PTDNetConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config = config
        self.gcn = WeightedGCN(config, shapes, config.first_dropout)
        self.scorers = nn.ModuleList(
            EndScorer(width, config.scorer_channels)
            for width in (shapes.in_channels, config.hidden_channels)
        )
        self.pattern = PerGraph(off_diagonal)

    def draws(
        self, inputs: GraphInputs, tau: float | None, count: int = 1
    ) -> list[Draw]:
        """Passes with gates drawn at temperature τ, or without noise for None.

        What no gate influences is computed once for all of them: drop(X) W and the
        scores of the first layer.
        """

        def gated(alpha: Tensor) -> Propagation:
            gates = hard_concrete(alpha, tau, self.config.gamma, self.config.zeta)
            return Propagation(pattern, gates, self.config.self_loops)

        pattern, draws = self.pattern(inputs), []
        z = self.gcn.first(inputs.x)
        alpha = self.scorers[0](inputs.x, pattern)
        for _ in range(count):
            one = gated(alpha)
            h = self.gcn.hidden(z, one)
            second = self.scorers[1](h, pattern)
            two = gated(second)
            draws.append(Draw(self.gcn.last(h, two), (alpha, second), (one, two)))
        return draws

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c without noise in the gates."""
        return self.draws(inputs, None)[0].logits


class LargestSingularValue:
    """σ₁ of a square matrix that changes a little from call to call.

    Power iteration gives u and v. With both held fixed, uᵀ M v is the value and u vᵀ
    its gradient: exactly that of the singular value. Each call starts from the last v,
    so that a few ``steps`` suffice.
    """

    def __init__(self, steps: int = 2) -> None:
        self.steps = steps
        self._right: Tensor | None = None

    def __call__(self, matrix: CSR) -> Tensor:
        """The value, with gradients to the entries; O(steps·nnz)."""
        with torch.no_grad():
            right = self._right
            if right is None:
                right = torch.rand(matrix.n_cols, 1).to(matrix.value)
            for _ in range(self.steps):
                left = F.normalize(matrix @ right, dim=0)
                right = F.normalize(matrix.T @ left, dim=0)
            self._right = right
        total: Tensor = (left * (matrix @ right)).sum()
        return total


class PTDNetObjective(BaselineObjective[PTDNetNetwork, PTDNetConfig]):
    """Cross-entropy of the mean logits, and the terms about gates."""

    def __init__(
        self, model: PTDNetNetwork, problem: Problem, config: PTDNetConfig
    ) -> None:
        super().__init__(model, problem, config)
        self.largest = [LargestSingularValue() for _ in range(2)]

    def loss(self, epoch: int) -> Tensor:
        """L."""
        tau = self.config.temperature(epoch)
        draws = self.model.draws(self.inputs, tau, self.config.draws)
        return self.loss_of(draws, tau)

    def loss_of(self, draws: Sequence[Draw], tau: float) -> Tensor:
        """L of the passes of an epoch at temperature τ.

        The singular values are those of the last pass, as in the public code.
        """
        config = self.config
        logits = torch.stack([d.logits for d in draws])
        mean = logits.mean(dim=0)
        total = self.cross_entropy(mean)
        if config.lambda_edges:
            for alpha in (a for d in draws for a in d.scores if a.numel()):
                stay = open_probability(alpha, tau, config.gamma, config.zeta)
                total = total + config.lambda_edges * stay.mean()
        if config.lambda_rank:
            for value, graph in zip(self.largest, draws[-1].graphs, strict=True):
                total = total + config.lambda_rank * value(graph.matrix)
        if config.lambda_cons:
            apart = (logits - mean).square().sum() / mean.size(0)
            total = total + config.lambda_cons * apart / 2
        return total


class PTDNet(Baseline[PTDNetConfig]):
    """PTDNet with a GCN."""

    name = "ptdnet"
    summary = "learned gates on edges"
    Config = PTDNetConfig
    Network = PTDNetNetwork
    Objective = PTDNetObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Weights of the terms, gates, dropout and training."""
        dense = traits.is_dense
        found = suggest_learned(
            trial,
            traits,
            lambda_edges=(0.0, 0.01, 0.1),
            # The largest singular value grows with the degrees.
            lambda_rank=(0.0, 1e-4, 1e-3) if dense else (0.0, 1e-3, 1e-2),
            lambda_cons=(0.01, 0.1, 0.5, 1.0) if dense else (0.1, 1.0, 5.0, 27.0),
            # γ near the authors' 0 leaves more gates open where nothing is drawn.
            gamma=(-0.1,) if dense else (-0.1, -0.01),
            dropout=(0.3, 0.5, 0.7),
            lr=(0.001, 0.005, 0.01),
        )
        return found | ({"hidden_channels": 64} if dense else {})

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The defaults, and the authors' weights of the terms for Cora."""
        if traits.is_dense:
            return [{}, {"lambda_rank": 0.0, "lambda_cons": 0.1}]
        theirs = {"lambda_edges": 0.1, "lambda_rank": 0.01, "lambda_cons": 27.0}
        return [{"gamma": -0.01}, theirs | {"gamma": -0.01, "lr": 0.001}]
