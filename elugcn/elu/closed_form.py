"""The ELU graph S* in closed form (eq. 9, 10 and 11), as two n×c factors.

H (n×c) is the output of a pre-trained model, Q (n×c) the influence of each class on
each node, β the ridge. S* minimises ‖Q − S H‖² + β‖S‖². The solution (eq. 9)
S* = Q Hᵀ (HHᵀ + βI_n)⁻¹ and its form by the Woodbury identity (eq. 11) both simplify to

    S* = Q G⁻¹ Hᵀ,    G = HᵀH + βI_c

so S* has rank ≤ c: two n×c factors describe its n² entries, and one update Q ← S Q
(eq. 10) costs O(n·c²). Nothing here is n×n.

In this form row i of S is q_i G⁻¹ Hᵀ. A node whose row of Q starts at zero therefore
keeps a zero row for ever, hence the choice of ``init`` for rows without a label. The
authors' public code uses another form, ``"transposed"``,

    S = H Qᵀ (HHᵀ + βI_n)⁻¹ = H Rᵀ,    R = (Q − H G⁻¹ HᵀQ) / β

in which a row is zero only where the row of H is.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.elu.label_propagation import one_hot_rows
from elugcn.elu.low_rank_graph import ELUGraph, LowRankGraph, Scaling
from elugcn.elu.sparsify import GraphMode
from elugcn.errors import InputError

Form = Literal["paper", "transposed"]
Init = Literal["lpa", "zero", "mlp"]
Normalization = Literal["none", "l2"]

_BLOCK = 65_536  # rows that are converted to float64 at a time


def node_sum(a: Tensor, b: Tensor) -> Tensor:
    """AᵀB, summed over all nodes in float64: O(n·c²) time, O(c²) memory.

    Everything that the closed form needs from all nodes at once is such a sum (HᵀH,
    HᵀQ, RᵀQ). Machines that share the nodes would add these sums up.
    """
    total = torch.zeros(a.size(1), b.size(1), dtype=torch.float64, device=a.device)
    for rows_a, rows_b in zip(_blocks(a), _blocks(b), strict=True):
        total += rows_a.double().T @ rows_b.double()
    return total


def _blocks(x: Tensor) -> tuple[Tensor, ...]:
    return torch.split(x, _BLOCK)


class ClosedForm:
    """The solution for one H and β; G is factored once, O(n·c² + c³)."""

    def __init__(self, H: Tensor, beta: float, form: Form = "paper") -> None:
        self.H, self.beta, self.form = H, beta, form
        G = node_sum(H, H)
        G.diagonal().add_(beta)
        self.cholesky, failed = torch.linalg.cholesky_ex(G)
        if int(failed):
            # β is so small beside HᵀH that rounding made the sum indefinite.
            G.diagonal().add_(1e-8 * float(G.diagonal().mean()))
            self.cholesky = torch.linalg.cholesky(G)

    def solve(self, M: Tensor) -> Tensor:
        """G⁻¹ M for a matrix of c rows, in float64."""
        return torch.cholesky_solve(M.double(), self.cholesky)

    def factors(self, Q: Tensor) -> tuple[Tensor, Tensor]:
        """The n×c factors (L, R) of S = L Rᵀ, O(n·c²).

        Paper: (Q, H G⁻¹), eq. 11. Transposed: (H, R); R is a small difference of large
        numbers if β is small, so it is computed in float64.
        """
        H = self.H
        if self.form == "paper":
            inverse = self.solve(torch.eye(Q.size(1), device=Q.device))
            return Q, torch.cat([(h.double() @ inverse).to(h) for h in _blocks(H)])
        M = self.solve(node_sum(H, Q))
        R = [
            ((q.double() - h.double() @ M) / self.beta).to(h)
            for h, q in zip(_blocks(H), _blocks(Q), strict=True)
        ]
        return H, torch.cat(R)

    def update(self, Q: Tensor) -> Tensor:
        """S Q (eq. 10), O(n·c²)."""
        if self.form == "paper":
            return Q @ self.solve(node_sum(self.H, Q)).to(Q)
        L, R = self.factors(Q)
        return L @ node_sum(R, Q).to(Q)


def initial_influence(
    labels: Tensor, H: Tensor, init: Init, lpa: Tensor | None = None
) -> Tensor:
    """Q⁽⁰⁾, n×c: one-hot rows where labels are known; ``init`` gives the other rows.

    ``"lpa"``: rows of label propagation, and of H where no label reaches; ``"mlp"``:
    rows of H; ``"zero"``: zero rows, as printed.
    """
    Q = one_hot_rows(labels, H.size(1)).to(H)
    empty = labels < 0
    if init == "zero":
        return Q
    if init == "lpa":
        if lpa is None:
            raise InputError("init='lpa' needs lpa=; or use init='mlp' or 'zero'")
        if lpa.shape != H.shape:
            shapes = f"{tuple(H.shape)}; got {tuple(lpa.shape)}"
            raise InputError(f"lpa must have the shape of H, {shapes}")
        Q[empty] = lpa[empty].to(H)
        empty = empty & (Q.sum(dim=1) == 0)
    Q[empty] = H[empty]
    return Q


def label_influence(
    closed: ClosedForm,
    labels: Tensor,
    Q: Tensor,
    k: int,
    damping: float = 0.0,
    normalization: Normalization = "none",
) -> Tensor:
    """Q⁽ᵏ⁾ from Q⁽⁰⁾ by Algorithm 1: Q ← S Q, then labelled rows are put back.

    O(k·n·c²). Without ``normalization`` of its rows to length 1 the update is quadratic
    in Q: it shrinks or collapses to one class as k grows. ``damping`` is the share of
    the previous Q in each update (0.3 in the public code).
    """
    known = labels >= 0
    Y = one_hot_rows(labels, Q.size(1)).to(Q)[known]
    for _ in range(k):
        new = closed.update(Q)
        if normalization == "l2":
            new = F.normalize(new, dim=1)
        Q = torch.lerp(new, Q, damping) if damping else new
        Q[known] = Y
    return Q


def learn_elu_graph(
    H: Tensor,
    labels: Tensor,
    *,
    lpa: Tensor | None = None,
    k: int = 2,
    beta: float = 1.0,
    form: Form = "paper",
    init: Init | None = None,
    damping: float = 0.0,
    normalization: Normalization = "l2",
    scaling: Scaling = "none",
    mode: GraphMode = "implicit",
    topk: int = 20,
    keep: float = 0.1,
) -> ELUGraph:
    """Learn the ELU graph S* (Algorithm 1), O(k·n·c²) time and O(n·c) memory.

    Args:
        H: Output of a pre-trained model for every node, n×c.
        labels: Training labels and pseudo-labels of ELU nodes, −1 elsewhere, (n,).
        lpa: Label distribution n×c, for ``init="lpa"``.
        k: Updates of Q.
        beta: Ridge β > 0.
        form: ``"paper"`` (eq. 9, 11) or ``"transposed"`` (public code).
        init: Rows of Q⁽⁰⁾ without a label: ``"lpa"`` (if ``lpa`` is given), ``"zero"``
            or ``"mlp"``.
        damping: Share of the previous Q in each update, in [0, 1).
        normalization: ``"l2"`` scales rows of Q to length 1 after each update.
        scaling: ``"row"`` or ``"none"``; see ``LowRankGraph.scaled``.
        mode: ``"implicit"``: factors, a ``LowRankGraph``; ``"topk"``: ``topk`` entries
            per row; ``"paper"``: the largest share ``keep`` of all n² entries.
        topk: Entries per row for ``mode="topk"``.
        keep: Share of entries for ``mode="paper"``.
    """
    init = init or ("mlp" if lpa is None else "lpa")
    for option, value, choices in (
        ("form", form, Form),
        ("init", init, Init),
        ("normalization", normalization, Normalization),
        ("scaling", scaling, Scaling),
        ("mode", mode, GraphMode),
    ):
        expected = ", ".join(get_args(choices))
        ok = value in get_args(choices)
        _require(ok, f"{option} must be one of {expected}; got {value!r}")
    _require(0 < beta < math.inf, f"beta must be positive and finite; got {beta}")
    _require(k >= 0, f"k must not be negative; got {k}")
    _require(0 <= damping < 1, f"damping must be in [0, 1); got {damping}")
    _check_tensors(H, labels)
    closed = ClosedForm(H, beta, form)
    Q = initial_influence(labels, H, init, lpa)
    Q = label_influence(closed, labels, Q, k, damping, normalization)
    graph = LowRankGraph(*closed.factors(Q))
    return graph.scaled(scaling).in_mode(mode, topk, keep)


def _check_tensors(H: Tensor, labels: Tensor) -> None:
    for name, value in {"H": H, "labels": labels}.items():
        kind = type(value).__name__
        is_tensor = isinstance(value, Tensor)
        _require(is_tensor, f"{name} must be a torch tensor; got a {kind}")
    matrix = H.dim() == 2 and H.numel() > 0 and H.is_floating_point()
    _require(matrix, f"H must be a floating-point n×c matrix; got {tuple(H.shape)}")
    whole = not labels.is_floating_point()
    _require(whole, f"labels must be whole numbers; got {labels.dtype}")
    n, c = H.shape
    shape = f"({n}); got shape {tuple(labels.shape)}"
    _require(labels.shape == (n,), f"labels must have one entry per row of H {shape}")
    _require(
        bool(torch.isfinite(H).all()),
        "H must be finite; it holds NaN or inf (if it was trained here, training "
        "diverged: try a smaller lr)",
    )
    largest = int(labels.max())
    _require(largest < c, f"labels must be below the {c} columns of H; got {largest}")


def _require(fine: bool, message: str) -> None:
    if not fine:
        raise InputError(message)
