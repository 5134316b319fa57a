"""Attention over the rows of a sparse pattern, and the sums over rows it needs.

The stored entries of a row stand side by side in CSR, so a sum over a node's
neighbours is a sum over a segment of one array. So is the choice of the k largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from elugcn.core.sparse import CSR

# exp of scores within ±40, and sums of millions of them, are ordinary float32 numbers.
SAFE = 40.0


@dataclass(frozen=True, eq=False)
class Segments:
    """The indices of A ⊗ I_k and of its transpose, for A of n×m in CSR.

    Row i·k + h holds what head h sees from node i: its entries are those of row i of
    A, at the columns j·k + h. A matrix n×(k·c) with the heads side by side is a matrix
    nk×c with these rows, without being copied.

    Attributes:
        crow: Row pointers, shape (nk + 1,).
        col: Column of each of the k·nnz entries.
        row: Row of each entry.
        crow_t: Row pointers of the transpose, shape (mk + 1,).
        col_t: Column of each entry of the transpose.
        perm: Which entry of the matrix each entry of the transpose is.
        offset: ``crow`` in int64, which the sums over rows ask for.
    """

    crow: Tensor
    col: Tensor
    row: Tensor
    crow_t: Tensor
    col_t: Tensor
    perm: Tensor
    offset: Tensor

    @classmethod
    def of(cls, adj: CSR, k: int = 1) -> Segments:
        """The indices for k heads, built once and kept as long as ``adj`` is."""
        kept = _KEPT.setdefault(adj, {})
        if k not in kept:
            kept[k] = cls._build(adj, k)
        return kept[k]

    @classmethod
    def _build(cls, adj: CSR, k: int) -> Segments:
        n, m = adj.shape
        # 32 bits where they reach: half the traffic of what is read in every step.
        index = torch.int32 if k * max(n + 1, m, adj.nnz) < 2**31 else torch.int64
        start = adj.crow.long()
        count = (start[1:] - start[:-1]).repeat_interleave(k)
        offset = F.pad(count.cumsum(0), (1, 0))
        row = torch.repeat_interleave(count)
        # The place within the row is the place within the row of A.
        entry = torch.arange(row.numel(), device=row.device) - offset[row]
        entry += start[row // k]
        col = adj.col.long()[entry] * k + row % k
        turned = CSR(offset, col, col, m * k).pattern
        return cls(
            offset.to(index),
            col.to(index),
            row.to(index),
            turned.crow_t.to(index),
            turned.col_t.to(index),
            turned.perm.to(index),
            offset,
        )

    def product(self, value: Tensor, z: Tensor) -> Tensor:
        """The matrix with these values times z (mk×c): nk×c."""
        return CSR(self.crow, self.col, value, self.crow_t.numel() - 1) @ z

    def product_t(self, value: Tensor, z: Tensor) -> Tensor:
        """The same with the transpose, whose values are in its own order."""
        return CSR(self.crow_t, self.col_t, value, self.crow.numel() - 1) @ z

    def sum(self, value: Tensor) -> Tensor:
        """Sum of the values of each row; 0 for an empty one."""
        return torch.segment_reduce(value, "sum", offsets=self.offset, unsafe=True)

    def max(self, value: Tensor) -> Tensor:
        """Maximum of the values of each row; −∞ for an empty one."""
        return torch.segment_reduce(value, "max", offsets=self.offset, unsafe=True)


_KEPT: WeakKeyDictionary[CSR, dict[int, Segments]] = WeakKeyDictionary()


def segment_topk(scores: Tensor, crow: Tensor, k: int) -> Tensor:
    """Where the min(k, size) largest scores of each row stand, ascending, int64.

    Rows of k entries or fewer are kept whole; only the others are sorted, all of them
    at once, by whole numbers that order as (row, −score) does: O(E log E) time, O(E)
    memory, no gradients.

    Args:
        scores: One a stored entry, (E,), compared as float32; no NaN. Of equal scores
            the earlier entry is not preferred, but the choice is always the same.
        crow: Row pointers, (n+1,), as in ``CSR``.
        k: How many to keep, at least 0.
    """
    start = crow.numpy(force=True).astype(np.int64)
    size = np.diff(start)
    row = np.repeat(np.arange(size.size), size)
    kept = (size <= k)[row]
    where = np.flatnonzero(~kept)
    if where.size:
        # + 0.0 makes −0 and 0 equal. The bits of a float ≥ 0 order as it does, and
        # those of a negative one in reverse.
        value = scores.detach().float().numpy(force=True)[where] + np.float32(0.0)
        bits = value.view(np.int32).astype(np.int64)
        rank = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        order = np.argsort((row[where] << 32) - rank)
        # Sorted, the rows stand where they stood: in order, side by side.
        size = size[size > k]
        place = np.arange(where.size) - np.repeat(np.cumsum(size) - size, size)
        kept[where[order[place < k]]] = True
    return torch.from_numpy(np.flatnonzero(kept)).to(scores.device)


def attend(
    adj: CSR,
    z: Tensor,
    to: Tensor,
    of: Tensor,
    slope: float = 0.2,
    keep: Tensor | None = None,
) -> Tensor:
    """Attention of k heads over the stored entries of ``adj``, whatever their values.

        e_ij = LeakyReLU(to_i + of_j),   α_i· = softmax of e_i· over row i
        out_i = Σ_j keep_ij α_ij z_j

    A row without entries gives zero.

    Args:
        adj: The pattern, n×m.
        z: What is gathered, m×k×c.
        to: Score of each row, n×k.
        of: Score of each column, m×k.
        slope: Of the LeakyReLU below zero, positive.
        keep: Dropout mask of the coefficients, shape (k·nnz,): row by row, in a row
            head by head.

    Returns:
        n×k×c.

    Cost:
        O(k·nnz·c) time and O(k·(nnz + n·c)) memory, forward and backward.
    """
    _, k, c = z.shape
    out: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
        z.reshape(-1, c),
        to.reshape(-1),
        of.reshape(-1),
        Segments.of(adj, k),
        slope,
        keep,
    )
    return out.view(-1, k, c)


class _Attention(torch.autograd.Function):
    """z, to, of ↦ out, with p = exp(e) left unnormalised on the entries.

    With D_i = Σ_j p_ij the rows of out, and of its gradient G, are divided instead:
    out = D⁻¹ W z for W = keep ∘ p. The gradient of e_ij is
    α_ij (keep_ij G_i·z_j − G_i·out_i). Only its sums over rows and over columns are
    needed, times the slope σ_ij of the LeakyReLU, and in those the dot products leave
    the sum: G_i · Σ_j σ_ij W_ij z_j. So weighted sums of rows are all there is to
    compute, by the bag kernel of ``CSR``: on 200,000 entries and eight columns it took
    a fiftieth of the time of gathered dot products, one an entry.

    The sign of p is free to remember where the LeakyReLU bends: negative for e ≤ 0.
    """

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        to: Tensor,
        of: Tensor,
        at: Segments,
        slope: float,
        keep: Tensor | None,
    ) -> Tensor:
        z = z.detach()
        # index_select: indexing by a tensor takes three times as long on CPU.
        e = of.index_select(0, at.col)
        bound = _bound(at, e, to, of, slope)
        F.leaky_relu_(e.add_(to.index_select(0, at.row)), slope)
        p = e.exp() if bound is None else (e - bound.index_select(0, at.row)).exp_()
        total = at.sum(p)
        inverse = total.reciprocal().masked_fill_(total == 0, 0.0)[:, None]
        weight = p if keep is None else p * keep
        out = at.product(weight, z).mul_(inverse)
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
        at: Segments = ctx.at

        def bent(value: Tensor) -> Tensor:
            """σ times the size of a signed value."""
            return F.leaky_relu(value, -ctx.slope)

        g = grad * inverse
        pull = (g * out).sum(dim=1)
        weight = p if keep is None else p * keep
        grad_to = (g * at.product(bent(weight), z)).sum(dim=1)
        weight = weight.index_select(0, at.perm)
        grad_of = (z * at.product_t(bent(weight), g)).sum(dim=1)
        grad_z = at.product_t(weight.abs_(), g)
        steep = bent(p)
        grad_to -= pull * at.sum(steep)
        steep *= pull.index_select(0, at.row)
        grad_of.index_add_(0, at.col, steep, alpha=-1)
        return grad_z, grad_to, grad_of, None, None, None


def _bound(
    at: Segments, of_col: Tensor, to: Tensor, of: Tensor, slope: float
) -> Tensor | None:
    """The largest score of each row; None where exp is safe without it."""
    if not of_col.numel():
        return None
    (low, high), (least, most) = torch.aminmax(to), torch.aminmax(of)
    if bool((low + least >= -SAFE) & (high + most <= SAFE)):
        return None
    # LeakyReLU is monotone: the largest of_j of a row has the row's largest score.
    return F.leaky_relu(to + at.max(of_col), slope)
