"""The ELU graph in closed form, as a low-rank operator (eq. 8, 10 and 11).

The paper's eq. 8 and 11 both simplify exactly to

    S* = Q W Hᵀ,    W = (HᵀH + βI_c)⁻¹,

so S* has rank ≤ c: two n×c factors describe all n² entries. One product with an n×k
matrix costs O(n·c·k), one update Q ← S Q costs O(n·c²), and nothing here is n×n.

``form="transposed"`` is the variant of the authors' public code,

    S = H Qᵀ (HHᵀ + βI_n)⁻¹ = H Bᵀ,    B = β⁻¹ (Q − H W HᵀQ),

whose rows are alive wherever those of H are. In ``form="paper"`` row i of S is
q_i W Hᵀ: a node whose row of Q starts at zero keeps a zero row for ever, hence the
choice of ``init`` for the rows that carry no label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from elugcn.core.operators import ELUGraph, LowRankGraph, Scaling
from elugcn.core.propagation import one_hot_rows
from elugcn.core.sparsify import paper_graph, topk_graph
from elugcn.errors import InputError

Form = Literal["paper", "transposed"]
Init = Literal["lpa", "zero", "mlp"]
Normalization = Literal["none", "l2"]
Mode = Literal["implicit", "topk", "paper"]

# Rows added up at a time in float64: bounds the copy to 64k×c doubles.
_BLOCK = 65_536


def inner(a: Tensor, b: Tensor) -> Tensor:
    """AᵀB summed over nodes in float64: O(n·c·k) time, O(c·k) memory.

    Everything the closed form needs from all nodes at once is such a sum; they are
    what several machines would add up.
    """
    total = torch.zeros(a.size(1), b.size(1), dtype=torch.float64, device=a.device)
    for start in range(0, a.size(0), _BLOCK):
        rows = slice(start, start + _BLOCK)
        total += a[rows].double().T @ b[rows].double()
    return total


def _by_blocks(
    matrix: Tensor, base: Tensor | None, h: Tensor, scale: float = 1.0
) -> Tensor:
    """H·matrix + scale·base, summed in float64, a block of rows at a time."""
    out = torch.empty_like(h)
    for start in range(0, h.size(0), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = h[rows].double() @ matrix
        if base is not None:
            block += scale * base[rows].double()
        out[rows] = block.to(h.dtype)
    return out


@dataclass(frozen=True)
class ClosedForm:
    """The factored solution for one H: W as a Cholesky factor, never an inverse."""

    h: Tensor
    beta: float
    cholesky: Tensor

    @classmethod
    def of(cls, h: Tensor, beta: float) -> ClosedForm:
        """Factor HᵀH + βI (c×c, symmetric positive definite) once."""
        gram = inner(h, h)
        gram.diagonal().add_(beta)
        factor, failed = torch.linalg.cholesky_ex(gram)
        if int(failed):
            # β so small against HᵀH that rounding made it indefinite.
            gram.diagonal().add_(1e-8 * float(gram.diagonal().mean()))
            factor = torch.linalg.cholesky(gram)
        return cls(h, beta, factor)

    def solve(self, rhs: Tensor) -> Tensor:
        """W·rhs for a c×k matrix, in float64."""
        return torch.cholesky_solve(rhs.double(), self.cholesky)

    def factors(self, q: Tensor, form: Form) -> tuple[Tensor, Tensor]:
        """The n×c factors (left, right) of S = left · rightᵀ.

        ``paper``: (Q, H W). ``transposed``: (H, B). The right factor is a small
        difference of large numbers when β is small, so it is computed in float64.
        """
        if form == "paper":
            eye = torch.eye(q.size(1), dtype=torch.float64, device=q.device)
            return q, _by_blocks(self.solve(eye), None, self.h)
        coupling = self.solve(inner(self.h, q))
        right = _by_blocks(-coupling / self.beta, q, self.h, 1.0 / self.beta)
        return self.h, right

    def update(self, q: Tensor, form: Form) -> Tensor:
        """S Q (eq. 10), O(n·c²)."""
        if form == "paper":
            return q @ self.solve(inner(self.h, q)).to(q.dtype)
        left, right = self.factors(q, form)
        return left @ inner(right, q).to(q.dtype)


def initial_influence(
    labels: Tensor, h: Tensor, init: Init, lpa: Tensor | None = None
) -> Tensor:
    """Q⁽⁰⁾: labels where they are known, and ``init`` decides the other rows."""
    q = one_hot_rows(labels, h.size(1)).to(h.dtype)
    unknown = labels < 0
    if init == "lpa":
        if lpa is None:
            raise InputError(
                "init='lpa' starts from label propagation: give lpa=, or use "
                "init='mlp' or 'zero'"
            )
        if lpa.shape != h.shape:
            raise InputError(
                f"lpa must have the shape of H, {tuple(h.shape)}; "
                f"got {tuple(lpa.shape)}"
            )
        q[unknown] = lpa[unknown].to(h.dtype)
        empty = unknown & (q.sum(dim=1) == 0)
        q[empty] = h[empty]
    elif init == "mlp":
        q[unknown] = h[unknown]
    return q


def label_influence(
    closed: ClosedForm,
    labels: Tensor,
    q: Tensor,
    k: int,
    form: Form = "paper",
    damping: float = 0.0,
    normalization: Normalization = "none",
) -> Tensor:
    """Q⁽ᵏ⁾ by Algorithm 1: Q ← S Q, labelled rows put back after every update.

    Args:
        closed: The factored H.
        labels: Known and pseudo-labels, −1 elsewhere; their rows are clamped.
        q: Q⁽⁰⁾, n×c.
        k: Number of updates.
        form: Which closed form.
        damping: Share of the previous Q kept in each update (public code: 0.3).
        normalization: ``"l2"`` scales rows to length 1; without it the map is
            quadratic in Q and shrinks or collapses as k grows.
    """
    known = labels >= 0
    y = one_hot_rows(labels, q.size(1)).to(q.dtype)[known]
    for _ in range(k):
        new = closed.update(q, form)
        if normalization == "l2":
            new = torch.nn.functional.normalize(new, dim=1)
        q = torch.lerp(new, q, damping) if damping else new
        q[known] = y
    return q


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
    mode: Mode = "implicit",
    topk: int = 20,
    keep: float = 0.1,
) -> ELUGraph:
    """Learn the ELU graph S* (Algorithm 1). O(n·c²·k) time, O(n·c) memory.

    Args:
        H: n×c, a pre-trained model's output for every node.
        labels: Training labels and pseudo-labels of ELU nodes, −1 elsewhere, (n,).
        lpa: Label distribution n×c for ``init="lpa"``.
        k: Updates of Q.
        beta: Ridge β > 0.
        form: ``"paper"`` (eq. 8, 11) or ``"transposed"`` (public code).
        init: Rows of Q⁽⁰⁾ without a label: ``"lpa"``, ``"zero"`` or ``"mlp"`` (the
            rows of H). None: ``"lpa"`` where ``lpa`` is given, else ``"mlp"``.
        damping: Share of the old Q kept in each update, in [0, 1).
        normalization: ``"none"`` or ``"l2"``: rows of Q after each update.
        scaling: See ``LowRankGraph.scaled``.
        mode: ``"implicit"`` (the exact graph in factors), ``"topk"`` (``topk``
            entries a row) or ``"paper"`` (the ``keep`` share of all n² entries).
        topk: Entries a row in mode ``"topk"``.
        keep: Share of entries in mode ``"paper"``.

    Returns:
        The operator S*.
    """
    check_choice("scaling", scaling, get_args(Scaling))
    if init is None:
        init = "mlp" if lpa is None else "lpa"
    closed, q = solve_influence(
        H, labels, lpa, k, beta, form, init, damping, normalization
    )
    graph = LowRankGraph(*closed.factors(q, form)).scaled(scaling)
    return in_mode(graph, mode, topk, keep)


def in_mode(graph: LowRankGraph, mode: str, topk: int, keep: float) -> ELUGraph:
    """The factored graph as it is, or as an explicit one."""
    check_choice("graph mode", mode, get_args(Mode))
    if mode == "topk":
        return topk_graph(graph, topk).to(graph.left.device)
    if mode == "paper":
        return paper_graph(graph, keep).to(graph.left.device)
    return graph


def solve_influence(
    h: Tensor,
    labels: Tensor,
    lpa: Tensor | None,
    k: int,
    beta: float,
    form: Form,
    init: Init,
    damping: float,
    normalization: Normalization,
) -> tuple[ClosedForm, Tensor]:
    """The factored H and Q⁽ᵏ⁾, options checked."""
    check_options(h, labels, k=k, beta=beta, damping=damping)
    check_choice("form", form, get_args(Form))
    check_choice("init", init, get_args(Init))
    check_choice("normalization", normalization, get_args(Normalization))
    closed = ClosedForm.of(h, beta)
    q = initial_influence(labels, h, init, lpa)
    return closed, label_influence(closed, labels, q, k, form, damping, normalization)


def check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value outside the named choices."""
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}; got {value!r}")


def _check_tensors(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise InputError(f"{name} must be a torch tensor; got a {kind}")


def check_options(
    h: Tensor, labels: Tensor, *, k: int, beta: float, damping: float
) -> None:
    """Refuse shapes and numbers for which the closed form is not defined."""
    _check_tensors(H=h, labels=labels)
    if h.dim() != 2 or not h.numel() or not h.is_floating_point():
        raise InputError(f"H must be a floating-point n×c matrix; got {tuple(h.shape)}")
    if labels.is_floating_point():
        raise InputError(f"labels must be whole numbers; got {labels.dtype}")
    if labels.shape != (h.size(0),):
        raise InputError(
            f"labels must have one entry per row of H ({h.size(0)}); "
            f"got shape {tuple(labels.shape)}"
        )
    if not bool(torch.isfinite(h).all()):
        raise InputError(
            "H must be finite; it holds NaN or inf (if it was trained here, training "
            "diverged: try a smaller lr)"
        )
    if int(labels.max()) >= h.size(1):
        raise InputError(
            f"labels must be below the {h.size(1)} columns of H; "
            f"got {int(labels.max())}"
        )
    if not 0.0 < beta < float("inf"):
        raise InputError(f"beta must be positive and finite; got {beta}")
    if k < 0:
        raise InputError(f"k must not be negative; got {k}")
    if not 0.0 <= damping < 1.0:
        raise InputError(f"damping must be in [0, 1); got {damping}")
