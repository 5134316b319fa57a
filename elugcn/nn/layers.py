"""The first product of every model: dropout(X) W for sparse or dense X."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.random import dropout
from elugcn.core.sparse import CSR

Features = CSR | Tensor


def drop_matmul(x: Features, weight: Tensor, p: float, training: bool) -> Tensor:
    """dropout(X) W. On sparse X only stored entries are dropped (zeros stay zero)."""
    if isinstance(x, CSR):
        return x.dropout(p, training) @ weight
    return dropout(x, p, training) @ weight


class RowNorm(nn.Module):
    """Rows scaled to length one; zero rows stay zero."""

    def forward(self, x: Tensor) -> Tensor:
        """Rows x / ‖x‖₂."""
        return F.normalize(x, dim=1)
