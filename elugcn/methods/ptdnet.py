"""PTDNet: each layer learns which edges to drop.

Luo et al., "Learning to Drop: Robust Graph Neural Network via Topological Denoising",
WSDM 2021. Layer l scores every edge by the layer's input (``elugcn.nn.edges``, ends
apart) and passes it through a gate that is often exactly 0 or 1 (hard concrete):

    s_ij = σ((log ε − log(1 − ε) + α_ij) / τ), ε uniform;  in evaluation s_ij = σ(α_ij)
    m_ij = clip(s_ij (ζ − γ) + γ, 0, 1)

A layer of the GCN propagates by the gated edges and a self-loop of weight 1 at each
node. Every epoch draws ``draws`` times, and with logits Z_d of mean Z:

    L = CE(Z) + λ_edges Σ_d Σ_l mean_e σ(α_e − τ log(−γ/ζ))    few open gates
        + λ_rank Σ_l Σ_{i ≤ rank} σ_i(M_l)                     gated graphs of low rank
        + λ_cons ½ Σ_d mean_i ‖Z_d,i − Z_i‖²                   draws that agree

with τ = max(0.05, 2 · 0.99^epoch).

Where this differs from the public code: γ = −0.1 and ζ = 1.1, since the code's γ = 0
makes the second term a constant without a gradient; the last term is a mean over nodes
where the code has a sum (0.01 there is 27 here, for Cora's 2708 nodes), so that its
weight means the same on every graph; evaluation draws nothing; layers have biases.
Scores look at features and hidden units, not at the edges' own weights. Weights of the
terms are smaller by default (0.1, 0.01 and 27 in the code). Without noise a gate with
α below log(−γ/ζ) is shut for good, which at high temperatures, early in training, it is
not with noise: evaluation can see far fewer edges than training. Other defaults differ,
too (in the code lr 0.001, 256 hidden units, no dropout, 1000 epochs). Dropout on X is
drawn once an epoch, that of the hidden layer for every pass: the last term sees that.

The singular values come from power iteration (``elugcn.core.singular``). An epoch
costs O(nnz(X)·h + draws·E·h) time and O(draws·(E + n·h)) memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.singular import SingularSum
from elugcn.core.sparse import CSR
from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network, widths
from elugcn.nn.edges import EdgeScorer, hard_concrete, open_probability
from elugcn.nn.layers import Features
from elugcn.nn.weighted import Edges, Propagation, WeightedGCN

HOTTEST, COLDEST = 2.0, 0.05


@dataclass(frozen=True, kw_only=True)
class PTDNetConfig(NetworkConfig):
    """The gates, and how much each of the terms counts."""

    scorer_channels: int = 16
    draws: int = 3
    lambda_edges: float = 0.01
    lambda_rank: float = 1e-3
    lambda_cons: float = 1.0
    rank: int = 1
    gamma: float = -0.1
    zeta: float = 1.1
    hidden_channels: int = 128
    dropout: float = 0.5
    input_dropout: float | None = None  # None: as dropout

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "scorer_channels", "draws", "rank")
        check_least(self, 0, "lambda_edges", "lambda_rank", "lambda_cons")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        if not self.gamma < 0:
            raise InputError(f"gamma must be negative; got {self.gamma}")
        if not self.zeta > 1:
            raise InputError(f"zeta must be above 1; got {self.zeta}")

    def temperature(self, epoch: int) -> float:
        """τ of an epoch."""
        return max(COLDEST, HOTTEST * 0.99**epoch)


@dataclass(frozen=True)
class Draw:
    """One pass: logits n×c, and of both layers the scores α and the gated graph."""

    logits: Tensor
    scores: tuple[Tensor, Tensor]
    graphs: tuple[Propagation, Propagation]


class PTDNet(nn.Module):
    """A two-layer GCN with a gate an edge in each layer.

    Args:
        in_channels: d.
        hidden_channels: h.
        out_channels: c.
        dropout: Probability, on the input of both layers.
        scorer_channels: Width of the scorers.
        gamma: γ < 0, how far gates reach below 0 before they are clipped.
        zeta: ζ > 1, how far above 1.
        self_loops: Each node has one, of weight 1 and without a gate.
        input_dropout: Of X, where it differs from ``dropout``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float,
        scorer_channels: int,
        gamma: float,
        zeta: float,
        self_loops: bool = True,
        input_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.limits = (gamma, zeta)
        widths = in_channels, hidden_channels, out_channels
        self.gcn = WeightedGCN(*widths, dropout, input_dropout, self_loops)
        self.scorers = nn.ModuleList(
            EdgeScorer(width, scorer_channels, joint=False)
            for width in (in_channels, hidden_channels)
        )

    def draws(
        self, x: Features, adj: CSR, tau: float | None, count: int = 1
    ) -> list[Draw]:
        """Passes with gates drawn at temperature τ, or without noise for None.

        What no gate touches is computed once for all of them: X W, dropout on X
        included, and the scores of the first layer.
        """
        edges = Edges.of(adj)
        z = self.gcn.first(x)
        score = self.scorers[0](x, edges.pattern)
        return [self._pass(edges, z, score, tau) for _ in range(count)]

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c without noise in the gates."""
        return self.draws(x, adj, None)[0].logits

    def _gated(self, edges: Edges, alpha: Tensor, tau: float | None) -> Propagation:
        gates = hard_concrete(alpha, tau, *self.limits)
        return Propagation(edges, gates, self.gcn.self_loops)

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return self.gcn.first_layer()

    def _pass(self, edges: Edges, z: Tensor, score: Tensor, tau: float | None) -> Draw:
        one = self._gated(edges, score, tau)
        h = self.gcn.hidden(z, one)
        second = self.scorers[1](h, edges.pattern)
        two = self._gated(edges, second, tau)
        return Draw(self.gcn.last(h, two), (score, second), (one, two))


def ptdnet_loss(
    draws: list[Draw],
    nodes: Tensor,
    target: Tensor,
    tau: float,
    config: PTDNetConfig,
    singular: Sequence[SingularSum],
) -> Tensor:
    """L for the passes of an epoch.

    Args:
        draws: Passes on the same graph.
        nodes: Training nodes.
        target: Their classes.
        tau: τ.
        config: The weights of the terms.
        singular: Of each layer; they look at the last pass, as the public code does.
    """
    logits = torch.stack([d.logits for d in draws])
    mean = logits.mean(dim=0)
    total = F.cross_entropy(mean[nodes], target)
    if config.lambda_edges:
        for alpha in (a for d in draws for a in d.scores if a.numel()):
            stay = open_probability(alpha, tau, config.gamma, config.zeta)
            total = total + config.lambda_edges * stay.mean()
    if config.lambda_rank:
        for values, graph in zip(singular, draws[-1].graphs, strict=True):
            total = total + config.lambda_rank * values(graph.weights)
    if config.lambda_cons:
        apart = (logits - mean).square().sum() / mean.size(0)
        total = total + config.lambda_cons * apart / 2
    return total


class PTDNetPredictor(NetworkPredictor):
    """A trained PTDNet with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"PTDNet": PTDNet}


def fit_ptdnet(problem: Problem, config: PTDNetConfig, run: Run) -> Prediction:
    """Train the gates and the GCN together."""
    facts = widths(problem, config) | {
        "scorer_channels": config.scorer_channels,
        "gamma": config.gamma,
        "zeta": config.zeta,
        "self_loops": config.self_loops,
        "input_dropout": config.input_dropout,
    }
    x, adj, nodes = problem.x, problem.adj, problem.train_index
    target = problem.y[nodes]
    run.reseed()
    with run.clock("train"):
        model = PTDNet(**facts).to(run.device)
        singular = [SingularSum(config.rank), SingularSum(config.rank)]

        def loss(epoch: int) -> Tensor:
            tau = config.temperature(epoch)
            draws = model.draws(x, adj, tau, config.draws)
            return ptdnet_loss(draws, nodes, target, tau, config, singular)

        trained = train_network(
            problem,
            config,
            run,
            model,
            "PTDNet",
            loss=loss,
        )
    predictor = PTDNetPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
