"""NodeFormer: every node attends to every other, at linear cost.

Wu et al., "NodeFormer: A Scalable Graph Structure Learning Transformer for Node
Classification", NeurIPS 2022. A layer has H heads with Q, K and V of width h each and a
temperature τ. Softmax attention over all nodes is estimated with positive random
features φ (``elugcn.core.kernels``), so that sums over nodes are made once:

    out_u = φ(q_u)ᵀ (Σ_v φ(k_v) v_vᵀ) / φ(q_u)ᵀ (Σ_v φ(k_v))

In training edges are drawn, by Gumbel noise g on the keys: φ(k_v) e^{g_v/τ} in place of
φ(k_v), and the mean of S draws. The given edges are added as σ(b_i) Â_i V, with a
learned b_i a head and i = 1 … ``rb_order`` (``elugcn.core.wider``). A linear map joins
the heads.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import some_entries
from elugcn.core.kernels import (
    gumbel_keys,
    kernel_attention,
    key_features,
    link_log_likelihood,
    noisy_attention,
    orthogonal_features,
    query_features,
)
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.core.wider import wider_graphs
from elugcn.nn.layers import Features, SharedProduct


class NodeFormerLayer(nn.Module):
    """Attention to all nodes and to the given edges, for H heads of width h.

    Args:
        channels: h, of what comes in, of each head and of what goes out.
        heads: H.
        features: M, random features.
        rb_order: How many graphs Â_i are added.
        tau: Temperature τ.
        draws: S, Gumbel draws in training.
        links: Edges that the likelihood of the links looks at; all if there are fewer.
    """

    projection: Tensor

    def __init__(
        self,
        channels: int,
        heads: int,
        features: int,
        rb_order: int,
        tau: float,
        draws: int,
        links: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.tau = tau
        self.draws = draws
        self.links = links
        width = heads * channels
        self.qkv = nn.Linear(channels, 3 * width)
        self.out = nn.Linear(width, channels)
        self.bias = nn.Parameter(torch.full((rb_order, heads), 0.1))
        self.register_buffer("projection", torch.empty(features, channels))

    def draw_projection(self, generator: torch.Generator) -> None:
        """Random features for evaluation, drawn once; training draws its own."""
        count, width = self.projection.shape
        self.projection.copy_(orthogonal_features(count, width, generator))

    def forward(
        self,
        z: Tensor,
        graphs: list[CSR],
        generator: torch.Generator | None = None,
        likely: CSR | None = None,
        nodes: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """What each node gathers, n×h, and the log-likelihood of the links.

        Args:
            z: n×h.
            graphs: Â₁ … Â_{rb_order}.
            generator: Of new random features, noise and sampled links; None: no noise
                and the features kept for evaluation.
            likely: The edges whose likelihood is wanted; None: it is 0.
            nodes: Those that gather; None: all.

        Cost:
            O(n·H·S·M·h + nnz·h) time; S = 1 without noise.
        """
        # Three products, not parts of one: gradients need not be joined.
        weights, biases = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        parts = [F.linear(z, w, b) for w, b in zip(weights, biases, strict=True)]
        split = z.size(0), self.heads, z.size(1)
        q, k, value = (x.view(*split).transpose(0, 1) for x in parts)
        projection = self.projection
        if generator is not None:
            count, width = projection.shape
            projection = orthogonal_features(count, width, generator).to(z)
        query = query_features(q, projection, self.tau)
        key = key_features(k, projection, self.tau)
        asking = query if nodes is None else query.index_select(1, nodes)
        if generator is None:
            seen = kernel_attention(asking, key, value)
        else:
            n = z.size(0)
            drawn = gumbel_keys(self.heads, n, self.draws, self.tau, generator)
            index, noise = (t.to(z.device) for t in drawn)
            seen = noisy_attention(asking, key, value, index, noise)
        out: Tensor = self.out(seen.transpose(0, 1).flatten(1))
        for adj, strength in zip(graphs, self.bias.sigmoid(), strict=True):
            # Joined before it is spread: Â (V W) costs less than (Â V) W.
            weight = self.out.weight * strength.repeat_interleave(z.size(1))
            linked = adj @ F.linear(parts[2], weight)
            out = out + (linked if nodes is None else linked.index_select(0, nodes))
        if likely is None:
            return out, z.new_zeros(())
        return out, self._link_likelihood(query, key, likely, generator)

    def _link_likelihood(
        self, query: Tensor, key: Tensor, adj: CSR, generator: torch.Generator | None
    ) -> Tensor:
        degree = (adj.crow[1:] - adj.crow[:-1]).to(query.dtype)
        links = adj
        if adj.nnz > self.links:
            drawn = torch.randint(
                adj.nnz, (self.links,), generator=generator, device="cpu"
            )
            links = some_entries(adj, drawn.to(adj.col.device).sort().values)
        return link_log_likelihood(query, key, links, 1.0 / degree[links.row])


class NodeFormer(nn.Module):
    """Linear map, NodeFormer layers with residuals and layer norm, linear map.

    Args:
        in_channels: d.
        hidden_channels: h.
        out_channels: c.
        dropout: Probability, after the first map and after every layer.
        num_layers: L.
        heads: H.
        features: M, random features of the kernel.
        rb_order: How many graphs of the given edges are added in each layer.
        tau: Temperature τ.
        draws: S, Gumbel draws in training.
        links: Edges that the likelihood of the links looks at, at most.
        jump: The last map reads all layers side by side, not the last alone.
        seed: Of the random features, the noise and the sampled links, which have a
            generator of their own.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.0,
        num_layers: int = 2,
        heads: int = 4,
        features: int = 30,
        rb_order: int = 1,
        tau: float = 0.25,
        draws: int = 10,
        links: int = 2**15,
        jump: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.rb_order = rb_order
        self.jump = jump
        h = hidden_channels
        # Not a linear layer's own, so that sparse X stays sparse.
        self.weight = nn.Parameter(torch.empty(in_channels, h))
        self.bias = nn.Parameter(torch.zeros(h))
        nn.init.xavier_uniform_(self.weight)
        self.layers = nn.ModuleList(
            NodeFormerLayer(h, heads, features, rb_order, tau, draws, links)
            for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(h) for _ in range(num_layers + 1))
        self.head = nn.Linear(h * (num_layers + 1 if jump else 1), out_channels)
        self._shared = SharedProduct()
        self._generator = torch.Generator().manual_seed(seed)
        if not self.weight.is_meta:
            for layer in self.layers:
                layer.draw_projection(self._generator)  # type: ignore[operator]

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·h + L·(n·H·S·M·h + nnz(Â)·h))."""
        return self._through(x, adj)[0]

    def with_links(self, x: Features, adj: CSR, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of some nodes, and how likely attention finds the links.

        That is the mean over layers, heads and the entries uv of Â of (1/d_u) log a_uv,
        where d_u counts the entries of row u and a_uv is the attention without noise;
        of a uniform sample of ``links`` entries where there are more. In the last layer
        only ``nodes`` attend: nobody asks for the others.
        """
        return self._through(x, adj, adj, nodes)

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays."""
        return [self.weight, self.bias]

    def _through(
        self,
        x: Features,
        adj: CSR,
        likely: CSR | None = None,
        nodes: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        z = self._shared(x, self.weight, self.training) + self.bias
        if self.training:
            self._shared.forget()
        generator = self._generator if self.training else None
        graphs = wider_graphs(adj, self.rb_order)
        z = dropout(F.elu(self.norms[0](z)), self.dropout, self.training)
        kept, likelihoods = [z], []
        for i, (layer, norm) in enumerate(
            zip(self.layers, self.norms[1:], strict=True)
        ):
            asking = nodes if i + 1 == len(self.layers) else None
            seen, likelihood = layer(z, graphs, generator, likely, asking)
            if asking is not None:
                kept = [k.index_select(0, asking) for k in kept]
                z = kept[-1]
            z = dropout(norm(seen + z), self.dropout, self.training)
            kept.append(z)
            likelihoods.append(likelihood)
        logits: Tensor = self.head(torch.cat(kept, dim=1) if self.jump else z)
        return logits, torch.stack(likelihoods).mean()
