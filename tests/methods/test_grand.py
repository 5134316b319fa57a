"""GRAND against its equations written out densely."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.grand import GRANDConfig, grand_loss
from elugcn.methods.neural import NetworkPredictor
from elugcn.nn import GCN


def draw(split: int = 0, n: int = 300) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("grand", options=options)
    return fit_graph(graph, "grand", config, seed=seed)


def mixed(adj: CSR, order: int) -> Tensor:
    """(1/(K+1)) Σ Âᵏ."""
    a = adj.to_dense()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    return torch.stack(powers).mean(dim=0)


@pytest.mark.parametrize("order", [1, 4, 8])
def test_the_network_is_an_mlp_on_propagated_features(order: int) -> None:
    """The paper's order, propagation first, where ours multiplies first."""
    torch.manual_seed(order)
    data = draw(n=80).data
    adj = normalized_adjacency(data.edge_index, 80)
    model = GCN(16, 6, 3, order=order, dropout=0.5, drop_node=0.5).eval()
    (w1, w2), (b1, b2) = model.weights, model.biases
    expected = F.relu((mixed(adj, order) @ data.x) @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(model(data.x, adj)[0], expected)


def test_dropped_nodes_are_rows_of_the_features() -> None:
    """The mask is on X in the paper and on X W here: read it back and compare."""
    torch.manual_seed(0)
    adj = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 200)
    x = torch.rand(200, 4) + 0.1
    model = GCN(4, 6, 3, order=2, dropout=0.0, drop_node=0.5).train()
    torch.manual_seed(1)
    out = model(x, adj)[0]
    torch.manual_seed(1)
    keep = keep_mask((200, 1), 0.5, x)
    assert set(keep.flatten().tolist()) == {0.0, 2.0}
    (w1, w2), (b1, b2) = model.weights, model.biases
    expected = F.relu(mixed(adj, 2) @ (keep * x) @ w1 + b1) @ w2 + b2
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(("draws", "weight", "t"), [(1, 1.0, 0.5), (4, 0.7, 0.3)])
def test_loss(draws: int, weight: float, t: float) -> None:
    torch.manual_seed(draws)
    outputs = [torch.randn(9, 3) for _ in range(draws)]
    nodes, target = torch.tensor([0, 4, 5]), torch.tensor([2, 0, 1])
    p = torch.stack(outputs).softmax(dim=2)  # draws × n × c
    mean = p.mean(dim=0)
    sharp = mean ** (1 / t) / (mean ** (1 / t)).sum(dim=1, keepdim=True)
    supervised = consistency = 0.0
    for s in range(draws):
        supervised -= float(p[s, nodes, target].log().mean()) / draws
        consistency += float((sharp - p[s]).square().sum() / 9) / draws
    config = GRANDConfig(lambda_cons=weight, sharpening=t)
    loss = grand_loss(outputs, nodes, target, config)
    assert float(loss) == pytest.approx(supervised + weight * consistency, rel=1e-5)
    alone = grand_loss(outputs, nodes, target, GRANDConfig(lambda_cons=0.0))
    assert float(alone) == pytest.approx(supervised, rel=1e-5)


def test_no_gradient_through_the_sharpened_mean() -> None:
    """At T = 1 and one draw the target is the output: nothing is left to learn."""
    z = torch.randn(5, 3, requires_grad=True)
    config = GRANDConfig(sharpening=1.0)
    nodes, target = torch.tensor([0]), torch.tensor([1])
    (gradient,) = torch.autograd.grad(grand_loss([z], nodes, target, config), z)
    torch.testing.assert_close(gradient[1:], torch.zeros(4, 3))


def test_unlabelled_nodes_teach_where_draws_disagree() -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(5, 3, requires_grad=True) for _ in range(2))
    nodes, target = torch.tensor([0]), torch.tensor([1])
    loss = grand_loss([a, b], nodes, target, GRANDConfig())
    (gradient,) = torch.autograd.grad(loss, a)
    assert (gradient.abs().sum(dim=1) > 0).all()


def test_it_learns_with_batch_norm() -> None:
    graph = draw()
    right = fit(graph, epochs=60, norm="batch").accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.8  # a third is the majority


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_predictor_repeats_its_graph_and_survives_saving(norm: str) -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=5, order=3, norm=norm)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, NetworkPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = NetworkPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": 0},
        {"draws": 0},
        {"drop_node": 1.0},
        {"sharpening": 0.0},
        {"lambda_cons": -1.0},
        {"norm": "weight"},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GRANDConfig(**wrong)
