"""Softmax attention over all nodes in linear time, by positive random features.

For rows w_m that are Gaussian, E[φ(q)ᵀφ(k)] = exp(qᵀk/(τ√h)) with

    φ(x)_m = exp(w_mᵀ x' − ‖x'‖²/2) / √M,    x' = x / (√τ h^¼)

(Choromanski et al., "Rethinking Attention with Performers", ICLR 2021). Attention is a
quotient of sums of φ, so factors that all keys share, or that a query has alone,
cancel: the largest exponent is taken away before exp, and 1/√M is left out.

Shapes: H heads of width h, n nodes, M features, S draws of noise. Queries, keys and
values are H×n×h, features H×n×M.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.core.edge_weights import pair_products
from elugcn.core.sparse import CSR

# A floor under every feature, NodeFormer's: sums never vanish, and attention to the
# farthest keys is a little larger than softmax would have it.
EPSILON = 1e-6
# Keys with a smaller share of a draw's largest weight are left out of the draw.
NEGLIGIBLE = 1e-10
# Nodes whose draws are mixed at once, so that they stay in the cache.
_ROWS = 1024


def orthogonal_features(
    count: int, width: int, generator: torch.Generator | None = None
) -> Tensor:
    """M×h: Gaussian rows, orthogonal within blocks of h, O(M·h²).

    Each row has the direction of an orthogonal matrix and the length of a Gaussian
    vector of its own, so that every row is Gaussian; orthogonal ones estimate better.
    """
    blocks = []
    for _ in range(-(-count // width)):
        gauss = torch.randn(width, width, generator=generator, device="cpu")
        q, r = torch.linalg.qr(gauss)
        # Only with these signs is Q uniform among the orthogonal matrices.
        blocks.append((q * r.diagonal().sign()).T)
    lengths = torch.randn(count, width, generator=generator, device="cpu").norm(dim=1)
    return torch.cat(blocks)[:count].mul_(lengths[:, None])


def query_features(x: Tensor, projection: Tensor, tau: float = 1.0) -> Tensor:
    """φ of queries, each up to a factor of its own: H×n×M, O(H·n·M·h)."""
    exponent = _exponent(x, projection, tau)
    return (exponent - exponent.detach().amax(dim=2, keepdim=True)).exp() + EPSILON


def key_features(x: Tensor, projection: Tensor, tau: float = 1.0) -> Tensor:
    """φ of keys, up to a factor that all keys of a head share: H×n×M, O(H·n·M·h)."""
    exponent = _exponent(x, projection, tau)
    return (exponent - exponent.detach().amax(dim=(1, 2), keepdim=True)).exp() + EPSILON


def kernel_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Σ_v φ(q_u)ᵀφ(k_v) v_v / Σ_v φ(q_u)ᵀφ(k_v), H×n×h; O(H·n·M·h)."""
    sums = key.mT @ _with_one(value)
    return mix(query, sums.unsqueeze(1))


def noisy_attention(
    query: Tensor, key: Tensor, value: Tensor, index: Tensor, weight: Tensor
) -> Tensor:
    """The mean of S attentions, each to some keys, with random weights.

        out_u = (1/S) Σ_s [Σ_v φ(q_u)ᵀφ(k_v) e_sv v_v] / [Σ_v φ(q_u)ᵀφ(k_v) e_sv]

    Args:
        query: φ(q), H×n×M.
        key: φ(k), H×n×M.
        value: v, H×n×h.
        index: The J keys v of each draw, H×S×J.
        weight: Their e, H×S×J, positive.

    Cost:
        O(H·S·(n + J)·M·h) time, O(H·S·J·(M + h)) memory.
    """
    heads = index.size(0)
    n = key.size(1)
    # Rows of all heads below each other, so that one gather takes them all.
    first = torch.arange(heads, device=index.device)[:, None, None] * n
    place = (index + first).view(-1)
    shape = (*index.shape, -1)
    k = key.reshape(heads * n, -1).index_select(0, place).view(shape)
    v = _with_one(value).view(heads * n, -1).index_select(0, place).view(shape)
    return mix(query, (k * weight[..., None]).mT @ v)


def mix(query: Tensor, sums: Tensor) -> Tensor:
    """(1/S) Σ_s [φ(q_u)ᵀ N_s] / [φ(q_u)ᵀ d_s]: H×n×h, O(H·n·S·M·h).

    Args:
        query: φ(q), H×n×M.
        sums: [N_s, d_s], H×S×M×(h+1).
    """
    out: Tensor = _Mix.apply(query, sums)  # type: ignore[no-untyped-call]
    return out


class _Mix(torch.autograd.Function):
    """The quotients of S draws, of a block of nodes at a time, forward and backward.

    Autograd would keep several tensors of H·n·S·h entries and pass over them often.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, sums: Tensor) -> Tensor:
        ctx.save_for_backward(query, sums)
        draws = sums.size(1)
        flat = _flat(sums)
        out = query.new_empty(*query.shape[:2], sums.size(3) - 1)
        for rows in _blocks(query):
            drawn = _by_draw(query[:, rows] @ flat, draws)
            share = drawn[..., -1:].mul(draws).reciprocal_()
            torch.sum(drawn[..., :-1].mul_(share), dim=2, out=out[:, rows])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        query, sums = ctx.saved_tensors
        draws = sums.size(1)
        flat = _flat(sums)
        grad_query, grad_flat = torch.empty_like(query), torch.zeros_like(flat)
        for rows in _blocks(query):
            part = query[:, rows]
            drawn = _by_draw(part @ flat, draws)
            g = grad[:, rows].unsqueeze(2)
            share = drawn[..., -1:].mul(draws).reciprocal_()
            pull = drawn[..., :-1].mul_(g).sum(dim=3, keepdim=True)
            # Quotient rule, in place of the products: g/d and −(g·N)/d².
            torch.mul(g, share, out=drawn[..., :-1])
            drawn[..., -1:] = pull.mul_(share.square_()).mul_(-draws)
            turned = drawn.flatten(2)
            grad_query[:, rows] = turned @ flat.mT
            grad_flat.baddbmm_(part.mT, turned)
        return grad_query, _by_draw(grad_flat, draws).transpose(1, 2)


def gumbel_keys(
    heads: int, nodes: int, draws: int, tau: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Keys with weights e = exp(g/τ) for Gumbel noise g: those that matter, S times.

    Sorted, the weights of a draw fall as j^{−1/τ} on average: for τ = ¼ and
    ``NEGLIGIBLE`` = 1e-10 beyond the 317th. The largest of a draw, which cancels in the
    attention, is taken away before exp, which else would overflow for rare g.

    Returns:
        Keys and weights, both H×S×J.
    """
    # −log of an exponential variable is a Gumbel variable.
    g = torch.empty(heads, draws, nodes, device="cpu").exponential_(generator=generator)
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

    a_uv = φ(q_u)ᵀφ(k_v) / Σ_w φ(q_u)ᵀφ(k_w) is the attention of u to v.

    Args:
        query: φ(q), H×n×M.
        key: φ(k), H×n×M.
        links: The pairs uv, as a pattern n×n; one may be there more than once.
        weight: Of each pair.
    """
    total = (query @ key.sum(dim=1).unsqueeze(2)).squeeze(2)
    heads = zip(query.unbind(), key.unbind(), strict=True)
    kernel = torch.stack([pair_products(links, q, k) for q, k in heads])
    likelihood = kernel.log() - total.log().index_select(1, links.row)
    return (likelihood * weight).mean()


def _exponent(x: Tensor, projection: Tensor, tau: float) -> Tensor:
    scaled = x * (tau**-0.5 * x.size(2) ** -0.25)
    exponent: Tensor = scaled @ projection.T
    size: Tensor = scaled.square().sum(dim=2, keepdim=True)
    return exponent - size / 2


def _with_one(value: Tensor) -> Tensor:
    return torch.cat([value, value.new_ones(*value.shape[:2], 1)], dim=2)


def _flat(sums: Tensor) -> Tensor:
    """H×S×M×(h+1) as H×M×S·(h+1)."""
    return sums.transpose(1, 2).flatten(2)


def _by_draw(rows: Tensor, draws: int) -> Tensor:
    """H×r×S·(h+1) as H×r×S×(h+1)."""
    return rows.view(*rows.shape[:2], draws, -1)


def _blocks(query: Tensor) -> list[slice]:
    return [slice(i, i + _ROWS) for i in range(0, query.size(1), _ROWS)]
