"""The first layer of both views at once: Z ↦ (Â Z, L (Rᵀ Z)).

Their gradients meet in Z. Here the second is added to the first while it is computed,
without an n×h matrix of its own and the pass that would add it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR, multiply, transposed_product


def both_views(adj: CSR, graph: LowRankGraph, z: Tensor) -> tuple[Tensor, Tensor]:
    """Â Z and S* Z, O(nnz(Â)·h + n·c·h), with gradients to Z."""
    out: tuple[Tensor, Tensor] = _Both.apply(z, adj, graph)  # type: ignore[no-untyped-call]
    return out


class _Both(torch.autograd.Function):
    """The gradient is Âᵀ G₁ + R (Lᵀ G₂)."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, adj: CSR, graph: LowRankGraph
    ) -> tuple[Tensor, Tensor]:
        ctx.adj, ctx.graph = adj, graph
        first = multiply(adj.crow, adj.col, adj.value, adj.n_cols, z)
        return first, graph.left @ (graph.right.T @ z)

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, None, None]:
        adj, graph = ctx.adj, ctx.graph
        total = transposed_product(adj, adj.value, first)
        return total.addmm_(graph.right, graph.left.T @ second), None, None
