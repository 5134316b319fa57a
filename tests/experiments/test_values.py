"""Measurements, pages and figures, value by value."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph
from elugcn.evaluation.cells import Cell
from elugcn.evaluation.statistics import Difference, Summary
from elugcn.evaluation.tables import difference_text
from elugcn.experiments import buying, labelling, nelu, sensitivity
from elugcn.experiments import theory as theory_page
from elugcn.experiments.measures import theory, utilization
from elugcn.fitting import Fitted, fit_graph
from elugcn.report.blocks import BlockMap, Series, block_figure, utilization_figure
from elugcn.report.curves import draw_grid
from elugcn.report.page.charts import block_chart
from elugcn.report.page.embedding import node_map
from elugcn.report.page.heat import BlockMap as PageMap
from elugcn.report.style import panels
from tests.diagnosis.conftest import fit

Check = Callable[..., CheckedGraph]


@pytest.fixture(scope="module")
def fitted(checked: Check) -> Fitted:
    return fit(checked())


def test_a_small_p_is_shown() -> None:
    d = Difference(1.2, 0.8, 1.6, 0.0042, None, 5)
    cell = Cell("elu-gcn", "cora", Summary(84.0, 0.5, 5), difference=d, most=5)
    assert difference_text(cell) == "+1.20 [0.80, 1.60], p = 0.004"


def test_each_round_sees_the_labels_before_it(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round sees the labels of the rounds before it."""
    seen: list[list[int]] = []

    def first(model: Fitted, pool: torch.Tensor, k: int, rng: Any) -> torch.Tensor:
        seen.append(model.data.train_mask.nonzero().flatten().tolist())
        return pool.nonzero().flatten()[:k]

    monkeypatch.setitem(buying.STRATEGIES, "first", first)
    monkeypatch.setattr(buying, "BUDGETS", (0, 2, 3))
    nodes = buying.buy("first", fitted)["nodes"]
    start = fitted.data.train_mask.nonzero().flatten().tolist()
    assert seen == [start, sorted([*start, *nodes[:2]])]


def test_unknown_classes_are_not_for_sale() -> None:
    """Test nodes of unknown class can't be bought."""
    y = torch.zeros(20, dtype=torch.long)
    y[10:] = -1
    test = torch.ones(20, dtype=torch.bool)
    none = torch.zeros(20, dtype=torch.bool)
    for seed in range(3):
        data = Data(y=y, train_mask=none, val_mask=none, test_mask=test)
        shop = buying.open_shop(data, seed)
        moved = ~shop.data.test_mask
        assert int(moved.sum()) == 10
        assert torch.equal(shop.pool, moved & (y >= 0))


def test_draws_of_a_strategy_follow_the_seed(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []

    def spy(model: Fitted, pool: torch.Tensor, k: int, rng: Any) -> torch.Tensor:
        drawn.append(int(rng.integers(10**9)))
        return pool.nonzero().flatten()[:k]

    monkeypatch.setitem(buying.STRATEGIES, "spy", spy)
    monkeypatch.setattr(buying, "BUDGETS", (0, 1))
    for seed in (3, 4):
        buying.buy("spy", replace(fitted, seed=seed))
    expected = [np.random.default_rng([s, 1]).integers(10**9) for s in (3, 4)]
    assert drawn == expected


def test_the_band_is_the_standard_error() -> None:
    """The band is the standard error: the spread by the root of the runs."""
    runs = {(0, i): [0.5 + 0.01 * i] * 5 for i in range(4)}
    (curve,) = labelling._curves({"random": runs})
    values = 100 * (0.5 + 0.01 * np.arange(4))
    assert curve.y == pytest.approx([values.mean()] * 5)
    assert curve.half == pytest.approx([values.std(ddof=1) / 2] * 5)


def test_ahead_on_average_is_not_surely_ahead() -> None:
    """Ahead on average is not surely ahead."""
    ours = {(0, 0): [0.9] * 5, (0, 1): [0.5] * 5}
    theirs = {(0, 0): [0.6] * 5, (0, 1): [0.6] * 5}
    panels = {("cora", "gcn"): {labelling.OURS: ours, "random": theirs}}
    text = labelling._seen(panels)
    assert "largest area under the curve on the one dataset" in text
    assert "+10.0 points on cora (random)" in text
    assert text.endswith("is above zero on no dataset.")


def test_the_second_gcn_follows_the_seed(checked: Check) -> None:
    graph = checked(n=200)
    given = {"epochs": 3, "variants": [], "keep_gcn": False}
    config = resolve_config("elu-gcn", None, None, given)
    ours = fit_graph(graph, "elu-gcn", config, seed=5, n_threads=1)
    plain = resolve_config("gcn", None, None, {"epochs": 3})
    seeds = {}
    for seed in (0, 5):
        second = fit_graph(
            graph, "gcn", plain, seed=seed + 1000 * 1_000_003, n_threads=1
        )
        seeds[seed] = second.accuracy(graph.data.test_mask)
    assert seeds[0] != seeds[5]
    assert utilization(ours)["all"]["second_accuracy"] == seeds[5]


def test_theory_has_the_steps_of_the_method(checked: Check) -> None:
    """One step of label propagation reaches the neighbours of labels alone."""
    graph = checked(n=200)
    given = {"epochs": 2, "variants": [], "keep_gcn": False, "lpa_steps": 1}
    config = resolve_config("elu-gcn", None, None, given)
    out = theory(fit_graph(graph, "elu-gcn", config, seed=0, n_threads=1))
    data = graph.data
    source, target = data.edge_index
    near = torch.zeros(200, dtype=torch.bool)
    near[target[data.train_mask[source]]] = True
    expected = float(near[~data.train_mask].double().mean())
    assert 0 < expected < 1
    assert out["lpa"]["reached"] == pytest.approx(expected)


def test_bars_reach_from_end_to_end() -> None:
    """Error bars reach from one end of the interval to the other."""
    d = Difference(2.0, 1.5, 2.5, 0.01, None, 5)
    assert nelu._bars([((2.0, 0.4), d), ((1.0, None), None)]) == (
        [2.0, 1.0],
        [0.5, None],
    )


def test_the_grid_of_tau_and_lambda() -> None:
    """τ goes up and λ along: the number of a pair stands where both say."""
    means = {(0.1, 0.1): 70.0, (0.1, 1.0): 75.0, (1.0, 0.1): 80.0, (1.0, 1.0): 85.0}
    found = {
        ("cora", sensitivity.GRID, tau, weight, 0.5): (Summary(m, 0.5, 5), 1.0)
        for (tau, weight), m in means.items()
    }
    axis = sensitivity.draw(found).axes[0]
    assert (axis.get_ylabel(), axis.get_xlabel()) == ("τ", "λ")
    taus, weights = (
        [float(t.get_text()) for t in of]
        for of in (axis.get_yticklabels(), axis.get_xticklabels())
    )
    for text in axis.texts:
        along, up = (int(v) for v in text.get_position())
        assert float(text.get_text()) == means[taus[up], weights[along]]
    values = axis.images[0].get_array()
    assert values.tolist() == [[70.0, 75.0], [80.0, 85.0]]
    assert axis.images[0].origin == "lower"


def test_more_of_the_own_class_is_better() -> None:
    """Less complexity is better, and so is more weight of the own class."""

    def table(elu: float, original: float) -> theory_page.Table:
        return {
            "elu": {q: (elu, None) for q in theory_page.QUANTITIES},
            "original": {q: (original, None) for q in theory_page.QUANTITIES},
        }

    tables = {"a": table(0.7, 0.6), "b": table(0.9, 0.6), "c": table(0.5, 0.6)}
    assert theory_page._better(tables, "own_class", "original") == "on 2 of 3 datasets"
    assert (
        theory_page._better(tables, "complexity_one", "original")
        == "on 1 of 3 datasets"
    )


def test_the_surest_node_is_in_the_centre() -> None:
    """The surest node of a class is in the centre of its disc, the others around."""
    sure = torch.linspace(0.9, 0.99, 10)
    proba = torch.stack([sure, 1 - sure], dim=1)
    points, _ = node_map(proba)
    bare, _ = node_map(proba, spread=0.0)
    away = (points - bare).norm(dim=1)
    assert float(away[9]) == 0.0
    assert bool((away[:9] > 0.01).all())


def test_rows_of_blocks_take_from_columns() -> None:
    """What row 0 takes from column 1 is above the diagonal."""
    means = torch.zeros(2, 2)
    means[0, 1] = 1.0
    drawn = str(block_chart(PageMap("ELU graph", means, None), [0, 1]))
    assert re.findall(r"M(\d+) (\d+)h1v1h-1z", drawn) == [("3", "2")]


def test_shares_stand_on_each_other() -> None:
    """Shares stand on top of each other and end at 100."""
    shares = [
        Series("ELU", [60.0, 50.0], [1.0, 1.0]),
        Series("NELU", [30.0, 50.0], [1.0, 1.0]),
        Series("unreachable", [10.0, None], [None, None]),
    ]
    upper = utilization_figure(["a", "b"], shares, shares[:1]).axes[0]
    bars = [[(b.get_y(), b.get_height()) for b in c] for c in upper.containers]
    assert bars == [
        [(0, 60), (0, 50)], [(60, 30), (50, 50)], [(90, 10), (100, 0)],
    ]  # fmt: skip


def test_the_colour_of_a_cell_is_that_of_its_number() -> None:
    """The colour of a cell is that of its number."""
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    _, (axis,) = panels(1)
    draw_grid(axis, values, [0.1, 1], [0.2, 0.4], "τ", "λ")
    (drawn,) = axis.images
    assert drawn.origin == "lower"
    assert drawn.get_array().tolist() == values.tolist()


def test_blocks_have_row_zero_at_the_top() -> None:
    """Row 0 is at the top; the strongest colour is the 98 % quantile."""
    means = np.zeros((10, 10))
    means[0, 9], means[9, 0], means[0, 0] = -4.0, 2.0, 8.0
    one = BlockMap("x", means.tolist(), [0] * 10, [3] * 10)
    axis = block_figure([one]).axes[0]
    low, high = axis.get_ylim()
    assert low > high
    (mesh,) = axis.collections
    limit = np.quantile(np.abs(means), 0.98)
    assert 0 < limit < 4
    np.testing.assert_allclose(mesh.get_array().reshape(10, 10), means / limit)


def test_the_band_is_of_the_runs_that_came_so_far() -> None:
    far, near = [0.5] * 3, [0.5] * 2
    runs = {(0, 0): [*near, 0.5], (0, 1): [*far[:2], 0.7], (0, 2): near, (0, 3): near}
    (curve,) = labelling._curves({"random": runs})
    assert curve.half == pytest.approx([0.0, 0.0, np.std([50, 70], ddof=1) / 2**0.5])
