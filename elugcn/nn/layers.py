"""The first product of every model: dropout(X) W for sparse or dense X."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.dense import add_transposed_product, dense_product
from elugcn.core.places import NOWHERE, Places
from elugcn.core.products import transposed_product
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR
from elugcn.nn.dropped import dropped_product

Features = CSR | Tensor


def drop_matmul(
    x: Features, weight: Tensor, p: float, training: bool, places: Places = NOWHERE
) -> Tensor:
    """dropout(X) W. On sparse X only stored entries are dropped (zeros stay zero).

    Places are for what is large: a product in one of them is overwritten by the next.
    """
    if isinstance(x, CSR):
        return x.dropout(p, training) @ weight
    if not training or p == 0.0 or x.requires_grad or x.device.type != "cpu":
        return dropout(x, p, training) @ weight
    return dropped_product(x, weight, p, places)


class RowNorm(nn.Module):
    """Rows scaled to length one; zero rows stay zero."""

    def forward(self, x: Tensor) -> Tensor:
        """Rows x / ‖x‖₂."""
        return F.normalize(x, dim=1)


class SharedProduct:
    """X W, computed once for an evaluation and the training step that follows it.

    Without dropout on X the product that validates an epoch is the one that the next
    epoch trains on, and all random draws of an epoch share it: where X is dense, a
    third to a half of a training step. A product is used in one training step only:
    weights change after it.
    """

    def __init__(self) -> None:
        self._of: tuple[Features, Tensor, int] | None = None
        self._product = torch.empty(0)

    def __call__(self, x: Features, weight: Tensor, training: bool) -> Tensor:
        """X W with gradients to W, O(nnz(X)·h) unless it is known."""
        if not (training and self._known(x, weight)):
            with torch.no_grad():
                self._product = _product(x, weight)
            self._of = (x, weight, weight._version)
        if not (torch.is_grad_enabled() and weight.requires_grad):
            return self._product
        out: Tensor = _Known.apply(weight, x, self._product)  # type: ignore[no-untyped-call]
        return out

    def forget(self) -> None:
        """The weights are about to change."""
        self._of, self._product = None, torch.empty(0)

    def _known(self, x: Features, weight: Tensor) -> bool:
        if self._of is None:
            return False
        # Changes of a tensor's entries raise its version (a fused optimiser's do not).
        of, by, version = self._of
        return of is x and by is weight and version == weight._version


def _product(x: Features, weight: Tensor) -> Tensor:
    return x @ weight if isinstance(x, CSR) else dense_product(x, weight)


class _Known(torch.autograd.Function):
    """W ↦ X W where the value is known; the gradient is Xᵀ g."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Features, product: Tensor) -> Tensor:
        ctx.x = x
        return product.view_as(product)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x = ctx.x
        if isinstance(x, CSR):
            return transposed_product(x, x.value, grad), None, None
        out = grad.new_zeros(grad.size(1), x.size(1))
        return add_transposed_product(out, x, grad).T.contiguous(), None, None
