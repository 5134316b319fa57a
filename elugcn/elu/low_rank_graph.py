"""The ELU graph S* as an operator: in factors, or with stored entries.

``LowRankGraph`` is S = L Rᵀ with two n×c factors. ``ExplicitGraph`` holds stored
entries, for those who ask for edges. Both have the same methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Literal, Self

import torch
from torch import Tensor

from elugcn.elu.sparsify import GraphMode, largest_entries, topk_entries
from elugcn.engine import CSR, LowRank, rows_of
from elugcn.errors import InputError

Scaling = Literal["none", "row"]


class ELUGraph(ABC):
    """An n×n graph: ``graph @ Z``, ``graph.T``, ``rows``, ``topk``, ``to_sparse``."""

    def __init__(self, operator: LowRank | CSR, rank: int, mode: str) -> None:
        self.operator = operator  # the matrix that networks multiply by
        self.rank = rank  # an upper bound
        self.mode = mode  # "implicit", "topk" or "paper"
        self.shape = operator.shape

    @abstractmethod
    def _with(self, operator: Any) -> Self:
        """The same kind of graph with another operator."""

    @property
    def T(self) -> Self:
        """The transposed graph."""
        return self._with(self.operator.T)

    def to(self, device: torch.device) -> Self:
        """The graph on another device."""
        return self._with(self.operator.to(device))

    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index``, or of a mask, as a dense m×n matrix."""
        n, operator = self.shape[0], self.operator
        numbers = index.cpu() if isinstance(index, Tensor) else index
        try:
            chosen = torch.arange(n)[numbers].reshape(-1)
        except IndexError:
            raise InputError(
                f"rows must be indices from 0 to {n - 1} or a mask of {n} entries; "
                f"got {index}"
            ) from None
        if isinstance(operator, LowRank):
            return operator.left[chosen] @ operator.right.T
        rows = rows_of(operator, chosen)
        assert isinstance(rows, CSR)
        return rows.to_dense().to(operator.value.device)

    def distinct(self) -> tuple[ELUGraph, Tensor | None]:
        """A graph of distinct rows, and which of them each row is (None: itself)."""
        return self, None

    def __matmul__(self, z: Any) -> Tensor:
        """S Z for an n×h matrix, with gradients to Z; numpy arrays are converted."""
        like = self.rows([])
        if not isinstance(z, Tensor) or z.dtype != like.dtype:
            z = torch.as_tensor(z, dtype=like.dtype, device=like.device)
        out: Tensor = self.operator @ z
        return out

    def to_dense(self) -> Tensor:
        """All n² entries, for tests and very small graphs."""
        return self.operator.to_dense()

    def topk(self, k: int) -> ExplicitGraph:
        """The k entries of largest absolute value of each row; the others are zero."""
        return ExplicitGraph(topk_entries(self, k), "topk")

    def to_sparse(self, keep: float | None = 0.1, k: int | None = None) -> CSR:
        """Stored entries: the largest share ``keep`` (None: all), or k per row."""
        if k is not None:
            return topk_entries(self, k)
        return largest_entries(self, 1.0 if keep is None else keep)

    def __repr__(self) -> str:
        n = self.shape[0]
        return f"{type(self).__name__}(n={n}, rank≤{self.rank}, mode={self.mode!r})"


class LowRankGraph(ELUGraph):
    """S = L Rᵀ: O(n·c) memory, O(n·c·h) time for a product with an n×h matrix."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        super().__init__(LowRank(left, right), left.size(1), "implicit")
        self.left, self.right = left, right  # L and R, n×c

    def _with(self, operator: LowRank) -> LowRankGraph:
        return LowRankGraph(operator.left, operator.right)

    def distinct(self) -> tuple[LowRankGraph, Tensor | None]:
        """Equal rows of L are equal rows of S; mostly distinct rows are left alone.

        In the paper's form every labelled node of a class has the same row.
        """
        rows, group = torch.unique(self.left, dim=0, return_inverse=True)
        if 2 * len(rows) > len(group):
            return self, None
        return LowRankGraph(rows, self.right), group

    @cached_property
    def mean_row_sum(self) -> float:
        """Mean over nodes of |Σ_j S_ij|, O(n·c)."""
        return float((self.left @ self.right.sum(dim=0)).abs().mean())

    def scaled(self, scaling: Scaling) -> LowRankGraph:
        """S rescaled, still in factors.

        ``"row"`` divides each row by its sum, so that S averages over nodes; the
        divisor is at least a tenth of the mean row sum. ``"none"`` does nothing.
        """
        row_sum = self.left @ self.right.sum(dim=0)
        left = scale_rows(self.left, row_sum, self.mean_row_sum, scaling)
        return LowRankGraph(left, self.right)

    def in_mode(self, mode: GraphMode, topk: int, keep: float) -> ELUGraph:
        """The factors, ``topk`` entries per row, or the largest share ``keep``."""
        if mode == "implicit":
            return self
        csr = self.to_sparse(keep, topk if mode == "topk" else None)
        return ExplicitGraph(csr.to(self.left.device), mode)


def scale_rows(left: Tensor, row_sum: Tensor, mean: float, scaling: Scaling) -> Tensor:
    """Rows of the left factor, m×c, divided as ``LowRankGraph.scaled`` says.

    ``row_sum`` has their sums in S, (m,), and ``mean`` is the mean row sum of S.
    """
    if scaling == "none" or mean == 0.0:
        return left
    # S has negative entries, so a row may sum to zero or less: the floor keeps its
    # signs and its size.
    return left / row_sum.clamp(min=0.1 * mean).unsqueeze(1)


class ExplicitGraph(ELUGraph):
    """A graph with stored entries, as the modes ``topk`` and ``paper`` make it.

    Leaving entries out lifts the bound c of the rank: only n is certain.
    """

    def __init__(self, csr: CSR, mode: str = "topk") -> None:
        super().__init__(csr, min(csr.shape), mode)
        self.csr = csr

    def _with(self, operator: CSR) -> ExplicitGraph:
        return ExplicitGraph(operator, self.mode)
