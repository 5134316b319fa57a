"""GPR-GNN against dense powers, against APPNP, and what is decayed of it."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg

from elugcn.config import resolve_config
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.gprgnn import GPRGNNConfig, GPRGNNPredictor
from elugcn.nn.appnp import personalized
from elugcn.nn.gprgnn import GPRGNN, pagerank_weights
from elugcn.training.loop import train


def draw(n: int = 80, **options: Any) -> CheckedGraph:
    return check_data(load_dataset("sbm", n=n, n_classes=3, n_features=16, **options))


def fit(graph: CheckedGraph, **options: Any) -> Fitted:
    return fit_graph(graph, "gprgnn", resolve_config("gprgnn", options=options))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_network_is_an_mlp_and_a_polynomial(steps: int) -> None:
    """Z = Σ γ_k Âᵏ H, powers of the dense matrix, γ anything."""
    torch.manual_seed(steps)
    data = draw().data
    adj = normalized_adjacency(data.edge_index, 80)
    model = GPRGNN(16, 5, 3, steps=steps).eval()
    torch.nn.init.normal_(model.gamma)
    torch.nn.init.normal_(model.mlp.bias)
    mlp, a = model.mlp, adj.to_dense()
    h = mlp.out(F.relu(data.x @ mlp.weight + mlp.bias))
    expected = sum(
        model.gamma[k] * torch.linalg.matrix_power(a, k) @ h for k in range(steps + 1)
    )
    torch.testing.assert_close(model(data.x, adj), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("steps", "alpha"), [(0, 0.1), (1, 0.3), (10, 0.1), (4, 0.9)])
def test_it_starts_as_appnp(steps: int, alpha: float) -> None:
    torch.manual_seed(0)
    data = draw().data
    adj = normalized_adjacency(data.edge_index, 80)
    model = GPRGNN(16, 5, 3, steps=steps, alpha=alpha).eval()
    h = model.mlp(data.x)
    z = model(data.x, adj)
    torch.testing.assert_close(z, personalized(adj, h, steps, alpha, 0.0))
    torch.testing.assert_close(z, pyg.APPNP(steps, alpha)(h, data.edge_index))


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        (0.5, [0.5, 0.25, 0.125, 0.125]),
        (1.0, [1.0, 0.0, 0.0, 0.0]),
        (0.0, [0.0, 0.0, 0.0, 1.0]),
    ],
)
def test_first_weights(alpha: float, expected: list[float]) -> None:
    assert pagerank_weights(3, alpha).tolist() == expected
    assert pagerank_weights(0, alpha).tolist() == [1.0]
    assert GPRGNN(2, 2, 2, steps=3, alpha=alpha).gamma.dtype == torch.float32


@pytest.mark.parametrize("decay", ["all", "first"])
def test_gamma_is_learned_and_not_decayed(decay: str) -> None:
    """A loss without gradient: only what is decayed moves, by the learning rate."""
    torch.manual_seed(0)
    model = GPRGNN(16, 5, 3, steps=2)
    config = GPRGNNConfig(weight_decay=0.1, decay=decay, epochs=1, lr=0.001)
    before = {k: p.detach().clone() for k, p in model.named_parameters()}
    nobody, labels = torch.zeros(4, dtype=torch.bool), torch.zeros(4, dtype=torch.long)
    train(
        model,
        lambda epoch: 0.0 * torch.cat([p.flatten() for p in model.parameters()]).sum(),
        lambda: torch.zeros(4, 3),
        labels,
        nobody,
        config.fit(),
    )
    moved = {k for k, p in model.named_parameters() if not torch.equal(p, before[k])}
    first = {"mlp.weight"}  # biases are zero, which decay leaves alone
    assert moved == (first if decay == "first" else first | {"mlp.out.weight"})
    step = (model.mlp.weight - before["mlp.weight"]).abs()
    torch.testing.assert_close(step, torch.full_like(step, 0.001), rtol=1e-2, atol=1e-5)


def test_options_reach_the_network_and_gamma_is_recorded() -> None:
    graph = draw(n=120)
    fitted = fit(
        graph, epochs=20, steps=3, alpha=0.4, patience=20, dropout=0.1,
        input_dropout=0.2, propagation_dropout=0.3,
    )  # fmt: skip
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, GPRGNNPredictor)
    model = predictor.model
    assert isinstance(model, GPRGNN)
    assert (model.mlp.dropout, model.mlp.input_dropout) == (0.1, 0.2)
    assert model.propagation_dropout == 0.3
    gamma = torch.tensor(fitted.prediction.facts["gamma"])
    assert torch.equal(gamma, model.gamma)
    moved = (gamma - pagerank_weights(3, 0.4)).abs()
    # Twenty steps of at most 0.01 each from where it began, and not from elsewhere.
    assert float(moved.min()) > 1e-3
    assert float(moved.max()) < 0.21


def test_neighbours_of_other_classes_get_a_negative_weight() -> None:
    """Where edges join unlike nodes, an odd number of steps speaks against a class."""
    graph = draw(n=200, homophily=0.02, label_rate=0.3)
    fitted = fit(graph, epochs=150, steps=1, alpha=0.5, lr=0.05, dropout=0.0)
    own, others = fitted.prediction.facts["gamma"]
    assert own > 0.1
    assert others < -0.1


def test_dropout_is_on_inputs_hidden_units_and_logits() -> None:
    data = draw().data
    adj = normalized_adjacency(data.edge_index, 80)

    def spread(**p: float) -> bool:
        torch.manual_seed(4)
        none = {"dropout": 0.0, "input_dropout": 0.0, "propagation_dropout": 0.0}
        model = GPRGNN(16, 4, 3, **(none | p)).train()  # type: ignore[arg-type]
        noisy = bool((model(data.x, adj) != model(data.x, adj)).any())
        model.eval()
        assert torch.equal(model(data.x, adj), model(data.x, adj))
        return noisy

    assert not spread()
    assert spread(dropout=0.5)
    assert spread(input_dropout=0.5)
    assert spread(propagation_dropout=0.5)


def test_the_shared_first_product_has_the_gradient_of_a_fresh_one() -> None:
    """Evaluation, then a step: X W of the one is used in the other, once."""
    torch.manual_seed(0)
    data = draw().data
    adj = normalized_adjacency(data.edge_index, 80)
    model = GPRGNN(16, 4, 3, 0.0, 0.0, 0.0)

    def gradient() -> torch.Tensor:
        model.train()
        loss = model(data.x, adj).square().sum()
        return torch.autograd.grad(loss, model.mlp.weight)[0]

    fresh = gradient()
    model.eval()
    with torch.no_grad():
        model(data.x, adj)
    torch.testing.assert_close(gradient(), fresh)
    model.mlp.weight.data.add_(1.0)  # as a fused optimiser does: unseen by autograd
    assert not torch.allclose(gradient(), fresh)


def test_sparse_features_give_what_dense_ones_do() -> None:
    torch.manual_seed(3)
    data = draw().data
    adj = normalized_adjacency(data.edge_index, 80)
    x = data.x * (torch.rand_like(data.x) < 0.2)
    model = GPRGNN(16, 4, 3).eval()
    torch.testing.assert_close(model(CSR.from_tensor(x), adj), model(x, adj))


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": -1},
        {"alpha": 1.5},
        {"alpha": -0.1},
        {"propagation_dropout": 1.0},
        {"input_dropout": -0.5},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GPRGNNConfig(**wrong)
