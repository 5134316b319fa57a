"""Sparse matrices in compressed-row form, and the matrices made of a graph.

Autograd through ``torch.sparse`` transposes a matrix in every backward pass. A ``CSR``
finds the transposed indices once and keeps them for all matrices with its pattern.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from elugcn.engine.compiled import NOTHING_DROPPED, loops

# Sparse storage wins below this share of stored entries.
SPARSE_DENSITY = 0.25


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse n×m matrix in compressed-row form.

    Columns must be within 0 … m−1: the loops in C look at the sizes of what they get,
    not at every index.
    """

    crow: Tensor  # row pointers, (n+1,)
    col: Tensor  # column of each stored entry, (nnz,), ascending within a row
    value: Tensor  # the stored entries, (nnz,)
    n_cols: int  # m
    symmetric: bool = False  # it equals its transpose, so none has to be built

    @classmethod
    def from_scipy(cls, matrix: Any, symmetric: bool = False) -> CSR:
        """Any scipy sparse matrix; duplicates are summed, values become float32."""
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
        coo = x.to_sparse().coalesce()
        where, value = coo.indices().numpy(force=True), coo.values().numpy(force=True)
        return cls.from_scipy(
            sp.coo_matrix((value, tuple(where)), shape=tuple(x.shape))
        )

    @cached_property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.crow.numel() - 1, self.n_cols

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.col.numel()

    @cached_property
    def T(self) -> CSR:
        """The transpose, O(nnz) once the indices of the pattern are known."""
        if self.symmetric:
            return self
        crow, col, place = self._transposed
        value = self.value.index_select(0, place)  # three times as fast as value[place]
        return CSR(crow, col, value, self.shape[0])

    @cached_property
    def _transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row pointers and columns of Aᵀ, and where its entries stand in A."""
        # Rows ascend within a column because the sort is stable.
        place = torch.argsort(self.col, stable=True)
        crow = self.crow.new_zeros(self.n_cols + 1)
        crow[1:] = torch.bincount(self.col, minlength=self.n_cols).cumsum(0)
        return crow, self.row[place].to(self.col.dtype), place

    @cached_property
    def row(self) -> Tensor:
        """Row of each stored entry, shape (nnz,), int64."""
        counts = (self.crow[1:] - self.crow[:-1]).long()
        rows = torch.arange(self.shape[0], device=self.col.device)
        return torch.repeat_interleave(rows, counts)

    def with_values(self, value: Tensor) -> CSR:
        """The same pattern with other values (which may require gradients)."""
        out = replace(self, value=value, symmetric=False)
        out.__dict__["_transposed"] = self._transposed
        return out

    def to(self, device: torch.device | str) -> CSR:
        """The matrix on another device."""
        crow, col, value = (x.to(device) for x in (self.crow, self.col, self.value))
        return CSR(crow, col, value, self.n_cols, self.symmetric)

    def to_dense(self) -> Tensor:
        """The n×m matrix, for tests and very small graphs."""
        out = torch.zeros(self.shape, dtype=self.value.dtype, device=self.value.device)
        return out.index_put_((self.row, self.col.long()), self.value, accumulate=True)

    def to_scipy(self) -> sp.csr_matrix:
        """A scipy matrix that shares memory where it can."""
        parts = self.value, self.col, self.crow
        arrays = tuple(part.numpy(force=True) for part in parts)
        return sp.csr_matrix(arrays, shape=self.shape)

    @cached_property
    def fits_loops(self) -> bool:
        """Whether the loops in C can multiply it."""
        dtypes = self.crow.dtype, self.value.dtype
        there = loops is not None and self.value.is_cpu
        return there and dtypes == (torch.int32, torch.float32)

    def multiply(self, z: Tensor, bias: Tensor | None = None) -> Tensor:
        """A Z + b for an m×k matrix, O(nnz·k), with gradients to A, Z and b."""
        if z.dim() != 2 or z.size(0) != self.n_cols:
            # The fast kernel would ignore or misread rows, silently.
            raise ValueError(f"{self} can't multiply a matrix of {tuple(z.shape)}")
        if torch.is_grad_enabled():
            out: Tensor = _SpMM.apply(self.value, z, bias, self)  # type: ignore[no-untyped-call]
            return out
        return multiply(self, z, bias)

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with a dense m×k matrix."""
        return self.multiply(z)

    def __repr__(self) -> str:
        n, m = self.shape
        return f"CSR({n}×{m}, nnz={self.nnz}, symmetric={self.symmetric})"


Features = CSR | Tensor


class _SpMM(Function):
    """A, Z, b ↦ A Z + b. The gradient of a_ij is ⟨g_i, z_j⟩, that of Z is Aᵀ g."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, z: Tensor, bias: Tensor | None, a: CSR
    ) -> Tensor:
        ctx.a = a
        ctx.save_for_backward(z if value.requires_grad else None)
        return multiply(a, z, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        a: CSR = ctx.a
        (z,) = ctx.saved_tensors
        of_value, of_z, of_bias, _ = ctx.needs_input_grad
        return (
            entry_products(a, grad, z).to(a.value.dtype) if of_value else None,
            multiply(a.T, grad) if of_z else None,
            grad.sum(dim=0) if of_bias else None,
            None,
        )


def multiply(a: CSR, z: Tensor, bias: Tensor | None = None) -> Tensor:
    """A Z + b without gradients, O(nnz·k)."""
    value, z = a.value.detach(), z.detach()
    if a.fits_loops and z.dtype == torch.float32:
        out = z.new_empty(a.shape[0], z.size(1))
        loops.product(
            a.crow, a.col, value, z.contiguous(), bias, out, a.n_cols, False,
            NOTHING_DROPPED,
        )  # fmt: skip
        return out
    if z.dtype == value.dtype == torch.float32 and z.is_cpu and a.nnz:
        # A CSR product is a weighted bag of rows of z, and PyTorch's kernel for bags
        # is about twice as fast as its CSR product for 16 to 128 columns.
        out = torch.embedding_bag(
            z.contiguous(), a.col, a.crow, mode=0, per_sample_weights=value,
            include_last_offset=True,
        )[0]  # fmt: skip
    else:
        out = _torch_csr(a, value.to(z.dtype)) @ z
    return out if bias is None else out + bias.detach()


def entry_products(pattern: CSR, left: Tensor, right: Tensor) -> Tensor:
    """⟨left_i, right_j⟩ for every stored entry ij, without gradients, O(nnz·k)."""
    zeros = _torch_csr(pattern, left.new_zeros(pattern.nnz))
    # Gathered rows, multiplied and summed, took ten to thirty times as long.
    out = torch.sparse.sampled_addmm(zeros, left.detach(), right.detach().T, beta=0.0)
    values: Tensor = out.values()
    return values


def _torch_csr(a: CSR, value: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(
            a.crow, a.col, value, size=a.shape, check_invariants=False
        )


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
    weight = np.ones(edge_index.size(1))
    if edge_weight is not None:
        weight = edge_weight.numpy(force=True).astype(np.float64)
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
    """Degrees to a negative power, zero where the degree is zero."""
    out = np.zeros_like(degree)
    np.power(degree, exponent, out=out, where=degree > 0)
    return out


def _is_symmetric(a: Any) -> bool:
    difference = (a - a.T).tocsr()
    return difference.nnz == 0 or float(abs(difference.data).max()) < 1e-12


def as_features(x: Tensor, density: float = SPARSE_DENSITY) -> Features:
    """X in its faster layout: CSR where its density is below a threshold."""
    if x.layout != torch.strided:
        return CSR.from_tensor(x)
    if x.numel() == 0:
        return x
    sparse = int(torch.count_nonzero(x)) < density * x.numel()
    return CSR.from_tensor(x).to(x.device) if sparse else x.contiguous()


@overload
def rows_of(x: CSR, index: Tensor) -> CSR: ...
@overload
def rows_of(x: Features, index: Tensor) -> Features: ...
def rows_of(x: Features, index: Tensor) -> Features:
    """Some rows of X, in its layout."""
    if isinstance(x, CSR):
        return CSR.from_scipy(x.to_scipy()[index.numpy(force=True)]).to(index.device)
    return x[index]
