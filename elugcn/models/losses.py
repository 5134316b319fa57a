"""Terms of objectives that several methods share.

The terms of eq. 12 belong to the engine: ``two_view_loss``, ``contrastive_loss`` and
``entropy_loss``. A softmax over short rows is slow, so terms that read every node are
computed on the transposed logits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def weighted_cross_entropy(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Σ_i w_i CE(z_i, y_i), O(m·c).

    Args:
        logits: m×c.
        target: Class of each row, (m,).
        weight: Weight of each row, (m,); they sum to the weight of the whole term.
    """
    by_class = logits.T.contiguous().unsqueeze(0)  # 1×c×m: one "image" of m points
    each = F.cross_entropy(by_class, target.unsqueeze(0), reduction="none")
    return (each[0] * weight).sum()


def consistency_loss(outputs: Sequence[Tensor], temperature: float) -> Tensor:
    """Distance of each draw's probabilities to their sharpened mean, O(draws·n·c).

    (1/M) Σ_m mean_i ‖p̄'_i − p_i⁽ᵐ⁾‖² with p̄' ∝ p̄^(1/T), through which no gradient
    flows (GRAND, Feng et al., NeurIPS 2020, eq. 5 and 6).

    Args:
        outputs: Logits n×c of each draw.
        temperature: T > 0.
    """
    p = F.softmax(torch.stack([z.T for z in outputs]), dim=1)  # m×c×n
    with torch.no_grad():
        # Sharpened in logarithms: powers of small probabilities would underflow.
        target = F.softmax(p.mean(dim=0).log() / temperature, dim=0)
    return (p - target).square().sum() / (p.size(0) * p.size(2))


def info_nce(a: Tensor, b: Tensor, tau: float) -> Tensor:
    """How hard it is to find a row's partner among all rows, O(m²·h).

    −½ mean_i [log softmax_j(cos(a_i, b_j)/τ)_i + log softmax_j(cos(b_i, a_j)/τ)_i]

    Args:
        a: m×h.
        b: m×h; row i belongs to row i of ``a``.
        tau: Temperature τ > 0.
    """
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1) / tau
    similarity = a @ b.T
    if tau < 0.05:
        forth, back = similarity.logsumexp(dim=1), similarity.logsumexp(dim=0)
    else:
        # Entries are within ±1/τ: one exponential serves rows and columns, safely.
        e = (similarity - 1 / tau).exp()
        forth, back = (e.sum(dim=i).log() + 1 / tau for i in (1, 0))
    return ((forth + back) / 2 - (a * b).sum(dim=1)).mean()
