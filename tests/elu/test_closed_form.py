"""The closed form against the paper's own equations, written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.elu.closed_form import (
    ClosedForm,
    Form,
    initial_influence,
    label_influence,
    learn_elu_graph,
    node_sum,
)
from elugcn.elu.low_rank_graph import ExplicitGraph, LowRankGraph
from elugcn.errors import InputError

Example = tuple[Tensor, Tensor, Tensor]
FORMS: list[Form] = ["paper", "transposed"]
BETAS = st.sampled_from([0.01, 0.5, 1.0, 30.0, 1000.0])
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**20))


def drawn(
    n: int, c: int, seed: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """A random H (rows of probabilities) and Q."""
    generator = torch.Generator().manual_seed(seed)
    H = torch.randn(n, c, generator=generator, dtype=torch.float64).softmax(dim=1)
    Q = torch.rand(n, c, generator=generator, dtype=torch.float64)
    return H.to(dtype), Q.to(dtype)


def equation_11(Q: Tensor, H: Tensor, beta: float) -> Tensor:
    """Q (1/β·Hᵀ − 1/β²·HᵀH (I_c + 1/β·HᵀH)⁻¹ Hᵀ), as printed."""
    gram = H.T @ H
    inverse = torch.linalg.inv(torch.eye(H.size(1)).to(H) + gram / beta)
    return Q @ (H.T / beta - gram @ inverse @ H.T / beta**2)


def dense_s(Q: Tensor, H: Tensor, beta: float, form: Form) -> Tensor:
    """QHᵀ (HHᵀ + βI_N)⁻¹ (eq. 9), or HQᵀ (HHᵀ + βI_N)⁻¹."""
    product = Q @ H.T if form == "paper" else H @ Q.T
    return product @ torch.linalg.inv(H @ H.T + beta * torch.eye(len(H)).to(H))


def from_factors(Q: Tensor, H: Tensor, beta: float, form: Form) -> Tensor:
    left, right = ClosedForm(H, beta, form).factors(Q)
    assert left.shape == right.shape == H.shape
    assert left.dtype == right.dtype == H.dtype
    return left @ right.T


# --- the algebra ---------------------------------------------------------------


@given(SIZES, BETAS, st.sampled_from(FORMS))
@settings(max_examples=60)
def test_factors_and_updates_are_the_dense_ones(
    size: tuple[int, int, int], beta: float, form: Form
) -> None:
    H, Q = drawn(*size)
    S = dense_s(Q, H, beta, form)
    if form == "paper":
        # Eq. 11 is the same matrix, and the gradient (eq. 8) is zero there.
        torch.testing.assert_close(S, equation_11(Q, H, beta), rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(S @ H @ H.T + beta * S, Q @ H.T, atol=1e-9, rtol=0)
    torch.testing.assert_close(from_factors(Q, H, beta, form), S, rtol=1e-7, atol=1e-9)
    updated = ClosedForm(H, beta, form).update(Q)
    torch.testing.assert_close(updated, S @ Q, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("form", FORMS)
def test_float32_is_as_good_as_the_dense_solve(beta: float, form: Form) -> None:
    H, Q = drawn(40, 4, seed=1, dtype=torch.float32)
    expected = dense_s(Q.double(), H.double(), beta, form).float()
    got = from_factors(Q, H, beta, form)
    least = 1e-5 * float(expected.abs().max())
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=least)


def test_sums_over_nodes_are_in_double_precision_and_by_blocks() -> None:
    n = 150_000  # three blocks
    a, b = torch.rand(n, 2), torch.rand(n, 3)
    torch.testing.assert_close(node_sum(a, b), a.double().T @ b.double())
    # In float32 the ones would be lost beside 2²⁴.
    ones = torch.ones(101, 1)
    ones[0] = 2**12
    assert float(node_sum(ones, ones)) == 2**24 + 100


# --- numerical precision ----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("beta", [1e-30, 1e-12, 1e-6])
def test_a_tiny_beta_is_finite(form: Form, beta: float) -> None:
    # Equal columns: HᵀH alone has no Cholesky factor.
    H = torch.rand(50, 1).repeat(1, 3)
    assert bool(torch.isfinite(ClosedForm(H, beta).cholesky).all())
    labels = torch.full((50,), -1)
    labels[:3] = torch.arange(3)
    graph = learn_elu_graph(H, labels, init="mlp", beta=beta, form=form)
    if beta > 1e-20:  # 1/β² does not fit float32 below that
        assert bool(torch.isfinite(graph.to_dense()).all())


def test_a_beta_that_rounding_swallows() -> None:
    """H = u vᵀ with v = (1, 1): as β → 0, S H is Q times the projection on v."""
    H = torch.full((6, 2), 1e6)
    labels = torch.tensor([0, 1, 0, 1, 1, 0])
    graph = learn_elu_graph(H, labels, k=0, beta=1e-9)
    expected = F.one_hot(labels, 2).double() @ torch.full((2, 2), 0.5).double()
    got = graph.to_dense().double() @ H.double()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


def test_transposed_factors_keep_their_digits_where_h_is_close_to_q() -> None:
    n = 3000
    H = torch.eye(3)[torch.arange(n) % 3]
    # Then S_ij = 1/(n/3 + β) for two nodes of a class, exactly.
    _, right = ClosedForm(H, 1e-3, "transposed").factors(H)
    torch.testing.assert_close(right, H / (n / 3 + 1e-3), rtol=1e-3, atol=1e-6)


# --- Algorithm 1 -------------------------------------------------------------------


def test_initial_influence(example: Example) -> None:
    H, labels, lpa = example
    known = labels >= 0
    for init in ("lpa", "mlp", "zero"):
        Q = initial_influence(labels, H, init, lpa)
        assert Q.dtype == H.dtype
        assert torch.equal(Q[known], torch.eye(3, dtype=H.dtype)[labels[known]])
    assert not initial_influence(labels, H, "zero")[~known].any()
    assert torch.equal(initial_influence(labels, H, "mlp")[~known], H[~known])
    Q = initial_influence(labels, H, "lpa", lpa)
    # Rows that no label reaches start from H.
    assert torch.equal(Q[9:-4], lpa[9:-4])
    assert torch.equal(Q[-4:], H[-4:])


def dense_loop(
    H: Tensor, labels: Tensor, Q: Tensor, k: int, beta: float, form: Form,
    damping: float = 0.0, l2: bool = False,
) -> Tensor:  # fmt: skip
    """Algorithm 1 with n×n matrices and a Python loop over rows."""
    eye = torch.eye(H.size(1)).to(H)
    for _ in range(k):
        new = dense_s(Q, H, beta, form) @ Q
        if l2:
            new = torch.stack([r / r.norm() if r.norm() > 0 else r for r in new])
        Q = damping * Q + (1 - damping) * new
        Q = torch.stack(
            [eye[y] if y >= 0 else r for r, y in zip(Q, labels.tolist(), strict=True)]
        )
    return Q


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["none", "l2"])
def test_updates_are_those_of_the_dense_loop(
    example: Example, form: Form, damping: float, norm: Any
) -> None:
    H, labels, lpa = example
    start = initial_influence(labels, H, "lpa", lpa)
    before, closed = start.clone(), ClosedForm(H, 0.5, form)
    known = labels >= 0
    for k in range(4):
        got = label_influence(closed, labels, start, k, damping, norm)
        expected = dense_loop(H, labels, start, k, 0.5, form, damping, norm == "l2")
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-10)
        graph = learn_elu_graph(
            H, labels, lpa=lpa, k=k, beta=0.5, form=form, damping=damping,
            normalization=norm,
        )  # fmt: skip
        S = dense_s(expected, H, 0.5, form)
        torch.testing.assert_close(graph.to_dense(), S, rtol=1e-7, atol=1e-9)
        # Labelled rows of Q equal Y after every update.
        assert torch.equal(got[known], torch.eye(3).to(H)[labels[known]])
    assert torch.equal(start, before)


@pytest.mark.parametrize("k", [0, 1, 4, 9])
@pytest.mark.parametrize("norm", ["none", "l2"])
def test_a_zero_start_is_a_dead_fixed_point_of_the_printed_form(
    example: Example, k: int, norm: Any
) -> None:
    H, labels, lpa = example
    unknown = labels < 0

    def alive(**options: Any) -> Tensor:
        graph = learn_elu_graph(H, labels, k=k, normalization=norm, **options)
        return graph.to_dense().abs().sum(dim=1) > 0

    dead = alive(form="paper", init="zero")
    assert not dead[unknown].any()
    assert bool(dead[~unknown].all())
    assert bool(alive(form="paper", init="mlp").all())
    assert bool(alive(form="paper", lpa=lpa).all())
    # The other cure: rows of the transposed form live as those of H do.
    assert bool(alive(form="transposed", init="zero").all())


def test_six_nodes_by_hand() -> None:
    """Two classes, H one-hot: HᵀH = diag(3, 3), so W = I/4 for β = 1.

    Q⁽⁰⁾ has the labels of nodes 0 and 5 and rows of H elsewhere, so Q⁽⁰⁾ = H and
    S = H Hᵀ / 4: two nodes of a class are joined with 1/4. Then S Q = ¾ H.
    """
    H = torch.eye(2)[torch.tensor([0, 0, 0, 1, 1, 1])]
    labels = torch.tensor([0, -1, -1, -1, -1, 1])
    options: dict[str, Any] = {"init": "mlp", "beta": 1.0, "normalization": "none"}
    S = learn_elu_graph(H, labels, k=0, **options).to_dense()
    block = torch.full((3, 3), 0.25)
    expected = torch.block_diag(block, block)
    torch.testing.assert_close(S, expected)
    # After one update unlabelled rows of Q are ¾ of H, labelled ones are put back.
    S = learn_elu_graph(H, labels, k=1, **options).to_dense()
    shrunk = torch.tensor([1, 0.75, 0.75, 0.75, 0.75, 1]).unsqueeze(1)
    torch.testing.assert_close(S, shrunk * expected)
    same = learn_elu_graph(H, labels, k=0, form="transposed", **options).to_dense()
    torch.testing.assert_close(same, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", ["none", "row"])
def test_permuting_nodes_permutes_the_graph(
    example: Example, form: Form, scaling: Any
) -> None:
    H, labels, lpa = example
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    S = learn_elu_graph(H, labels, lpa=lpa, form=form, scaling=scaling).to_dense()
    moved = learn_elu_graph(
        H[order], labels[order], lpa=lpa[order], form=form, scaling=scaling
    )
    torch.testing.assert_close(
        moved.to_dense(), S[order][:, order], rtol=1e-7, atol=1e-9
    )


def test_modes(example: Example) -> None:
    H, labels, lpa = example
    implicit = learn_elu_graph(H.float(), labels, lpa=lpa)
    assert isinstance(implicit, LowRankGraph)
    topk = learn_elu_graph(H.float(), labels, lpa=lpa, mode="topk", topk=4)
    paper = learn_elu_graph(H.float(), labels, lpa=lpa, mode="paper", keep=0.2)
    assert [g.mode for g in (implicit, topk, paper)] == ["implicit", "topk", "paper"]
    dense = implicit.to_dense()
    for explicit in (topk, paper):
        assert isinstance(explicit, ExplicitGraph)
        stored = explicit.to_dense() != 0
        torch.testing.assert_close(explicit.to_dense()[stored], dense[stored])
    assert torch.equal((topk.to_dense() != 0).sum(dim=1), torch.full((30,), 4))
    # The largest fifth of 900 entries.
    assert int((paper.to_dense() != 0).sum()) in (180, 181)


# --- refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": torch.rand(5)}, "H must be a floating-point n×c matrix"),
        ({"H": torch.ones(5, 3, dtype=torch.long)}, "H must be a floating-point"),
        ({"H": torch.full((5, 3), float("nan"))}, "NaN or inf"),
        ({"H": [[0.5, 0.5]]}, "H must be a torch tensor; got a list"),
        ({"labels": [0, 1]}, "labels must be a torch tensor; got a list"),
        ({"labels": torch.zeros(4).long()}, r"one entry per row of H \(5\)"),
        ({"labels": torch.zeros(5)}, "labels must be whole numbers; got torch.float32"),
        ({"labels": torch.tensor([0, 3, -1, -1, -1])}, "below the 3 columns of H; got 3"),
        ({"beta": 0.0}, "beta must be positive and finite; got 0.0"),
        ({"beta": float("nan")}, "beta must be positive and finite"),
        ({"k": -1}, "k must not be negative; got -1"),
        ({"damping": 1.0}, r"damping must be in \[0, 1\); got 1.0"),
        ({"form": "dense"}, "form must be one of paper, transposed; got 'dense'"),
        ({"init": "gcn"}, "init must be one of lpa, zero, mlp; got 'gcn'"),
        ({"init": "lpa"}, "init='lpa' needs lpa="),
        ({"lpa": torch.rand(5, 4)}, r"lpa must have the shape of H, \(5, 3\)"),
        ({"normalization": "l1"}, "normalization must be one of none, l2; got 'l1'"),
        ({"scaling": "x"}, "scaling must be one of none, row; got 'x'"),
        ({"mode": "dense"}, "mode must be one of implicit, topk, paper; got 'dense'"),
        ({"mode": "topk", "topk": 0}, "topk must be at least 1; got 0"),
        ({"mode": "paper", "keep": 0.0}, r"keep must be in \(0, 1\]; got 0.0"),
    ],
    ids=[f"refusal{i}" for i in range(21)],
)  # fmt: skip
def test_what_is_not_defined_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"H": torch.rand(5, 3), "labels": torch.tensor([0, 1, 2, -1, -1])}
    with pytest.raises(InputError, match=message) as refused:
        learn_elu_graph(**(given | change))
    assert "\n" not in str(refused.value)
