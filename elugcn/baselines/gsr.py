"""GSR: the graph is refined once, by what self-supervision says about its edges.

Zhao et al., "Self-Supervised Graph Structure Refinement for Graph Neural Networks",
WSDM 2023. Three stages:

1. Two encoders, of the features and of where random walks go, learn which nodes are
   joined. For a batch of edges (u, v), which the graph of the messages lacks,

       L = w · ½ Σ_a C(q_a(u), k_a(v)) + (1 − w) · ½ Σ_{a≠b} C(g_ab(q_a(u)), k_b(v))
       C(q, k) = −log( exp(q·k/τ) / (exp(q·k/τ) + Σ_negatives exp(q·k⁻/τ)) )

   q_a encodes view a, k_a is a copy that follows slowly (momentum), g_ab decodes from
   one view to the other. All vectors have length 1.
2. Nodes are compared by the cosine of their embeddings, mixed with ``feature_weight``.
   The least similar edges are removed, a share ``remove`` of all. The most similar new
   pairs are added, a share ``add`` of the edges. O(n²·h), once.
3. A GCN is trained on the refined graph, its first layer from the feature encoder.

The defaults are the authors' for Cora, except for the length of pre-training (in steps;
theirs is in epochs), a window of 10 for their 11 and 1,024 negatives for their 16,382.
Differences: the walks' view is a factorised DeepWalk matrix (``netmf``), not DeepWalk
by skip-gram; a step encodes the whole graph without the batch's edges, where the public
code samples neighbourhoods and leaves a copy of every edge of the batch; keys of random
edge ends replace a queue of old keys, and the positive is never among them; embeddings
have length 1; the first stage has no self-loops (``self_loops`` is about the last).

For another graph the model is the trained GCN on that graph's own edges: refinement
belongs to the graph of the pre-training.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.baselines.common import InputDropoutConfig, Starts, suggest_learned
from elugcn.baselines.netmf import netmf_embedding
from elugcn.baselines.similar_nodes import best_pairs, least_similarity
from elugcn.engine import CSR, Features, GraphInputs, normalized_adjacency, row_sum
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.network import NetworkMethod, Supervised, fit_network
from elugcn.methods.options import (
    Count,
    NonNegative,
    Positive,
    Probability,
    Share,
    Steps,
)
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.models.two_view_gcn import TwoViewGCN
from elugcn.training.progress import Progress

# Numbers of the publication that are not options here.
TAU = 0.07
DECODER_CHANNELS = 48
LAST_LR = 1e-4
WEIGHT_DECAY = 5e-4


class GSRConfig(InputDropoutConfig):
    """Options of GSR; those of the network are the GCN's."""

    dropout: Probability = 0.5
    epochs: Count = 1000
    intra: Share = 0.75  # w, the weight of the contrast within a view
    pretrain_steps: Steps = 300  # Steps of pre-training
    pretrain_batch: Count = 512  # Edges per step
    pretrain_lr: Positive = 1e-3  # First learning rate of pre-training
    momentum: Probability = 0.999  # Of the slow copy; fewer steps need a smaller one
    negatives: Count = 1024  # Keys that a query has to tell from the positive
    structure_dim: Count = 64  # Width of the walks' view
    window: Count = 10  # Length of the walks
    # Weight of the features' cosine; the rest is the walks'
    feature_weight: Share = 0.0
    add: NonNegative = 0.25  # New pairs as a share of the edges
    remove: Share = 0.0  # Share of the edges to remove


class HeldOut:
    """The normalised graph, a symmetric pattern without diagonal, less some edges."""

    def __init__(self, graph: CSR) -> None:
        self.graph = graph
        self.pairs = (graph.row < graph.col).nonzero().squeeze(1)
        # Sorted by column and row: for each entry (i, j) the place of (j, i).
        self.mirrored = torch.argsort(graph.col, stable=True)

    def without(self, entries: Tensor) -> CSR:
        """D^-½ A D^-½ of the other edges; each edge is named once, O(E)."""
        graph = self.graph
        value = torch.ones_like(graph.value)
        value[entries] = value[self.mirrored[entries]] = 0.0
        root = row_sum(graph, value).rsqrt().nan_to_num(posinf=0.0)
        value *= root.index_select(0, graph.row) * root.index_select(0, graph.col)
        return replace(graph.with_values(value), symmetric=True)

    def whole(self) -> CSR:
        """D^-½ A D^-½ of all edges."""
        return self.without(self.pairs[:0])


class Encoders(nn.Module):
    """A GCN for each view, and decoders between the views."""

    def __init__(self, channels: Sequence[int], width: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(
            TwoViewGCN(d, width, width, dropout=0.0) for d in channels
        )
        inner = DECODER_CHANNELS
        self.decoders = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, inner), nn.ELU(), nn.Linear(inner, width), nn.ELU()
            )
            for _ in channels
        )

    def loss(
        self,
        queries: Sequence[Tensor],
        keys: Sequence[Tensor],
        nodes: tuple[Tensor, Tensor],
        intra: float,
    ) -> Tensor:
        """L of a batch: queries B×h and the keys of all nodes, n×h, of each view.

        Each query should find one node, its positive, among the negatives.
        """
        total = queries[0].new_zeros(())
        for a, b in ((0, 1), (1, 0)):
            within = contrast(queries[a], keys[a], *nodes)
            across = contrast(self.decoders[a](queries[a]), keys[b], *nodes)
            total = total + intra * within / 2 + (1.0 - intra) * across / 2
        return total


def encode(encoders: nn.ModuleList, xs: Sequence[Features], adj: CSR) -> list[Tensor]:
    """The embeddings of all nodes, n×h for each view."""
    return [f(GraphInputs(x, adj)) for f, x in zip(encoders, xs, strict=True)]


def contrast(query: Tensor, key: Tensor, positive: Tensor, negatives: Tensor) -> Tensor:
    """The mean of C over a batch of queries B×h, keys n×h of length 1; O(B·N·h)."""
    query = F.normalize(query)
    right = (query * key[positive]).sum(dim=1, keepdim=True)
    wrong = query @ key[negatives].T
    # The node that a query should find is not among its negatives.
    wrong = wrong.masked_fill(positive[:, None] == negatives, -torch.inf)
    logits = torch.cat([right, wrong], dim=1) / TAU
    return F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long))


def learning_rate(step: int, config: GSRConfig) -> float:
    """It falls to ``LAST_LR`` as the square of the steps that are left."""
    last = min(LAST_LR, config.pretrain_lr)
    left = 1.0 - step / config.pretrain_steps
    return last + (config.pretrain_lr - last) * left**2


def pretrain(
    xs: Sequence[Features], graph: CSR, config: GSRConfig, progress: Progress
) -> Encoders:
    """Train the encoders; each step passes both views over the whole graph.

    The graph is a symmetric pattern without diagonal, ``xs`` the features of both
    views. O(steps · (nnz(X)·h + E·h + B·N·h)) time, O(E + B·N) memory.
    """
    device = graph.value.device
    views = Encoders([x.shape[1] for x in xs], config.hidden_channels).to(device)
    held = HeldOut(graph)
    edges = held.pairs.numel()
    if not edges:
        return views
    # In a small graph enough edges have to be left to carry messages.
    batch = max(1, min(config.pretrain_batch, edges // 4))
    slow = deepcopy(views.encoders).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(
        views.parameters(), config.pretrain_lr, weight_decay=WEIGHT_DECAY, fused=True
    )
    with progress.stage("pre-training", config.pretrain_steps) as advance:
        for step in range(config.pretrain_steps):
            optimizer.param_groups[0]["lr"] = learning_rate(step, config)
            entries = held.pairs[torch.randperm(edges, device=device)[:batch]]
            forward = torch.rand(batch, device=device) < 0.5
            directed = torch.where(forward, entries, held.mirrored[entries])
            u, v = graph.row[directed], graph.col[directed].long()
            # A node is negative as often as it ends an edge, as in a queue of keys.
            ends = torch.randint(graph.nnz, (config.negatives,), device=device)
            adj = held.without(entries)
            queries = [z[u] for z in encode(views.encoders, xs, adj)]
            with torch.no_grad():
                keys = [F.normalize(z) for z in encode(slow, xs, adj)]
            nodes = v, graph.col[ends].long()
            loss = views.loss(queries, keys, nodes, config.intra)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            follow(slow, views.encoders, config.momentum)
            advance({"loss": float(loss.detach())})
    return views.eval()


@torch.no_grad()
def follow(copy: nn.Module, model: nn.Module, momentum: float) -> None:
    """Move the copy: θ' ← m θ' + (1 − m) θ."""
    for slow, fast in zip(copy.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1.0 - momentum)


def undirected(graph: CSR) -> CSR:
    """A one for every pair of different nodes joined in either direction, O(E)."""
    a: Any = graph.to_scipy()
    joined = (abs(a) + abs(a.T)).sign()
    joined.setdiag(0.0)
    joined.eliminate_zeros()
    return CSR.from_scipy(joined, symmetric=True).to(graph.value.device)


def joint_embedding(views: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Vectors whose inner products are the similarities of nodes plus a constant.

    The similarity is a weighted sum of cosines of the views' embeddings, each scaled to
    [0, 1]: s_ij = Σ_view w (cos_ij − min cos) / (1 − min cos). Where two views count,
    the smallest cosine takes O(n²·h / 2).
    """
    scaled = []
    for view, weight in zip(views, weights, strict=True):
        z = F.normalize(view)
        if weight == 1.0:
            return z
        if weight:
            span = max(1.0 - least_similarity(z), torch.finfo(z.dtype).eps)
            scaled.append(z * (weight / span) ** 0.5)
    return torch.cat(scaled, dim=1)


@torch.no_grad()
def refine(
    graph: CSR, embedding: Tensor, add: float, remove: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Remove the least similar pairs and add the most similar ones not yet joined.

    Gives sources over targets of the new edges, and the pairs that are new and gone.
    ``add`` and ``remove`` are shares of the pairs joined. A pair counts once; its two
    directions come and go together. Inner products of rows of the embedding, n×h, say
    how similar nodes are. O(E·h + n²·h / 2) time.
    """
    n = graph.shape[0]
    joined = undirected(graph)
    once = joined.row < joined.col
    i, j = joined.row[once], joined.col[once].long()
    similarity = (embedding[i] * embedding[j]).sum(dim=1)
    count = round(remove * i.numel())
    out = similarity.topk(count, largest=False).indices.sort().values
    gone = torch.stack([i[out], j[out]])
    new = best_pairs(embedding, round(add * i.numel()), joined)
    row, col = graph.row, graph.col.long()
    key = torch.minimum(row, col) * n + torch.maximum(row, col)
    kept = (row != col) & ~torch.isin(key, gone[0] * n + gone[1])
    edges = torch.cat([torch.stack([col, row])[:, kept], new, new.flip(0)], dim=1)
    return edges, new, gone


class GSR(NetworkMethod[GSRConfig]):
    """Graph structure refinement."""

    name = "gsr"
    summary = "edges refined by self-supervision"
    Config = GSRConfig

    def build(self, config: GSRConfig, shapes: Shapes) -> TwoViewGCN:
        """The GCN of the last stage."""
        ends = (shapes.in_channels, config.hidden_channels, shapes.out_channels)
        return TwoViewGCN(*ends, config.dropout, config.input_dropout)

    def fit(
        self, problem: Problem, config: GSRConfig, context: FitContext
    ) -> FitResult:
        """Pre-train, refine the graph, train a GCN on it."""
        with context.stage("pretrain", 1) as workspace, workspace:
            graph = undirected(problem.adj.to(torch.device("cpu")))
            walks = netmf_embedding(graph, config.structure_dim, config.window)
            graph = graph.to(context.device)
            xs = (problem.x, walks.to(context.device))
            views = pretrain(xs, graph, config, context.progress)
            with torch.no_grad():
                embeddings = encode(views.encoders, xs, HeldOut(graph).whole())
        with context.clock("graph"):
            share = config.feature_weight
            embedding = joint_embedding(embeddings, (share, 1.0 - share))
            changes = (config.add, config.remove)
            edges, added, removed = refine(problem.adj, embedding, *changes)
            n, loops = problem.num_nodes, config.self_loops
            adj = normalized_adjacency(edges, n, self_loops=loops).to(context.device)
        encoder: Any = views.encoders[0]

        @torch.no_grad()
        def build(config: GSRConfig, shapes: Shapes) -> TwoViewGCN:
            network = self.build(config, shapes)
            network.W1.copy_(encoder.W1)
            network.b1.copy_(encoder.b1)
            return network

        seen = replace(problem, inputs=GraphInputs(problem.x, adj))
        result, _ = fit_network(self.name, config, seen, context, build, Supervised)
        result.metadata["pairs_added"] = added.size(1)
        result.metadata["pairs_removed"] = removed.size(1)
        return result

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """The contrast, the refinement, dropout and decay."""
        dense = traits.is_dense
        found = suggest_learned(
            trial,
            traits,
            intra=(0.25, 0.5, 0.75, 1.0),
            feature_weight=(0.0, 0.25, 0.5, 0.75, 1.0),
            add=(0.0, 0.25, 0.5) if dense else (0.0, 0.25, 0.5, 0.75),
            remove=(0.0, 0.1, 0.2) if dense else (0.0,),
            dropout=(0.5, 0.7),
        )
        # A shorter pre-training, of which the slow copy gets as far as in 500 steps
        # with a momentum of 0.999.
        if dense:
            short = {"pretrain_steps": 60, "pretrain_batch": 4096, "momentum": 0.992}
            return found | short
        if traits.is_large:
            return found | {"pretrain_steps": 100, "momentum": 0.995}
        return found

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings: where nodes have many neighbours, edges go."""
        if traits.is_dense:
            return [{"add": 0.0, "remove": 0.1}, {"add": 0.5, "feature_weight": 0.5}]
        return [{}, {"feature_weight": 0.5, "add": 0.5}]
