"""The largest singular values of a sparse matrix whose entries are being learned.

Power iteration on a block of vectors gives M ≈ U Σ Vᵀ for the largest values. With U
and V held fixed, Σ_i u_iᵀ M v_i is their sum and u_i v_iᵀ its gradient: exactly the
gradient of the sum of singular values, for the price of a few products with M.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elugcn.core.edge_weights import Weighted


class SingularSum:
    """σ₁ + … + σ_rank of a square matrix that changes a little from call to call.

    Each call goes on from the vectors of the last one, so that a few steps suffice.

    Args:
        rank: How many values.
        steps: Power steps a call.
    """

    def __init__(self, rank: int = 1, steps: int = 2) -> None:
        self.rank = rank
        self.steps = steps
        self._right: Tensor | None = None

    def __call__(self, weights: Weighted) -> Tensor:
        """The sum, with gradients to the entries; O(steps·nnz·rank)."""
        with torch.no_grad():
            matrix, turned = weights.matrix, weights.turned
            right = self._right
            if right is None:
                n = matrix.n_cols
                right = torch.rand(n, min(self.rank, n)).to(weights.value)
            for _ in range(self.steps):
                left = torch.linalg.qr(matrix @ right).Q
                right = torch.linalg.qr(turned @ left).Q
            self._right = right
            # Both bases turned so that the i-th vectors belong to the i-th value.
            u, _, vh = torch.linalg.svd(left.T @ (matrix @ right))
            left, right = left @ u, right @ vh.T
        total: Tensor = (left * (weights @ right)).sum()
        return total
