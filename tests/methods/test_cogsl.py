"""CoGSL: views, fusion, information, and whose weights a turn changes."""

import gc
import math
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.core.pagerank import topk_pagerank
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import make_problem
from elugcn.methods.cogsl import CoGSLConfig, CoGSLPredictor, Turns
from elugcn.nn.cogsl import CoGSL, Fused, View, fusion_weights, given_views
from elugcn.nn.losses import info_nce
from elugcn.nn.mutual import Anchors, MutualInformation, gathered_features

SMALL: dict[str, Any] = {
    "hidden_channels": 8,
    "estimator_channels": 6,
    "mi_channels": 7,
    "k": 8,
    "anchors": 25,
    "view_steps": 2,
    "classifier_steps": 2,
    "mi_steps": 2,
}


def draw(split: int = 0, n: int = 150) -> CheckedGraph:
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    config = resolve_config("cogsl", options=SMALL | options)
    return fit_graph(graph, "cogsl", config, seed=seed)


def network(dropout: float = 0.0, loops: bool = True) -> CoGSL:
    model = CoGSL(16, 8, 3, 0.0, 6, dropout, (0.5, 0.3), 0.2, 8, 0.5, 0.7, loops)
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    return model


def directed(n: int = 20) -> CSR:
    edges = torch.randint(0, n, (2, 50))
    return normalized_adjacency(torch.unique(edges[:, edges[0] != edges[1]], dim=1), n)


def dense_view(given: Tensor, x: Tensor, estimator: Any) -> Tensor:
    """V'' with every pair scored, from the published form of the score."""
    e = F.relu(given @ x @ estimator.weight + estimator.bias)
    own = torch.randn(e.size(1))  # of the receiving end: cancels in the softmax
    score = (e @ own)[:, None] + (e @ estimator.head.weight[0])[None, :]
    share = score.masked_fill(given == 0, -torch.inf).softmax(dim=1)
    changed = given + estimator.mu * share
    b = changed + changed.T + torch.eye(len(given)) * estimator.self_loops
    scale = b.sum(dim=1).rsqrt()
    return scale[:, None] * b * scale[None, :]


# --- views and fusion --------------------------------------------------------------


def test_the_second_view_is_pagerank() -> None:
    """Against the dense inverse, cut to its largest entries and normalised."""
    torch.manual_seed(0)
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60)
    first, second = given_views(adj, 0.3, 60)
    assert first.given is adj
    assert given_views(adj, 0.3, 60)[1] is second
    eye = torch.eye(60)
    exact = 0.3 * torch.linalg.inv(eye - 0.7 * adj.to_dense())
    scale = exact.sum(dim=1).rsqrt()
    exact = scale[:, None] * exact * scale[None, :]
    error = (second.given.to_dense() - exact).abs()
    assert float(error.max()) < 0.7**10
    few = given_views(adj, 0.3, 5)[1].given
    assert set(few.crow.diff().tolist()) == {5}
    cut = topk_pagerank(adj, 0.3, 5).to_dense().double()
    into, out_of = (cut.sum(dim=i).clamp(min=1e-12).rsqrt() for i in (1, 0))
    expected = into[:, None] * cut * out_of[None, :]
    torch.testing.assert_close(few.to_dense(), expected.float())


def test_views_are_kept_no_longer_than_their_graph() -> None:
    adj = normalized_adjacency(torch.tensor([[0, 1, 2], [1, 2, 0]]), 4)
    first, second = given_views(adj, 0.3, 2)
    assert first.given is adj
    gone = weakref.ref(adj)
    del adj, first, second
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_view_is_symmetric_and_normalised(mirrored: bool) -> None:
    torch.manual_seed(1)
    adj = directed()
    if mirrored:
        adj = CSR.from_tensor(adj.to_dense() + adj.to_dense().T)
    view = View.of(adj)
    value = torch.rand(adj.nnz, requires_grad=True)
    z = torch.randn(20, 3)
    dense = torch.zeros(20, 20).index_put((adj.row, adj.col.long()), value)
    b = dense + dense.T + torch.eye(20)
    scale = b.sum(dim=1).rsqrt()
    expected = (scale[:, None] * b * scale[None, :]) @ z
    ours = view.symmetric(value) @ z
    torch.testing.assert_close(ours, expected)
    along = torch.randn_like(ours)
    (one,) = torch.autograd.grad((ours * along).sum(), value)
    (two,) = torch.autograd.grad((expected * along).sum(), value)
    torch.testing.assert_close(one, two)


def test_a_view_without_entries_is_the_identity() -> None:
    empty = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 4, None, False)
    z = torch.randn(4, 2)
    torch.testing.assert_close(View.of(empty).symmetric(torch.empty(0)) @ z, z)


def test_fusion_weights_by_hand() -> None:
    """Node 0: 0.6 and 0.3 against 0.5 and 0.1; l = 0.25, a = 2."""
    one = torch.tensor([[0.6, 0.3, 0.1]]).log()
    two = torch.tensor([[0.1, 0.5, 0.1, 0.1, 0.1, 0.1]]).log()
    first = (0.6**0.25 * 0.3**0.75) ** 2
    second = (0.5**0.25 * 0.4**0.75) ** 2
    beta = fusion_weights((one, two), lam=0.25, power=2.0)
    expected = [first / (first + second), second / (first + second)]
    assert beta[0].tolist() == pytest.approx(expected, rel=1e-5)
    # A tie of the two largest classes has a logarithm that is kept finite.
    flat = torch.zeros(1, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(
        fusion_weights((flat, one), 0.25, 2.0)[0, 0], flat
    )
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("loops", [True, False])
def test_equations(loops: bool) -> None:
    torch.manual_seed(2)
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60, self_loops=loops)
    model = network(0.5, loops).eval()
    given = given_views(adj, 0.2, 8)
    one, two = (
        dense_view(v.given.to_dense(), data.x, e)
        for v, e in zip(given, model.estimators, strict=True)
    )

    def classified(i: int, a: Tensor) -> Tensor:
        (w1, w2), (b1, b2) = model.classifiers[i].weights, model.classifiers[i].biases  # type: ignore[misc]
        out: Tensor = a @ F.relu(a @ data.x @ w1 + b1) @ w2 + b2
        return out

    top = [
        classified(i, v).softmax(dim=1).sort(descending=True).values
        for i, v in enumerate((one, two))
    ]
    sure = [(p[:, 0] ** 0.5 * (p[:, 0] - p[:, 1]) ** 0.5) ** 0.7 for p in top]
    beta = sure[0] / (sure[0] + sure[1])
    fused = beta[:, None] * one + (1 - beta)[:, None] * two
    torch.testing.assert_close(
        model(data.x, adj), classified(2, fused), rtol=1e-3, atol=1e-4
    )
    both = Fused(model.views(data.x, adj), torch.stack([beta, 1 - beta], dim=1))
    torch.testing.assert_close(both @ data.x, fused @ data.x)


# --- information -------------------------------------------------------------------


@pytest.mark.parametrize("loops", [True, False])
def test_information_of_a_sample_is_that_of_its_rows(loops: bool) -> None:
    """Both roads to L_mi against dense graphs of which rows are taken at the end."""
    torch.manual_seed(3)
    data = draw(n=60).data
    adj = normalized_adjacency(data.edge_index, 60)
    views = network(loops=loops).eval().views(data.x, adj)
    beta = torch.rand(60, 2).softmax(dim=1)
    nodes = torch.randperm(60)[:20]
    anchors = [Anchors.of(v, nodes) for v in views]
    mutual = MutualInformation(16, 5, tau=0.6)
    for b in mutual.biases:
        nn.init.normal_(b)
    one, two = (v @ torch.eye(60) for v in views)
    fused = beta[:, :1] * one + beta[:, 1:] * two
    z = []
    for i, a in enumerate((one, two, fused)):
        hidden = a @ data.x @ mutual.weights[i] + mutual.biases[i]
        z.append(mutual.project(mutual.slopes[i](hidden))[nodes])
    expected = 0.3 * info_nce(z[0], z[1], 0.6)
    expected = expected + 0.35 * (info_nce(z[2], z[0], 0.6) + info_nce(z[2], z[1], 0.6))
    of_graphs = mutual.of_graphs(mutual.hidden(data.x), views, beta, anchors)
    torch.testing.assert_close(of_graphs, expected, rtol=1e-4, atol=1e-5)
    for x in (data.x, CSR.from_tensor(data.x)):
        gathered = gathered_features(x, views, beta.detach(), anchors)
        of_features = mutual.of_features(gathered)
        torch.testing.assert_close(of_features, expected, rtol=1e-4, atol=1e-5)
    wanted = list(mutual.parameters())
    for ours, theirs in zip(
        torch.autograd.grad(of_features, wanted),
        torch.autograd.grad(expected, wanted),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)


# --- turns -------------------------------------------------------------------------


def turns(**options: Any) -> Turns:
    torch.manual_seed(4)
    config = CoGSLConfig(**(SMALL | options))
    problem = make_problem(draw(n=90).data, config, torch.device("cpu"))
    return Turns(problem, config, network().train())


def changed(own: Turns, act: Any) -> set[str]:
    """Which of the three sets of weights an action changes."""
    sets = {
        "views": own.model.estimators,
        "classifiers": own.model.classifiers,
        "information": own.mutual,
    }
    before = {
        k: [p.detach().clone() for p in module.parameters()]
        for k, module in sets.items()
    }
    act()
    return {
        k
        for k, module in sets.items()
        if any(
            not torch.equal(a, b)
            for a, b in zip(before[k], module.parameters(), strict=True)
        )
    }


def test_each_turn_changes_its_own_weights_only() -> None:
    own = turns()
    old = own.views
    assert changed(own, lambda: own.learn_views(0)) == {"views"}
    assert own.views is not old
    assert changed(own, own.learn_information) == {"information"}

    def classify() -> None:
        adam = torch.optim.Adam(own.model.parameters(), 0.01, weight_decay=0.1)
        own.loss(1).backward()  # type: ignore[no-untyped-call]
        adam.step()

    assert changed(own, classify) == {"classifiers"}


def test_turns_come_when_they_should() -> None:
    own = turns(classifier_steps=3)
    assert changed(own, lambda: own.loss(0)) == {"views"}
    assert changed(own, lambda: own.loss(1)) == set()
    assert changed(own, lambda: own.loss(2)) == set()
    assert changed(own, lambda: own.loss(3)) == {"views", "information"}
    idle = turns(view_steps=0, mi_steps=0)
    assert changed(idle, lambda: idle.loss(2)) == set()


def test_the_rate_of_the_views_falls_once_a_round() -> None:
    own = turns(classifier_steps=2, estimator_lr=0.02)
    for epoch in range(6):
        own.loss(epoch)
    (group,) = own.of_views.param_groups
    assert group["lr"] == pytest.approx(0.02 * 0.99**3, rel=1e-6)
    (group,) = own.of_mi.param_groups
    assert group["lr"] == CoGSLConfig().mi_lr


def test_losses_go_the_right_way() -> None:
    """Information is found in (c); its loss grows in (a) when it is all that counts."""
    own = turns(mi_steps=20, view_steps=20, anchors=90, estimator_lr=0.02)
    anchors = own.sample()

    def told() -> float:
        with torch.no_grad():
            beta = own.model.classify(own.problem.x, own.views)[1].beta
            x = gathered_features(own.problem.x, own.views, beta, anchors)
            return float(own.mutual.of_features(x))

    first = told()
    own.learn_information()
    found = told()
    assert found < first
    own.classification = lambda logits: logits[0].sum() * 0  # type: ignore[method-assign]
    own.learn_views(0)
    assert told() > found


def test_weight_of_compression() -> None:
    config = CoGSLConfig(growth=1e-3)
    assert config.compression(0) == 0.05
    assert config.compression(70) == pytest.approx(math.log(1.07))
    assert config.compression(10_000) == 0.1


# --- the method --------------------------------------------------------------------


def test_predictor_repeats_its_graph_and_survives_saving() -> None:
    graph, other = draw(), draw(split=1, n=90)
    fitted = fit(graph, epochs=7, estimator_lr=0.1, mu1=1.0)
    predictor = fitted.prediction.predictor
    assert isinstance(predictor, CoGSLPredictor)
    torch.testing.assert_close(predictor.logits(graph.data), fitted.prediction.logits)
    again = CoGSLPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_more_neighbours_than_nodes(path_graph: Data) -> None:
    graph = check_data(path_graph)
    fitted = fit(graph, epochs=3, k=40)
    assert bool(fitted.prediction.logits.isfinite().all())


def test_only_the_first_layer_can_be_decayed() -> None:
    model = network()
    first = {id(p) for p in model.first_layer()}
    names = {k for k, p in model.named_parameters() if id(p) in first}
    assert names == {
        f"classifiers.{i}.{k}.0" for i in range(3) for k in ("weights", "biases")
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"anchors": 0},
        {"classifier_steps": 0},
        {"view_steps": -1},
        {"mu1": -1.0},
        {"power": -0.1},
        {"tau": 0.0},
        {"mi_lr": 0.0},
        {"estimator_lr": 0.0},
        {"estimator_dropout": 1.0},
        {"input_dropout": 1.0},
        {"restart": 0.0},
        {"restart": 1.5},
        {"lam": 1.5},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        CoGSLConfig(**wrong)
