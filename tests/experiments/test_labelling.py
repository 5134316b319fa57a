"""Buying labels: the pool, the strategies, the curves and their page."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import stats
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph
from elugcn.evaluation.worker import execute
from elugcn.experiments import buying, labelling
from elugcn.experiments.base import Finished, Planned, Scope
from elugcn.experiments.buying import STRATEGIES, buy, open_shop, pagerank
from elugcn.experiments.output import Page
from elugcn.fitting import Fitted, fit_graph
from elugcn.storage import json_safe
from tests.evaluation.conftest import record_of

FEW = (0, 2, 4, 7)


@pytest.fixture(scope="module")
def graph(checked: Callable[..., CheckedGraph]) -> CheckedGraph:
    return checked(n=200)


@pytest.fixture(scope="module")
def fitted(graph: CheckedGraph) -> Fitted:
    return fit_graph(
        graph, "gcn", resolve_config("gcn", None, None, {"epochs": 5}), seed=3
    )


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buying, "BUDGETS", FEW)


def test_half_of_the_test_nodes_go_to_the_pool(graph: CheckedGraph) -> None:
    data = graph.data
    tested = int(data.test_mask.sum())
    before = data.test_mask.clone()
    shop = open_shop(data, 0)
    # The split leaves nobody outside its three masks.
    assert int(shop.pool.sum()) == tested // 2
    assert int(shop.data.test_mask.sum()) == tested - tested // 2
    assert not (shop.pool & shop.data.test_mask).any()
    assert torch.equal(shop.pool | shop.data.test_mask, before)
    assert torch.equal(data.test_mask, before)  # the graph itself is as it was
    assert torch.equal(open_shop(data, 0).pool, shop.pool)
    assert not torch.equal(open_shop(data, 1).pool, shop.pool)


def test_a_pool_that_is_large_enough_is_left_alone(few: None) -> None:
    y = torch.zeros(100, dtype=torch.long)
    y[95:] = -1
    train, val, test = (torch.zeros(100, dtype=torch.bool) for _ in range(3))
    train[0], val[1], test[2:10] = True, True, True
    shop = open_shop(Data(y=y, train_mask=train, val_mask=val, test_mask=test), 0)
    # Ten times seven are needed; those of unknown class can't be bought.
    assert shop.pool.nonzero().flatten().tolist() == list(range(10, 95))
    assert torch.equal(shop.data.test_mask, test)


@pytest.mark.parametrize("directed", [True, False])
def test_pagerank_is_that_of_networkx(directed: bool) -> None:
    rng = np.random.default_rng(2)
    edges = np.unique(rng.integers(0, 30, size=(2, 60)), axis=1)
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    graph.add_edges_from(edges.T.tolist())
    expected = nx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=1000)
    got = pagerank(Data(edge_index=torch.from_numpy(edges), num_nodes=30))
    np.testing.assert_allclose(got, [expected[i] for i in range(30)], rtol=1e-4)


def test_every_strategy_names_what_it_says(fitted: Fitted) -> None:
    data, pool = fitted.data, open_shop(fitted.data, 0).pool
    proba = fitted.prediction.proba.double().numpy()
    scores = {
        "entropy": -(proba * np.log(proba)).sum(axis=1),
        "degree": np.bincount(data.edge_index[1], minlength=200),
        "pagerank": pagerank(data).numpy(),
    }
    for name, score in scores.items():
        rng = np.random.default_rng(0)
        chosen = STRATEGIES[name](fitted, pool, 9, rng).tolist()
        assert len(set(chosen)) == 9
        assert pool[chosen].all()
        least = min(score[chosen])
        others = [i for i in pool.nonzero().flatten().tolist() if i not in chosen]
        assert max(score[others]) <= least * (1 + 1e-6)
    one, two = (
        STRATEGIES["random"](fitted, pool, 9, np.random.default_rng(s)).tolist()
        for s in (0, 1)
    )
    assert len(set(one)) == 9
    assert pool[one].all()
    assert one != two


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_buying_in_rounds(name: str, fitted: Fitted, few: None) -> None:
    """Every accuracy is that of a model trained on the labels bought so far."""
    data = fitted.data
    trained = data.train_mask.clone()
    out = buy(name, fitted)
    assert json.loads(json.dumps(json_safe(out))) == json_safe(out)
    assert torch.equal(data.train_mask, trained)
    shop = open_shop(data, fitted.seed)
    bought = out["nodes"]
    assert len(set(bought)) == FEW[-1]
    assert shop.pool[bought].all()
    assert (out["strategy"], out["start"]) == (name, int(trained.sum()))
    assert out["pool"] == int(shop.pool.sum())
    assert out["test_nodes"] == int(shop.data.test_mask.sum())
    assert out["budgets"] == list(FEW)
    for place in (0, 2):
        mask = trained.clone()
        mask[bought[: FEW[place]]] = True
        again = shop.data.clone()
        again.train_mask = mask
        model = fit_graph(
            CheckedGraph(again, ()), "gcn", fitted.config, seed=3, n_threads=1
        )
        right = model.accuracy(shop.data.test_mask)
        assert out["accuracy"][place] == pytest.approx(right)


def test_later_rounds_see_the_new_model(fitted: Fitted, few: None) -> None:
    """The second round of entropy is that of the model with the first labels."""
    out = buy("entropy", fitted)
    data = open_shop(fitted.data, fitted.seed).data.clone()
    data.train_mask = data.train_mask.clone()
    data.train_mask[out["nodes"][:2]] = True
    model = fit_graph(CheckedGraph(data, ()), "gcn", fitted.config, seed=3, n_threads=1)
    pool = open_shop(fitted.data, fitted.seed).pool.clone()
    pool[out["nodes"][:2]] = False
    score = torch.where(pool, buying.entropy(model), -1.0)
    assert out["nodes"][2:4] == score.topk(2).indices.tolist()


def test_budgets_beyond_the_pool_are_left_out(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buying, "BUDGETS", (0, 2, 1000))
    out = buy("random", fitted)
    assert out["budgets"] == [0, 2]
    assert len(out["accuracy"]) == 2
    assert len(out["nodes"]) == 2


def test_the_plan() -> None:
    plan = labelling.plan(Scope(quick=False, seeds=10))
    assert len(plan) == 4 * 5 * 10
    assert {p.job.dataset for p in plan} == {"cora", "citeseer", "photo", "chameleon"}
    assert {p.job.method for p in plan} == {"gcn"}
    assert {p.job.labels_per_class for p in plan} == {2}
    assert {p.job.seed for p in plan} == set(range(10))
    assert {(p.row, p.job.measure) for p in plan} == {
        (name, f"labelling-{name}") for name in STRATEGIES
    }
    assert len({p.job.config_hash for p in plan}) == 4 * 5
    quick = labelling.plan(Scope(quick=True, seeds=2))
    assert {p.job.dataset for p in quick} == {"cora"}
    assert {p.job.config["epochs"] for p in quick} == {100}
    both = labelling.plan(Scope(True, 1, ("sbm",), ("gcn", "elu-gcn")))
    assert [p.group for p in both] == ["gcn"] * 5 + ["elu-gcn"] * 5


def test_a_run_keeps_its_curve(few: None) -> None:
    scope = Scope(quick=True, seeds=1, datasets=("sbm",))
    planned = next(p for p in labelling.plan(scope) if p.row == "suggested")
    job = replace(planned.job, config=planned.job.config | {"epochs": 3})
    record = json_safe(execute(job))
    assert record["measured"]["start"] == 2 * 5
    assert len(record["measured"]["accuracy"]) == len(FEW)
    assert record["labels_per_class"] == 2


def scores(planned: Planned) -> list[float]:
    """Accuracies of a run that never was: ours the best on sbm, the worst on karate."""
    key = [ord(c) for c in planned.row + planned.job.dataset]
    rng = np.random.default_rng([planned.job.seed, *key])
    lift = 0.1 if planned.row == labelling.OURS else 0.0
    sign = 1 if planned.job.dataset == "sbm" else -1
    return [0.5, *(0.6 + sign * lift + rng.uniform(0, 0.02, 4))]


def page_of(scope: Scope, keep: Callable[[Planned], bool] = lambda p: True) -> Page:
    runs = [
        Finished(p, record_of(p.job, measured={"accuracy": scores(p)}))
        for p in labelling.plan(scope)
        if keep(p)
    ]
    page = Page(labelling.EXPERIMENT, scope, "command", [r.record for r in runs])
    labelling.write(runs, page)
    return page


def csv_of(page: Page) -> list[dict[str, str]]:
    text = page._files["labelling.csv"].decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_the_page(tmp_path: Path) -> None:
    scope = Scope(False, 4, ("sbm", "karate"))
    page = page_of(scope)
    rows = csv_of(page)
    assert len(rows) == 2 * 5 * (5 + 1)
    found = {(r["dataset"], r["strategy"], r["labels"]): r for r in rows}

    def curves(row: str, dataset: str) -> np.ndarray[Any, Any]:
        plan = labelling.plan(scope)
        mine = [p for p in plan if (p.row, p.job.dataset) == (row, dataset)]
        return 100 * np.array([scores(p) for p in mine])

    for (dataset, name, labels), row in found.items():
        of = curves(name, dataset)
        if labels != "area":
            column = of[:, [0, 5, 10, 20, 40].index(int(labels))]
            assert float(row["mean"]) == pytest.approx(column.mean(), rel=1e-5)
            assert float(row["std"]) == pytest.approx(column.std(ddof=1), rel=1e-4)
            assert row["gain"] == ""
            continue
        # The trapezoids by hand.
        widths = np.array([5, 5, 10, 20]) / 40
        mine = ((of[:, 1:] + of[:, :-1]) / 2) @ widths
        assert float(row["mean"]) == pytest.approx(mine.mean(), rel=1e-5)
        if name == "suggested":
            assert row["gain"] == ""
            continue
        ours = curves("suggested", dataset)
        ours = ((ours[:, 1:] + ours[:, :-1]) / 2) @ widths
        test = stats.ttest_rel(ours, mine)
        assert float(row["gain"]) == pytest.approx((ours - mine).mean(), rel=1e-4)
        low, high = test.confidence_interval(0.95)
        assert float(row["gain_low"]) == pytest.approx(low, rel=1e-3)
        assert float(row["gain_high"]) == pytest.approx(high, rel=1e-3)
        assert float(row["p"]) == pytest.approx(test.pvalue, rel=1e-3)
    text = page.markdown()
    assert "largest area under the curve on 1 of 2 datasets" in text
    assert "is above zero on 1 of 2 datasets" in text
    assert "| +0 | +5 | +10 | +20 | +40 |" in text
    assert "## sbm" in text
    assert "half of its test nodes are moved to the pool" in text
    files = {path.name for path in page.save(tmp_path)}
    assert files == {"labelling.csv", "labelling.png", "labelling.svg", "labelling.md"}


def test_half_a_page() -> None:
    """One run of a strategy, none of ours, two methods."""
    scope = Scope(False, 1, ("sbm",), ("gcn", "sgc"))
    page = page_of(scope, lambda p: p.row == "random")
    assert "can be compared yet" in page.markdown()
    assert "## sbm, sgc" in page.markdown()
    assert {r["std"] for r in csv_of(page)} == {""}
    alone = page_of(Scope(False, 1, ("sbm",)))
    assert "above zero on no dataset" in alone.markdown()


def test_area_by_hand() -> None:
    assert labelling.area([0.0, 0.5, 0.5, 1.0, 1.0]) == pytest.approx(
        (5 * 0.25 + 5 * 0.5 + 10 * 0.75 + 20) / 40
    )
    assert labelling.area([0.2, 0.4]) == pytest.approx(0.3)
    assert labelling.area([0.7]) == 0.7
