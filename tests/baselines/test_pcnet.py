"""PCNet: the polynomials, the operator and the filter against closed forms."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.baselines.pcnet import (
    PCNet,
    PCNetConfig,
    PCNetNetwork,
    charlier,
    shifted_operator,
)
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import gradient


def graph(directed: bool = False, loops: bool = True) -> tuple[Tensor, CSR]:
    """A (dense, without self-loops) and Â of 60 nodes, the last without edges."""
    torch.manual_seed(0)
    a = (torch.rand(60, 60, dtype=torch.float64) < 0.08).double()
    a.fill_diagonal_(0)
    a[-1], a[:, -1] = 0, 0
    a = a if directed else torch.maximum(a, a.T)
    target, source = a.nonzero().T
    edges = torch.stack([source, target])
    adj = normalized_adjacency(edges, 60, self_loops=loops)
    assert adj.symmetric != directed
    return a, adj


def network(**options: Any) -> PCNetNetwork:
    config = PCNetConfig(hidden_channels=5, **options)
    return PCNet().build(config, Shapes(4, 3)).eval()


@given(
    k=st.integers(1, 8),
    m=st.integers(0, 9),
    t=st.floats(0, 3),
    extra=st.integers(0, 3),
)
def test_the_recurrence_gives_the_closed_sum(
    k: int, m: int, t: float, extra: int
) -> None:
    """C_m(k) = Σ_j binom(m, j) binom(k, j) j! (−t)^(m−j)."""
    exact = sum(
        math.comb(m, j) * math.comb(k, j) * math.factorial(j) * (-t) ** (m - j)
        for j in range(min(m, k) + 1)
    )
    table = charlier(k + extra, m + 1 + extra, t)
    assert len(table) == k + extra
    assert {len(row) for row in table} == {m + 1 + extra}
    expected = exact / math.factorial(m)
    assert table[k - 1][m] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(k=st.integers(1, 6), w=st.floats(-0.9, 0.9), t=st.floats(0, 2))
def test_the_polynomials_expand_the_filter(k: int, w: float, t: float) -> None:
    """Σ_m C_m(k)/m! wᵐ = (1 + w)ᵏ e^{−tw}, the identity of PC-Conv."""
    row = charlier(k, 40, t)[k - 1]
    total = sum(c * w**m for m, c in enumerate(row))
    assert total == pytest.approx((1 + w) ** k * math.exp(-t * w), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(("shift", "exponent"), [(1.0, 0.5), (1.3, 0.45), (1.8, 0.0)])
def test_the_operator_is_minus_the_shifted_laplacian(
    directed: bool, loops: bool, shift: float, exponent: float
) -> None:
    a, adj = graph(directed, loops)
    a = a + torch.eye(60) if loops else a
    rows, columns = a.sum(dim=1).clamp(min=1), a.sum(dim=0).clamp(min=1)
    p = rows[:, None] ** -exponent * a * columns[None, :] ** -exponent
    operator = shifted_operator(adj, shift, exponent)
    dense = operator.to_dense().double()
    torch.testing.assert_close(dense, p - shift * torch.eye(60), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(operator.T.to_dense(), operator.to_dense().T)


def test_edge_weights_enter_as_in_the_adjacency() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adj = normalized_adjacency(edges, 3, torch.tensor([2.0, 2.0, 5.0, 5.0]))
    dense = adj.to_dense()
    p = shifted_operator(adj, 1.0, 0.5).to_dense() + torch.eye(3)
    torch.testing.assert_close(p, dense)
    # Node 0 has two entries (itself and 1), node 1 three.
    p = shifted_operator(adj, 1.0, 0.0).to_dense() + torch.eye(3)
    assert float(p[0, 1]) == pytest.approx(float(dense[0, 1]) * 6**0.5)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("heat", [0.0, 0.7])
def test_the_network_is_the_matrix_function(linear: bool, heat: float) -> None:
    """Z = θ₀H + Σ θ_k (I − L)ᵏ e^{tL} H with a dense matrix exponential."""
    _, adj = graph()
    x = torch.randn(60, 4)
    model = network(order=3, terms=30, heat=heat, shift=1.2, linear=linear)
    mlp = model.mlp
    for p in (model.theta, mlp.b1, mlp.b2):
        torch.nn.init.normal_(p)
    h = x @ mlp.W1 + mlp.b1
    h = ((h if linear else h.relu()) @ mlp.W2 + mlp.b2).double()
    laplacian = -shifted_operator(adj, 1.2, 0.45).to_dense().double()
    low, heated = torch.eye(60) - laplacian, torch.linalg.matrix_exp(heat * laplacian)
    expected = model.theta[0].double() * h
    for k in range(1, 4):
        step = torch.linalg.matrix_power(low, k) @ heated
        expected = expected + model.theta[k].double() * step @ h
    z = model(GraphInputs(x, adj)).double()
    torch.testing.assert_close(z, expected, rtol=1e-3, atol=1e-3)
    for p in (model.theta, mlp.W1):
        ours, dense = gradient(z, p), gradient(expected, p)
        torch.testing.assert_close(ours, dense, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("terms", [1, 2, 4])
def test_the_sum_is_cut_after_the_given_terms(terms: int) -> None:
    _, adj = graph()
    g = GraphInputs(torch.randn(60, 4), adj)
    model = network(order=2, terms=terms, heat=0.5, scale=0.5)
    operator = shifted_operator(adj, 1.3, 0.45).to_dense()
    h = model.mlp(g)
    # (1 + w) e^{−w/2} and (1 + w)² e^{−w/2} up to w³, by hand.
    table = [[1, 0.5, -0.375, 5 / 48], [1, 1.5, 0.125, -13 / 48]]
    expected = 0.5 * h
    for row in table:
        for m in range(terms):
            power = torch.linalg.matrix_power(operator, m)
            expected = expected + 0.5 * row[m] * power @ h
    torch.testing.assert_close(model(g), expected, rtol=1e-4, atol=1e-4)


def test_each_part_has_a_learning_rate_and_a_decay_of_its_own() -> None:
    config = PCNetConfig(
        lr_out=0.002, lr_theta=0.004, weight_decay_out=0.1, weight_decay_theta=0.2
    )
    groups = PCNet().training(config).param_groups
    names = {name for name, _ in network().named_parameters()}
    assert names - set(groups) == {"mlp.W1", "mlp.b1"}
    out = {"lr": 0.002, "weight_decay": 0.1}
    assert groups == {
        "mlp.W2": out, "mlp.b2": out, "theta": {"lr": 0.004, "weight_decay": 0.2}
    }  # fmt: skip
