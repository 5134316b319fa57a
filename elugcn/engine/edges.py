"""Sums, softmax, choice and attention over the stored entries of a sparse pattern.

The entries of a row stand side by side, so a sum over a node's neighbours is a sum over
a segment of one array, (nnz,). A ``pattern`` is an n×m matrix; its values are not used.
Both engines use this file.
"""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.engine.sparse import CSR, entry_products, multiply

SLOPE = 0.2  # of GAT's LeakyReLU below zero


def weighted_spmm(pattern: CSR, weight: Tensor, z: Tensor) -> Tensor:
    """The matrix with these entries times Z (m×k), O(nnz·k), with gradients to both."""
    return pattern.with_values(weight) @ z


def pair_products(pattern: CSR, a: Tensor, b: Tensor) -> Tensor:
    """a_i · b_j for every stored entry ij, O(nnz·k), with gradients to both."""
    out: Tensor = _PairProducts.apply(a, b, pattern)  # type: ignore[no-untyped-call]
    return out


class _PairProducts(torch.autograd.Function):
    """a, b ↦ a_i·b_j on the entries of a pattern; the gradients are products."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, pattern: CSR) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(a, b)
        return entry_products(pattern, a, b)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b = ctx.saved_tensors
        matrix = ctx.pattern.with_values(grad.contiguous())
        return multiply(matrix, b), multiply(matrix.T, a), None


def row_sum(pattern: CSR, value: Tensor) -> Tensor:
    """Sum of the entries of each row, (n,); 0 for an empty one."""
    return _reduced(pattern, value, "sum")


def _reduced(pattern: CSR, value: Tensor, by: str) -> Tensor:
    offsets = pattern.crow.long()
    out: Tensor = torch.segment_reduce(value, by, offsets=offsets, unsafe=True)
    return out


def row_softmax(pattern: CSR, scores: Tensor) -> Tensor:
    """Softmax of the scores of each row, O(nnz): they sum to one."""
    out: Tensor = _RowSoftmax.apply(scores, pattern)  # type: ignore[no-untyped-call]
    return out


class _RowSoftmax(torch.autograd.Function):
    """w ↦ p; the gradient of w_ij is p_ij (g_ij − Σ_k p_ik g_ik)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, pattern: CSR) -> Tensor:
        highest = _reduced(pattern, scores, "max")
        p = scores.sub(highest.index_select(0, pattern.row)).exp_()
        p /= row_sum(pattern, p).index_select(0, pattern.row)
        ctx.pattern = pattern
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        share = p * grad
        total = row_sum(ctx.pattern, share).index_select(0, ctx.pattern.row)
        return share - p * total, None


def row_topk(pattern: CSR, scores: Tensor, k: int) -> Tensor:
    """Where the min(k, size) largest scores of each row stand, ascending, int64.

    O(nnz log nnz) time, no gradients.

    Args:
        pattern: Where the scores stand.
        scores: (nnz,), compared as float32; no NaN. Of equal scores the first ones of
            a row are chosen.
        k: How many to keep, at least 0.
    """
    by_score = scores.detach().float().argsort(descending=True, stable=True)
    order = by_score[pattern.row[by_score].argsort(stable=True)]
    # Sorted, the rows stand where they stood: in order, side by side.
    rank = torch.arange(pattern.nnz, device=order.device)
    rank -= pattern.crow.long()[pattern.row]
    return order[rank < k].sort().values


def some_entries(pattern: CSR, places: Tensor) -> CSR:
    """Only some stored entries, by ascending places; one named twice is there twice."""
    crow = torch.searchsorted(places, pattern.crow.long()).to(pattern.crow.dtype)
    return CSR(crow, pattern.col[places], pattern.value[places], pattern.n_cols)


def attend(
    adj: CSR,
    z: Tensor,
    to: Tensor,
    of: Tensor,
    keep: Tensor | None = None,
) -> Tensor:
    """Attention of k heads over the stored entries of a matrix (GAT's).

        e_ij = LeakyReLU(to_i + of_j),   α_i· = softmax of e_i· over row i
        out_i = Σ_j keep_ij α_ij z_j

    A row without entries gives zero.

    Args:
        adj: The pattern, n×m.
        z: What is gathered, m×k×c.
        to: Score of each row, n×k.
        of: Score of each column, m×k.
        keep: Dropout mask of the coefficients, (k·nnz,): row by row, in a row head by
            head.

    Returns:
        n×k×c.

    Cost:
        O(k·nnz·c) time and O(k·(nnz + n·c)) memory, forward and backward.
    """
    _, k, c = z.shape
    at = _heads(adj, k)
    e = to.reshape(-1).index_select(0, at.row) + of.reshape(-1).index_select(0, at.col)
    alpha = row_softmax(at, F.leaky_relu(e, SLOPE))
    weight = alpha if keep is None else alpha * keep
    return weighted_spmm(at, weight, z.reshape(-1, c)).view(-1, k, c)


def _heads(adj: CSR, k: int) -> CSR:
    """The pattern A ⊗ I_k, n·k×m·k, kept as long as A is.

    Row i·k + h holds the entries of row i of A, at the columns j·k + h: what head h
    sees from node i.
    """
    kept: dict[int, CSR] = adj.__dict__.setdefault("_heads", {})
    if k not in kept:
        ones = adj.with_values(torch.ones_like(adj.value)).to_scipy()
        per_head = sp.kron(ones, sp.eye_array(k), format="csr")
        kept[k] = CSR.from_scipy(per_head).to(adj.value.device)
    return kept[k]
