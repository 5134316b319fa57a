"""BAGCN (reconstructed): shortcuts to distant nodes by a biaffine score.

Zhang et al., "Building Shortcuts between Distant Nodes with Biaffine Mapping for Graph
Convolutional Networks", ACM TKDD 2024. There is no public code. This is a
**reconstruction from the abstract**: a shallow GCN, a biaffine map by which a node
depends on distant ones directly, so that one hop suffices, and a contrast of several
views. Its numbers say nothing certain about the published method. The equations are
our choice:

    P = σ(X W_p), R = σ(X W_r)                 a node as the one that asks or is asked
    s_uv = [p_u; 1]ᵀ U [r_v; 1]                the biaffine score
    B_u· = softmax of s_u· over the k best v   that are neither u nor its neighbours

    H₁ = σ(Â X W₀ + b₀),  Z₁ = Â H₁ W₁ + b₁          the local view
    H₂ = B σ(X W₀' + b₀'),  Z₂ = H₂ W₁' + b₁'        the distant view
    Z  = Z₁ + β Z₂
    L  = CE(Z) + ω (CE(Z₁) + CE(Z₂)) + μ InfoNCE(proj H₁, proj H₂)

InfoNCE compares up to ``anchors`` random nodes. The best v are found without gradients,
over all pairs in blocks of rows, O(n²·m), every ``refresh`` epochs; the scores of the
n·k pairs that are kept are computed again with gradients. The logits of any graph are
those of shortcuts found with the selected weights, so validation selects among the
epochs after which the shortcuts are found anew. Other epochs cost O((nnz(X) + n·k)·(m +
h) + E·h).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.baselines.common import (
    Baseline,
    BaselineObjective,
    InputDropoutConfig,
    Starts,
    adjacency,
    pattern_of,
    suggest_learned,
)
from elugcn.baselines.similar_nodes import best_partners
from elugcn.engine import (
    CSR,
    GraphInputs,
    dropout,
    dropout_linear,
    pair_products,
    row_softmax,
    spmm,
    weighted_spmm,
)
from elugcn.methods.options import Count, NonNegative, Positive, Probability
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.models.losses import info_nce


class BAGCNConfig(InputDropoutConfig):
    """Options of BAGCN."""

    dropout: Probability = 0.5
    roles: Count = 64  # m, width of P and R
    k: Count = 10  # Shortcuts per node
    beta: NonNegative = 0.5  # β, the weight of the distant view
    mu: NonNegative = 0.5  # μ, the weight of the contrast
    omega: NonNegative = 0.1  # ω, the weight of each view's own cross-entropy
    tau: Positive = 0.5  # Temperature of the contrast
    anchors: Count = 1024  # Nodes compared in a step, at most
    refresh: Count = 10  # Epochs between two searches for shortcuts
    epochs: Count = 300


class Biaffine(nn.Module):
    """s_uv = [p_u; 1]ᵀ U [r_v; 1] for p and r of width m; U is (m+1)×(m+1)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels + 1, channels + 1))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, p: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        """n×(m+1) each, whose inner products are the scores; O(n·m²)."""
        return F.pad(p, (0, 1), value=1.0) @ self.weight, F.pad(r, (0, 1), value=1.0)


class BothViews(NamedTuple):
    """Fused logits Z, the logits Z₁ and Z₂ of each view, and their hidden H₁ and H₂."""

    logits: Tensor
    local: Tensor
    distant: Tensor
    hidden_local: Tensor
    hidden_distant: Tensor


class BAGCNNetwork(nn.Module):
    """The local view, the shortcuts, and the distant view over them."""

    def __init__(self, config: BAGCNConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config = config
        h = config.hidden_channels
        # W_p, W_r, W₀ and W₀' side by side: X is multiplied once.
        self.widths = [config.roles, config.roles, h, h]
        self.weight = nn.Parameter(torch.empty(shapes.in_channels, sum(self.widths)))
        self.bias = nn.Parameter(torch.zeros(sum(self.widths)))
        with torch.no_grad():
            for part in torch.split(self.weight, self.widths, dim=1):
                nn.init.xavier_uniform_(part)
        self.biaffine = Biaffine(config.roles)
        self.local = nn.Linear(h, shapes.out_channels)
        self.distant = nn.Linear(h, shapes.out_channels)
        for head in (self.local, self.distant):
            nn.init.xavier_uniform_(head.weight)
            nn.init.zeros_(head.bias)

    @torch.no_grad()
    def shortcuts(self, inputs: GraphInputs) -> CSR:
        """The k best nodes of each node beyond its neighbours, as a pattern n×n.

        A node with fewer than k others has fewer. O(nnz(X)·m + n²·m) time.
        """
        roles = 2 * self.config.roles
        z = dropout_linear(inputs.x, self.weight[:, :roles].contiguous(), 0.0)
        asks, asked = F.relu(z + self.bias[:roles]).chunk(2, dim=1)
        left, right = self.biaffine(asks, asked)
        index, score = best_partners(left, right, self.config.k, adjacency(inputs))
        there = score > -torch.inf
        return pattern_of(there.sum(dim=1), index[there])

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Fused logits n×c, with shortcuts found for this graph."""
        return self.views(inputs, self.shortcuts(inputs)).logits

    def views(self, inputs: GraphInputs, pairs: CSR) -> BothViews:
        """Both views for given shortcuts, O((nnz(X) + n·k)·(m + h) + nnz(Â)·h)."""
        config, adj = self.config, adjacency(inputs)
        p_input = config.first_dropout if self.training else 0.0
        z = dropout_linear(inputs.x, self.weight, p_input)
        asks, asked, near, far = torch.split(z, self.widths, dim=1)
        bias = torch.split(self.bias, self.widths)
        p, r = self._drop(F.relu(asks + bias[0])), self._drop(F.relu(asked + bias[1]))
        share = row_softmax(pairs, pair_products(pairs, *self.biaffine(p, r)))
        h2 = weighted_spmm(pairs, share, self._drop(F.relu(far + bias[3])))
        h1 = F.relu(spmm(adj, near, bias[2]))
        z1 = spmm(adj, F.linear(self._drop(h1), self.local.weight), self.local.bias)
        z2 = self.distant(h2)
        return BothViews(z1 + config.beta * z2, z1, z2, h1, h2)

    def _drop(self, z: Tensor) -> Tensor:
        return dropout(z, self.config.dropout if self.training else 0.0)


class BAGCNObjective(BaselineObjective[BAGCNNetwork, BAGCNConfig]):
    """L, over shortcuts that are found regularly."""

    def __init__(
        self, model: BAGCNNetwork, problem: Problem, config: BAGCNConfig
    ) -> None:
        super().__init__(model, problem, config)
        self.validate_every = config.refresh
        h = config.hidden_channels
        self.head = nn.Sequential(nn.Linear(h, h), nn.ELU()).to(problem.y.device)
        self.extra = (self.head,)
        self.pairs = model.shortcuts(self.inputs)

    def loss(self, epoch: int) -> Tensor:
        """L."""
        config, both = self.config, self.model.views(self.inputs, self.pairs)
        total = self.cross_entropy(both.logits)
        if config.omega:
            own = self.cross_entropy(both.local) + self.cross_entropy(both.distant)
            total = total + config.omega * own
        if config.mu:
            n = both.logits.size(0)
            some = torch.randperm(n, device=both.logits.device)[: config.anchors]
            hidden = (both.hidden_local, both.hidden_distant)
            a, b = (self.head(h.index_select(0, some)) for h in hidden)
            total = total + config.mu * info_nce(a, b, config.tau)
        return total

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes, with shortcuts found anew."""
        self.pairs = self.model.shortcuts(self.inputs)
        return self.model.views(self.inputs, self.pairs).logits[self.val_index]


class BAGCN(Baseline[BAGCNConfig]):
    """BAGCN as reconstructed from its abstract."""

    name = "bagcn"
    summary = "BAGCN (reconstructed): shortcuts"
    Config = BAGCNConfig
    Network = BAGCNNetwork
    Objective = BAGCNObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Shortcuts, weights of the terms, dropout and training."""
        found = suggest_learned(
            trial,
            traits,
            k=(5, 10, 20),
            beta=(0.1, 0.5, 1.0),
            mu=(0.1, 0.5, 1.0),
            dropout=(0.5, 0.7),
            lr=(0.005, 0.01),
        )
        return found | {"epochs": 600}

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The defaults and a larger neighbourhood; the authors published nothing."""
        return [{}, {"k": 20, "beta": 1.0, "mu": 0.1}]
