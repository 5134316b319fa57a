"""What runs measure, against dense matrices, NumPy and scikit-learn."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.core.utilization import definition_one
from elugcn.data.checks import CheckedGraph
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.evaluation.jobs import make_jobs
from elugcn.evaluation.worker import execute
from elugcn.experiments.measures import MEASURES, heatmap, theory, utilization
from elugcn.fitting import Fitted, fit_graph
from elugcn.storage import json_safe

TWO_VIEWS = {"variants": [], "keep_gcn": False}


def fit(graph: CheckedGraph, method: str = "elu-gcn", **options: Any) -> Fitted:
    given = {"epochs": 3} | options
    config = resolve_config(method, None, None, given)
    return fit_graph(graph, method, config, seed=0, n_threads=1)


@pytest.fixture(scope="module")
def fitted(checked: Callable[..., CheckedGraph]) -> Fitted:
    """A graph some of whose nodes have no known class."""
    graph = checked(n=200)
    graph.data.y[graph.data.test_mask.nonzero().flatten()[:15]] = -1
    return fit(graph, **TWO_VIEWS)


@pytest.fixture(scope="module", params=["implicit", "topk"])
def either(request: pytest.FixtureRequest, checked: Callable) -> Fitted:
    return fit(checked(n=200), graph_mode=request.param, **TWO_VIEWS)


def adjacency(data: Data) -> np.ndarray:
    """Â with self-loops, dense, from its definition."""
    n = int(data.num_nodes)
    a = np.eye(n)
    a[data.edge_index[1], data.edge_index[0]] += 1
    d = a.sum(axis=1) ** -0.5
    return d[:, None] * a * d


def graph_of(fitted: Fitted) -> np.ndarray:
    graph = fitted.prediction.graph
    assert graph is not None
    return graph.to_dense().double().numpy()


def test_shares_and_accuracies_of_the_sets(fitted: Fitted) -> None:
    data, use = fitted.data, fitted.prediction.utilization
    assert use is not None
    # All three sets, and one that no test node is in.
    status = torch.arange(data.num_nodes) % 3 - 1
    status[(status == -1) & data.test_mask] = 0
    prediction = replace(fitted.prediction, utilization=replace(use, status=status))
    out = utilization(replace(fitted, prediction=prediction))
    free = ~data.train_mask.numpy()
    y, final = data.y.numpy(), fitted.prediction.logits.argmax(dim=1).numpy()
    assert out["nodes"] == free.sum()
    for name, value in (("elu", 1), ("nelu", 0), ("unreachable", -1)):
        chosen = status.numpy() == value
        tested = chosen & data.test_mask.numpy() & (y >= 0)
        assert out[name]["nodes"] == (chosen & free).sum()
        assert out[name]["share"] == pytest.approx((chosen & free).sum() / free.sum())
        assert out[name]["test_nodes"] == tested.sum()
        if value == -1:
            assert out[name]["gcn_accuracy"] is None
            assert out[name]["accuracy"] is None
            assert out[name]["second_accuracy"] is None
        else:
            right = (use.gcn.numpy() == y)[tested].mean()
            assert out[name]["gcn_accuracy"] == pytest.approx(right)
            assert out[name]["accuracy"] == pytest.approx((final == y)[tested].mean())
    assert out["all"]["accuracy"] == fitted.accuracy(data.test_mask)
    assert out["all"]["share"] == 1.0


def test_utilization_is_that_of_the_plain_gcn(
    checked: Callable[..., CheckedGraph],
) -> None:
    graph = checked(n=200)
    gcn = fit(graph, "gcn").prediction.logits.argmax(dim=1)
    ours = fit(graph, variants=[{"name": "two views", "eta": 0.3}])
    out = utilization(ours)
    test = graph.data.test_mask
    right = float((gcn == graph.data.y)[test].double().mean())
    assert out["all"]["gcn_accuracy"] == pytest.approx(right)
    use = ours.prediction.utilization
    assert use is not None
    # The second GCN is the same GCN, judged on the same nodes, from another seed.
    state = torch.get_rng_state()
    config = resolve_config("gcn", None, None, {"epochs": 3})
    other = fit_graph(graph, "gcn", config, seed=1000 * 1_000_003, n_threads=1)
    assert out["all"]["second_accuracy"] == other.accuracy(test)
    assert utilization(ours) == out
    assert torch.equal(torch.get_rng_state(), state)
    again = definition_one(use.lpa, gcn)
    assert out["elu"]["nodes"] == int((again.elu & ~graph.data.train_mask).sum())


def test_blocks_are_those_of_the_dense_graphs(either: Fitted) -> None:
    out, y = heatmap(either), either.data.y.numpy()
    order = np.argsort(y, kind="stable")
    edges = np.cumsum([0, *out["block_size"]])
    assert edges[-1] == out["nodes"] == len(y)
    assert 55 <= len(out["block_size"]) <= 65
    parts = [order[a:b] for a, b in pairwise(edges)]
    assert [set(y[p]) for p in parts] == [{c} for c in out["block_class"]]
    same = y[:, None] == y[None, :]
    for name, dense in (
        ("original", adjacency(either.data)),
        ("elu", graph_of(either)),
    ):
        means = [[dense[np.ix_(p, q)].mean() for q in parts] for p in parts]
        assert np.allclose(out[name]["means"], means, rtol=1e-3, atol=1e-6)
        inside = (dense * same).sum() / dense.sum()
        assert out[name]["inside"] == pytest.approx(inside, rel=1e-3)
    s = graph_of(either)
    positive = s.clip(min=0)
    expected = (positive * same).sum() / positive.sum()
    assert out["elu"]["inside_positive"] == pytest.approx(expected, rel=1e-4)
    expected = (abs(s) * same).sum() / abs(s).sum()
    assert out["elu"]["inside_absolute"] == pytest.approx(expected, rel=1e-4)
    source, target = either.data.edge_index.numpy()
    assert out["homophily"] == pytest.approx((y[source] == y[target]).mean())
    assert out["same_class_pairs"] == pytest.approx(same.mean())


def test_nodes_without_a_class_are_in_no_block(fitted: Fitted) -> None:
    out, y = heatmap(fitted), fitted.data.y.numpy()
    assert out["nodes"] == sum(out["block_size"]) == (y >= 0).sum() == len(y) - 15
    s, known = graph_of(fitted), y >= 0
    same = (y[:, None] == y[None, :])[known][:, known]
    s = s[known][:, known]
    expected = (s * same).sum() / s.sum()
    assert out["elu"]["inside"] == pytest.approx(expected, rel=1e-3)


def complexity(o: np.ndarray, y: np.ndarray) -> float:
    """The Davies-Bouldin index with root mean square spreads."""
    mu = np.array([o[y == c].mean(axis=0) for c in np.unique(y)])
    s = np.array(
        [((o[y == c] - m) ** 2).sum(axis=1).mean() ** 0.5 for c, m in enumerate(mu)]
    )
    m = np.linalg.norm(mu[:, None] - mu[None], axis=2)
    np.fill_diagonal(m, np.inf)
    ratio = (s[:, None] + s) / m
    return float(ratio.max(axis=1).mean())


def test_theorem_one_on_dense_matrices(either: Fitted) -> None:
    out, data = theory(either), either.data
    free, y = ~data.train_mask.numpy(), data.y.numpy()
    x = data.x.double().numpy()
    # The features as the method scales them; here that is standardising.
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    a, s, truth = adjacency(data), graph_of(either), np.eye(3)[y]
    known = truth * data.train_mask.numpy()[:, None]
    assert out["nodes"] == free.sum()
    assert out["complexity_features"] == pytest.approx(
        complexity(x[free], y[free]), rel=1e-3
    )
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
        right = (spread.argmax(axis=1) == y) & (total[:, 0] > 0)
        assert got["label_accuracy"] == pytest.approx(right[free].mean(), abs=0.006)
        own = (one @ truth).clip(min=0)
        own = own / own.sum(axis=1, keepdims=True)
        expected = own[np.arange(len(y)), y][free].mean()
        assert got["own_class"] == pytest.approx(expected, rel=1e-4)
    q = known.copy()
    for _ in range(50):
        q = 0.9 * a @ q + 0.1 * q
        q[~free] = known[~free]
    # A node that no label reaches keeps its zeros.
    q /= np.where(q.any(axis=1), q.sum(axis=1), 1)[:, None]
    assert 0 < out["lpa"]["reached"] == pytest.approx(q.any(axis=1)[free].mean())
    distance = np.linalg.norm((q - truth)[free]) / np.sqrt(free.sum())
    assert out["lpa"]["label_distance"] == pytest.approx(distance, rel=1e-4)


@pytest.mark.parametrize("name", list(MEASURES))
def test_what_can_not_be_measured(
    name: str, checked: Callable[..., CheckedGraph]
) -> None:
    with pytest.raises(InputError, match=f"measure '{name}' .*; method gcn"):
        MEASURES[name](fit(checked(), "gcn"))


@pytest.mark.parametrize("name", list(MEASURES))
def test_a_run_keeps_what_it_measures(name: str) -> None:
    options = {"elu-gcn": {"epochs": 2, **TWO_VIEWS}}
    (job,) = make_jobs(["elu-gcn"], ["karate"], 1, options=options, measure=name)
    record = json_safe(execute(job))
    text = json.dumps(record["measured"], allow_nan=False)
    assert json.loads(text) == record["measured"]
    labels = int(load_dataset("karate").train_mask.sum())
    assert record["measured"]["nodes"] == 34 - (0 if name == "heatmap" else labels)
