"""Eq. 12 for two views side by side: value and gradient in one pass over the nodes.

    M = (1−η) H̄ + η H̃                                   the output
    Z = [H̄ᵀ H̃ᵀ]   E = elu(W Z + b)   P = E / ‖E‖   d_i = p̄_i · p̃_i
    L = Σ w_i CE(m_i, y_i) + γ · contrast(d) + ε · entropy(M)
    contrast = −log(Pos / (Pos + Neg)),  Pos = mean_ELU exp(d/τ),  Neg = mean_NELU …

Autograd takes some eighty small steps for this: on graphs of a few thousand nodes their
calls cost more than the sums, and on a million nodes each writes a new array of n×c
numbers to memory. Here a block of nodes goes through all of it while it is in the
cache. Only d couples the nodes: a first pass computes it, a second the gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn import compiled
from elugcn.nn.projection import TINY, ProjectionHead

# Entries of the views that are worked on at once, in some ten arrays of that size.
BLOCK_ENTRIES = 2**19


@dataclass(frozen=True)
class Terms:
    """What the loss reads besides the views; nothing of it changes while training.

    Attributes:
        target: Class of each node that has a target, 0 elsewhere, (n,).
        weight: w, of each node's cross-entropy, 0 where it has no target, (n,).
        elu: Indices of the ELU nodes, not empty.
        nelu: Indices of the NELU nodes, not empty.
        tau: Temperature τ > 0.
        eta: η, the share of the ELU view in the output.
    """

    target: Tensor
    weight: Tensor
    elu: Tensor
    nelu: Tensor
    tau: float
    eta: float

    @cached_property
    def kind(self) -> Tensor:
        """1 for ELU nodes, 2 for NELU nodes, 0 for others, int8."""
        out = torch.zeros(self.target.shape, dtype=torch.int8, device=self.elu.device)
        return out.index_fill_(0, self.elu, 1).index_fill_(0, self.nelu, 2)


def two_view_loss(
    wide: Tensor,
    head: ProjectionHead,
    terms: Terms,
    contrast: float,
    entropy: float,
    last_use: bool = False,
) -> Tensor:
    """L, with gradients to the views and the head; O(n·c²) time, n×2c memory.

    Args:
        wide: [H̄ H̃], n×2c.
        head: The projection, W and b.
        terms: Targets, sets of nodes, τ and η.
        contrast: γ.
        entropy: ε.
        last_use: Nobody else reads the views: their gradient is written over them.
    """
    linear = head.linear
    out: Tensor = _Loss.apply(  # type: ignore[no-untyped-call]
        wide, linear.weight, linear.bias, terms, contrast, entropy, last_use
    )
    return out


class _Projected(NamedTuple):
    """A block of b nodes: its views, E, 1/‖E‖ and P, each c×2×b (1/‖E‖ is 2×b)."""

    z: Tensor
    e: Tensor
    inverse: Tensor
    p: Tensor

    @classmethod
    def of(cls, rows: Tensor, weight: Tensor, bias: Tensor) -> _Projected:
        c = weight.size(0)
        # By columns: a softmax over short rows is many small loops.
        z = rows.view(-1, 2, c).permute(2, 1, 0).contiguous()
        u = torch.addmm(bias.unsqueeze(1), weight, z.view(c, -1))
        e = F.elu_(u).view_as(z)
        inverse = e.square().sum(dim=0).clamp_min_(TINY).rsqrt_()
        return cls(z, e, inverse, e * inverse)

    def alike(self) -> Tensor:
        """D, (b,)."""
        return (self.p[:, 0] * self.p[:, 1]).sum(dim=0)


class _Loss(torch.autograd.Function):
    """[H̄ H̃], W, b ↦ L."""

    @staticmethod
    def forward(
        ctx: Any,
        wide: Tensor,
        weight: Tensor,
        bias: Tensor,
        terms: Terms,
        contrast: float,
        entropy: float,
        last_use: bool,
    ) -> Tensor:
        grad = wide.detach() if last_use else torch.empty_like(wide)
        n, c = wide.size(0), weight.size(0)
        if compiled.usable(wide) and c <= compiled.MAX_CLASSES:
            found, *small = compiled.two_views(
                wide.detach(), grad, weight, bias, terms.target, terms.weight,
                terms.kind, terms.tau, terms.eta, contrast, entropy / n,
            )  # fmt: skip
            ctx.save_for_backward(grad, *small)
            return torch.tensor(found)
        size = n if wide.device.type != "cpu" else max(1, BLOCK_ENTRIES // (2 * c))
        blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        d = wide.new_empty(n)
        for rows in blocks:
            part = _Projected.of(wide[rows], weight, bias)
            d[rows] = part.alike()
        loss, pull = _contrast(d, terms)
        pull *= contrast
        loss = loss * contrast
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        for rows in blocks:
            if len(blocks) > 1:  # else it is still at hand
                part = _Projected.of(wide[rows], weight, bias)
            through = _through_head(part, d[rows], pull[rows])
            flat = through.view(c, -1)
            grad_weight.addmm_(flat, part.z.view(c, -1).T)
            grad_bias += flat.sum(dim=1)
            back = (weight.T @ flat).view_as(through)
            value, mixed = _output_terms(part.z, terms, rows, entropy / n)
            loss += value
            back[:, 0].add_(mixed, alpha=1 - terms.eta)
            back[:, 1].add_(mixed, alpha=terms.eta)
            grad[rows].view(-1, 2, c).copy_(back.permute(2, 1, 0))
        ctx.save_for_backward(grad, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        whole, weight, bias = ctx.saved_tensors
        if float(grad) != 1.0:  # it is, where the loss is all that is minimised
            whole, weight, bias = whole * grad, weight * grad, bias * grad
        return whole, weight, bias, *[None] * 4


def _contrast(d: Tensor, terms: Terms) -> tuple[Tensor, Tensor]:
    """The contrast of d, and its gradient.

    ∂/∂d is σ(log Neg − log Pos)/τ times the softmax of d/τ within the NELU nodes, and
    minus that within the ELU nodes.
    """
    # index_select and scatter_ take half the time of indexing.
    log_pos, share_pos = _log_mean_exp(d.index_select(0, terms.elu) / terms.tau)
    log_neg, share_neg = _log_mean_exp(d.index_select(0, terms.nelu) / terms.tau)
    apart = log_neg - log_pos
    pull = torch.sigmoid(apart) / terms.tau
    grad = torch.zeros_like(d)
    grad.scatter_(0, terms.nelu, share_neg.mul_(pull))
    grad.scatter_(0, terms.elu, share_pos.mul_(-pull))
    return F.softplus(apart), grad


def _log_mean_exp(v: Tensor) -> tuple[Tensor, Tensor]:
    """The log of the mean exponential, safe for large entries, and its gradient."""
    total = torch.logsumexp(v, dim=0)
    return total - math.log(v.numel()), (v - total).exp_()


def _through_head(part: _Projected, d: Tensor, pull: Tensor) -> Tensor:
    """The gradient of W Z + b, c×2×b: ∂d/∂ē = (p̃ − d p̄) / ‖ē‖. Overwrites E."""
    a, b = part.p[:, 0], part.p[:, 1]
    out = torch.empty_like(part.p)
    torch.addcmul(b, d, a, value=-1, out=out[:, 0])
    torch.addcmul(a, d, b, value=-1, out=out[:, 1])
    out *= part.inverse.mul_(pull)
    # elu'(u) = min(elu(u), 0) + 1
    return out.mul_(part.e.clamp_max_(0.0).add_(1.0))


def _output_terms(
    z: Tensor, terms: Terms, rows: slice, entropy: float
) -> tuple[Tensor, Tensor]:
    """Cross-entropy and entropy of a block's output, and their gradient, c×b.

    ∂CE/∂m = w (p − y) and ∂entropy/∂m = −p (log p − Σ p log p): one softmax for both.
    """
    target, weight = terms.target[rows].unsqueeze(0), terms.weight[rows]
    log_p = F.log_softmax(torch.lerp(z[:, 0], z[:, 1], terms.eta), dim=0)
    p = log_p.exp()
    each = (p * log_p).sum(dim=0)
    value = torch.dot(weight, log_p.gather(0, target)[0]) + entropy * each.sum()
    grad = torch.sub(each, log_p, out=log_p).mul_(entropy).add_(weight).mul_(p)
    return -value, grad.scatter_add_(0, target, -weight.unsqueeze(0))
