"""CoGSL: two views of the graph, compressed to what the labels need, and fused.

Liu et al., "Compact Graph Structure Learning via Mutual Information Compression", WWW
2022. The views V₁, V₂ are the graph and its personalised PageRank.

    estimator i    E = σ(V_i X W + b),   π_u· = softmax of wᵀ E_v over the v in row u
                   V' = V_i + μ_i π,     V_i'' = D^-½ (V' + V'ᵀ + I) D^-½
    fusion         V* = diag(β₁) V₁'' + diag(β₂) V₂''
    classifiers    three GCNs, one for each of V₁'', V₂'' and V*

β_u is the softmax over the views of a (l log p₁ + (1 − l) log(p₁ − p₂)) for the two
largest class probabilities p₁ ≥ p₂ that the view's classifier gives node u: the surer
view counts for more. Three sets of weights take turns:

    (a) the estimators of the views:      min L_cls − w L_mi
    (b) the classifiers:                  min L_cls = 0.3 CE(V*) + 0.35 Σ_i CE(V_i'')
    (c) the estimators of information:    min L_mi

    L_mi = 0.3 l(V₁'', V₂'') + 0.35 Σ_i l(V*, V_i'')

with ``view_steps``, ``classifier_steps`` and ``mi_steps`` steps in each round t, and w
= clip(ln(1 + growth · t), 0.05, 0.1). l is InfoNCE between the vectors that a GCN layer
and a shared projection give to each node on either graph. It is a loss: to subtract it
in (a) makes the views say less about each other. An epoch is one step of (b).

This is a sparse variant: V₂ holds the ``k`` largest PageRank entries of each row where
the paper keeps all; an estimator re-weights the pairs that its view holds, where the
paper also offers pairs two hops apart; InfoNCE compares ``anchors`` sampled nodes;
views are fixed, without dropout, while classifiers learn; dropout is on nodes, not on
pairs; classifiers also drop entries of X. The defaults follow what is in public use for
Cora, with a smaller learning rate of the estimators and fewer steps and rounds (5, 1,
10 and 200 there). A step costs O(nnz(X)·h + E·h), E the entries of both views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
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
    pattern_of,
    suggest_learned,
)
from elugcn.baselines.edges import Propagation, WeightedGCN
from elugcn.engine import (
    CSR,
    Features,
    GraphInputs,
    dropout,
    dropout_linear,
    normalized_adjacency,
    row_softmax,
    some_entries,
    spmm,
)
from elugcn.methods.options import (
    Count,
    NonNegative,
    Positive,
    Probability,
    Share,
    Steps,
)
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.models.losses import info_nce

# Below this gap between the two largest probabilities its logarithm would explode.
GAP = 1e-4
# How far walks of the PageRank lead, and its numbers in memory at once.
STEPS = 10
BLOCK = 2**21


class CoGSLConfig(InputDropoutConfig):
    """Options of CoGSL; those of the network are the classifiers'."""

    restart: float = Field(0.15, gt=0, le=1)  # Probability of a restart in the PageRank
    k: Count = 40  # Entries per row of the PageRank
    mu1: NonNegative = 1.0  # μ₁
    mu2: NonNegative = 0.5  # μ₂
    lam: Share = 0.9  # l of the fusion
    power: NonNegative = 0.1  # a of the fusion
    tau: Positive = 0.5  # Temperature of InfoNCE
    estimator_channels: Count = 32  # Width of the views' estimators
    estimator_dropout: Probability = 0.8  # Their dropout
    estimator_lr: Positive = 0.01  # Their learning rate
    mi_channels: Count = 32  # Width of the estimators of information
    mi_lr: Positive = 0.01  # Their learning rate
    anchors: Count = 512  # Nodes that InfoNCE compares, at most
    view_steps: Steps = 2  # Steps of (a) per round
    classifier_steps: Count = 5  # Steps of (b) per round
    mi_steps: Steps = 4  # Steps of (c) per round
    growth: NonNegative = 1e-3  # How fast the weight of L_mi grows
    dropout: Probability = 0.5

    def compression(self, turn: int) -> float:
        """The weight w of L_mi in a round."""
        return min(0.1, max(0.05, math.log1p(self.growth * turn)))


def topk_pagerank(adj: CSR, alpha: float, k: int, steps: int = STEPS) -> CSR:
    """The k largest entries, not zero, of each row of Π = α (I − (1 − α) Â)⁻¹.

    Rows are iterated in blocks, Π ← (1 − α) Π Â + α I from Π = I, and cut to their
    largest entries before the next block; the error is about (1 − α)^steps.
    O(steps·n·nnz(Â)) time, O(n·k) memory.
    """
    n, device = adj.shape[0], adj.col.device
    # Allocated before the blocks: small results kept between large ones that are freed
    # would leave holes in memory.
    column = torch.empty(n, min(k, n), dtype=torch.long, device=device)
    value = torch.empty(column.shape, device=device)
    for rows in torch.split(torch.arange(n, device=device), max(1, BLOCK // n)):
        restart = torch.zeros(n, rows.numel(), device=device)
        restart[rows, rows - rows[0]] = 1.0
        z = restart
        for _ in range(steps):
            z = (adj.T @ z).mul_(1.0 - alpha).add_(restart, alpha=alpha)
        largest, at = z.T.topk(column.size(1), dim=1)
        column[rows], order = at.sort(dim=1)
        value[rows] = largest.gather(1, order)
    stored = value > 0
    return pattern_of(stored.sum(dim=1), column[stored]).with_values(value[stored])


class View(NamedTuple):
    """A view V_i, and where the entries of V' + V'ᵀ come from."""

    given: CSR  # V_i
    both: CSR  # The pattern of V_i + V_iᵀ
    places: Tensor  # Where in it the entries (u, v) of V_i are, then all (v, u)

    @classmethod
    def of(cls, given: CSR) -> View:
        """Lay out V + Vᵀ, O(nnz log nnz)."""
        n, row, col = given.n_cols, given.row, given.col.long()
        keys = torch.cat([row * n + col, col * n + row])
        union, places = torch.unique(keys, return_inverse=True)
        both = pattern_of(torch.bincount(union // n, minlength=n), union % n)
        # The transpose of a symmetric Â is no use: π is not symmetric.
        return cls(replace(given, symmetric=False), both, places)

    def symmetric(self, value: Tensor, self_loops: bool = True) -> Propagation:
        """V'' for the entries of V', with gradients to them; O(nnz)."""
        weight = value.new_zeros(self.both.nnz)
        weight = weight.index_add(0, self.places, value.repeat(2))
        return Propagation(self.both, weight, self_loops)


def given_views(adj: CSR, restart: float, k: int) -> tuple[View, View]:
    """Â, and its PageRank with k entries per row, normalised."""
    pagerank = topk_pagerank(adj, restart, k)
    index = torch.stack([pagerank.col.long(), pagerank.row])
    far = normalized_adjacency(index, adj.shape[0], pagerank.value, self_loops=False)
    return View.of(adj), View.of(far.to(adj.col.device))


class Fused:
    """V* = Σ diag(β_i) V_i'' for ``graphs`` V₁'' and V₂'' and β, n×2."""

    def __init__(self, graphs: Sequence[Propagation], beta: Tensor) -> None:
        self.graphs = graphs
        self.beta = beta

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product, as the sum of both."""
        one, two = self.graphs
        return self.beta[:, :1] * (one @ z) + self.beta[:, 1:] * (two @ z)


def fusion_weights(logits: Sequence[Tensor], lam: float, power: float) -> Tensor:
    """β, n×2: how much each view counts for each node, given its logits n×c."""
    sure = []
    for z in logits:
        top = F.softmax(z, dim=1).topk(min(2, z.size(1)), dim=1).values
        gap = (top[:, 0] - top[:, -1]).clamp(min=GAP)
        sure.append(lam * top[:, 0].log() + (1 - lam) * gap.log())
    return F.softmax(power * torch.stack(sure, dim=1), dim=1)


class Estimator(nn.Module):
    """Re-weights the entries of one view."""

    def __init__(self, in_channels: int, mu: float, config: CoGSLConfig) -> None:
        super().__init__()
        h = config.estimator_channels
        self.mu = mu
        self.self_loops = config.self_loops
        self.dropout = config.estimator_dropout
        self.weight = nn.Parameter(torch.empty(in_channels, h))
        self.bias = nn.Parameter(torch.zeros(h))
        self.head = nn.Linear(h, 1, bias=False)
        nn.init.xavier_uniform_(self.weight)
        nn.init.xavier_uniform_(self.head.weight)

    def forward(self, x: Features, view: View) -> Propagation:
        """V'', O(nnz(X)·h + nnz(V)·h)."""
        given = view.given
        e = F.relu(spmm(given, dropout_linear(x, self.weight, 0.0), self.bias))
        score = self.head(dropout(e, self.dropout if self.training else 0.0)).squeeze(1)
        share = row_softmax(given, score.index_select(0, given.col))
        return view.symmetric(given.value + self.mu * share, self.self_loops)


class CoGSLNetwork(nn.Module):
    """Two estimators and three classifiers."""

    def __init__(self, config: CoGSLConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config = config
        self.estimators = nn.ModuleList(
            Estimator(shapes.in_channels, mu, config) for mu in (config.mu1, config.mu2)
        )
        self.classifiers = nn.ModuleList(
            WeightedGCN(config, shapes, config.first_dropout) for _ in range(3)
        )
        self.given = PerGraph(lambda adj: given_views(adj, config.restart, config.k))

    def views(self, inputs: GraphInputs) -> list[Propagation]:
        """V₁'' and V₂''."""
        pairs = zip(self.estimators, self.given(inputs), strict=True)
        return [estimate(inputs.x, view) for estimate, view in pairs]

    def classify(
        self, x: Features, views: Sequence[Propagation]
    ) -> tuple[list[Tensor], Fused]:
        """Logits on V₁'', V₂'' and V*, and V*."""
        first, second, third = self.classifiers
        one, two = first(x, views[0]), second(x, views[1])
        beta = fusion_weights((one, two), self.config.lam, self.config.power)
        fused = Fused(views, beta)
        return [one, two, third(x, fused)], fused

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c on V*."""
        return self.classify(inputs.x, self.views(inputs))[0][-1]


class Anchors(NamedTuple):
    """Some nodes, and the entries of their rows in each view."""

    nodes: Tensor
    # Where the entries are, and their pattern: the rows of other nodes are empty.
    parts: list[tuple[Tensor, CSR]]

    @classmethod
    def of(cls, views: Sequence[Propagation], nodes: Tensor) -> Anchors:
        """The rows of some nodes, O(nnz)."""
        wanted = torch.zeros(views[0].matrix.n_cols, device=nodes.device)
        wanted[nodes] = 1.0
        places = [wanted[v.matrix.row].nonzero().squeeze(1) for v in views]
        pairs = zip(views, places, strict=True)
        return cls(nodes, [(at, some_entries(v.matrix, at)) for v, at in pairs])


class MutualInformation(nn.Module):
    """L_mi: three encoders of width h, one per graph, and their projection."""

    def __init__(self, in_channels: int, hidden_channels: int, tau: float) -> None:
        super().__init__()
        h = hidden_channels
        self.tau = tau
        # The weights of the three encoders side by side: X is multiplied once.
        parts = (nn.init.xavier_uniform_(torch.empty(in_channels, h)) for _ in range(3))
        self.weight = nn.Parameter(torch.cat(list(parts), dim=1))
        self.biases = nn.ParameterList(torch.zeros(h) for _ in range(3))
        self.slopes = nn.ModuleList(nn.PReLU() for _ in range(3))
        self.project = nn.Sequential(nn.Linear(h, h), nn.ELU(), nn.Linear(h, h))

    def forward(self, x: Features, fused: Fused, anchors: Anchors) -> Tensor:
        """L_mi of the anchors."""
        x1, x2, x3 = dropout_linear(x, self.weight, 0.0).chunk(3, dim=1)
        near, far = (
            (view.entries(*part) @ torch.cat([own, x3], dim=1))
            .index_select(0, anchors.nodes)
            .chunk(2, dim=1)
            for view, part, own in zip(
                fused.graphs, anchors.parts, (x1, x2), strict=True
            )
        )
        beta = fused.beta.index_select(0, anchors.nodes)
        both = beta[:, :1] * near[1] + beta[:, 1:] * far[1]
        parts = zip((near[0], far[0], both), self.biases, self.slopes, strict=True)
        one, two, star = (self.project(slope(z + b)) for z, b, slope in parts)
        to_fused = info_nce(star, one, self.tau) + info_nce(star, two, self.tau)
        return 0.3 * info_nce(one, two, self.tau) + 0.35 * to_fused


class CoGSLObjective(BaselineObjective[CoGSLNetwork, CoGSLConfig]):
    """The three sets of weights and the steps of each.

    The training loop takes the steps of the classifiers; at the start of a round the
    other two have theirs. ``views`` are V₁'' and V₂'' without gradients and dropout.
    """

    def __init__(
        self, model: CoGSLNetwork, problem: Problem, config: CoGSLConfig
    ) -> None:
        super().__init__(model, problem, config)
        d = problem.shapes.in_channels
        self.mutual = MutualInformation(d, config.mi_channels, config.tau)
        self.mutual.to(problem.y.device)
        estimators, mutual = model.estimators.parameters(), self.mutual.parameters()
        self.of_views = torch.optim.Adam(estimators, config.estimator_lr, fused=True)
        self.of_mi = torch.optim.Adam(mutual, config.mi_lr, fused=True)
        self.decay = torch.optim.lr_scheduler.ExponentialLR(self.of_views, 0.99)
        self.views = self.fixed_views()

    def loss(self, epoch: int) -> Tensor:
        """L_cls for the classifiers."""
        turn, step = divmod(epoch, self.config.classifier_steps)
        if step == 0:
            if turn and self.config.mi_steps:
                self.learn_information()
            self.learn_views(turn)
        return self.classification(self.model.classify(self.inputs.x, self.views)[0])

    def classification(self, logits: Sequence[Tensor]) -> Tensor:
        """L_cls."""
        one, two, fused = map(self.cross_entropy, logits)
        return 0.3 * fused + 0.35 * (one + two)

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes on V*."""
        logits = self.model.classify(self.inputs.x, self.views)[0][-1]
        return logits[self.val_index]

    def learn_views(self, turn: int) -> None:
        """Turn (a)."""
        anchors = self.sample()
        for _ in range(self.config.view_steps):
            logits, fused = self.model.classify(
                self.inputs.x, self.model.views(self.inputs)
            )
            information = self.mutual(self.inputs.x, fused, anchors)
            weight = self.config.compression(turn)
            loss = self.classification(logits) - weight * information
            self.of_views.zero_grad()
            loss.backward(inputs=list(self.model.estimators.parameters()))
            self.of_views.step()
        if self.config.view_steps:
            self.decay.step()
        # The optimizer of the classifiers must not step the estimators.
        self.of_views.zero_grad(set_to_none=True)
        self.views = self.fixed_views()

    def learn_information(self) -> None:
        """Turn (c)."""
        with torch.no_grad():
            _, fused = self.model.classify(self.inputs.x, self.views)
        anchors = self.sample()
        for _ in range(self.config.mi_steps):
            self.of_mi.zero_grad()
            self.mutual(self.inputs.x, fused, anchors).backward()
            self.of_mi.step()

    def sample(self) -> Anchors:
        """The nodes that InfoNCE compares in this turn."""
        nodes = torch.randperm(self.inputs.num_nodes)[: self.config.anchors]
        return Anchors.of(self.views, nodes.to(self.train_index.device))

    @torch.no_grad()
    def fixed_views(self) -> list[Propagation]:
        """V₁'' and V₂'' as evaluation sees them."""
        training = self.model.training
        self.model.eval()
        views = self.model.views(self.inputs)
        self.model.train(training)
        return views


class CoGSL(Baseline[CoGSLConfig]):
    """CoGSL, sparse variant."""

    name = "cogsl"
    summary = "two fused views (sparse variant)"
    Config = CoGSLConfig
    Network = CoGSLNetwork
    Objective = CoGSLObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Views, fusion, dropout and training."""
        found = suggest_learned(
            trial,
            traits,
            hidden_channels=(16, 64),
            restart=(0.1, 0.15, 0.3),
            mu1=(0.1, 0.5, 1.0),
            mu2=(0.1, 0.5),
            lam=(0.5, 0.9),
            dropout=(0.3, 0.5, 0.8),
            estimator_lr=(0.001, 0.01, 0.1),
        )
        # Time: the second view is the larger one and grows with k.
        large = traits.is_dense or traits.is_large
        return found | ({"k": 20, "view_steps": 1, "mi_steps": 2} if large else {})

    def starting_points(self, traits: GraphTraits) -> Starts:
        """Close to what is used for Cora, and to the authors' for Citeseer."""
        theirs = {"hidden_channels": 16, "mu1": 0.1, "mu2": 0.1, "lam": 0.5}
        return [{}, theirs | {"restart": 0.1, "estimator_lr": 0.001}]
