"""The ELU graph S* as an operator: in factors, or with stored entries.

``LowRankGraph`` is S = L Rᵀ with two n×c factors. ``ExplicitGraph`` holds stored
entries, for those who ask for edges. Both have the same methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from elugcn.engine import CSR, LowRank
from elugcn.errors import InputError

Scaling = Literal["none", "row", "mean"]
GraphMode = Literal["implicit", "topk", "paper"]

# Entries of S that are held at once while rows are computed in blocks: 64 MB.
BLOCK_ENTRIES = 1 << 24


class ELUGraph(ABC):
    """An n×n graph: ``graph @ Z``, ``graph.T``, ``rows``, ``topk``, ``to_sparse``.

    Attributes:
        mode: ``implicit``, ``topk`` or ``paper``.
    """

    mode: str

    @property
    @abstractmethod
    def operator(self) -> LowRank | CSR:
        """The matrix that networks multiply by."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """An upper bound of the rank."""

    @property
    @abstractmethod
    def T(self) -> ELUGraph:
        """The transposed graph."""

    @abstractmethod
    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index`` as a dense m×n matrix (1×n for one index)."""

    @abstractmethod
    def to(self, device: torch.device) -> ELUGraph:
        """The graph on another device."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.operator.shape

    def __matmul__(self, z: Any) -> Tensor:
        """S Z for an n×k matrix, with gradients to Z; numpy arrays are converted."""
        like = self._values
        if not isinstance(z, Tensor) or z.dtype != like.dtype:
            z = torch.as_tensor(z, dtype=like.dtype, device=like.device)
        return self.operator @ z

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Dense blocks of rows, of bounded size."""
        n, m = self.shape
        size = max(1, BLOCK_ENTRIES // max(1, m))
        for start in range(0, n, size):
            stop = min(start + size, n)
            yield slice(start, stop), self.rows(torch.arange(start, stop))

    def to_dense(self) -> Tensor:
        """All n² entries, for tests and very small graphs."""
        return self.rows(torch.arange(self.shape[0]))

    def topk(self, k: int) -> ExplicitGraph:
        """The k entries of largest absolute value of each row; the others are zero."""
        from elugcn.elu.sparsify import topk_graph

        return topk_graph(self, k)

    def to_sparse(self, keep: float | None = 0.1, k: int | None = None) -> CSR:
        """Stored entries: the largest share ``keep`` (None: all), or k per row."""
        from elugcn.elu.sparsify import paper_graph

        if k is not None:
            return self.topk(k).csr
        return paper_graph(self, 1.0 if keep is None else keep).csr

    def quantile(self, q: float) -> float:
        """The q-quantile of the absolute entries, O(n²·c) time in blocks of rows."""
        from elugcn.elu.sparsify import quantile

        return quantile(self, q)

    def __repr__(self) -> str:
        n = self.shape[0]
        return f"{type(self).__name__}(n={n}, rank≤{self.rank}, mode={self.mode!r})"

    @property
    @abstractmethod
    def _values(self) -> Tensor:
        """A tensor with the graph's dtype and device."""


@dataclass(frozen=True, eq=False, repr=False)
class LowRankGraph(ELUGraph):
    """S = left · rightᵀ: O(n·c) memory, O(n·c·k) per product.

    Attributes:
        left: n×c.
        right: n×c.
    """

    left: Tensor
    right: Tensor
    mode = "implicit"

    @property
    def operator(self) -> LowRank:
        """The same product, for the engine."""
        return LowRank(self.left, self.right)

    @property
    def rank(self) -> int:
        """Number of columns of the factors: c."""
        return self.left.size(1)

    @property
    def T(self) -> LowRankGraph:
        """Left and right exchanged."""
        return LowRankGraph(self.right, self.left)

    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index``, m×n."""
        return self.left[_as_index(index, self.shape[0])] @ self.right.T

    def to(self, device: torch.device) -> LowRankGraph:
        """The factors on another device."""
        return LowRankGraph(self.left.to(device), self.right.to(device))

    @cached_property
    def groups(self) -> tuple[Tensor, Tensor] | None:
        """Distinct rows of the left factor, and the group of each node.

        Equal rows of the left factor are equal rows of S. In the paper's form every
        clamped node of a class has the same row. None if most rows are distinct.
        """
        distinct, group = torch.unique(self.left, dim=0, return_inverse=True)
        return (distinct, group) if 2 * len(distinct) <= len(group) else None

    @cached_property
    def mean_row_sum(self) -> float:
        """Mean over nodes of |Σ_j S_ij|, O(n·c)."""
        return float((self.left @ self.right.sum(dim=0)).abs().mean())

    def scaled(self, scaling: Scaling) -> LowRankGraph:
        """S rescaled, still in factors.

        ``"row"`` divides each row by its sum, so that S averages over nodes; the
        divisor is at least a tenth of the mean row sum. ``"mean"`` divides S by its
        mean row sum, which keeps the relative size of rows. ``"none"`` does nothing.
        """
        row_sum = self.left @ self.right.sum(dim=0)
        left = scale_rows(self.left, row_sum, self.mean_row_sum, scaling)
        return LowRankGraph(left, self.right)

    def in_mode(self, mode: GraphMode, topk: int, keep: float) -> ELUGraph:
        """The factors, or an explicit graph with some of the entries."""
        from elugcn.elu.sparsify import paper_graph, topk_graph

        if mode == "implicit":
            return self
        graph = topk_graph(self, topk) if mode == "topk" else paper_graph(self, keep)
        return graph.to(self.left.device)

    @property
    def _values(self) -> Tensor:
        return self.left


def scale_rows(left: Tensor, row_sum: Tensor, mean: float, scaling: Scaling) -> Tensor:
    """Rows of the left factor, divided as ``LowRankGraph.scaled`` says.

    Args:
        left: m×c.
        row_sum: Row sums of S, (m,).
        mean: Mean absolute row sum of S.
        scaling: What rows are divided by.
    """
    if scaling == "none" or mean == 0.0:
        return left
    if scaling == "mean":
        return left / mean
    # S has negative entries, so a row may sum to zero or less: the floor keeps its
    # signs and its size.
    return left / row_sum.clamp(min=0.1 * mean).unsqueeze(1)


@dataclass(frozen=True, eq=False, repr=False)
class ExplicitGraph(ELUGraph):
    """A graph with stored entries, as the modes ``topk`` and ``paper`` make it.

    Attributes:
        csr: The entries.
        mode: How they were chosen.
    """

    csr: CSR
    mode: str = "topk"

    @property
    def operator(self) -> CSR:
        """The entries."""
        return self.csr

    @property
    def rank(self) -> int:
        """Only n is certain: leaving entries out lifts the bound of c."""
        return min(self.shape)

    @property
    def T(self) -> ExplicitGraph:
        """The transpose."""
        return ExplicitGraph(self.csr.T, self.mode)

    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index``, m×n."""
        chosen = _as_index(index, self.shape[0]).numpy(force=True)
        dense = self.csr.to_scipy()[chosen].toarray().astype(np.float32)
        return torch.from_numpy(dense).to(self.csr.value.device)

    def to(self, device: torch.device) -> ExplicitGraph:
        """The graph on another device."""
        return ExplicitGraph(self.csr.to(device), self.mode)

    @property
    def _values(self) -> Tensor:
        return self.csr.value


def _as_index(index: int | Tensor | list[int], n: int) -> Tensor:
    """Row numbers from an index, several, or a mask."""
    chosen = torch.as_tensor(index).reshape(-1)
    if chosen.dtype == torch.bool:
        if chosen.numel() != n:
            raise InputError(f"a mask must have {n} entries; got {chosen.numel()}")
        chosen = chosen.nonzero()
    chosen = chosen.long().reshape(-1)
    if chosen.numel() and (int(chosen.min()) < -n or int(chosen.max()) >= n):
        raise InputError(f"row index must be between 0 and {n - 1}; got {index}")
    return chosen
