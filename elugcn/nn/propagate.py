"""Products with Â, and with S* beside it, that take the memory that is already there.

    Z ↦ Â Z (+ b)    the gradient is Âᵀ G₁
    Z ↦ (Â Z, Rᵀ Z)  the gradient is Âᵀ G₁ + R G₂

S* = L Rᵀ stays in factors: c rows instead of n, until a block of rows is needed.
Neither product needs Z again: where nobody else does, its gradient is written over it,
if it is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd import Function

from elugcn.core.operators import LowRankGraph
from elugcn.core.places import is_large
from elugcn.core.products import multiply, transposed_product
from elugcn.core.sparse import CSR


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


@dataclass(frozen=True)
class _How:
    """What a product needs besides Z.

    Attributes:
        adj: Â.
        graph: S*, for a second product.
        spare: Z itself, if it may be overwritten.
    """

    adj: CSR
    graph: LowRankGraph | None
    spare: Tensor | None


def propagate(
    adj: CSR,
    z: Tensor,
    place: Tensor | None = None,
    last_use: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """Â Z + b, O(nnz(Â)·h), with gradients to Z and b.

    Args:
        adj: Â, without gradients.
        z: n×h.
        place: n×h, for the product.
        last_use: Nobody else reads Z.
        bias: b, for every row; repeated if Z has several times as many columns.
    """
    how = _How(adj, None, _spare(z, last_use))
    out: Tensor = _Product.apply(z, bias, how, [place])  # type: ignore[no-untyped-call]
    return out


def both_views(
    adj: CSR,
    graph: LowRankGraph,
    z: Tensor,
    place: Tensor | None = None,
    last_use: bool = False,
) -> tuple[Tensor, Factored]:
    """Â Z, and S* Z in factors, O(nnz(Â)·h + n·c·h); arguments as ``propagate``.

    With ``last_use`` S* Z, once multiplied out, takes the place of Z, until the
    gradient of Z does.
    """
    spare = _spare(z, last_use)
    how = _How(adj, graph, spare)
    first, right = _Product.apply(z, None, how, [place])  # type: ignore[no-untyped-call]
    return first, Factored(graph.left, right, spare)


def _spare(z: Tensor, last_use: bool) -> Tensor | None:
    # Who made a leaf may look at it again, whatever the caller says.
    return z.detach() if last_use and z.grad_fn is not None else None


class _Product(Function):
    """Z, b ↦ Â Z + b, and Rᵀ Z if there is a second view."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        bias: Tensor | None,
        how: _How,
        place: list[Tensor | None],
    ) -> Tensor | tuple[Tensor, Tensor]:
        # The place becomes the output: kept here, the two would hold each other.
        ctx.how, adj = how, how.adj
        first = multiply(adj.crow, adj.col, adj.value, adj.n_cols, z, *place)
        ctx.width = 0 if bias is None else bias.numel()
        if bias is not None:
            first += bias.repeat(z.size(1) // ctx.width)
        return first if how.graph is None else (first, how.graph.right.T @ z)

    @staticmethod
    def backward(
        ctx: Any, first: Tensor, second: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, None, None]:
        adj, graph = ctx.how.adj, ctx.how.graph
        out, bias = ctx.how.spare, None
        if ctx.width:
            bias = first.sum(dim=0).view(-1, ctx.width).sum(dim=0)
        if out is not None and not is_large(out.shape, out.dtype):
            out = None  # a new array is at hand, and blocks of rows cost some calls
        total = transposed_product(adj, adj.value, first, out)
        if graph is not None and second is not None:
            total.addmm_(graph.right, second)
        return total, bias, None, None
