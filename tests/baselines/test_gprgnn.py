"""GPR-GNN against dense powers and APPNP, and what is decayed of it."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from elugcn.baselines.appnp import pagerank
from elugcn.baselines.gprgnn import (
    GPRGNN,
    GPRGNNConfig,
    GPRGNNNetwork,
    pagerank_weights,
)
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from tests.baselines.helpers import Draw, fit


def network(**options: Any) -> GPRGNNNetwork:
    config = GPRGNNConfig(hidden_channels=5, **options)
    return GPRGNN().build(config, Shapes(4, 3))


def inputs() -> tuple[torch.Tensor, CSR]:
    """X with zeros, and Â."""
    torch.manual_seed(0)
    edges = torch.randint(0, 60, (2, 150))
    adj = normalized_adjacency(torch.cat([edges, edges.flip(0)], dim=1), 60)
    return torch.randn(60, 4) * (torch.rand(60, 4) < 0.3), adj


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_network_is_an_mlp_and_a_polynomial(steps: int) -> None:
    """Z = Σ γ_k Âᵏ H, powers of the dense matrix, any γ."""
    x, adj = inputs()
    model = network(steps=steps).eval()
    for p in (model.gamma, model.mlp.b1, model.mlp.b2):
        torch.nn.init.normal_(p)
    mlp, a = model.mlp, adj.to_dense()
    h = F.relu(x @ mlp.W1 + mlp.b1) @ mlp.W2 + mlp.b2
    expected = sum(
        model.gamma[k] * torch.linalg.matrix_power(a, k) @ h for k in range(steps + 1)
    )
    z = model(GraphInputs(x, adj))
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-5)
    sparse = model(GraphInputs(CSR.from_tensor(x), adj))
    torch.testing.assert_close(sparse, z)


@pytest.mark.parametrize(
    ("steps", "alpha"), [(0, 0.1), (1, 0.3), (10, 0.1), (3, 1.0), (3, 0.0)]
)
def test_it_starts_as_appnp(steps: int, alpha: float) -> None:
    x, adj = inputs()
    model, g = network(steps=steps, alpha=alpha).eval(), GraphInputs(x, adj)
    torch.testing.assert_close(model(g), pagerank(adj, model.mlp(g), steps, alpha))


def test_gamma_is_not_decayed() -> None:
    settings = GPRGNN().training(GPRGNNConfig(weight_decay=0.1, lr=0.02))
    assert settings.param_groups == {"gamma": {"weight_decay": 0.0}}
    assert (settings.weight_decay, settings.lr) == (0.1, 0.02)


def test_gamma_is_learned_and_recorded(checked: Draw) -> None:
    graph = checked(0, n=120)
    options = {"epochs": 20, "steps": 3, "alpha": 0.4}
    fitted = fit(graph, "gprgnn", **options)
    moved = torch.tensor(fitted.metadata["gamma"]) - pagerank_weights(3, 0.4)
    # Twenty steps of at most 0.01 each.
    assert 1e-3 < float(moved.abs().min()) <= float(moved.abs().max()) < 0.21


def test_neighbours_of_other_classes_get_a_negative_weight(checked: Draw) -> None:
    """Where edges join unlike nodes, one step speaks against a class."""
    graph = checked(0, n=200, n_features=16, homophily=0.02, label_rate=0.3)
    fitted = fit(graph, "gprgnn", epochs=150, steps=1, alpha=0.5, lr=0.05, dropout=0.0)
    own, others = fitted.metadata["gamma"]
    assert own > 0.1
    assert others < -0.1


@pytest.mark.parametrize(
    "option", ["dropout", "input_dropout", "propagation_dropout", None]
)
def test_dropout_is_on_inputs_hidden_units_and_logits(option: str | None) -> None:
    none = {"dropout": 0.0, "input_dropout": 0.0, "propagation_dropout": 0.0}
    model = network(**none | ({option: 0.5} if option else {})).train()
    g = GraphInputs(*inputs())
    assert torch.equal(model(g), model(g)) == (option is None)
    assert torch.equal(model.eval()(g), model(g))
