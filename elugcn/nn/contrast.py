"""The contrastive term with its projection head, value and gradient in one pass.

    Z = [H̄ᵀ H̃ᵀ]   U = W Z + b   E = elu(U)   P = E / ‖E‖   d_i = p̄_i · p̃_i
    L = −log(Pos / (Pos + Neg)),  Pos = mean_ELU exp(d/τ),  Neg = mean_NELU exp(d/τ)

Autograd takes some forty small steps for this, forward and back; on graphs of a few
thousand nodes their calls cost more than the sums. Everything is stored by columns.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.nn.losses import contrastive_loss
from elugcn.nn.projection import TINY, ProjectionHead


def projected_contrast(
    head: ProjectionHead,
    original: Tensor,
    other: Tensor,
    elu: Tensor,
    nelu: Tensor,
    tau: float,
    kind: str = "similarity",
) -> Tensor:
    """``contrastive_loss`` of the projections of two views, O(n·c²).

    Args:
        head: The projection.
        original: The original view, n×c.
        other: The ELU view, n×c.
        elu: Indices of the ELU nodes.
        nelu: Indices of the NELU nodes.
        tau: Temperature τ > 0.
        kind: As in ``contrastive_loss``.
    """
    if kind != "similarity" or not (elu.numel() and nelu.numel()):
        p, q = head(torch.cat([original, other])).chunk(2)
        return contrastive_loss(p, q, elu, nelu, tau, kind)
    linear = head.linear
    out: Tensor = _Contrast.apply(  # type: ignore[no-untyped-call]
        original, other, linear.weight, linear.bias, elu, nelu, tau
    )
    return out


class _Contrast(torch.autograd.Function):
    """H̄, H̃, W, b ↦ L.

    ∂L/∂d is σ(log Neg − log Pos)/τ times the softmax of d/τ within the NELU nodes, and
    minus that within the ELU nodes; through the norm, ∂d/∂ē = (p̃ − d p̄) / ‖ē‖.
    """

    @staticmethod
    def forward(
        ctx: Any,
        original: Tensor,
        other: Tensor,
        weight: Tensor,
        bias: Tensor,
        elu: Tensor,
        nelu: Tensor,
        tau: float,
    ) -> Tensor:
        n = original.size(0)
        z = torch.cat([original.T, other.T], dim=1)
        e = F.elu(torch.addmm(bias.unsqueeze(1), weight, z))
        inverse = e.square().sum(dim=0).clamp_min_(TINY).rsqrt_()
        p = e * inverse
        a, b = p[:, :n], p[:, n:]
        d = (a * b).sum(dim=0)
        # index_select and scatter_ take half the time of indexing.
        log_pos, share_pos = _log_mean_exp(d.index_select(0, elu) / tau)
        log_neg, share_neg = _log_mean_exp(d.index_select(0, nelu) / tau)
        pull = torch.sigmoid(log_neg - log_pos) / tau
        grad_d = torch.zeros_like(d)
        grad_d.scatter_(0, nelu, share_neg.mul_(pull))
        grad_d.scatter_(0, elu, share_pos.mul_(-pull))
        grad = torch.cat([b - d * a, a - d * b], dim=1)
        grad *= inverse.mul_(grad_d.repeat(2))
        grad *= e.clamp_max_(0.0).add_(1.0)  # elu'(u) = min(elu(u), 0) + 1
        back = weight.T @ grad
        ctx.save_for_backward(
            back[:, :n].T, back[:, n:].T, grad @ z.T, grad.sum(dim=1)
        )  # fmt: skip
        return F.softplus(log_neg - log_pos)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *(g * grad for g in ctx.saved_tensors), None, None, None


def _log_mean_exp(v: Tensor) -> tuple[Tensor, Tensor]:
    """The log of the mean exponential, safe for large entries, and its gradient."""
    total = torch.logsumexp(v, dim=0)
    return total - math.log(v.numel()), (v - total).exp_()
