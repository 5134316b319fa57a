"""The ELU graph as an operator: one interface, factored or explicit.

``LowRankGraph`` is S = L Rᵀ with two n×c factors; ``ExplicitGraph`` holds stored
entries. Both offer the same verbs, so a model never knows which one it multiplies by.
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

from elugcn.core.sparse import CSR
from elugcn.errors import InputError

Scaling = Literal["none", "row", "mean"]

# Entries of S held at once while rows are computed in blocks: 64 MB of float32.
_BLOCK_ENTRIES = 1 << 24


class ELUGraph(ABC):
    """An n×n graph: ``graph @ Z``, ``graph.T``, ``rows``, ``topk``, ``to_sparse``."""

    mode: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, n)."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """An upper bound on the rank."""

    @property
    @abstractmethod
    def T(self) -> ELUGraph:
        """The transposed graph."""

    @abstractmethod
    def __matmul__(self, z: Tensor) -> Tensor:
        """S Z for a dense n×k matrix, with gradients to Z."""

    @abstractmethod
    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index`` as a dense m×n matrix (1×n for a single index)."""

    @abstractmethod
    def to(self, device: torch.device) -> ELUGraph:
        """The graph on another device."""

    def blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """Dense row blocks of bounded size, for work that must see every entry."""
        n = self.shape[0]
        size = max(1, _BLOCK_ENTRIES // max(1, self.shape[1]))
        for start in range(0, n, size):
            stop = min(start + size, n)
            yield slice(start, stop), self.rows(torch.arange(start, stop))

    def to_dense(self) -> Tensor:
        """All n² entries, for tests and very small graphs."""
        return self.rows(torch.arange(self.shape[0]))

    def topk(self, k: int) -> ExplicitGraph:
        """The k entries of largest absolute value of each row, others zero."""
        from elugcn.core.sparsify import topk_graph

        return topk_graph(self, k)

    def to_sparse(self, keep: float | None = 0.1, k: int | None = None) -> CSR:
        """Stored entries: the largest ``keep`` share (None: all), or ``k`` a row."""
        from elugcn.core.sparsify import paper_graph

        if k is not None:
            return self.topk(k).csr
        return paper_graph(self, 1.0 if keep is None else keep).csr

    def quantile(self, q: float, *, exact: bool = True, seed: int = 0) -> float:
        """The q-quantile of the absolute entries, exact or from a sample."""
        from elugcn.core.sparsify import estimated_quantile, exact_quantile

        return exact_quantile(self, q) if exact else estimated_quantile(self, q, seed)

    def __repr__(self) -> str:
        n = self.shape[0]
        return f"{type(self).__name__}(n={n}, rank≤{self.rank}, mode={self.mode!r})"


@dataclass(frozen=True, eq=False, repr=False)
class LowRankGraph(ELUGraph):
    """S = left · rightᵀ, both n×c: O(n·c) memory, O(n·c·k) per product."""

    left: Tensor
    right: Tensor
    mode = "implicit"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.left.size(0), self.right.size(0)

    @property
    def rank(self) -> int:
        """Number of columns of the factors: c."""
        return self.left.size(1)

    @property
    def T(self) -> LowRankGraph:
        """Right and left exchanged."""
        return LowRankGraph(self.right, self.left)

    @cached_property
    def groups(self) -> tuple[Tensor, Tensor] | None:
        """Distinct rows of the left factor and the group of each node, if that pays.

        Equal rows of the left factor are equal rows of S; in the paper's form every
        clamped node of a class has the same one, so row-wise work shrinks by far.
        None where most rows are distinct: gathering them back would cost more.
        """
        distinct, group = torch.unique(self.left, dim=0, return_inverse=True)
        return (distinct, group) if 2 * len(distinct) <= len(group) else None

    def __matmul__(self, z: Tensor) -> Tensor:
        z = _operand(z, self.left)
        return self.left @ (self.right.T @ z)

    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index``, m×n."""
        return self.left[_as_index(index, self.shape[0])] @ self.right.T

    def to(self, device: torch.device) -> LowRankGraph:
        """The factors on another device."""
        return LowRankGraph(self.left.to(device), self.right.to(device))

    @property
    def mean_row_sum(self) -> float:
        """Mean over nodes of |Σ_j S_ij|, O(n·c)."""
        return float((self.left @ self.right.sum(dim=0)).abs().mean())

    def scaled(self, scaling: Scaling) -> LowRankGraph:
        """S rescaled, still in factors.

        ``"row"`` divides each row by its sum (an average over the other nodes, as D⁻¹A
        is), or by a tenth of the mean row sum where that is larger; ``"mean"``
        divides all of S by its mean row sum, which keeps the relative size of rows;
        ``"none"`` leaves it.
        """
        row_sum = self.left @ self.right.sum(dim=0)
        left = scale_rows(self.left, row_sum, self.mean_row_sum, scaling)
        return LowRankGraph(left, self.right)


def scale_rows(left: Tensor, row_sum: Tensor, mean: float, scaling: str) -> Tensor:
    """Rows of the left factor divided as ``LowRankGraph.scaled`` says."""
    if scaling == "none" or mean == 0.0:
        return left
    if scaling == "mean":
        return left / mean
    # S has negative entries, so a row may sum to about zero or below: it is divided by
    # a floor instead, which keeps its signs and does not blow it up.
    return left / row_sum.clamp(min=0.1 * mean).unsqueeze(1)


@dataclass(frozen=True, eq=False, repr=False)
class ExplicitGraph(ELUGraph):
    """A graph with stored entries, as ``topk`` and ``paper`` make it."""

    csr: CSR
    mode: str = "topk"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.csr.shape

    @property
    def rank(self) -> int:
        """Sparsifying lifts the bound of c: only n is certain."""
        return min(self.shape)

    @property
    def T(self) -> ExplicitGraph:
        """The transpose, from cached indices."""
        return ExplicitGraph(self.csr.T, self.mode)

    def __matmul__(self, z: Tensor) -> Tensor:
        return self.csr @ _operand(z, self.csr.value)

    def rows(self, index: int | Tensor | list[int]) -> Tensor:
        """The rows at ``index``, m×n."""
        chosen = _as_index(index, self.shape[0]).numpy(force=True)
        dense = self.csr.to_scipy()[chosen].toarray().astype(np.float32)
        return torch.from_numpy(dense).to(self.csr.value.device)

    def to(self, device: torch.device) -> ExplicitGraph:
        """The graph on another device."""
        return ExplicitGraph(self.csr.to(device), self.mode)


def _operand(z: Any, like: Tensor) -> Tensor:
    """What a graph is multiplied by, numpy arrays and other precisions included."""
    if isinstance(z, Tensor) and z.dtype == like.dtype:
        return z
    return torch.as_tensor(z, dtype=like.dtype, device=like.device)


def _as_index(index: int | Tensor | list[int], n: int) -> Tensor:
    chosen = torch.as_tensor(index).reshape(-1)
    if chosen.dtype == torch.bool:
        if chosen.numel() != n:
            raise InputError(f"a mask must have {n} entries; got {chosen.numel()}")
        chosen = chosen.nonzero()
    chosen = chosen.long().reshape(-1)
    if chosen.numel() and (int(chosen.min()) < -n or int(chosen.max()) >= n):
        raise InputError(f"row index must be between 0 and {n - 1}; got {index}")
    return chosen
