"""Predict, then propagate: APPNP (Gasteiger et al., ICLR 2019).

    H = MLP(X),    Z⁽⁰⁾ = H,    Z⁽ᵏ⁺¹⁾ = (1 − α) Â Z⁽ᵏ⁾ + α H

After many steps Z is α (I − (1 − α) Â)⁻¹ H, personalised PageRank with restart α: far
nodes are reached and the node's own prediction is never washed out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR
from elugcn.nn.layers import Features
from elugcn.nn.mlp import MLP


def personalized(adj: CSR, h: Tensor, steps: int, alpha: float, p: float) -> Tensor:
    """Z after ``steps`` steps, O(steps·nnz(Â)·c).

    Args:
        adj: Â, n×n.
        h: H, n×c.
        steps: K.
        alpha: Share of H in every step.
        p: Probability of dropping an entry of Â. Every step draws a new mask of the
            whole Â: were the masks to pile up, only (1 − p)ᵏ of the edges would be
            left at step k.
    """
    if p:
        out: Tensor = _Dropped.apply(  # type: ignore[no-untyped-call]
            h, adj, steps, alpha, p
        )
        return out
    z = h
    for _ in range(steps):
        z = torch.lerp(adj @ z, h, alpha)
    return z


class _Dropped(torch.autograd.Function):
    """All steps with dropped edges, as one function of H.

        Z⁽ᵏ⁺¹⁾ = B_k Z⁽ᵏ⁾ + α H with B_k = (1 − α) M_k ∘ Â

    The gradient G of Z⁽ᴷ⁾ goes back by the B_kᵀ, whose indices Â keeps: a masked Â is
    not symmetric, but no mask has to be sorted. It takes about two thirds of the time
    of a product and its gradient for each step.
    """

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, adj: CSR, steps: int, alpha: float, p: float
    ) -> Tensor:
        z = h.detach()
        value, restart = adj.value * (1.0 - alpha), z * alpha
        kept = []
        for _ in range(steps):
            kept.append(keep_mask((adj.nnz,), p, value).mul_(value))
            z = (adj.with_values(kept[-1]) @ z).add_(restart)
        ctx.adj, ctx.alpha = adj, alpha
        ctx.save_for_backward(*kept)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        at = ctx.adj.pattern
        restart = torch.zeros_like(g)
        for value in reversed(ctx.saved_tensors):
            restart += g
            # index_select: indexing by a tensor takes three times as long on CPU.
            turned = value.index_select(0, at.perm)
            g = CSR(at.crow_t, at.col_t, turned, g.size(0)) @ g
        return restart.mul_(ctx.alpha).add_(g), None, None, None, None


class APPNP(nn.Module):
    """An MLP whose logits are propagated by personalised PageRank.

    Args:
        in_channels: d.
        hidden_channels: Width of the hidden layer.
        out_channels: c.
        dropout: Probability, before both layers of the MLP.
        steps: K.
        alpha: Restart probability.
        edge_dropout: Probability of dropping an entry of Â, anew in each step
            (training only).
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.5,
        steps: int = 10,
        alpha: float = 0.1,
        edge_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.mlp = MLP(in_channels, hidden_channels, out_channels, dropout)
        self.steps = steps
        self.alpha = alpha
        self.edge_dropout = edge_dropout

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c, O(nnz(X)·h + steps·nnz(Â)·c)."""
        p = self.edge_dropout if self.training else 0.0
        return personalized(adj, self.mlp(x), self.steps, self.alpha, p)

    def first_layer(self) -> list[nn.Parameter]:
        """What the paper decays."""
        return self.mlp.first_layer()
