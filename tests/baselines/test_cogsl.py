"""CoGSL: views, fusion, mutual information and turns against dense matrices."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.baselines.cogsl import (
    GAP,
    Anchors,
    CoGSLConfig,
    CoGSLNetwork,
    MutualInformation,
    View,
    fusion_weights,
    given_views,
    topk_pagerank,
)
from elugcn.engine import GraphInputs, normalized_adjacency
from elugcn.methods.problem import Shapes
from elugcn.models.losses import info_nce
from tests.baselines.helpers import Draw, gradient, objective

N = 25
OFF: dict[str, Any] = {
    "hidden_channels": 5, "estimator_channels": 4, "mi_channels": 6, "k": 6,
    "dropout": 0.0, "estimator_dropout": 0.0,
}  # fmt: skip


def inputs(directed: bool = False) -> GraphInputs:
    torch.manual_seed(0)
    edges = torch.randint(0, N, (2, 60))
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return GraphInputs(torch.randn(N, 6), normalized_adjacency(edges.unique(dim=1), N))


def network(**options: Any) -> CoGSLNetwork:
    torch.manual_seed(1)
    model = CoGSLNetwork(CoGSLConfig(**OFF | options), Shapes(6, 3))
    for name, p in model.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(p)
    return model


# --- views -------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("alpha", [0.15, 0.5, 1.0])
def test_pagerank_is_a_cut_inverse(alpha: float, directed: bool) -> None:
    adj = inputs(directed).adj
    a = adj.to_dense()  # type: ignore[union-attr]
    exact = alpha * torch.linalg.inv(torch.eye(N) - (1 - alpha) * a)
    whole = topk_pagerank(adj, alpha, N, steps=200)  # type: ignore[arg-type]
    torch.testing.assert_close(whole.to_dense(), exact, rtol=1e-3, atol=1e-5)
    few = topk_pagerank(adj, alpha, 4, steps=200)  # type: ignore[arg-type]
    best, at = exact.topk(4, dim=1)
    expected = torch.zeros(N, N).scatter(1, at, best)
    torch.testing.assert_close(few.to_dense(), expected, rtol=1e-3, atol=1e-5)


def test_views_are_the_graph_and_its_normalised_pagerank() -> None:
    adj: Any = inputs().adj
    one, two = given_views(adj, 0.2, 5)
    assert torch.equal(one.given.to_dense(), adj.to_dense())
    pagerank = topk_pagerank(adj, 0.2, 5).to_dense()
    into, out_of = pagerank.sum(dim=1), pagerank.sum(dim=0)
    expected = into.rsqrt()[:, None] * pagerank * out_of.rsqrt()
    torch.testing.assert_close(two.given.to_dense(), expected)


def dense_view(v: Tensor, self_loops: bool = True) -> Tensor:
    """D^-½ (V' + V'ᵀ + I) D^-½."""
    w = v + v.T + self_loops * torch.eye(len(v))
    root = w.sum(dim=1).clamp(min=0.01).rsqrt()
    return root[:, None] * w * root


@pytest.mark.parametrize("self_loops", [True, False])
def test_a_view_becomes_symmetric(self_loops: bool) -> None:
    given: Any = inputs(directed=True).adj
    value = torch.rand(given.nnz, requires_grad=True)
    z, eye = torch.randn(N, 3), torch.eye(N)
    ours = View.of(given).symmetric(value, self_loops)
    expected = dense_view(given.with_values(value) @ eye, self_loops)
    torch.testing.assert_close(ours @ z, expected @ z)
    torch.testing.assert_close(
        gradient(ours @ z, value), gradient(expected @ z, value), rtol=1e-4, atol=1e-5
    )


def test_the_surer_view_counts_for_more() -> None:
    p = torch.tensor([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]])
    q = torch.tensor([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1]])
    beta = fusion_weights((p.log(), q.log()), lam=0.8, power=2.0)
    sure = [0.8 * math.log(0.7) + 0.2 * math.log(0.5)]
    sure.append(0.8 * math.log(0.5) + 0.2 * math.log(0.2))
    assert float(beta[0, 0]) == pytest.approx(
        1 / (1 + math.exp(2 * (sure[1] - sure[0])))
    )
    tie = 0.8 * math.log(0.4) + 0.2 * math.log(GAP)
    other = 0.8 * math.log(0.6) + 0.2 * math.log(0.3)
    assert float(beta[1, 0]) == pytest.approx(
        1 / (1 + math.exp(2 * (other - tie))), 1e-3
    )


# --- the network -------------------------------------------------------------------


def dense_graphs(model: CoGSLNetwork, g: GraphInputs) -> list[Tensor]:
    """V₁'' and V₂''."""
    out = []
    for estimate, view in zip(model.estimators, model.given(g), strict=True):
        v = view.given.to_dense()
        e = F.relu(v @ g.x @ estimate.weight + estimate.bias)
        score = estimate.head(e)[:, 0].expand(N, N).masked_fill(v == 0, -torch.inf)
        share = score.softmax(dim=1).nan_to_num()
        out.append(dense_view(v + estimate.mu * share, model.config.self_loops))
    return out


def dense_logits(model: CoGSLNetwork, x: Tensor, graphs: list[Tensor]) -> list[Tensor]:
    """Logits on V₁'', V₂'' and V*."""

    def classify(i: int, a: Tensor) -> Tensor:
        gcn = model.classifiers[i]
        h = F.relu(a @ x @ gcn.weights[0] + gcn.biases[0])
        return a @ h @ gcn.weights[1] + gcn.biases[1]

    one, two = (classify(i, a) for i, a in enumerate(graphs))
    beta = fusion_weights((one, two), model.config.lam, model.config.power)
    star = beta[:, :1] * graphs[0] + beta[:, 1:] * graphs[1]
    return [one, two, classify(2, star)]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("self_loops", [True, False])
def test_values_and_gradients(directed: bool, self_loops: bool) -> None:
    g, model = inputs(directed), network(self_loops=self_loops, power=1.0).eval()
    expected = dense_logits(model, g.x, dense_graphs(model, g))
    ours, _ = model.classify(g.x, model.views(g))
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    assert torch.equal(model(g), ours[2])
    for p in model.parameters():
        a, b = gradient(ours[2], p), gradient(expected[2], p)
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


# --- mutual information ------------------------------------------------------------


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("sample", [N, 9])
def test_mutual_information(sample: int, self_loops: bool) -> None:
    g, model = inputs(), network(self_loops=self_loops).eval()
    mutual = MutualInformation(6, 4, tau=0.5)
    for bias in mutual.biases:
        torch.nn.init.normal_(bias)
    nodes = torch.randperm(N)[:sample]
    views = model.views(g)
    _, fused = model.classify(g.x, views)
    ours = mutual(g.x, fused, Anchors.of(views, nodes))
    graphs = [v @ torch.eye(N) for v in views]
    graphs.append(fused @ torch.eye(N))
    encoded = []
    for i, graph in enumerate(graphs):
        z = graph @ g.x @ mutual.weight.chunk(3, dim=1)[i] + mutual.biases[i]
        encoded.append(mutual.project(mutual.slopes[i](z))[nodes])
    one, two, star = encoded
    expected = 0.3 * info_nce(one, two, 0.5)
    expected = expected + 0.35 * (info_nce(star, one, 0.5) + info_nce(star, two, 0.5))
    torch.testing.assert_close(ours, expected)
    for p in (mutual.weight, model.estimators[0].weight, model.estimators[1].bias):
        a, b = gradient(ours, p), gradient(expected, p)
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


# --- turns -------------------------------------------------------------------------


def state(*modules: torch.nn.Module) -> list[Tensor]:
    return [p.detach().clone() for m in modules for p in m.parameters()]


def changed(before: list[Tensor], after: list[Tensor]) -> bool:
    return any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_each_turn_steps_its_own_weights(checked: Draw) -> None:
    loss, model, _ = objective(checked(n=90), "cogsl", classifier_steps=2, **OFF)
    parts = (model.estimators, model.classifiers, loss.mutual)
    moved = []
    for epoch in range(3):
        before = [state(part) for part in parts]
        loss.loss(epoch).backward()
        moved.append([changed(b, state(p)) for b, p in zip(before, parts, strict=True)])
        assert all(p.grad is None for p in model.estimators.parameters())
        assert all(p.grad is not None for p in model.classifiers.parameters())
    assert moved == [[True, False, False], [False, False, False], [True, False, True]]
    # The estimators' learning rate falls by a hundredth in every round.
    assert loss.of_views.param_groups[0]["lr"] == pytest.approx(0.01 * 0.99**2)


def test_the_losses_of_the_turns(checked: Draw) -> None:
    loss, model, _ = objective(checked(n=90), "cogsl", **OFF)
    logits, _ = model.classify(loss.inputs.x, loss.views)
    ce = [F.cross_entropy(z[loss.train_index], loss.target) for z in logits]
    expected = 0.35 * (ce[0] + ce[1]) + 0.3 * ce[2]
    torch.testing.assert_close(loss.classification(logits), expected)
    torch.testing.assert_close(loss.val_logits(), logits[2][loss.val_index])
    config = CoGSLConfig(growth=0.01)
    weights = [config.compression(turn) for turn in (0, 8, 1000)]
    assert weights == pytest.approx([0.05, math.log1p(0.08), 0.1])


def test_views_say_less_about_each_other_and_information_more(checked: Draw) -> None:
    """The two turns pull the same loss in opposite directions."""
    options = OFF | {"mi_steps": 30, "view_steps": 0, "anchors": 90}
    loss, model, _ = objective(checked(n=90), "cogsl", **options)

    def information() -> float:
        with torch.no_grad():
            _, fused = model.classify(loss.inputs.x, loss.views)
            return float(loss.mutual(loss.inputs.x, fused, loss.sample()))

    before = information()
    loss.learn_information()
    assert information() < before - 0.1
