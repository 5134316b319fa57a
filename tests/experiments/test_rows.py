"""What the pages say about single cells of their tables."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import stats

from elugcn.experiments import fewlabels, table1
from elugcn.experiments.base import Finished, Planned, Scope
from elugcn.experiments.rows import trained_to_the_end
from tests.experiments.conftest import finish

Scopes = Callable[..., Scope]
# Points of each method with seeds 0 to 3; the third method has the best mean.
POINTS = {
    "elu-gcn": (80, 82, 81, 85),
    "gcn": (79, 79, 80, 80),
    "appnp": (80, 81, 83, 82),
}


def points(planned: Planned) -> float:
    return POINTS[planned.row][planned.job.seed] / 100


def test_the_lead_is_over_the_best_other_method(scope: Scopes) -> None:
    asked = scope("cora", seeds=4, methods=tuple(POINTS), quick=True)
    runs = finish(fewlabels.plan(asked), points)
    ours, best = (np.array(POINTS[name]) for name in ("elu-gcn", "appnp"))
    low, high = stats.ttest_rel(ours, best).confidence_interval(0.95)
    text = f"{np.mean(ours - best):+.2f} [{low:.2f}, {high:.2f}]"
    for row in fewlabels.leads(runs):
        assert row == ("cora", row[1], "appnp", text)
    assert [row[1] for row in fewlabels.leads(runs)] == ["1", "3", "10"]
    # A method that lacks a run has its mean over other draws: it is passed over.
    fewer = [r for r in runs if (r.planned.row, r.planned.job.seed) != ("appnp", 0)]
    assert {row[2] for row in fewlabels.leads(fewer)} == {"gcn"}
    assert fewlabels.leads([r for r in runs if r.planned.row != "elu-gcn"]) == []


def test_cells_whose_runs_trained_to_their_limit(scope: Scopes) -> None:
    asked = scope("cora", seeds=4, methods=("gcn", "appnp"))
    runs = finish(table1.plan(asked), lambda planned: 0.5)

    def ending(one: Finished, seeds: set[int]) -> Finished:
        limit = one.planned.job.config["epochs"]
        ended = limit if one.planned.job.seed in seeds else limit - 1
        config = one.planned.job.config
        return replace(one, record=one.record | {"epochs": ended, "config": config})

    seeds = {"gcn": {0}, "appnp": {1, 3}}
    some = [ending(one, seeds[one.planned.row]) for one in runs]
    said = trained_to_the_end(some)
    assert said is not None
    assert said.endswith("might do better: appnp on cora (2 of 4)")
    assert trained_to_the_end([ending(one, set()) for one in runs]) is None
