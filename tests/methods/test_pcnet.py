"""PCNet: the polynomials, the operator and the filter against closed forms."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import fit_graph
from elugcn.methods.pcnet import PCNetConfig, PCNetPredictor
from elugcn.nn.pcnet import PCNet, charlier, shifted_operator
from elugcn.training.loop import train


def graph(
    directed: bool = False, loops: bool = True, n: int = 60
) -> tuple[Tensor, CSR]:
    """A (dense, without self-loops) and Â."""
    data = check_data(load_dataset("sbm", n=n, n_classes=3, n_features=16)).data
    edges = data.edge_index
    if directed:
        edges = edges[:, (edges[0] < edges[1]) | (edges[0] % 3 == 0)]
    a = torch.zeros(n, n, dtype=torch.float64)
    a[edges[1], edges[0]] = 1.0  # row i gathers from the sources of edges into i
    adj = normalized_adjacency(edges, n, self_loops=loops)
    assert adj.symmetric != directed
    return a, adj


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
    assert all(len(row) == m + 1 + extra for row in table)
    expected = exact / math.factorial(m)
    assert table[k - 1][m] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(k=st.integers(1, 6), w=st.floats(-0.9, 0.9), t=st.floats(0, 2))
def test_the_polynomials_expand_the_filter(k: int, w: float, t: float) -> None:
    """Σ_m C_m(k)/m! wᵐ = (1 + w)ᵏ e^{−tw}, the identity PC-Conv stands on."""
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
    into, out_of = a.sum(dim=1), a.sum(dim=0)
    scaled = into.clamp(min=1)[:, None] ** -exponent * a
    p = scaled * out_of.clamp(min=1)[None, :] ** -exponent
    expected = p - shift * torch.eye(60)
    operator = shifted_operator(adj, shift, exponent)
    dense = operator.to_dense().double()
    torch.testing.assert_close(dense, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(operator.T.to_dense(), operator.to_dense().T)
    assert shifted_operator(adj, shift, exponent) is operator
    assert shifted_operator(adj, shift + 1, exponent) is not operator


def test_edge_weights_enter_as_in_the_adjacency() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adj = normalized_adjacency(edges, 3, torch.tensor([2.0, 2.0, 5.0, 5.0]))
    dense = adj.to_dense()
    torch.testing.assert_close(
        shifted_operator(adj, 1.0, 0.5).to_dense(), dense - torch.eye(3)
    )
    # Node 0 has two entries (itself and 1), node 1 three.
    p = shifted_operator(adj, 1.0, 0.0).to_dense() + torch.eye(3)
    assert float(p[0, 1]) == pytest.approx(float(dense[0, 1]) * 6**0.5)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("heat", [0.0, 0.7])
def test_the_network_is_the_matrix_function(linear: bool, heat: float) -> None:
    """Z = θ₀H + Σ θ_k (I − L)ᵏ e^{tL} H with a dense matrix exponential."""
    torch.manual_seed(1)
    _, adj = graph()
    x = torch.randn(60, 16)
    model = PCNet(16, 5, 3, order=3, terms=30, heat=heat, shift=1.2, linear=linear)
    for p in (model.theta, model.mlp.bias, model.mlp.out.bias):
        torch.nn.init.normal_(p)
    model.eval()
    mlp = model.mlp
    h = x @ mlp.weight + mlp.bias
    h = mlp.out(h if linear else F.relu(h)).double()
    laplacian = -shifted_operator(adj, 1.2, 0.45).to_dense().double()
    low, heated = torch.eye(60) - laplacian, torch.linalg.matrix_exp(heat * laplacian)
    expected = model.theta[0].double() * h
    for k in range(1, 4):
        step = torch.linalg.matrix_power(low, k) @ heated
        expected = expected + model.theta[k].double() * step @ h
    z = model(x, adj).double()
    torch.testing.assert_close(z, expected, rtol=1e-3, atol=1e-3)


def test_without_heat_few_terms_are_exact() -> None:
    """t = 0: C_m(k)/m! is a binomial coefficient, zero for m > k."""
    rows = charlier(3, 6, 0.0)
    assert rows == ((1, 1, 0, 0, 0, 0), (1, 2, 1, 0, 0, 0), (1, 3, 3, 1, 0, 0))


@pytest.mark.parametrize("terms", [1, 2, 4])
def test_the_sum_is_cut_after_the_given_terms(terms: int) -> None:
    torch.manual_seed(2)
    _, adj = graph()
    x = torch.randn(60, 16)
    model = PCNet(16, 5, 3, order=2, terms=terms, heat=0.5, scale=0.5).eval()
    h = model.mlp(x)
    operator = shifted_operator(adj, 1.3, 0.45).to_dense()
    # (1 + w) e^{−w/2} and (1 + w)² e^{−w/2} up to w³, by hand.
    table = [[1, 0.5, -0.375, 5 / 48], [1, 1.5, 0.125, -13 / 48]]
    expected = 0.5 * h
    for row in table:
        for m in range(terms):
            power = torch.linalg.matrix_power(operator, m)
            expected = expected + 0.5 * row[m] * power @ h
    torch.testing.assert_close(model(x, adj), expected, rtol=1e-4, atol=1e-4)


def test_theta_learns_through_the_coefficients() -> None:
    torch.manual_seed(3)
    _, adj = graph()
    x = torch.randn(60, 16)
    model = PCNet(16, 5, 3, order=2, terms=4, heat=0.5).eval()
    z = model(x, adj)
    (gradient,) = torch.autograd.grad(z.sum(), model.theta)
    # Z is linear in θ: the gradient of its sum is the sum of each filter's output.
    for k in range(3):
        with torch.no_grad():
            model.theta.copy_(torch.eye(3)[k])
            alone = float(model(x, adj).sum())
        assert float(gradient[k]) == pytest.approx(alone, rel=1e-4, abs=1e-2)


def test_each_part_has_a_learning_rate_and_a_decay_of_its_own() -> None:
    """A loss without gradient: Adam moves what is decayed by its learning rate."""
    torch.manual_seed(0)
    model = PCNet(16, 5, 3, order=2)
    config = PCNetConfig(
        epochs=1, lr=0.001, lr_out=0.002, lr_theta=0.004,
        weight_decay=0.1, weight_decay_out=0.1, weight_decay_theta=0.1,
    )  # fmt: skip

    def steps(config: PCNetConfig) -> dict[str, float]:
        before = {k: p.detach().clone() for k, p in model.named_parameters()}
        train(
            model,
            lambda epoch: (
                0.0 * torch.cat([p.flatten() for p in model.parameters()]).sum()
            ),
            lambda: torch.zeros(4, 3),
            torch.zeros(4, dtype=torch.long),
            torch.zeros(4, dtype=torch.bool),
            config.fit(),
        )
        named = model.named_parameters()
        return {k: float((p.detach() - before[k]).abs().median()) for k, p in named}

    moved = steps(config)
    assert moved["mlp.weight"] == pytest.approx(0.001, rel=0.01)
    assert moved["mlp.out.weight"] == pytest.approx(0.002, rel=0.01)
    assert moved["theta"] == pytest.approx(0.004, rel=0.01)
    moved = steps(PCNetConfig(epochs=1, weight_decay_out=0.0, weight_decay_theta=0.0))
    assert moved["mlp.weight"] > 0
    assert moved["mlp.out.weight"] == moved["theta"] == 0.0


def test_options_reach_the_network() -> None:
    options = {
        "order": 2, "terms": 3, "heat": 0.4, "shift": 1.1, "exponent": 0.2,
        "linear": False, "dropout": 0.1, "input_dropout": 0.2,
        "propagation_dropout": 0.3, "scale": 0.7, "epochs": 1, "lr_theta": 0.01,
    }  # fmt: skip
    graph = check_data(load_dataset("sbm", n=60, n_classes=3, n_features=16))
    fitted = fit_graph(graph, "pcnet", resolve_config("pcnet", options=options))
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, PCNetPredictor)
    model = predictor.model
    assert isinstance(model, PCNet)
    for name in ("order", "terms", "heat", "shift", "exponent", "propagation_dropout"):
        assert getattr(model, name) == options[name]
    for name in ("linear", "dropout", "input_dropout"):
        assert getattr(model.mlp, name) == options[name]
    torch.testing.assert_close(
        model.theta.detach(), torch.full((3,), 0.7), rtol=0, atol=0.011
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": 0},
        {"terms": 0},
        {"heat": -0.1},
        {"shift": 0.5},
        {"exponent": -0.1},
        {"lr_out": 0.0},
        {"lr_theta": -1.0},
        {"weight_decay_out": -1.0},
        {"weight_decay_theta": -1.0},
        {"propagation_dropout": 1.0},
        {"input_dropout": 1.0},
        {"decay": "first"},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        PCNetConfig(**wrong)
