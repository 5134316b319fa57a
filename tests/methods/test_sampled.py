"""Random propagation of a sample against the same objective on all nodes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import Problem, make_problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.grand import GRANDConfig, grand_loss
from elugcn.methods.sampled import (
    Bags,
    SampledObjective,
    propagated_rows,
    sampled_network,
)
from elugcn.nn.losses import weighted_cross_entropy
from elugcn.storage import load_fitted, save_fitted

CPU = torch.device("cpu")
MEMBER: dict[str, Any] = {
    "name": "sampled", "order": 3, "drop_node": 0.5, "norm": "batch", "draws": 2,
    "lambda_cons": 1.0, "lambda_con": 0.0, "eta": 0.0, "pseudo_weight": 0.5,
    "rounds": 2, "sample": 50, "dropout": 0.5, "hidden_channels": 16,
}  # fmt: skip


def draw(split: int = 0, n: int = 200) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def problem(n: int = 60) -> Problem:
    return make_problem(draw(n=n).data, GRANDConfig(), CPU)


def dense_pi(adj: CSR, order: int) -> Tensor:
    a = adj.to_dense()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    return torch.stack(powers).mean(dim=0)


def test_a_bag_is_a_row_of_the_propagated_features() -> None:
    graph = problem()
    bags = Bags(graph, order=3, k=60, drop_node=0.5)
    assert isinstance(graph.x, Tensor)
    pi = dense_pi(graph.adj, 3)
    nodes = torch.tensor([5, 0, 5, 59])
    torch.manual_seed(3)
    drawn = bags.draw(nodes)
    torch.manual_seed(3)
    kept = keep_mask((60,), 0.5, graph.x)
    expected = pi[nodes] @ (kept.unsqueeze(1) * graph.x)
    # What is negligible on the way is let go.
    torch.testing.assert_close(drawn, expected, rtol=0.02, atol=0.02)
    bags.drop_node = 0.0
    whole = (pi @ graph.x)[nodes]
    torch.testing.assert_close(bags.draw(nodes), whole, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("sparse", [True, False])
def test_validation_sees_the_whole_propagation(sparse: bool) -> None:
    graph = problem()
    assert isinstance(graph.x, Tensor)
    x = torch.cat([graph.x] * 5, dim=1)  # more columns than a block
    given = replace(graph, x=CSR.from_tensor(x) if sparse else x)
    nodes = torch.tensor([1, 50, 7])
    torch.testing.assert_close(
        propagated_rows(given, 4, nodes), (dense_pi(graph.adj, 4) @ x)[nodes]
    )


def test_a_sample_stands_for_all_nodes() -> None:
    """Without chance in the network the mean over samples is the loss on all nodes."""
    graph = problem()
    config = GRANDConfig(
        order=3, draws=1, drop_node=0.0, dropout=0.0, sample=30, neighbours=60
    )
    torch.manual_seed(0)
    model, _ = sampled_network(graph, config, CPU)
    weight = torch.rand(60) / 60
    target = torch.randint(3, (60,))
    sampled = SampledObjective(graph, config, model, (weight, target))
    z = model.rows(sampled.bags.draw(torch.arange(60))).detach()
    index = graph.train_index
    expected = grand_loss([z], index, graph.y[index], config)
    expected = expected + weighted_cross_entropy(z, target, weight)
    with torch.no_grad():
        losses = torch.stack([sampled.loss(0) for _ in range(500)])
    error = float(losses.std()) / 500**0.5
    assert error < 0.01
    assert float(losses.mean()) == pytest.approx(float(expected), abs=4 * error)


def test_the_ramp_is_of_the_agreement_alone() -> None:
    graph = problem()
    config = GRANDConfig(order=2, draws=2, sample=40, norm="batch")
    model, _ = sampled_network(graph, config, CPU)
    half = SampledObjective(graph, config, model, ramp=lambda epoch: epoch / 2)
    losses = []
    for epoch in (0, 1, 2):
        torch.manual_seed(7)
        losses.append(half.loss(epoch).item())
    index = graph.train_index
    torch.manual_seed(7)
    nodes = torch.cat([index, torch.randint(60, (40,))])
    outputs = [model.rows(half.bags.draw(nodes))[: index.numel()] for _ in range(2)]
    target = graph.y[index]
    labels = sum(F.cross_entropy(z, target).item() for z in outputs) / 2
    assert losses[0] == pytest.approx(labels, rel=1e-4)
    assert losses[1] - losses[0] == pytest.approx(losses[2] - losses[1], rel=1e-3)
    assert losses[2] > losses[0] + 1e-4


def fit(graph: CheckedGraph, method: str, **options: Any) -> Fitted:
    config = resolve_config(method, options=options)
    return fit_graph(graph, method, config, seed=0, n_threads=1)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_grand_learns_from_a_sample_and_is_saved(norm: str, tmp_path: Path) -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, "grand", order=3, draws=2, sample=60, norm=norm, epochs=60)
    right = fitted.accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.8  # a third is the majority
    predictor = fitted.prediction.predictor
    assert predictor is not None
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    save_fitted(fitted, tmp_path)
    loaded = load_fitted(tmp_path).prediction.predictor
    assert loaded is not None
    assert torch.equal(loaded.logits(other.data), predictor.logits(other.data))


def test_a_member_of_elu_gcn(tmp_path: Path) -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, "elu-gcn", variants=[MEMBER], epochs=40)
    facts = fitted.prediction.facts
    assert list(facts["candidates"]) == ["sampled, round 1", "sampled, round 2", "gcn"]
    right = fitted.accuracy(graph.data.test_mask)
    assert right is not None
    assert right > 0.8
    assert fitted.prediction.graph is not None
    save_fitted(fitted, tmp_path)
    before = fitted.prediction.predictor
    after = load_fitted(tmp_path).prediction.predictor
    assert before is not None
    assert after is not None
    assert torch.equal(after.logits(other.data), before.logits(other.data))


def test_pseudo_labels_reach_the_sampled_member() -> None:
    graph = draw()
    logits = [
        fit(graph, "elu-gcn", variants=[MEMBER | {"pseudo_weight": w, "rounds": 1}],
            epochs=5, keep_gcn=False).prediction.logits
        for w in (0.0, 0.5, 0.5)
    ]  # fmt: skip
    assert torch.equal(logits[1], logits[2])
    assert not torch.equal(logits[0], logits[1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sample": -1}, "sample"),
        ({"sample": 5, "neighbours": 0}, "neighbours"),
        ({"sample": 5, "norm": "layer"}, "norm=layer"),
    ],
)
def test_refusals(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        GRANDConfig(**wrong)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"order": 0}, "order"),
        ({"eta": 0.3}, "one view"),
        ({"lambda_con": 0.1}, "one view"),
        ({"norm": "l2"}, "norm=l2"),
    ],
)
def test_refusals_of_a_member(wrong: dict[str, Any], said: str) -> None:
    plain = {"order": 2, "sample": 5, "eta": 0.0, "lambda_con": 0.0, "norm": "none"}
    ELUGCNConfig(variants=(), **plain)
    with pytest.raises(InputError, match=said):
        ELUGCNConfig(variants=(), **(plain | wrong))
    with pytest.raises(InputError, match=said):
        ELUGCNConfig(variants=({"name": "one"} | plain | wrong,))


def test_features_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elugcn.methods.sampled.HELD", 100)
    with pytest.raises(InputError, match=r"60 × 16 numbers are too many; use sample=0"):
        Bags(problem(), 2, 8, 0.5)
