"""Softmax attention over all nodes in linear time, by positive random features.

For Gaussian rows w_m, E[φ(q)ᵀφ(k)] = exp(qᵀk/(τ√h)) with

    φ(x)_m = exp(w_mᵀ x' − ‖x'‖²/2) / √M,    x' = x / (√τ h^¼)

(Choromanski et al., "Rethinking Attention with Performers", ICLR 2021). Attention is a
quotient of sums of φ. Factors that all keys share, or that one query has alone, cancel:
the largest exponent is subtracted before exp, and 1/√M is left out.

Shapes: H heads of width h, n nodes, M features, S draws of noise. Queries, keys and
values are H×n×h, their features H×n×M.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from elugcn.engine import CSR, pair_products

# NodeFormer's floor under every feature: sums never vanish, and attention to the
# farthest keys is slightly larger than with softmax.
EPSILON = 1e-6
# Keys with a smaller share of a draw's largest weight are left out of the draw.
NEGLIGIBLE = 1e-10
# Nodes whose draws are mixed at once, so that they stay in the cache.
BLOCK = 1024


def orthogonal_features(count: int, width: int) -> Tensor:
    """M×h: Gaussian rows, orthogonal within blocks of h, O(M·h²).

    Each row has the direction of a row of an orthogonal matrix and the length of
    another Gaussian vector. So every row is Gaussian; orthogonal rows estimate better.
    """
    blocks = []
    for _ in range(-(-count // width)):
        q, r = torch.linalg.qr(torch.randn(width, width))
        # Only with these signs is Q uniform among the orthogonal matrices.
        blocks.append((q * r.diagonal().sign()).T)
    lengths = torch.randn(count, width).norm(dim=1)
    return torch.cat(blocks)[:count].mul_(lengths[:, None])


def kernel_features(
    x: Tensor, projection: Tensor, tau: float = 1.0, keys: bool = False
) -> Tensor:
    """φ, H×n×M: of queries up to a factor each, of ``keys`` up to one per head."""
    x = x * (tau**-0.5 * x.size(2) ** -0.25)
    exponent = x @ projection.T - x.square().sum(dim=2, keepdim=True) / 2
    largest = exponent.detach().amax(dim=(1, 2) if keys else 2, keepdim=True)
    return (exponent - largest).exp() + EPSILON


def kernel_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Σ_v φ(q_u)ᵀφ(k_v) v_v / Σ_v φ(q_u)ᵀφ(k_v), H×n×h; O(H·n·M·h)."""
    sums = torch.cat([key.mT @ value, key.sum(dim=1).unsqueeze(2)], dim=2)
    return mix(query, sums.unsqueeze(1))


def noisy_attention(
    query: Tensor, key: Tensor, value: Tensor, index: Tensor, weight: Tensor
) -> Tensor:
    """The mean of S attentions, each to J keys ``index`` with random weights e > 0.

        out_u = (1/S) Σ_s [Σ_v φ(q_u)ᵀφ(k_v) e_sv v_v] / [Σ_v φ(q_u)ᵀφ(k_v) e_sv]

    ``index`` and ``weight`` are H×S×J. O(H·S·(n + J)·M·h) time.
    """
    # The heads of a node are rows below each other: one gather takes them all.
    heads = index.size(0)
    place = index * heads + torch.arange(heads, device=index.device)[:, None, None]
    rows = (x.transpose(0, 1).reshape(-1, x.size(2)) for x in (key, value))
    k, v = (x.index_select(0, place.view(-1)).view(*index.shape, -1) for x in rows)
    k = k * weight[..., None]
    return mix(query, torch.cat([k.mT @ v, k.sum(dim=2).unsqueeze(3)], dim=3))


def mix(query: Tensor, sums: Tensor) -> Tensor:
    """(1/S) Σ_s [φ(q_u)ᵀ N_s] / [φ(q_u)ᵀ d_s]: H×n×h, for [N_s, d_s] H×S×M×(h+1).

    For a block of nodes at a time, of which nothing is kept for the gradient: that
    would be H·n·S·M entries.
    """

    def mixed(block: Tensor) -> Tensor:
        share = 1.0 / (sums.size(1) * (block @ sums[..., -1].mT))
        weighted = share.unsqueeze(3) * block.unsqueeze(2)  # H×r×S×M
        return weighted.flatten(2) @ sums[..., :-1].flatten(1, 2)

    keep: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
    blocks = torch.split(query, BLOCK, dim=1)
    return torch.cat([checkpoint(mixed, block, **keep) for block in blocks], dim=1)


def gumbel_keys(
    heads: int, nodes: int, draws: int, tau: float
) -> tuple[Tensor, Tensor]:
    """Keys with weights e = exp(g/τ) for Gumbel noise g: those that matter, H×S×J each.

    Sorted, the weights of a draw fall as j^{−1/τ} on average. For τ = ¼ they are below
    ``NEGLIGIBLE`` after the 317th. The largest of a draw cancels in the attention. It
    is subtracted before exp, which would overflow for rare g.
    """
    # −log of an exponential variable is a Gumbel variable.
    g = torch.empty(heads, draws, nodes).exponential_()
    count = nodes
    if tau * -math.log(NEGLIGIBLE) < math.log(nodes):
        count = math.ceil(NEGLIGIBLE**-tau)
    least, index = g.topk(count, dim=2, largest=False, sorted=False)
    noise = -least.log_() / tau
    return index, (noise - noise.amax(dim=2, keepdim=True)).exp_()


def link_log_likelihood(
    query: Tensor, key: Tensor, links: CSR, weight: Tensor
) -> Tensor:
    """Mean over links and heads of weight_uv · log a_uv, O(E·H·M).

    a_uv = φ(q_u)ᵀφ(k_v) / Σ_w φ(q_u)ᵀφ(k_w) is the attention of u to v. The pairs uv
    are the entries of ``links``; one may occur more than once.
    """
    if not weight.numel():
        return weight.sum()
    total = (query @ key.sum(dim=1).unsqueeze(2)).squeeze(2)
    heads = zip(query.unbind(), key.unbind(), strict=True)
    kernel = torch.stack([pair_products(links, q, k) for q, k in heads])
    likelihood = kernel.log() - total.log().index_select(1, links.row)
    return (likelihood * weight).mean()
