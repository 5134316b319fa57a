"""Edges whose weights are learned: one number for every stored entry of a pattern.

    P_i· = softmax of w_i· over row i,    out = P Z

Two things make such a product expensive where they are done naively: the gradient of
an entry, which is a dot product of two rows, and the transpose for the gradient of Z.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.core.segments import SAFE, Segments
from elugcn.core.sparse import CSR


def row_softmax(adj: CSR, score: Tensor) -> Tensor:
    """Softmax of one score for each stored entry over the entries of its row, O(nnz).

    Args:
        adj: The pattern, n×m; its values are not used.
        score: w, shape (nnz,).

    Returns:
        The values of P, shape (nnz,). A row of P sums to one, an empty one to zero.
    """
    out: Tensor = _RowSoftmax.apply(  # type: ignore[no-untyped-call]
        score, Segments.of(adj)
    )
    return out


class _RowSoftmax(torch.autograd.Function):
    """w ↦ p; the gradient of w_ij is p_ij (g_ij − Σ_k p_ik g_ik)."""

    @staticmethod
    def forward(ctx: Any, score: Tensor, at: Segments) -> Tensor:
        score = score.detach()
        if score.numel() and float(score.abs().amax()) > SAFE:
            score = score - at.max(score).index_select(0, at.row)
        p = score.exp()
        total = at.sum(p)
        inverse = total.reciprocal().masked_fill_(total == 0, 0.0)
        p *= inverse.index_select(0, at.row)
        ctx.at = at
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        at: Segments = ctx.at
        share = p * grad
        return share - p * at.sum(share).index_select(0, at.row), None


class Weighted:
    """A pattern with values that may require gradients, for several products.

    Args:
        adj: The pattern, n×m; its values are not used.
        value: The entries, shape (nnz,).
    """

    def __init__(self, adj: CSR, value: Tensor) -> None:
        self.adj = adj
        self.value = value

    @cached_property
    def matrix(self) -> CSR:
        """The matrix without gradients."""
        a = self.adj
        return CSR(a.crow, a.col, self.value.detach(), a.n_cols)

    @cached_property
    def turned(self) -> CSR:
        """Its transpose: the values are permuted once for all products."""
        at = self.adj.pattern
        value = self.value.detach().index_select(0, at.perm)
        return CSR(at.crow_t, at.col_t, value, self.adj.shape[0])

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with a dense m×k matrix, O(nnz·k); gradients to both."""
        out: Tensor = _Product.apply(self.value, z, self)  # type: ignore[no-untyped-call]
        return out


class _Product(torch.autograd.Function):
    """value, z ↦ A z. The gradient of the entry ij is ⟨g_i, z_j⟩."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, z: Tensor, a: Weighted) -> Tensor:
        ctx.a = a
        ctx.save_for_backward(z)
        return a.matrix @ z.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        a: Weighted = ctx.a
        (z,) = ctx.saved_tensors
        grad_value = grad_z = None
        if ctx.needs_input_grad[0]:
            grad_value = row_products(a.adj, grad, z)
        if ctx.needs_input_grad[1]:
            grad_z = a.turned @ grad
        return grad_value, grad_z, None


def some_entries(adj: CSR, places: Tensor) -> CSR:
    """Only some stored entries, by ascending places; one named twice is there twice."""
    crow = torch.searchsorted(places, adj.crow.long()).to(adj.crow.dtype)
    return CSR(crow, adj.col[places], adj.value[places], adj.n_cols)


def pair_products(pairs: CSR, left: Tensor, right: Tensor) -> Tensor:
    """``row_products`` with gradients to both matrices."""
    out: Tensor = _PairProducts.apply(  # type: ignore[no-untyped-call]
        left, right, pairs
    )
    return out


class _PairProducts(torch.autograd.Function):
    """l, r ↦ ⟨l_i, r_j⟩ on the entries ij of a pattern; gradients are products."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pairs: CSR) -> Tensor:
        ctx.pairs = pairs
        ctx.save_for_backward(left, right)
        return row_products(pairs, left.detach(), right.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        weighted = Weighted(ctx.pairs, grad)
        return weighted.matrix @ right, weighted.turned @ left, None


def row_products(adj: CSR, left: Tensor, right: Tensor) -> Tensor:
    """⟨left_i, right_j⟩ for every stored entry ij, O(nnz·k) time and O(nnz) memory.

    Args:
        adj: The pattern, n×m.
        left: n×k.
        right: m×k.
    """
    kept = _KEPT.setdefault(adj, {})
    if left.dtype not in kept:
        kept[left.dtype] = _zeros(adj, left)
    # Gathered rows, multiplied and summed, took ten to thirty times as long.
    pattern = kept[left.dtype]
    product = torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0)
    out: Tensor = product.values()
    return out


# Zeros in the layout that the sampled product asks for, by dtype.
_KEPT: WeakKeyDictionary[CSR, dict[torch.dtype, Tensor]] = WeakKeyDictionary()


def _zeros(adj: CSR, like: Tensor) -> Tensor:
    zeros = like.new_zeros(adj.nnz)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(
            adj.crow, adj.col, zeros, size=adj.shape, check_invariants=False
        )
