"""The first layer of both views at once: Z ↦ (Â Z, L (Rᵀ Z)).

The second stays in factors: c rows instead of n, until a block of rows is needed. The
gradients meet in Z, and the second is added to the first while it is computed, without
an n×h matrix of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd import Function

from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR, multiply, transposed_product


@dataclass(frozen=True)
class Factored:
    """A hidden layer L M that has not been multiplied out.

    Attributes:
        left: L, n×c, without gradients.
        right: M, c×h.
        spare: n×h, no longer needed: may be overwritten with what L M becomes.
    """

    left: Tensor
    right: Tensor
    spare: Tensor | None = None

    def dense(self) -> Tensor:
        """L M, n×h."""
        return self.left @ self.right


def both_views(
    adj: CSR, graph: LowRankGraph, z: Tensor, last_use: bool = False
) -> tuple[Tensor, Factored]:
    """Â Z, and S* Z in factors, O(nnz(Â)·h + n·c·h), with gradients to Z.

    With ``last_use`` nobody else reads Z, whose place is then spare: neither product
    needs it again.
    """
    first, right = _Both.apply(z, adj, graph)  # type: ignore[no-untyped-call]
    spare = z.detach() if last_use and z.grad_fn is not None else None
    return first, Factored(graph.left, right, spare)


class _Both(Function):
    """Z ↦ (Â Z, Rᵀ Z); the gradient is Âᵀ G₁ + R G₂."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, adj: CSR, graph: LowRankGraph
    ) -> tuple[Tensor, Tensor]:
        ctx.adj, ctx.graph = adj, graph
        first = multiply(adj.crow, adj.col, adj.value, adj.n_cols, z)
        return first, graph.right.T @ z

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> tuple[Tensor, None, None]:
        adj, graph = ctx.adj, ctx.graph
        total = transposed_product(adj, adj.value, first)
        return total.addmm_(graph.right, second), None, None
