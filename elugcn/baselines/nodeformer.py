"""NodeFormer: attention among all nodes, which has to find the given edges likely.

Wu et al., "NodeFormer: A Scalable Graph Structure Learning Transformer for Node
Classification", NeurIPS 2022. A layer has H heads with Q, K and V of width h each.
Softmax attention over all nodes is estimated with positive random features φ
(``kernel_attention``):

    out_u = φ(q_u)ᵀ (Σ_v φ(k_v) v_vᵀ) / φ(q_u)ᵀ (Σ_v φ(k_v))

In training edges are drawn by Gumbel noise g on the keys: φ(k_v) e^{g_v/τ} replaces
φ(k_v), and the layer takes the mean of S draws. The given edges add σ(b_i) Â_i V with a
learned b_i per head, i = 1 … ``rb_order`` (``wider_graphs``). A linear map joins the
heads. Layers have residuals and layer norm. With a_uv the attention without noise,

    L = CE − λ · mean over layers, heads and edges of (1/d_u) log a_uv

The defaults are the authors' for Cora except for two: epochs (1000 without early
stopping) and ``rb_order`` (3 on Cora and Citeseer, 2 on Pubmed; on dense graphs that
would join almost every pair of nodes). Differences from the public code: random
features and noise are drawn anew in every step and do not reset the global generator;
the features of evaluation are drawn once and stored; keys with less than 1e-10 of the
largest weight of a draw are left out; with more than ``links`` edges the likelihood is
that of a new uniform sample. An epoch costs O(nnz(X)·h + L·(n·H·S·M·h + E·h)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from elugcn.baselines.common import (
    Baseline,
    BaselineConfig,
    BaselineObjective,
    PerGraph,
    Starts,
    adjacency,
    suggest,
)
from elugcn.baselines.kernel_attention import (
    gumbel_keys,
    kernel_attention,
    kernel_features,
    link_log_likelihood,
    noisy_attention,
    orthogonal_features,
)
from elugcn.engine import (
    CSR,
    GraphInputs,
    dropout,
    dropout_linear,
    normalized_adjacency,
    some_entries,
    spmm,
)
from elugcn.errors import InputError
from elugcn.methods.options import Count, Layers, NonNegative, Positive, Probability
from elugcn.methods.problem import GraphTraits, Shapes

# Entries of one wider graph: 2²⁴ take 0.2 GB and a tenth of a second per product.
MAX_ENTRIES = 2**24
# Rows that are squared at once.
BLOCK = 512


class NodeFormerConfig(BaselineConfig):
    """Options of NodeFormer."""

    hidden_channels: Count = 32
    dropout: Probability = 0.0
    num_layers: Layers = 2
    heads: Count = 4  # H
    random_features: Count = 30  # M, of the kernel
    draws: Count = 10  # S, draws of Gumbel noise
    tau: Positive = 0.25  # Temperature τ
    # How many graphs of the given edges are added: 1 hop, 2 hops, 4 hops, …
    rb_order: int = Field(1, ge=0, le=32)
    lambda_link: NonNegative = 1.0  # λ, the weight of the edges' likelihood
    links: Count = 2**15  # Edges whose likelihood is looked at in a step, at most
    jump: bool = False  # Whether the last map reads all layers side by side
    epochs: Count = 300


class NodeFormerLayer(nn.Module):
    """Attention to all nodes and to the given edges, for H heads of width h."""

    projection: Tensor

    def __init__(self, config: NodeFormerConfig) -> None:
        super().__init__()
        self.config = config
        h, width = config.hidden_channels, config.heads * config.hidden_channels
        self.qkv = nn.Linear(h, 3 * width)
        self.out = nn.Linear(width, h)
        self.bias = nn.Parameter(torch.full((config.rb_order, config.heads), 0.1))
        # Random features of evaluation; training draws its own.
        self.register_buffer("projection", torch.empty(config.random_features, h))
        if not self.projection.is_meta:
            self.projection = orthogonal_features(config.random_features, h)

    def forward(
        self,
        z: Tensor,
        graphs: list[CSR],
        links: CSR | None = None,
        nodes: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """What some ``nodes`` gather, n×h, and the log-likelihood of the ``links``.

        ``graphs`` are Â₁ … Â_{rb_order}. Without links the likelihood is 0.
        """
        config, (n, h) = self.config, z.shape
        # Three products, not parts of one: their gradients need not be joined.
        weights, biases = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        parts = [F.linear(z, w, b) for w, b in zip(weights, biases, strict=True)]
        q, k, value = (x.view(n, config.heads, h).transpose(0, 1) for x in parts)
        projection = self.projection
        if self.training:
            projection = orthogonal_features(config.random_features, h).to(z)
        query = kernel_features(q, projection, config.tau)
        key = kernel_features(k, projection, config.tau, keys=True)
        asking = query if nodes is None else query.index_select(1, nodes)
        if self.training:
            drawn = gumbel_keys(config.heads, n, config.draws, config.tau)
            index, noise = (t.to(z.device) for t in drawn)
            gathered = noisy_attention(asking, key, value, index, noise)
        else:
            gathered = kernel_attention(asking, key, value)
        out: Tensor = self.out(gathered.transpose(0, 1).flatten(1))
        for adj, strength in zip(graphs, self.bias.sigmoid(), strict=True):
            # Heads are joined before the product: Â (V W) costs less than (Â V) W.
            weight = self.out.weight * strength.repeat_interleave(h)
            linked = spmm(adj, F.linear(parts[2], weight))
            out = out + (linked if nodes is None else linked.index_select(0, nodes))
        if links is None:
            return out, z.new_zeros(())
        share = 1.0 / (links.crow[1:] - links.crow[:-1]).to(z.dtype)
        if links.nnz > config.links:
            places = torch.randint(links.nnz, (config.links,)).sort().values
            links = some_entries(links, places.to(z.device))
        return out, link_log_likelihood(query, key, links, share[links.row])


class NodeFormerNetwork(nn.Module):
    """Linear map, NodeFormer layers with residuals and layer norm, linear map."""

    def __init__(self, config: NodeFormerConfig, shapes: Shapes) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.jump = config.jump
        h, layers = config.hidden_channels, config.num_layers
        self.weight = nn.Parameter(torch.empty(shapes.in_channels, h))
        self.bias = nn.Parameter(torch.zeros(h))
        nn.init.xavier_uniform_(self.weight)
        self.layers = nn.ModuleList(NodeFormerLayer(config) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(h) for _ in range(layers + 1))
        self.head = nn.Linear(h * (layers + 1 if self.jump else 1), shapes.out_channels)
        self.wider = PerGraph(lambda adj: wider_graphs(adj, config.rb_order))

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c, O(nnz(X)·h + L·(n·H·S·M·h + nnz(Â)·h))."""
        return self.attend(inputs)[0]

    def attend(
        self, inputs: GraphInputs, links: CSR | None = None, nodes: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits of some nodes, and the mean log-likelihood of the links over layers.

        In the last layer only these nodes attend.
        """
        p = self.dropout if self.training else 0.0
        graphs = self.wider(inputs)
        first, *norms = self.norms
        z = dropout_linear(inputs.x, self.weight, 0.0) + self.bias
        z = dropout(F.elu(first(z)), p)
        kept, likelihoods = [z], []
        for i, (layer, norm) in enumerate(zip(self.layers, norms, strict=True)):
            asking = nodes if i + 1 == len(norms) else None
            gathered, likelihood = layer(z, graphs, links, asking)
            if asking is not None:
                kept = [k.index_select(0, asking) for k in kept]
                z = kept[-1]
            z = dropout(norm(gathered + z), p)
            kept.append(z)
            likelihoods.append(likelihood)
        logits: Tensor = self.head(torch.cat(kept, dim=1) if self.jump else z)
        return logits, torch.stack(likelihoods).mean()


def wider_graphs(adj: CSR, order: int) -> list[CSR]:
    """Graphs of ever more distant neighbours, Â₁ … Â_order.

        Â₁ = Â,    Â_{i+1} = D_r^-½ P D_c^-½ where P has a one wherever Â_i Â_i is not 0

    With self-loops Â_i joins nodes that are up to 2^{i−1} hops apart.
    """
    graphs = [adj][:order]
    while len(graphs) < order:
        a = sp.csr_array(graphs[-1].to_scipy())
        a.data = np.ones_like(a.data)
        blocks: list[sp.csr_array] = []
        for start in range(0, a.shape[0], BLOCK):
            blocks.append(a[start : start + BLOCK] @ a)
            if sum(block.nnz for block in blocks) > MAX_ENTRIES:
                raise InputError(
                    f"rb_order={len(graphs) + 1}: joining neighbours of neighbours "
                    f"gives more than {MAX_ENTRIES:,} edges on this graph; "
                    f"use rb_order={len(graphs)}"
                )
        target, source = sp.coo_array(sp.vstack(blocks)).coords
        edges = torch.from_numpy(np.stack([source, target]).astype(np.int64))
        wider = normalized_adjacency(edges, a.shape[0], self_loops=False)
        graphs.append(wider.to(adj.value.device))
    return graphs


class NodeFormerObjective(BaselineObjective[NodeFormerNetwork, NodeFormerConfig]):
    """Cross-entropy and the likelihood of the edges."""

    def loss(self, epoch: int) -> Tensor:
        """L."""
        weight = self.config.lambda_link
        links = adjacency(self.inputs) if weight else None
        logits, likelihood = self.model.attend(self.inputs, links, self.train_index)
        return self.train_loss(logits) - weight * likelihood

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes."""
        return self.model.attend(self.inputs, None, self.val_index)[0]


class NodeFormer(Baseline[NodeFormerConfig]):
    """NodeFormer."""

    name = "nodeformer"
    summary = "attention among all nodes"
    Config = NodeFormerConfig
    Network = NodeFormerNetwork
    Objective = NodeFormerObjective

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Width, dropout, how far edges reach, and training."""
        # Neighbours of neighbours join almost all pairs where nodes have many.
        far = (1, 2) if traits.is_large else (1, 2, 3)
        return suggest(
            trial,
            traits,
            hidden_channels=(32, 64, 128) if traits.directed else (32, 64),
            dropout=(0.0, 0.3, 0.5),
            lr=(0.001, 0.005, 0.01),
            weight_decay=(0.0, 5e-4, 5e-3),
            rb_order=(0, 1) if traits.is_dense else far,
            lambda_link=(0.1, 0.5, 1.0),
        )

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings for the citation graphs, or for graphs like Photo."""
        if traits.is_dense:
            near = {"dropout": 0.5, "lr": 0.01, "lambda_link": 0.1}
            return [near, {"dropout": 0.3, "lr": 0.005, "lambda_link": 0.5}]
        if traits.is_large:
            far = {"rb_order": 2, "dropout": 0.3}
            return [far | {"lr": 0.001}, far | {"lr": 0.005}]
        return [{"rb_order": 3}, {"rb_order": 3, "dropout": 0.5, "weight_decay": 5e-3}]
