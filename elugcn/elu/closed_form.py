"""The ELU graph S* in closed form (eq. 8, 10 and 11), as two n×c factors.

H (n×c) is the output of a pre-trained model, Q (n×c) the label influence, β the ridge.
Eq. 8 and eq. 11 both simplify to

    S* = Q W Hᵀ,    W = (HᵀH + βI_c)⁻¹

so S* has rank ≤ c: two n×c factors describe its n² entries, and one update Q ← S Q
(eq. 10) costs O(n·c²). Nothing here is n×n.

In this form row i of S is q_i W Hᵀ. A node whose row of Q starts at zero therefore
keeps a zero row for ever, hence the choice of ``init`` for rows without a label. The
authors' public code uses another form, ``"transposed"``,

    S = H Qᵀ (HHᵀ + βI_n)⁻¹ = H Bᵀ,    B = (Q − H W HᵀQ) / β

in which a row is zero only where the row of H is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.elu.label_propagation import one_hot_rows
from elugcn.elu.low_rank_graph import ELUGraph, GraphMode, LowRankGraph, Scaling
from elugcn.errors import InputError

Form = Literal["paper", "transposed"]
Init = Literal["lpa", "zero", "mlp"]
Normalization = Literal["none", "l2"]

# Rows that are converted to float64 at a time.
_BLOCK = 65_536


def node_sum(a: Tensor, b: Tensor) -> Tensor:
    """AᵀB, summed over all nodes in float64: O(n·c·k) time, O(c·k) memory.

    Everything that the closed form needs from all nodes at once is such a sum (HᵀH,
    HᵀQ, BᵀQ). Machines that share the nodes would add these sums up.
    """
    total = torch.zeros(a.size(1), b.size(1), dtype=torch.float64, device=a.device)
    for rows_a, rows_b in zip(_blocks(a), _blocks(b), strict=True):
        total += rows_a.double().T @ rows_b.double()
    return total


def _blocks(x: Tensor) -> tuple[Tensor, ...]:
    return torch.split(x, _BLOCK)


@dataclass(frozen=True)
class ClosedForm:
    """The solution for one H.

    Attributes:
        H: n×c.
        beta: β > 0.
        cholesky: Cholesky factor of HᵀH + βI_c, c×c, float64.
    """

    H: Tensor
    beta: float
    cholesky: Tensor

    @classmethod
    def of(cls, H: Tensor, beta: float) -> ClosedForm:
        """Factor HᵀH + βI_c once, O(n·c² + c³)."""
        gram = node_sum(H, H)
        gram.diagonal().add_(beta)
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            # β is so small beside HᵀH that rounding made the sum indefinite.
            gram.diagonal().add_(1e-8 * float(gram.diagonal().mean()))
            factor = torch.linalg.cholesky(gram)
        return cls(H, beta, factor)

    def W(self, M: Tensor) -> Tensor:
        """W M for a c×k matrix, in float64."""
        return torch.cholesky_solve(M.double(), self.cholesky)

    def factors(self, Q: Tensor, form: Form) -> tuple[Tensor, Tensor]:
        """The n×c factors (left, right) of S = left · rightᵀ, O(n·c²).

        Paper: (Q, H W), eq. 11. Transposed: (H, B); B is a small difference of large
        numbers if β is small, so it is computed in float64.
        """
        if form == "paper":
            W = self.W(torch.eye(Q.size(1), device=Q.device))
            return Q, torch.cat([(h.double() @ W).to(h) for h in _blocks(self.H)])
        WHQ = self.W(node_sum(self.H, Q))
        B = [
            ((q.double() - h.double() @ WHQ) / self.beta).to(h)
            for h, q in zip(_blocks(self.H), _blocks(Q), strict=True)
        ]
        return self.H, torch.cat(B)

    def update(self, Q: Tensor, form: Form) -> Tensor:
        """S Q (eq. 10), O(n·c²)."""
        if form == "paper":
            return Q @ self.W(node_sum(self.H, Q)).to(Q)
        left, right = self.factors(Q, form)
        return left @ node_sum(right, Q).to(Q)


def initial_influence(
    labels: Tensor, H: Tensor, init: Init, lpa: Tensor | None = None
) -> Tensor:
    """Q⁽⁰⁾: one-hot rows where labels are known; ``init`` gives the other rows.

    Args:
        labels: Known labels and pseudo-labels, −1 elsewhere, (n,).
        H: n×c.
        init: ``"lpa"``: rows of label propagation, and of H where no label reaches;
            ``"mlp"``: rows of H; ``"zero"``: zero rows, as printed.
        lpa: Label distribution n×c, for ``init="lpa"``.
    """
    Q = one_hot_rows(labels, H.size(1)).to(H)
    unknown = labels < 0
    if init == "mlp":
        Q[unknown] = H[unknown]
    elif init == "lpa":
        if lpa is None:
            raise InputError(
                "init='lpa' starts from label propagation: give lpa=, or use "
                "init='mlp' or 'zero'"
            )
        if lpa.shape != H.shape:
            shape = tuple(H.shape)
            raise InputError(
                f"lpa must have the shape of H, {shape}; got {tuple(lpa.shape)}"
            )
        Q[unknown] = lpa[unknown].to(H)
        empty = unknown & (Q.sum(dim=1) == 0)
        Q[empty] = H[empty]
    return Q


def label_influence(
    closed: ClosedForm,
    labels: Tensor,
    Q: Tensor,
    k: int,
    form: Form = "paper",
    damping: float = 0.0,
    normalization: Normalization = "none",
) -> Tensor:
    """Q⁽ᵏ⁾ by Algorithm 1: Q ← S Q, then labelled rows are put back. O(k·n·c²).

    Args:
        closed: The factored H.
        labels: Known labels and pseudo-labels, −1 elsewhere, (n,).
        Q: Q⁽⁰⁾, n×c.
        k: Number of updates.
        form: Which closed form.
        damping: Share of the previous Q in each update (0.3 in the public code).
        normalization: ``"l2"`` scales rows to length 1. Without it the update is
            quadratic in Q: it shrinks or collapses to one class as k grows.
    """
    known = labels >= 0
    Y = one_hot_rows(labels, Q.size(1)).to(Q)[known]
    for _ in range(k):
        new = closed.update(Q, form)
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
    """Learn the ELU graph S* (Algorithm 1, lines 3 to 7).

    Args:
        H: Output of a pre-trained model for every node, n×c.
        labels: Training labels and pseudo-labels of ELU nodes, −1 elsewhere, (n,).
        lpa: Label distribution n×c, for ``init="lpa"``.
        k: Updates of Q.
        beta: Ridge β > 0.
        form: ``"paper"`` (eq. 8, 11) or ``"transposed"`` (public code).
        init: Rows of Q⁽⁰⁾ without a label: ``"lpa"``, ``"zero"`` or ``"mlp"``. None:
            ``"lpa"`` if ``lpa`` is given, else ``"mlp"``.
        damping: Share of the previous Q in each update, in [0, 1).
        normalization: ``"l2"`` scales rows of Q to length 1 after each update.
        scaling: ``"row"``, ``"mean"`` or ``"none"``; see ``LowRankGraph.scaled``.
        mode: ``"implicit"``: factors; ``"topk"``: k entries per row; ``"paper"``: the
            ``keep`` largest share of all n² entries.
        topk: Entries per row for ``mode="topk"``.
        keep: Share of entries for ``mode="paper"``.

    Returns:
        The operator S*.

    Cost:
        O(k·n·c²) time and O(n·c) memory for the factors.
    """
    _check_choice("scaling", scaling, Scaling)
    _check_choice("mode", mode, GraphMode)
    graph = learn_factors(H, labels, lpa, k, beta, form, init, damping, normalization)
    return graph.scaled(scaling).in_mode(mode, topk, keep)


def learn_factors(
    H: Tensor,
    labels: Tensor,
    lpa: Tensor | None,
    k: int,
    beta: float,
    form: Form,
    init: Init | None,
    damping: float,
    normalization: Normalization,
) -> LowRankGraph:
    """S* in factors, not yet scaled; arguments as those of ``learn_elu_graph``."""
    _check(H, labels, k, beta, damping)
    init = init or ("mlp" if lpa is None else "lpa")
    _check_choice("form", form, Form)
    _check_choice("init", init, Init)
    _check_choice("normalization", normalization, Normalization)
    closed = ClosedForm.of(H, beta)
    Q = initial_influence(labels, H, init, lpa)
    Q = label_influence(closed, labels, Q, k, form, damping, normalization)
    return LowRankGraph(*closed.factors(Q, form))


def _check_choice(option: str, value: str, choices: object) -> None:
    names = get_args(choices)
    if value not in names:
        raise InputError(f"{option} must be one of {', '.join(names)}; got {value!r}")


def _check(H: Tensor, labels: Tensor, k: int, beta: float, damping: float) -> None:
    """Refuse shapes and numbers for which the closed form is not defined."""
    given: dict[str, object] = {"H": H, "labels": labels}
    for name, value in given.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise InputError(f"{name} must be a torch tensor; got a {kind}")
    if H.dim() != 2 or not H.numel() or not H.is_floating_point():
        raise InputError(f"H must be a floating-point n×c matrix; got {tuple(H.shape)}")
    if labels.is_floating_point():
        raise InputError(f"labels must be whole numbers; got {labels.dtype}")
    if labels.shape != (H.size(0),):
        raise InputError(
            f"labels must have one entry per row of H ({H.size(0)}); "
            f"got shape {tuple(labels.shape)}"
        )
    if not bool(torch.isfinite(H).all()):
        raise InputError(
            "H must be finite; it holds NaN or inf (if it was trained here, training "
            "diverged: try a smaller lr)"
        )
    if int(labels.max()) >= H.size(1):
        raise InputError(
            f"labels must be below the {H.size(1)} columns of H; "
            f"got {int(labels.max())}"
        )
    if not 0.0 < beta < float("inf"):
        raise InputError(f"beta must be positive and finite; got {beta}")
    if k < 0:
        raise InputError(f"k must not be negative; got {k}")
    if not 0.0 <= damping < 1.0:
        raise InputError(f"damping must be in [0, 1); got {damping}")
