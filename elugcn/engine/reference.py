"""Every operation of the engine in plain PyTorch: any device, any dtype, autograd.

This file says what the operations compute; ``fast.py`` computes the same faster. With
the environment variable ``ELUGCN_CHECK_CONSUMED=1`` operations that consume their input
overwrite it with NaN, as the fast ones overwrite it with something else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.engine.inputs import GraphInputs, Matrix, Views
from elugcn.engine.sparse import CSR, Features
from elugcn.engine.workspace import keep_entries, keep_mask

# Squared length below which a row is left short: it has no direction to keep.
TINY = 1e-24
_CHECK_CONSUMED = os.environ.get("ELUGCN_CHECK_CONSUMED") == "1"


@overload
def dropout(x: Tensor, p: float) -> Tensor: ...
@overload
def dropout(x: CSR, p: float) -> CSR: ...
@overload
def dropout(x: Features, p: float) -> Features: ...
def dropout(x: Features, p: float) -> Features:
    """X with entries dropped with probability p and the others scaled by 1/(1−p).

    Of a sparse matrix only stored entries are dropped; zeros stay zero.
    """
    if p == 0.0:
        return x
    if isinstance(x, CSR):
        return x.with_values(x.value * keep_entries(x, p))
    return x * keep_mask((x.size(0), x.size(1)), p, x)


def dropout_linear(x: Features, w: Tensor, p: float) -> Tensor:
    """drop(X) W, O(nnz(X)·h)."""
    return dropout(x, p) @ w


@overload
def spmm(a: Matrix | None, z: Tensor, bias: Tensor | None = None) -> Tensor: ...
@overload
def spmm(a: Matrix | None, z: Views, bias: Tensor | None = None) -> Views: ...
def spmm(
    a: Matrix | None, z: Tensor | Views, bias: Tensor | None = None
) -> Tensor | Views:
    """A Z + b, O(nnz(A)·k); of views, the product with each of them.

    Args:
        a: A, n×m; None: the identity, for a layer that does not propagate.
        z: Z, m×k, or views of that shape; then the result is views, too.
        bias: b, (k,), for every row.
    """
    if isinstance(z, Views):
        if bias is not None and len(z) > 1:
            bias = bias.repeat(len(z))
        return Views.side_by_side(spmm(a, z.joined(), bias), len(z))
    if isinstance(a, CSR):
        return a.multiply(z, bias)
    out = z if a is None else a @ z
    return out if bias is None else out + bias


def propagate_linear(
    g: GraphInputs,
    w: Tensor,
    p: float,
    *,
    residual: bool = False,
    drop_rows: float = 0.0,
    draws: int = 1,
    product: Callable[[Features, Tensor, float], Tensor] = dropout_linear,
) -> Views:
    """The first layer of every view before its bias: Â drop(X) W, then S* drop(X) W.

    Where Â is n×2n, W is d×2h and the first view is Â [Z_in; Z_out] for the two halves
    of Z = drop(X) W; S* multiplies Z_in + Z_out. With ``residual`` W has h further
    columns, whose product is added to every view without propagation.

    Args:
        g: X, Â and S*.
        w: W, d×h (d×(directions + residual)·h).
        p: Probability of dropping an entry of X.
        residual: W has columns for a residual connection.
        drop_rows: Probability of dropping a node's whole row of Z.
        draws: Repeats of the original view with fresh dropout. They come first; S*
            multiplies the Z of the first draw.
        product: How drop(X) W is computed.
    """
    parts = g.directions + residual

    def with_own(view: Tensor, split: Sequence[Tensor]) -> Tensor:
        return view + g.own(0, split[-1]) if residual else view

    views: list[Tensor] = []
    for draw in range(draws):
        if draw == 0 or p > 0.0:
            whole = product(g.x, w, p)
        z = whole
        if drop_rows > 0.0:
            z = z * keep_mask((z.size(0), 1), drop_rows, z)
        split = z.chunk(parts, dim=1)
        if draw == 0:
            first = split
        stacked = split[0] if g.directions == 1 else torch.cat(split[:2])
        views.append(with_own(spmm(g.layer(0), stacked), split))
    if g.elu_graph is not None:
        views.append(with_own(_elu_product(g, w, first), first))
    return Views(views)


def _elu_product(g: GraphInputs, w: Tensor, split: Sequence[Tensor]) -> Tensor:
    """S* Z, or L (Rᵀ X) W where Rᵀ X is known."""
    graph, known = g.elu_graph, g.elu_x
    if known is not None:
        split = (known @ w).chunk(len(split), dim=1)
    z = split[0] if g.directions == 1 else split[0] + split[1]
    out: Tensor = graph @ z if known is None else graph.left @ z  # type: ignore[operator,union-attr]
    return out


def relu_dropout_linear_(views: Views, bias: Tensor, w: Tensor, p: float) -> Views:
    """drop(ReLU(Z + b)) W of every view Z, O(v·n·h·k). Consumes Z.

    Args:
        views: Views n×h before the bias. Nobody may read them afterwards.
        bias: b, (h,).
        w: W, h×k.
        p: Probability of dropping an entry of the hidden layer.

    Returns:
        Views n×k.
    """
    out = []
    for z in views.tensors():
        h = F.relu(z + bias)
        if _CHECK_CONSUMED and z.grad_fn is not None:
            z.data.fill_(math.nan)  # autograd does not count it as a change
        out.append(dropout_linear(h, w, p))
    return Views(out)


@dataclass(frozen=True, eq=False)
class LossTargets:
    """What the two-view loss reads besides the views; a number per node, (n,)."""

    target: Tensor  # class of each node, any class where the weight is 0
    weight: Tensor  # of each node's cross-entropy
    elu: Tensor  # mask of the ELU nodes
    nelu: Tensor  # mask of the NELU nodes

    @cached_property
    def kind(self) -> Tensor:
        """1 for ELU nodes, 2 for NELU nodes, 0 for others, int8."""
        return self.elu.to(torch.int8) + 2 * (self.nelu & ~self.elu).to(torch.int8)


def two_view_loss(
    views: Views,
    head_weight: Tensor,
    head_bias: Tensor,
    targets: LossTargets,
    *,
    tau: float,
    eta: float,
    contrast_weight: float,
    entropy_weight: float,
    contrast: str = "similarity",
) -> Tensor:
    """CE(Ŷ, Y) + λ L_con (eq. 12, 13) of both views, O(n·c²).

        Ŷ = softmax((1−η) H̄ + η H̃)
        L = Σ w_i CE(ŷ_i, y_i) + λ₁ contrast(P̄, P̃) + λ₂ entropy(Ŷ)

    Rows of P̄ and P̃ are those of elu(H Wᵀ + b), scaled to length one. The paper has
    λ₁ = λ₂ = λ and w_i = 1/m for m labelled nodes.

    Args:
        views: H̄ and H̃, n×c.
        head_weight: W of the projection head, c×c.
        head_bias: b, (c,).
        targets: Classes, weights, ELU and NELU nodes.
        tau: τ, temperature of the contrast.
        eta: η, share of the ELU view in the output.
        contrast_weight: λ₁.
        entropy_weight: λ₂.
        contrast: ``"similarity"``, or ``"distance"`` as in the public code.
    """
    original, elu = views
    logits = torch.lerp(original, elu, eta)
    each = F.cross_entropy(logits, targets.target, reduction="none")
    loss = (each * targets.weight).sum() + entropy_weight * entropy_loss(logits)
    p_original, p_elu = (_projected(h, head_weight, head_bias) for h in views)
    term = contrastive_loss(p_original, p_elu, targets.elu, targets.nelu, tau, contrast)
    return loss + contrast_weight * term


def _projected(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows of elu(H Wᵀ + b), scaled to length one."""
    p = F.elu(F.linear(h, weight, bias))
    return p * p.square().sum(dim=1, keepdim=True).clamp_min(TINY).rsqrt()


def contrastive_loss(
    p_original: Tensor, p_elu: Tensor, elu: Tensor, nelu: Tensor, tau: float, kind: str
) -> Tensor:
    """−log(Pos / (Pos + Neg)), the first term of eq. 12, O(n·c).

    Pos is the mean over ELU nodes of exp(d(P̄_i, P̃_i)/τ), Neg the same over NELU nodes.
    The paper calls d a distance, but wants ELU nodes close and NELU nodes apart: as
    printed, the sign does that only for a similarity.

    Args:
        p_original: P̄, rows of length one, n×c.
        p_elu: P̃, rows of length one, n×c.
        elu: Mask or indices of the ELU nodes.
        nelu: Mask or indices of the NELU nodes.
        tau: τ > 0.
        kind: ``"similarity"`` (cosine), or ``"distance"``: the public code, squared
            distance averaged before the exponential, which pushes the other way.

    Returns:
        A scalar; zero if one of the sets is empty.
    """
    if kind == "distance":
        d = (p_original - p_elu).square().sum(dim=1)
    else:
        d = (p_original * p_elu).sum(dim=1)
    pos, neg = d[elu], d[nelu]
    if pos.numel() == 0 or neg.numel() == 0:
        return p_original.sum() * 0.0
    if kind == "distance":
        return F.softplus((neg.mean() - pos.mean()) / tau)
    # The log of a mean of exponentials, safe for small τ.
    log_pos = torch.logsumexp(pos / tau, dim=0) - math.log(pos.numel())
    log_neg = torch.logsumexp(neg / tau, dim=0) - math.log(neg.numel())
    return F.softplus(log_neg - log_pos)


def entropy_loss(logits: Tensor) -> Tensor:
    """−(1/n) Σ ŷ log ŷ, the second term of eq. 12, O(n·c)."""
    # By columns: a softmax over short rows is many small loops.
    log_y = F.log_softmax(logits.T.contiguous(), dim=0)
    return -(log_y.exp() * log_y).sum() / max(1, logits.size(0))
