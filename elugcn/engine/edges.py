"""Sums, softmax, choice and attention over the stored entries of a sparse pattern.

The stored entries of a row stand side by side in CSR, so a sum over a node's
neighbours is a sum over a segment of one array. Both engines use this file.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.engine.sparse import CSR, entry_products, multiply

# exp of scores within ±40, and sums of millions of them, are ordinary float32 numbers.
SAFE = 40.0


def weighted_spmm(pattern: CSR, weight: Tensor, z: Tensor) -> Tensor:
    """The matrix with these entries times Z, O(nnz·k), with gradients to both.

    Args:
        pattern: n×m; its values are not used.
        weight: The entries, (nnz,).
        z: Z, m×k.
    """
    return pattern.with_values(weight) @ z


def pair_products(pattern: CSR, a: Tensor, b: Tensor) -> Tensor:
    """a_i · b_j for every stored entry ij, O(nnz·k), with gradients to both.

    Args:
        pattern: n×m; its values are not used.
        a: n×k.
        b: m×k.

    Returns:
        (nnz,).
    """
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


def row_max(pattern: CSR, value: Tensor) -> Tensor:
    """Maximum of the entries of each row, (n,); −∞ for an empty one."""
    return _reduced(pattern, value, "max")


def _reduced(pattern: CSR, value: Tensor, by: str) -> Tensor:
    start = pattern.crow.long()
    out: Tensor = torch.segment_reduce(value, by, offsets=start, unsafe=True)
    return out


def row_softmax(pattern: CSR, scores: Tensor) -> Tensor:
    """Softmax of the scores of the stored entries of each row, O(nnz).

    Args:
        pattern: n×m; its values are not used.
        scores: (nnz,).

    Returns:
        (nnz,); the entries of a row sum to one.
    """
    out: Tensor = _RowSoftmax.apply(scores, pattern)  # type: ignore[no-untyped-call]
    return out


class _RowSoftmax(torch.autograd.Function):
    """w ↦ p; the gradient of w_ij is p_ij (g_ij − Σ_k p_ik g_ik)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, pattern: CSR) -> Tensor:
        if scores.numel() and float(scores.abs().amax()) > SAFE:
            scores = scores - row_max(pattern, scores).index_select(0, pattern.row)
        p = scores.exp()
        p *= _inverse(row_sum(pattern, p)).index_select(0, pattern.row)
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


def _inverse(total: Tensor) -> Tensor:
    """1/x, and 0 for the sum of an empty row."""
    return total.reciprocal().masked_fill_(total == 0, 0.0)


def row_topk(pattern: CSR, scores: Tensor, k: int) -> Tensor:
    """Where the min(k, size) largest scores of each row stand, ascending, int64.

    O(nnz log nnz) time, no gradients.

    Args:
        pattern: n×m; its values are not used.
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
    slope: float = 0.2,
    keep: Tensor | None = None,
) -> Tensor:
    """Attention of k heads over the stored entries of a matrix (GAT's).

        e_ij = LeakyReLU(to_i + of_j),   α_i· = softmax of e_i· over row i
        out_i = Σ_j keep_ij α_ij z_j

    A row without entries gives zero.

    Args:
        adj: The pattern, n×m; its values are not used.
        z: What is gathered, m×k×c.
        to: Score of each row, n×k.
        of: Score of each column, m×k.
        slope: Of the LeakyReLU below zero, positive.
        keep: Dropout mask of the coefficients, (k·nnz,): row by row, in a row head by
            head.

    Returns:
        n×k×c.

    Cost:
        O(k·nnz·c) time and O(k·(nnz + n·c)) memory, forward and backward.
    """
    _, k, c = z.shape
    out: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        z.reshape(-1, c), to.reshape(-1), of.reshape(-1), _heads(adj, k), slope, keep
    )
    return out.view(-1, k, c)


def _heads(adj: CSR, k: int) -> CSR:
    """The pattern A ⊗ I_k, n·k×m·k, kept as long as A is.

    Row i·k + h holds what head h sees from node i: the entries of row i of A, at the
    columns j·k + h. A matrix n×(k·c) with the heads side by side is a matrix nk×c with
    these rows, without being copied.
    """
    kept: dict[int, CSR] = adj.__dict__.setdefault("_heads", {})
    if k not in kept:
        n, m = adj.shape
        index = torch.int32 if k * max(n + 1, m, adj.nnz) < 2**31 else torch.int64
        start = adj.crow.long()
        count = (start[1:] - start[:-1]).repeat_interleave(k)
        offset = F.pad(count.cumsum(0), (1, 0))
        row = torch.repeat_interleave(count)
        # The place within the row is the place within the row of A.
        entry = torch.arange(row.numel(), device=row.device) - offset[row]
        entry += start[row // k]
        col = adj.col.long()[entry] * k + row % k
        ones = torch.ones(col.numel(), device=col.device)
        kept[k] = CSR(offset.to(index), col.to(index), ones, m * k)
    return kept[k]


class _Attention(torch.autograd.Function):
    """z, to, of ↦ out, with p = exp(e) left unnormalised on the entries.

    With D_i = Σ_j p_ij the rows of out, and of its gradient G, are divided instead:
    out = D⁻¹ W z for W = keep ∘ p. The gradient of e_ij is
    α_ij (keep_ij G_i·z_j − G_i·out_i), and only its sums over rows and over columns are
    needed, times the slope σ_ij of the LeakyReLU. In those the dot products leave the
    sum: G_i · Σ_j σ_ij W_ij z_j. So all there is to compute are weighted sums of rows,
    which take a fiftieth of the time of gathered dot products.

    The sign of p is free to remember where the LeakyReLU bends: negative for e ≤ 0.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        to: Tensor,
        of: Tensor,
        at: CSR,
        slope: float,
        keep: Tensor | None,
    ) -> Tensor:
        # index_select: indexing by a tensor takes three times as long on a CPU.
        e = of.index_select(0, at.col)
        bound = _bound(at, e, to, of, slope)
        F.leaky_relu_(e.add_(to.index_select(0, at.row)), slope)
        p = e.exp() if bound is None else (e - bound.index_select(0, at.row)).exp_()
        inverse = _inverse(row_sum(at, p))[:, None]
        weight = p if keep is None else p * keep
        out = multiply(at.with_values(weight), z).mul_(inverse)
        if any(ctx.needs_input_grad):
            ctx.at, ctx.slope = at, slope
            # p where e > 0, else −p. ``torch.where`` takes ten times as long.
            signed = torch.ops.aten.leaky_relu_backward(p, e, -1.0, False)
            ctx.save_for_backward(z, signed, keep, inverse, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, p, keep, inverse, out = ctx.saved_tensors
        at: CSR = ctx.at
        slope: float = ctx.slope
        g = grad * inverse
        pull = (g * out).sum(dim=1)
        weighted = at.with_values(p if keep is None else p * keep)
        # LeakyReLU with the negative slope gives σ times the size of a signed value.
        bent = at.with_values(F.leaky_relu(weighted.value, -slope))
        size = at.with_values(weighted.value.abs())
        grad_to = (g * multiply(bent, z)).sum(dim=1)
        grad_of = (z * multiply(bent.T, g)).sum(dim=1)
        grad_z = multiply(size.T, g)
        steep = F.leaky_relu(p, -slope)
        grad_to -= pull * row_sum(at, steep)
        steep *= pull.index_select(0, at.row)
        grad_of.index_add_(0, at.col, steep, alpha=-1)
        return grad_z, grad_to, grad_of, None, None, None


def _bound(
    at: CSR, of_col: Tensor, to: Tensor, of: Tensor, slope: float
) -> Tensor | None:
    """The largest score of each row; None where exp is safe without it."""
    if not of_col.numel():
        return None
    (low, high), (least, most) = torch.aminmax(to), torch.aminmax(of)
    if bool((low + least >= -SAFE) & (high + most <= SAFE)):
        return None
    # LeakyReLU is monotone: the largest of_j of a row has the row's largest score.
    return F.leaky_relu(to + row_max(at, of_col), slope)
