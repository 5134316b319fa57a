"""Label propagation with exact clamping (the paper's reference LPA).

    Y ← α Â Y + (1 − α) Y,    then the training rows are put back,

repeated ``steps`` times. By Proposition 1 the share of class l in row i is the
influence that the labelled nodes of that class have on node i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.sparse import CSR


class Spreading(Protocol):
    """A non-negative n×n operator on label distributions."""

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an n×c matrix."""


def one_hot_rows(labels: Tensor, num_classes: int) -> Tensor:
    """Y (n×c, float32): one-hot rows where ``labels`` ≥ 0, zero rows elsewhere."""
    y = F.one_hot(labels.clamp(min=0), num_classes).float()
    return y * (labels >= 0).unsqueeze(1)


def propagate_labels(
    adj: Spreading,
    labels: Tensor,
    num_classes: int,
    steps: int = 50,
    alpha: float = 0.9,
) -> Tensor:
    """The label distribution of every node, O(steps · nnz · c).

    Args:
        adj: Â, n×n, or any operator that spreads rows.
        labels: Class of each training node, −1 elsewhere, shape (n,).
        num_classes: c.
        steps: How far labels may travel, in hops.
        alpha: Share of the neighbours' labels in each step.

    Returns:
        n×c, rows sum to 1; a node that no label reaches in ``steps`` hops has a
        zero row, so that it is never mistaken for class 0. Training rows are exactly
        one-hot, after every step.
    """
    known = labels >= 0
    y0 = one_hot_rows(labels, num_classes)[known]
    y = one_hot_rows(labels, num_classes)
    for _ in range(steps):
        y.lerp_(adj @ y, alpha)
        y[known] = y0
    return normalize_rows(y)


def normalize_rows(y: Tensor) -> Tensor:
    """Rows of a non-negative matrix scaled to sum 1; zero rows stay zero."""
    total = y.sum(dim=1, keepdim=True)
    return y / torch.where(total > 0, total, torch.ones_like(total))


@dataclass(frozen=True)
class MixedOrder:
    """Π = (I + Â + … + Âᴷ) / (K + 1) as an operator: K products of O(nnz·k) each."""

    adj: CSR
    order: int

    def __matmul__(self, z: Tensor) -> Tensor:
        out: Tensor = _Mixed.apply(z, self)  # type: ignore[no-untyped-call]
        return out

    def multiply(self, adj: CSR, z: Tensor) -> Tensor:
        """Horner's scheme, t ← Â t + z, with one buffer and no autograd records."""
        total = z
        for _ in range(self.order):
            total = (adj @ total).add_(z)
        return total / (self.order + 1)


class _Mixed(torch.autograd.Function):
    """z ↦ Π z; the gradient is Πᵀ g, the same sum with Âᵀ."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, mixed: MixedOrder) -> Tensor:
        ctx.mixed = mixed
        return mixed.multiply(mixed.adj, z)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        mixed: MixedOrder = ctx.mixed
        return mixed.multiply(mixed.adj.T, grad), None
