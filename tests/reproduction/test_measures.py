"""What runs measure, against dense matrices."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from elugcn_reproduction import active_learning, measures
from elugcn_reproduction.active_learning import STRATEGIES, learn, open_pool, pagerank
from elugcn_reproduction.measures import heatmap, theory, utilization
from torch_geometric.data import Data

from elugcn.api import Fitted, fit, json_safe
from elugcn.data.validation import CheckedGraph
from elugcn.errors import InputError
from elugcn.evaluation.jobs import make_jobs
from elugcn.evaluation.run import Settings, execute

FEW = (0, 2, 4, 7)
Graphs = Callable[..., CheckedGraph]


def fit_few(graph: CheckedGraph, method: str = "elu-gcn", **options: Any) -> Fitted:
    return fit(graph, method, {"epochs": 3} | options, seed=3, n_threads=1)


@pytest.fixture(scope="module")
def graph(checked: Graphs) -> CheckedGraph:
    return checked(n=200)


@pytest.fixture(scope="module", params=["implicit", "topk"])
def either(request: pytest.FixtureRequest, graph: CheckedGraph) -> Fitted:
    return fit_few(graph, graph_mode=request.param)


@pytest.fixture(scope="module")
def partly(checked: Graphs) -> Fitted:
    """A graph some of whose nodes have no known class."""
    graph = checked(n=200)
    graph.data.y[graph.data.test_mask.nonzero().flatten()[:15]] = -1
    return fit_few(graph)


@pytest.fixture(scope="module")
def gcn(graph: CheckedGraph) -> Fitted:
    return fit_few(graph, "gcn", epochs=5)


def adjacency(data: Data) -> np.ndarray:
    """Â with self-loops, dense, from its definition."""
    n = int(data.num_nodes)
    a = np.eye(n)
    a[data.edge_index[1], data.edge_index[0]] += 1
    d = a.sum(axis=1) ** -0.5
    return d[:, None] * a * d


def graph_of(fitted: Fitted) -> np.ndarray:
    assert fitted.result.graph is not None
    return fitted.result.graph.to_dense().double().numpy()


def test_shares_and_accuracies_of_the_sets(partly: Fitted) -> None:
    data, use = partly.data, partly.result.label_utilization
    assert use is not None
    # All three sets, and one that no test node is in.
    status = torch.arange(data.num_nodes) % 3 - 1
    status[(status == -1) & data.test_mask] = 0
    result = replace(partly.result, label_utilization=replace(use, status=status))
    out = utilization(replace(partly, result=result))
    free, y = ~data.train_mask.numpy(), data.y.numpy()
    final = partly.result.logits.argmax(dim=1).numpy()
    assert out["nodes"] == free.sum()
    for name, value in (("elu", 1), ("nelu", 0), ("unreachable", -1)):
        chosen = status.numpy() == value
        tested = chosen & data.test_mask.numpy() & (y >= 0)
        assert out[name]["share"] == pytest.approx((chosen & free).sum() / free.sum())
        assert out[name]["test_nodes"] == tested.sum()
        for key, answer in (("gcn_accuracy", use.gcn.numpy()), ("accuracy", final)):
            right = (answer == y)[tested].mean() if value >= 0 else None
            assert out[name][key] == (right if right is None else pytest.approx(right))
    assert out["all"]["accuracy"] == partly.accuracy(data.test_mask)
    assert out["all"]["share"] == 1.0
    # The second GCN is the same GCN from another seed.
    known = {k: v for k, v in partly.config.model_dump().items()
             if k in type(fit_few(CheckedGraph(data, ()), "gcn").config).model_fields}  # fmt: skip
    other = fit(CheckedGraph(data, ()), "gcn", known, seed=1_000_003, n_threads=1)
    assert out["all"]["second_accuracy"] == other.accuracy(data.test_mask)


def test_blocks_are_those_of_the_dense_graphs(either: Fitted, partly: Fitted) -> None:
    out, y = heatmap(either), either.data.y.numpy()
    order = np.argsort(y, kind="stable")
    edges = np.cumsum([0, *out["block_size"]])
    assert edges[-1] == out["nodes"] == len(y)
    parts = [order[a:b] for a, b in pairwise(edges)]
    assert [set(y[p]) for p in parts] == [{c} for c in out["block_class"]]
    same, s = y[:, None] == y[None, :], graph_of(either)
    for name, dense in (("original", adjacency(either.data)), ("elu", s)):
        means = [[dense[np.ix_(p, q)].mean() for q in parts] for p in parts]
        assert np.allclose(out[name]["means"], means, rtol=1e-3, atol=1e-6)
        inside = (dense * same).sum() / dense.sum()
        assert out[name]["inside"] == pytest.approx(inside, rel=1e-3)
    for name, part in (("positive", s.clip(min=0)), ("absolute", abs(s))):
        expected = (part * same).sum() / part.sum()
        assert out["elu"][f"inside_{name}"] == pytest.approx(expected, rel=1e-4)
    source, target = either.data.edge_index.numpy()
    assert out["homophily"] == pytest.approx((y[source] == y[target]).mean())
    assert out["same_class_pairs"] == pytest.approx(same.mean())
    # Nodes without a class are in no block.
    out, known = heatmap(partly), partly.data.y.numpy() >= 0
    same, s = same[known][:, known], graph_of(partly)[known][:, known]
    assert out["nodes"] == sum(out["block_size"]) == len(y) - 15
    assert out["elu"]["inside"] == pytest.approx((s * same).sum() / s.sum(), rel=1e-3)


def complexity(o: np.ndarray, y: np.ndarray) -> float:
    """The Davies-Bouldin index with root mean square spreads."""
    mu = np.array([o[y == c].mean(axis=0) for c in np.unique(y)])
    s = np.array(
        [((o[y == c] - m) ** 2).sum(axis=1).mean() ** 0.5 for c, m in enumerate(mu)]
    )
    m = np.linalg.norm(mu[:, None] - mu[None], axis=2)
    np.fill_diagonal(m, np.inf)
    return float(((s[:, None] + s) / m).max(axis=1).mean())


def test_theorem_one_on_dense_matrices(either: Fitted) -> None:
    out, data = theory(either), either.data
    free, y = ~data.train_mask.numpy(), data.y.numpy()
    x = data.x.double().numpy()
    # The features as the method scales them; here that is standardising.
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    a, s, truth = adjacency(data), graph_of(either), np.eye(3)[y]
    known = truth * data.train_mask.numpy()[:, None]
    assert out["nodes"] == free.sum()
    expected = complexity(x[free], y[free])
    assert out["complexity_features"] == pytest.approx(expected, rel=1e-3)
    for name, one in (("original", a), ("elu", s)):
        got = out[name]
        for layers, o in (("one", one @ x), ("two", a @ (one @ x))):
            expected = complexity(o[free], y[free])
            assert got[f"complexity_{layers}"] == pytest.approx(expected, rel=1e-3)
        spread = (one @ known).clip(min=0)
        total = spread.sum(axis=1, keepdims=True)
        spread = spread / np.where(total > 0, total, 1)
        distance = np.linalg.norm((spread - truth)[free]) / np.sqrt(free.sum())
        assert got["label_distance"] == pytest.approx(distance, rel=1e-4)
        assert got["reached"] == pytest.approx((total[free] > 0).mean())
        own = (one @ truth).clip(min=0)
        own = own / own.sum(axis=1, keepdims=True)
        own = own[np.arange(len(y)), y][free].mean()
        assert got["own_class"] == pytest.approx(own, rel=1e-4)
    q = known.copy()
    for _ in range(3):  # lpa_steps of the method
        q = 0.9 * a @ q + 0.1 * q
        q[~free] = known[~free]
    # A node that no label reaches keeps its zeros.
    q /= np.where(q.any(axis=1), q.sum(axis=1), 1)[:, None]
    assert 0 < out["lpa"]["reached"] == pytest.approx(q.any(axis=1)[free].mean())
    distance = np.linalg.norm((q - truth)[free]) / np.sqrt(free.sum())
    assert out["lpa"]["label_distance"] == pytest.approx(distance, rel=1e-4)


@pytest.mark.parametrize("name", ["utilization", "heatmap", "theory"])
def test_what_can_and_cannot_be_measured(name: str, gcn: Fitted) -> None:
    with pytest.raises(InputError, match=r"method gcn (learns|does)"):
        getattr(measures, name)(gcn)
    measure = f"elugcn_reproduction.measures:{name}"
    options = {"elu-gcn": {"epochs": 2}}
    (job,) = make_jobs(["elu-gcn"], ["karate"], 1, options=options, measure=measure)
    found = json_safe(execute(job, Settings())["measured"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["nodes"] in (34, 34 - 4)


# Labels to add next


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_learning, "BUDGETS", FEW)


def test_half_of_the_test_nodes_go_to_the_pool(graph: CheckedGraph, few: None) -> None:
    before = graph.data.test_mask.clone()
    data, pool = open_pool(graph.data, 0)
    # The split leaves nobody outside its three masks.
    assert int(pool.sum()) == int(before.sum()) // 2
    assert not (pool & data.test_mask).any()
    assert torch.equal(pool | data.test_mask, before)
    assert torch.equal(graph.data.test_mask, before)  # the graph itself is as it was
    assert torch.equal(open_pool(graph.data, 0)[1], pool)
    assert not torch.equal(open_pool(graph.data, 1)[1], pool)
    # A pool that is large enough stays.
    y = torch.zeros(100, dtype=torch.long)
    y[95:] = -1
    train, val, test = (torch.zeros(100, dtype=torch.bool) for _ in range(3))
    train[0], val[1], test[2:10] = True, True, True
    data = Data(y=y, train_mask=train, val_mask=val, test_mask=test)
    same, pool = open_pool(data, 0)
    # Ten times seven are needed; nodes of unknown class have no label to learn.
    assert pool.nonzero().flatten().tolist() == list(range(10, 95))
    assert torch.equal(same.test_mask, test)


@pytest.mark.parametrize("directed", [True, False])
def test_pagerank_is_that_of_networkx(directed: bool) -> None:
    reference = nx.gnp_random_graph(30, 0.07, seed=2, directed=True)
    if not directed:
        reference = reference.to_undirected().to_directed()
    expected = nx.pagerank(reference, alpha=0.85, tol=1e-12, max_iter=1000)
    edges = torch.tensor(list(reference.edges)).T
    got = pagerank(Data(edge_index=edges, num_nodes=30))
    np.testing.assert_allclose(got, [expected[i] for i in range(30)], rtol=1e-4)


def test_every_strategy_names_what_it_says(gcn: Fitted) -> None:
    data, pool = gcn.data, open_pool(gcn.data, 0)[1]
    proba = gcn.proba.double().numpy()
    scores = {
        "entropy": -(proba * np.log(proba)).sum(axis=1),
        "degree": np.bincount(data.edge_index[1], minlength=200),
        "pagerank": pagerank(data).numpy(),
    }
    for name, score in scores.items():
        chosen = STRATEGIES[name](gcn, pool, 9, np.random.default_rng(0)).tolist()
        assert len(set(chosen)) == 9
        assert pool[chosen].all()
        others = [i for i in pool.nonzero().flatten().tolist() if i not in chosen]
        assert max(score[others]) <= min(score[chosen]) * (1 + 1e-6)
    chosen = STRATEGIES["random"](gcn, pool, 9, np.random.default_rng(0)).tolist()
    assert len(set(chosen)) == 9
    assert pool[chosen].all()


@pytest.mark.parametrize("name", ["suggested", "entropy"])
def test_learning_in_rounds(name: str, gcn: Fitted, few: None) -> None:
    """Every accuracy is that of a model trained on the labels learned so far."""
    trained = gcn.data.train_mask.clone()
    out = learn(name, gcn)
    assert torch.equal(gcn.data.train_mask, trained)
    data, pool = open_pool(gcn.data, gcn.seed)
    added = out["nodes"]
    assert len(set(added)) == FEW[-1]
    assert pool[added].all()
    assert (out["pool"], out["budgets"]) == (int(pool.sum()), list(FEW))
    again = data.clone()
    again.train_mask = trained.clone()
    again.train_mask[added[:2]] = True
    model = fit(CheckedGraph(again, ()), "gcn", gcn.config, seed=3, n_threads=1)
    right = (model.result.logits.argmax(dim=1) == data.y)[data.test_mask]
    assert out["accuracy"][1] == pytest.approx(float(right.double().mean()))
    if name == "entropy":  # the second round is of the model with the first labels
        pool[added[:2]] = False
        score = torch.where(pool, active_learning.entropy(model), -1.0)
        assert added[2:4] == score.topk(2).indices.tolist()


def test_budgets_beyond_the_pool_are_left_out(
    gcn: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(active_learning, "BUDGETS", (0, 2, 1000))
    out = active_learning.learn_random(gcn)
    assert (out["budgets"], len(out["accuracy"]), len(out["nodes"])) == ([0, 2], 2, 2)
