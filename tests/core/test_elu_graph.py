"""The closed form against the paper's own equations, written out densely."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import elugcn.core.elu_graph as module
from elugcn.core.elu_graph import (
    ClosedForm,
    Form,
    check_choice,
    check_options,
    in_mode,
    initial_influence,
    inner,
    label_influence,
    learn_elu_graph,
    solve_influence,
)
from elugcn.core.operators import ExplicitGraph, LowRankGraph
from elugcn.errors import InputError

FORMS: list[Form] = ["paper", "transposed"]
BETAS = st.sampled_from([0.01, 0.5, 1.0, 30.0, 1000.0])
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**20))


def drawn(
    n: int, c: int, seed: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """A random H (rows of probabilities) and Q."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, c, generator=generator, dtype=torch.float64).softmax(dim=1)
    q = torch.rand(n, c, generator=generator, dtype=torch.float64)
    return h.to(dtype), q.to(dtype)


def equation_8(q: Tensor, h: Tensor, beta: float) -> Tensor:
    """QHᵀ (HHᵀ + βI_N)⁻¹, with the N×N inverse."""
    n = h.size(0)
    return q @ h.T @ torch.linalg.inv(h @ h.T + beta * torch.eye(n).to(h))


def equation_11(q: Tensor, h: Tensor, beta: float) -> Tensor:
    """Q (1/β·Hᵀ − 1/β²·HᵀH (I_c + 1/β·HᵀH)⁻¹ Hᵀ), as printed."""
    gram = h.T @ h
    inverse = torch.linalg.inv(torch.eye(h.size(1)).to(h) + gram / beta)
    return q @ (h.T / beta - gram @ inverse @ h.T / beta**2)


def transposed(q: Tensor, h: Tensor, beta: float) -> Tensor:
    """HQᵀ (HHᵀ + βI_N)⁻¹."""
    n = h.size(0)
    return h @ q.T @ torch.linalg.inv(h @ h.T + beta * torch.eye(n).to(h))


def dense_s(q: Tensor, h: Tensor, beta: float, form: str) -> Tensor:
    return (equation_8 if form == "paper" else transposed)(q, h, beta)


def from_factors(q: Tensor, h: Tensor, beta: float, form: Form) -> Tensor:
    left, right = ClosedForm.of(h, beta).factors(q, form)
    assert left.shape == right.shape == h.shape
    assert left.dtype == right.dtype == h.dtype
    return left @ right.T


def example(
    n: int = 30, c: int = 3, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """H, labels of 9 nodes and an LPA distribution with four empty rows."""
    h, lpa = drawn(n, c, seed=4, dtype=dtype)
    labels = torch.full((n,), -1)
    labels[:9] = torch.arange(9) % c
    lpa = lpa / lpa.sum(dim=1, keepdim=True)
    lpa[-4:] = 0
    return h, labels, lpa


# --- the algebra ---------------------------------------------------------------


@given(SIZES, BETAS)
@settings(max_examples=60, deadline=None)
def test_factors_are_equation_8_and_11(size: tuple[int, int, int], beta: float) -> None:
    h, q = drawn(*size)
    s = from_factors(q, h, beta, "paper")
    torch.testing.assert_close(s, equation_8(q, h, beta), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(s, equation_11(q, h, beta), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("beta", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("form", FORMS)
def test_float32_factors_equal_the_dense_solve(beta: float, form: Form) -> None:
    h, q = drawn(40, 4, seed=1, dtype=torch.float32)
    expected = dense_s(q.double(), h.double(), beta, form).float()
    got = from_factors(q, h, beta, form)
    torch.testing.assert_close(
        got, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max())
    )
    if form == "paper":
        literal = equation_11(q.double(), h.double(), beta).float()
        torch.testing.assert_close(
            got, literal, rtol=1e-4, atol=1e-5 * float(expected.abs().max())
        )


@given(SIZES, BETAS)
@settings(max_examples=60, deadline=None)
def test_solution_is_stationary(size: tuple[int, int, int], beta: float) -> None:
    h, q = drawn(*size)
    s = from_factors(q, h, beta, "paper")
    gradient = -q @ h.T + s @ h @ h.T + beta * s
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-9, rtol=0)


def test_solution_minimises_equation_7() -> None:
    h, q = drawn(12, 3, seed=2)
    beta = 0.7
    s = from_factors(q, h, beta, "paper")

    def objective(s: Tensor) -> float:
        return float((q - s @ h).square().sum() + beta * s.square().sum())

    least = objective(s)
    for seed in range(20):
        step = torch.randn(12, 12, generator=torch.Generator().manual_seed(seed))
        for size in (1e-3, 0.1):
            assert objective(s + size * step.double()) > least


@given(SIZES, BETAS)
@settings(max_examples=60, deadline=None)
def test_transposed_form_equals_the_dense_solve(
    size: tuple[int, int, int], beta: float
) -> None:
    h, q = drawn(*size)
    s = from_factors(q, h, beta, "transposed")
    torch.testing.assert_close(s, transposed(q, h, beta), rtol=1e-7, atol=1e-9)


@given(SIZES, BETAS, st.sampled_from(FORMS))
@settings(max_examples=60, deadline=None)
def test_update_is_the_dense_product(
    size: tuple[int, int, int], beta: float, form: Form
) -> None:
    h, q = drawn(*size)
    got = ClosedForm.of(h, beta).update(q, form)
    torch.testing.assert_close(got, dense_s(q, h, beta, form) @ q, rtol=1e-7, atol=1e-9)


def test_rank_is_at_most_c() -> None:
    h, q = drawn(30, 3, seed=5)
    for form in FORMS:
        s = from_factors(q, h, 1.0, form)
        assert int(torch.linalg.matrix_rank(s, rtol=1e-10)) == 3


@pytest.mark.parametrize("block", [1, 7, 50, 1000])
def test_inner_adds_up_over_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    a, b = torch.randn(50, 3), torch.randn(50, 4)
    got = inner(a, b)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, a.double().T @ b.double())


def test_inner_sums_in_double_precision() -> None:
    # In float32 the ones would be lost beside 2²⁴.
    a = torch.ones(101, 1)
    a[0] = 2**12
    assert float(inner(a, a)) == 2**24 + 100


def test_solve_is_the_inverse() -> None:
    h, _ = drawn(20, 4, seed=6)
    closed = ClosedForm.of(h, 0.3)
    gram = h.T @ h + 0.3 * torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(
        gram @ closed.solve(torch.eye(4)), torch.eye(4, dtype=torch.float64)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("beta", [1e-30, 1e-12, 1e-6])
def test_tiny_beta_is_finite(form: Form, beta: float) -> None:
    # Equal columns: HᵀH alone has no Cholesky factor.
    h = torch.rand(50, 1).repeat(1, 3)
    closed = ClosedForm.of(h, beta)
    assert bool(torch.isfinite(closed.cholesky).all())
    labels = torch.full((50,), -1)
    labels[:3] = torch.arange(3)
    graph = learn_elu_graph(h, labels, init="mlp", beta=beta, form=form)
    assert isinstance(graph, LowRankGraph)
    if beta > 1e-20:  # 1/β² does not fit float32 below that
        assert bool(torch.isfinite(graph.to_dense()).all())


# --- numerical precision ----------------------------------------------------------


def test_transposed_factors_keep_their_digits_where_h_is_close_to_q() -> None:
    n = 3000
    labels = torch.arange(n) % 3
    h = torch.eye(3)[labels]
    # Then S_ij = 1/(n/3 + β) for two nodes of a class, exactly.
    _, right = ClosedForm.of(h, 1e-3).factors(h, "transposed")
    expected = h / (n / 3 + 1e-3)
    torch.testing.assert_close(right, expected, rtol=1e-3, atol=1e-6)


def test_paper_factors_keep_their_digits_for_rows_of_h_that_are_alike() -> None:
    h = torch.tensor([[0.5, 0.3, 0.2]]).repeat(300_000, 1)
    q = torch.eye(3)[torch.arange(300_000) % 3]
    left, right = ClosedForm.of(h, 1.0).factors(q, "paper")
    # Hᵀ = u 1ᵀ gives W u = u / (β + n·uᵀu).
    u = h[0].double()
    expected = (u / (1.0 + 300_000 * (u @ u))).float()
    torch.testing.assert_close(left[:3] @ right[0], expected, rtol=1e-3, atol=0)


# --- Q⁽⁰⁾ ------------------------------------------------------------------------


def test_initial_influence() -> None:
    h, labels, lpa = example()
    known = labels >= 0
    one_hot = torch.eye(3, dtype=torch.float64)[labels[known]]
    for init in ("lpa", "mlp", "zero"):
        q = initial_influence(labels, h, init, lpa)
        assert q.dtype == h.dtype
        assert torch.equal(q[known], one_hot)
    assert torch.equal(
        initial_influence(labels, h, "zero")[~known], torch.zeros_like(h[~known])
    )
    assert torch.equal(initial_influence(labels, h, "mlp")[~known], h[~known])
    q = initial_influence(labels, h, "lpa", lpa)
    # Rows that no label reaches start from H.
    assert torch.equal(q[9:-4], lpa[9:-4])
    assert torch.equal(q[-4:], h[-4:])


def test_initial_influence_needs_lpa() -> None:
    h, labels, _ = example()
    with pytest.raises(InputError, match=r"init='lpa' .* give lpa="):
        initial_influence(labels, h, "lpa")


# --- Algorithm 1 -------------------------------------------------------------------


def dense_loop(
    h: Tensor,
    labels: Tensor,
    q: Tensor,
    k: int,
    beta: float,
    form: str,
    damping: float = 0.0,
    l2: bool = False,
) -> Tensor:
    """Algorithm 1 with n×n matrices and a Python loop over rows."""
    eye = torch.eye(h.size(1)).to(h)
    for _ in range(k):
        new = dense_s(q, h, beta, form) @ q
        if l2:
            new = torch.stack([r / r.norm() if r.norm() > 0 else r for r in new])
        q = damping * q + (1 - damping) * new
        q = torch.stack(
            [eye[y] if y >= 0 else r for r, y in zip(q, labels.tolist(), strict=True)]
        )
    return q


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["none", "l2"])
def test_iteration_equals_the_dense_loop(form: Form, damping: float, norm: str) -> None:
    h, labels, lpa = example()
    q0 = initial_influence(labels, h, "lpa", lpa)
    closed = ClosedForm.of(h, 0.5)
    for k in range(6):
        got = label_influence(closed, labels, q0.clone(), k, form, damping, norm)
        expected = dense_loop(h, labels, q0, k, 0.5, form, damping, norm == "l2")
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", ["none", "l2"])
@pytest.mark.parametrize("k", range(6))
def test_labelled_rows_stay_exact(form: Form, norm: str, k: int) -> None:
    h, labels, lpa = example(dtype=torch.float32)
    _, q = solve_influence(h, labels, lpa, k, 1.0, form, "lpa", 0.3, norm)
    known = labels >= 0
    assert torch.equal(q[known], torch.eye(3)[labels[known]])


@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_zero_start_is_a_dead_fixed_point_of_the_printed_form(k: int) -> None:
    h, labels, lpa = example()
    unknown = labels < 0
    for norm in ("none", "l2"):
        _, q = solve_influence(h, labels, None, k, 1.0, "paper", "zero", 0.0, norm)
        assert torch.equal(q[unknown], torch.zeros_like(q[unknown]))
        for init in ("lpa", "mlp"):
            _, q = solve_influence(h, labels, lpa, k, 1.0, "paper", init, 0.0, norm)
            assert bool((q[unknown].abs().sum(dim=1) > 0).all())
    if k:
        # The other cure: rows of the transposed form live as those of H do.
        _, q = solve_influence(h, labels, None, k, 1.0, "transposed", "zero", 0.0, "l2")
        assert bool((q[unknown].abs().sum(dim=1) > 0).all())


def test_dead_rows_of_q_are_dead_rows_of_the_graph() -> None:
    h, labels, _ = example()
    graph = learn_elu_graph(h, labels, form="paper", init="zero")
    s = graph.to_dense()
    assert torch.equal(s[labels < 0], torch.zeros_like(s[labels < 0]))
    assert bool((s[labels >= 0].abs().sum(dim=1) > 0).all())


def test_full_damping_range_moves_less() -> None:
    h, labels, lpa = example()
    q0 = initial_influence(labels, h, "lpa", lpa)
    closed = ClosedForm.of(h, 1.0)
    free = label_influence(closed, labels, q0, 1, "transposed")
    held = label_influence(closed, labels, q0, 1, "transposed", damping=0.75)
    torch.testing.assert_close(held - q0, 0.25 * (free - q0))


def test_iteration_leaves_its_start_alone() -> None:
    h, labels, lpa = example()
    q0 = initial_influence(labels, h, "lpa", lpa)
    before = q0.clone()
    for form in FORMS:
        label_influence(ClosedForm.of(h, 1.0), labels, q0, 3, form)
    assert torch.equal(q0, before)


# --- the whole of it ------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("init", ["lpa", "mlp", "zero"])
def test_learned_graph_equals_dense_algorithm(form: Form, init: str) -> None:
    h, labels, lpa = example()
    graph = learn_elu_graph(
        h,
        labels,
        lpa=lpa,
        k=3,
        beta=0.4,
        form=form,
        init=init,
        normalization="l2",
        damping=0.2,
    )
    q0 = initial_influence(labels, h, init, lpa)
    q = dense_loop(h, labels, q0, 3, 0.4, form, 0.2, l2=True)
    torch.testing.assert_close(
        graph.to_dense(), dense_s(q, h, 0.4, form), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scaling", ["none", "mean", "row"])
def test_permuting_nodes_permutes_the_graph(form: Form, scaling: str) -> None:
    h, labels, lpa = example()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1))
    s = learn_elu_graph(h, labels, lpa=lpa, form=form, scaling=scaling).to_dense()
    moved = learn_elu_graph(
        h[order], labels[order], lpa=lpa[order], form=form, scaling=scaling
    )
    torch.testing.assert_close(
        moved.to_dense(), s[order][:, order], rtol=1e-7, atol=1e-9
    )


def test_scaling_is_applied() -> None:
    h, labels, lpa = example()
    plain = learn_elu_graph(h, labels, lpa=lpa).to_dense()
    mean = learn_elu_graph(h, labels, lpa=lpa, scaling="mean").to_dense()
    torch.testing.assert_close(mean, plain / plain.sum(dim=1).abs().mean())


def test_modes() -> None:
    h, labels, lpa = example(dtype=torch.float32)
    implicit = learn_elu_graph(h, labels, lpa=lpa)
    assert isinstance(implicit, LowRankGraph)
    assert implicit.mode == "implicit"
    topk = learn_elu_graph(h, labels, lpa=lpa, mode="topk", topk=4)
    assert isinstance(topk, ExplicitGraph)
    assert topk.mode == "topk"
    assert torch.equal((topk.to_dense() != 0).sum(dim=1), torch.full((30,), 4))
    paper = learn_elu_graph(h, labels, lpa=lpa, mode="paper", keep=0.2)
    assert paper.mode == "paper"
    dense = implicit.to_dense()
    for explicit in (topk, paper):
        stored = explicit.to_dense() != 0
        torch.testing.assert_close(explicit.to_dense()[stored], dense[stored])
    # The largest fifth of 900 entries.
    assert int((paper.to_dense() != 0).sum()) in (180, 181)


def test_same_input_same_bits() -> None:
    h, labels, lpa = example(dtype=torch.float32)
    a, b = (learn_elu_graph(h, labels, lpa=lpa) for _ in range(2))
    assert isinstance(a, LowRankGraph)
    assert isinstance(b, LowRankGraph)
    assert torch.equal(a.left, b.left)
    assert torch.equal(a.right, b.right)


# --- refusals ----------------------------------------------------------------------------


H = torch.rand(5, 3)
LABELS = torch.tensor([0, 1, 2, -1, -1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": torch.rand(5)}, "H must be a floating-point n×c matrix"),
        ({"h": torch.ones(5, 3, dtype=torch.long)}, "H must be a floating-point"),
        ({"h": torch.full((5, 3), float("nan"))}, "NaN or inf"),
        ({"h": H / 0}, "NaN or inf"),
        ({"labels": LABELS[:4]}, r"one entry per row of H \(5\); got shape \(4,\)"),
        ({"labels": torch.tensor([0, 3, -1, -1, -1])}, "below the 3 columns of H; got 3"),
        ({"beta": 0.0}, "beta must be positive and finite; got 0.0"),
        ({"beta": -1.0}, "beta must be positive and finite; got -1.0"),
        ({"k": -1}, "k must not be negative; got -1"),
        ({"damping": 1.0}, r"damping must be in \[0, 1\); got 1.0"),
        ({"damping": -0.1}, r"damping must be in \[0, 1\)"),
        ({"damping": float("nan")}, r"damping must be in \[0, 1\)"),
    ],
)  # fmt: skip
def test_check_options_refuses(change: dict[str, object], message: str) -> None:
    options = {"h": H, "labels": LABELS, "k": 1, "beta": 1.0, "damping": 0.0} | change
    with pytest.raises(InputError, match=message) as error:
        check_options(options.pop("h"), options.pop("labels"), **options)
    assert "\n" not in str(error.value)


def test_check_options_accepts() -> None:
    check_options(H, LABELS, k=0, beta=1e-9, damping=0.999)
    check_options(H.double(), torch.full((5,), -1), k=3, beta=1e9, damping=0.0)


@pytest.mark.parametrize("option", ["form", "init", "normalization", "mode"])
def test_unknown_choices_are_refused(option: str) -> None:
    with pytest.raises(InputError, match=r"must be one of .*; got 'x'") as error:
        learn_elu_graph(H, LABELS, **({"init": "mlp"} | {option: "x"}))
    assert "\n" not in str(error.value)


def test_check_choice_names_the_option() -> None:
    check_choice("form", "paper", ("paper", "transposed"))
    with pytest.raises(InputError, match=r"^form must be one of a, b; got 3$"):
        check_choice("form", 3, ("a", "b"))
    with pytest.raises(InputError, match="graph mode"):
        in_mode(LowRankGraph(H, H), "x", 1, 0.1)


def test_unknown_scaling_is_refused() -> None:
    with pytest.raises(InputError, match="scaling"):
        learn_elu_graph(H, LABELS, init="mlp", scaling="x")


@pytest.mark.parametrize("beta", [float("nan"), float("inf")])
def test_beta_must_be_a_number(beta: float) -> None:
    with pytest.raises(InputError, match="beta"):
        learn_elu_graph(H, LABELS, init="mlp", beta=beta)


def test_lpa_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(InputError, match="lpa"):
        learn_elu_graph(H, LABELS, lpa=torch.rand(5, 4))


# --- size -----------------------------------------------------------------------------


MILLION = """
import time, torch
from elugcn.core.elu_graph import learn_elu_graph
from elugcn.runs import peak_rss_mb
n, c = 1_000_000, 10
torch.manual_seed(0)
h = torch.rand(n, c)
lpa = torch.rand(n, c)
labels = torch.full((n,), -1)
labels[:200] = torch.arange(200) % c
start = time.perf_counter()
graph = learn_elu_graph(h, labels, lpa=lpa, k=4, form=FORM)
out = graph @ torch.ones(n, 1)
assert out.shape == (n, 1) and bool(torch.isfinite(out).all())
seconds = time.perf_counter() - start
print(seconds, peak_rss_mb() / 2**10)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss in kB")
@pytest.mark.parametrize("form", FORMS)
def test_a_million_nodes_fit(form: Form) -> None:
    root = Path(module.__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", MILLION.replace("FORM", repr(form))],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds, gigabytes = map(float, run.stdout.split())
    assert seconds < 60
    assert gigabytes < 2


def test_the_default_init_is_lpa_where_it_is_given() -> None:
    torch.manual_seed(5)
    h = torch.softmax(torch.randn(30, 3), dim=1)
    labels = torch.full((30,), -1)
    labels[:6] = torch.tensor([0, 1, 2, 0, 1, 2])
    lpa = torch.softmax(torch.randn(30, 3), dim=1)
    for share, init in ((None, "mlp"), (lpa, "lpa")):
        default = learn_elu_graph(h, labels, lpa=share)
        named = learn_elu_graph(h, labels, lpa=share, init=init)
        assert torch.equal(default.to_dense(), named.to_dense())


def test_h_of_lower_rank_and_a_beta_that_rounding_swallows() -> None:
    """H = u vᵀ with v = (1, 1): as β → 0 S H is Q times the projection on v."""
    h = torch.full((6, 2), 1e6)
    labels = torch.tensor([0, 1, 0, 1, 1, 0])
    graph = learn_elu_graph(h, labels, k=0, beta=1e-9)
    q = F.one_hot(labels, 2).double()
    expected = q @ torch.full((2, 2), 0.5).double()
    got = graph.to_dense().double() @ h.double()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
