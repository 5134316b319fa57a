"""The terms of the objective: eq. 12, and targets from ELU nodes.

L = CE(Ŷ, Y) + λ · (contrast + entropy)

Rows of c scores are short: a softmax over each is many small loops. Stored by columns
(c×n) the same softmax runs along n, several times as fast, so the terms that read every
node turn their input first.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def contrastive_loss(
    p_original: Tensor,
    p_elu: Tensor,
    elu: Tensor,
    nelu: Tensor,
    tau: float,
    kind: str = "similarity",
) -> Tensor:
    """−log(Pos / (Pos + Neg)), the first term of eq. 12, O(n·c).

    Pos is the mean over ELU nodes of exp(d/τ) between a node's two projections, Neg
    the same over NELU nodes. The text calls d a distance, yet wants ELU nodes close
    and NELU nodes apart: as printed, the sign does that only for a **similarity**.

    Args:
        p_original: Projections of the original view, rows of length 1, n×c.
        p_elu: Projections of the ELU view, n×c.
        elu: Mask or indices of the ELU nodes.
        nelu: Mask or indices of the NELU nodes.
        tau: Temperature τ > 0.
        kind: ``"similarity"`` (cosine), or ``"distance"``: the public code, squared
            distance averaged before the exponential, which pushes the other way.

    Returns:
        A scalar; zero if one of the sets is empty (there is nothing to contrast).
    """
    # One number a node before nodes are picked: a vector is cheap to index.
    d = _alike(p_original, p_elu, kind)
    a, b = d[elu], d[nelu]
    if a.numel() == 0 or b.numel() == 0:
        return p_original.sum() * 0.0
    if kind == "distance":
        log_pos, log_neg = a.mean() / tau, b.mean() / tau
    else:
        # log of a mean of exponentials, safe for small τ
        log_pos = torch.logsumexp(a / tau, dim=0) - math.log(a.numel())
        log_neg = torch.logsumexp(b / tau, dim=0) - math.log(b.numel())
    return F.softplus(log_neg - log_pos)


def _alike(p: Tensor, q: Tensor, kind: str) -> Tensor:
    if kind == "distance":
        return (p - q).pow(2).sum(dim=1)
    return (p * q).sum(dim=1)


def entropy_loss(logits: Tensor) -> Tensor:
    """−(1/n) Σ ŷ log ŷ, the second term of eq. 12, O(n·c)."""
    out: Tensor = _Entropy.apply(logits)  # type: ignore[no-untyped-call]
    return out


class _Entropy(torch.autograd.Function):
    """Value and gradient in one pass: ∂/∂z = −p (log p − Σ p log p) / n."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        log_p = F.log_softmax(columns(logits), dim=0)
        p = log_p.exp()
        each = (p * log_p).sum(dim=0)
        gradient = (each - log_p).mul_(p).div_(max(1, logits.size(0)))
        ctx.save_for_backward(gradient.T)
        return -each.mean()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (gradient,) = ctx.saved_tensors
        out: Tensor = gradient * grad
        return out


def columns(z: Tensor) -> Tensor:
    """The same matrix with its columns as rows, n×c to c×n, stored so."""
    return z.T.contiguous()


def weighted_cross_entropy(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Σ w_i CE_i for weights that already sum to what the term should weigh."""
    # One "image" of m points: the layout in which classes lie apart.
    turned = columns(logits).unsqueeze(0)
    each = F.cross_entropy(turned, target.unsqueeze(0), reduction="none")
    return (each[0] * weight).sum()


def info_nce(a: Tensor, b: Tensor, tau: float) -> Tensor:
    """How hard it is to find a row's partner among all rows, both ways, O(m²·h).

    −½ mean_i [log softmax_j(cos(a_i, b_j)/τ)_i + log softmax_j(cos(b_i, a_j)/τ)_i]

    Args:
        a: m×h; m is a sample where there are many nodes.
        b: m×h, row i belongs to row i of ``a``.
        tau: Temperature τ > 0.
    """
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1) / tau
    alike = a @ b.T
    if tau < 0.05:
        there, back = alike.logsumexp(dim=1), alike.logsumexp(dim=0)
    else:
        # Entries are within ±1/τ: one exponential serves rows and columns, safely.
        e = (alike - 1 / tau).exp()
        there, back = (e.sum(dim=i).log() + 1 / tau for i in (1, 0))
    return ((there + back) / 2 - (a * b).sum(dim=1)).mean()


def consistency_loss(outputs: list[Tensor], temperature: float) -> Tensor:
    """Distance of each draw's probabilities to their sharpened mean, O(draws·n·c).

    (1/M) Σ_m mean_i ‖p̄'_i − p_i⁽ᵐ⁾‖², where p̄' ∝ p̄^(1/T) and no gradient flows into
    it (GRAND, Feng et al., NeurIPS 2020, eq. 5 and 6).
    """
    # m×c×n: all draws at once.
    p = F.softmax(torch.stack([z.T for z in outputs]), dim=1)
    with torch.no_grad():
        # p̄^(1/T) scaled to sum 1, in logarithms: flat rows would underflow.
        target = F.softmax(p.mean(dim=0).log() / temperature, dim=0)
    return (p - target).square().sum() / (p.size(0) * p.size(2))
