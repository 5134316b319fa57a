"""Sparse matrices as the training step needs them: CSR, built once, transpose kept.

Autograd through ``torch.sparse`` transposes the matrix again in every backward pass.
Here the transpose is computed once and its values follow from a permutation, so a
matrix whose stored values change each step (dropout on sparse features, learned edge
weights) pays for new values only, never for new indices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from elugcn import compiled
from elugcn.core.products import multiply, transposed_product
from elugcn.core.random import draw_bytes, draw_mask
from elugcn.core.transpose import Pattern


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse n×m matrix in compressed-row form.

    Attributes:
        crow: Row pointers, shape (n+1,).
        col: Column of each stored entry, shape (nnz,), ascending within a row.
        value: The stored entries, shape (nnz,).
        n_cols: m.
        symmetric: The matrix equals its transpose, so none has to be built.
    """

    crow: Tensor
    col: Tensor
    value: Tensor
    n_cols: int
    symmetric: bool = False
    _pattern: Pattern | None = None

    @classmethod
    def from_scipy(cls, matrix: Any, symmetric: bool = False) -> CSR:
        """Any scipy sparse matrix; duplicates are summed, float32 values."""
        csr = sp.csr_matrix(matrix)
        csr.sum_duplicates()
        index = np.int32 if max(csr.nnz, *csr.shape) < 2**31 else np.int64
        return cls(
            torch.from_numpy(csr.indptr.astype(index)),
            torch.from_numpy(csr.indices.astype(index)),
            torch.from_numpy(csr.data.astype(np.float32)),
            int(csr.shape[1]),
            symmetric,
        )

    @classmethod
    def from_tensor(cls, x: Tensor) -> CSR:
        """A dense or sparse torch matrix."""
        if x.layout == torch.strided:
            return cls.from_scipy(sp.csr_matrix(x.numpy(force=True)))
        csr = x.to_sparse_csr()
        matrix = sp.csr_matrix(
            (csr.values().numpy(force=True),
             csr.col_indices().numpy(force=True),
             csr.crow_indices().numpy(force=True)),
            shape=(csr.size(0), csr.size(1)),
        )  # fmt: skip
        return cls.from_scipy(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.crow.numel() - 1, self.n_cols

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.col.numel()

    @property
    def T(self) -> CSR:
        """The transpose, a view of cached indices with the values permuted."""
        if self.symmetric:
            return self
        p = self.pattern
        return CSR(
            p.crow_t,
            p.col_t,
            # Three times as fast as value[perm].
            self.value.index_select(0, p.perm),
            self.shape[0],
            _pattern=Pattern(self.crow, self.col, p.inverse, p.perm),
        )

    @property
    def pattern(self) -> Pattern:
        """The transposed indices, shared by every matrix with this pattern."""
        if self._pattern is None:
            found = Pattern.of(self.row, self.col, self.n_cols, self.crow.dtype)
            object.__setattr__(self, "_pattern", found)
        assert self._pattern is not None
        return self._pattern

    @cached_property
    def row(self) -> Tensor:
        """Row of each stored entry, shape (nnz,), int64."""
        counts = (self.crow[1:] - self.crow[:-1]).long()
        rows = torch.arange(self.shape[0], device=self.col.device)
        return torch.repeat_interleave(rows, counts)

    def with_values(self, value: Tensor) -> CSR:
        """The same pattern with other values (which may require gradients)."""
        pattern = None if self.symmetric else self.pattern
        return replace(self, value=value, symmetric=False, _pattern=pattern)

    def dropout(self, p: float, training: bool = True) -> CSR:
        """Inverted dropout on the stored entries; a dropped zero stays zero."""
        if not training or p == 0.0:
            return self
        if not self.value.requires_grad and compiled.usable(self.value):
            drawn, level = draw_bytes((self.nnz,), p)
            out = torch.empty_like(self.value)
            compiled.keep(self._scaled(256 / level), drawn, level, out)
            return self.with_values(out)
        keep, scale = draw_mask((self.nnz,), p, self.value)
        return self.with_values(keep.mul_(self._scaled(scale)))

    def _scaled(self, scale: float) -> Tensor:
        """The stored entries times a number, kept for the next epoch."""
        if self.value.requires_grad:
            return self.value * scale
        # Changes of a tensor's entries raise its version.
        of = scale, self.value._version
        if self.__dict__.get("_scaled_of") != of:
            self.__dict__.update(_scaled_of=of, _scaled_values=self.value * scale)
        kept: Tensor = self.__dict__["_scaled_values"]
        return kept

    def to(self, device: torch.device) -> CSR:
        """The matrix on another device."""
        return CSR(
            self.crow.to(device),
            self.col.to(device),
            self.value.to(device),
            self.n_cols,
            self.symmetric,
        )

    def to_dense(self) -> Tensor:
        """The n×m matrix, for tests and very small graphs."""
        out = torch.zeros(self.shape, dtype=self.value.dtype, device=self.value.device)
        return out.index_put_((self.row, self.col.long()), self.value, accumulate=True)

    def to_scipy(self) -> sp.csr_matrix:
        """A scipy matrix that shares memory where it can."""
        return sp.csr_matrix(
            (
                self.value.numpy(force=True),
                self.col.numpy(force=True),
                self.crow.numpy(force=True),
            ),
            shape=self.shape,
        )

    def __matmul__(self, z: Tensor) -> Tensor:
        """Self @ z for dense z (m×k): O(nnz·k), gradients to z and to the values."""
        if z.dim() != 2 or z.size(0) != self.n_cols:
            # The fast kernel would ignore or misread rows, silently.
            raise ValueError(f"{self} can't multiply a matrix of {tuple(z.shape)}")
        out: Tensor = _SpMM.apply(self.value, z, self)  # type: ignore[no-untyped-call]
        return out

    def __repr__(self) -> str:
        n, m = self.shape
        return f"CSR({n}×{m}, nnz={self.nnz}, symmetric={self.symmetric})"


class _SpMM(torch.autograd.Function):
    """value, z ↦ A z with the transpose of A taken from its cache."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, z: Tensor, a: CSR) -> Tensor:
        ctx.a = a
        ctx.save_for_backward(value, z if value.requires_grad else None)
        return multiply(a.crow, a.col, value, a.n_cols, z)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a: CSR = ctx.a
        value, z = ctx.saved_tensors
        grad_value = grad_z = None
        if ctx.needs_input_grad[0]:
            grad_value = (grad[a.row] * z[a.col.long()]).sum(dim=1).to(value.dtype)
        if ctx.needs_input_grad[1]:
            grad_z = transposed_product(a, value.detach(), grad)
        return grad_value, grad_z, None


def normalized_adjacency(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    self_loops: bool = True,
    norm: str = "sym",
) -> CSR:
    """Â = D̃^-½ (A + I) D̃^-½ (or D̃^-1 (A + I) with ``norm="row"``), O(E).

    ``edge_index[0]`` holds sources and ``edge_index[1]`` targets, as in PyG: row i of
    Â gathers from the sources of the edges that point to i. Without self-loops an
    isolated node has a zero row.
    """
    weight = (
        np.ones(edge_index.size(1))
        if edge_weight is None
        else edge_weight.numpy(force=True).astype(np.float64)
    )
    src, dst = edge_index.numpy(force=True)
    a = sp.csr_array((weight, (dst, src)), shape=(num_nodes, num_nodes))
    if self_loops:
        a = sp.csr_array(a + sp.eye_array(num_nodes, format="csr"))
    symmetric = norm == "sym" and _is_symmetric(a)
    into = np.asarray(a.sum(axis=1), dtype=np.float64)
    if norm == "row":
        left, right = _power(into, -1.0), np.ones(num_nodes)
    else:
        # In a directed graph the source side has its own degree. (PyG uses the
        # target's for both, which silences nodes without in-edges.)
        out_of = into if symmetric else np.asarray(a.sum(axis=0), dtype=np.float64)
        left, right = _power(into, -0.5), _power(out_of, -0.5)
    a.data *= left[np.repeat(np.arange(num_nodes), np.diff(a.indptr))]
    a.data *= right[a.indices]
    return CSR.from_scipy(a, symmetric=symmetric)


def _power(degree: np.ndarray[Any, Any], exponent: float) -> np.ndarray[Any, Any]:
    """Degrees to a negative power, zero where the degree is."""
    out = np.zeros_like(degree)
    np.power(degree, exponent, out=out, where=degree > 0)
    return out


def _is_symmetric(a: Any) -> bool:
    difference = (a - a.T).tocsr()
    return difference.nnz == 0 or float(abs(difference.data).max()) < 1e-12


# Sparse storage wins below this share of stored entries: above it, one dense product
# and dense dropout cost less than the gather of stored entries.
SPARSE_DENSITY = 0.25


def features(x: Tensor, threshold: float = SPARSE_DENSITY) -> CSR | Tensor:
    """X in the layout that is faster for its density: CSR below ``threshold``."""
    if x.layout != torch.strided:
        return CSR.from_tensor(x)
    if x.numel() == 0:
        return x
    density = float(torch.count_nonzero(x)) / x.numel()
    return CSR.from_tensor(x) if density < threshold else x.contiguous()


def rows_of(x: CSR | Tensor, index: Tensor) -> CSR | Tensor:
    """Some rows of X in the layout it has."""
    if isinstance(x, CSR):
        return CSR.from_scipy(x.to_scipy()[index.numpy(force=True)]).to(index.device)
    return x[index]
