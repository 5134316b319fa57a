"""How much τ, λ and η matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from elugcn.evaluation.statistics import Summary, summarize
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    datasets_of,
    only_methods,
    plan_rows,
    two_views,
)
from elugcn_reproduction.experiments.measured import standard_error
from elugcn_reproduction.figures import Curve, draw_curve, draw_grid, panels, styled
from elugcn_reproduction.page import Page

DATASETS = ("cora", "citeseer")
QUICK_DATASETS = ("cora",)
GRID, ETA = "tau and lambda", "eta"
VALUES = (0.1, 0.2, 0.4, 0.6, 1.0)
ETAS = tuple(i / 10 for i in range(11))
QUICK_VALUES = (0.1, 0.4, 1.0)
QUICK_ETAS = (0.0, 0.3, 0.6, 1.0)
HEADER = (
    "dataset",
    "sweep",
    "tau",
    "lambda_con",
    "eta",
    "mean",
    "std",
    "runs",
    "seconds",
)
# Dataset, sweep, τ, λ, η.
Key = tuple[str, str, float, float, float]


def plan(scope: Scope) -> list[Planned]:
    """The tuned two-view setting with τ and λ, or η, changed."""
    values = QUICK_VALUES if scope.quick else VALUES
    etas = QUICK_ETAS if scope.quick else ETAS
    planned = []
    for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS):
        base = two_views(dataset)
        grid = [
            Row(
                f"tau {tau:g}, lambda {weight:g}",
                "auto",
                base | {"tau": tau, "lambda_con": weight},
            )
            for tau in values
            for weight in values
        ]
        curve = [Row(f"eta {eta:g}", "auto", base | {"eta": eta}) for eta in etas]
        for group, rows in ((GRID, grid), (ETA, curve)):
            wanted = only_methods(scope, rows)
            planned += plan_rows(wanted, dataset, scope, group=group)
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """A heat map and a curve a dataset, and the numbers."""
    found = summarize_sweeps(finished)
    page.text(
        "One two-view setting, nothing chosen among members, η fixed. Test accuracies; "
        "no value was selected by them. The band is the standard error."
    )
    page.figure(
        draw(found),
        "Test accuracy over τ and λ as a heat map, and over η as a curve, by dataset",
    )
    for dataset in dict.fromkeys(key[0] for key in found):
        for sweep in (GRID, ETA):
            means = {
                key[2:]: s.mean
                for key, (s, _) in found.items()
                if key[:2] == (dataset, sweep) and s.mean is not None
            }
            if means:
                page.text(_in_words(dataset, sweep, means))
    page.csv(
        HEADER,
        (
            (*key, summary.mean, summary.std, summary.runs, seconds)
            for key, (summary, seconds) in found.items()
        ),
    )


def _in_words(
    dataset: str, sweep: str, means: dict[tuple[float, float, float], float]
) -> str:
    """The range of a sweep and where its ends are."""
    best, worst = max(means, key=lambda k: means[k]), min(means, key=lambda k: means[k])

    def at(key: tuple[float, float, float]) -> str:
        tau, weight, eta = key
        return f"η = {eta:g}" if sweep == ETA else f"τ = {tau:g}, λ = {weight:g}"

    text = (
        f"{dataset}, {sweep}: from {means[worst]:.2f} ({at(worst)}) to "
        f"{means[best]:.2f} ({at(best)}) over {len(means)} settings."
    )
    by_eta = {eta: mean for (_, _, eta), mean in means.items()}
    if sweep == ETA and {0.0, 1.0} <= by_eta.keys():
        text += (
            f" The original view alone (η = 0) has {by_eta[0.0]:.2f}, the ELU view "
            f"alone (η = 1) {by_eta[1.0]:.2f}."
        )
    return text


def summarize_sweeps(
    finished: Iterable[Finished],
) -> dict[Key, tuple[Summary, float]]:
    """Accuracy and mean seconds of each setting, in the order of the plan."""
    records = defaultdict(list)
    for one in finished:
        config = one.planned.job.config
        key = (
            one.planned.job.dataset,
            one.planned.group,
            float(config["tau"]),
            float(config["lambda_con"]),
            float(config["eta"]),
        )
        if one.record["test_accuracy"] is not None:
            records[key].append(one.record)
    return {
        key: (
            summarize([r["test_accuracy"] for r in runs]),
            float(np.mean([r["seconds"]["total"] for r in runs])),
        )
        for key, runs in records.items()
    }


@styled()
def draw(found: dict[Key, tuple[Summary, float]]) -> Figure:
    """A heat map and a curve beside each other for each dataset."""
    datasets = list(dict.fromkeys(key[0] for key in found))
    figure, axes = panels(2 * len(datasets), 2, 4.2, 3.2)
    for i, dataset in enumerate(datasets):
        left, right = axes[2 * i], axes[2 * i + 1]
        grid = {
            key[2:4]: s.mean
            for key, (s, _) in found.items()
            if key[:2] == (dataset, GRID) and s.mean is not None
        }
        taus, weights = (sorted({key[k] for key in grid}) for k in (0, 1))
        values = np.array(
            [[grid.get((t, w), np.nan) for w in weights] for t in taus]
        ).reshape(len(taus), len(weights))
        left.set_title(dataset)
        if grid:
            draw_grid(left, values, taus, weights, "τ", "λ")
        curve = [
            (key[4], s.mean, standard_error(s))
            for key, (s, _) in found.items()
            if key[:2] == (dataset, ETA) and s.mean is not None
        ]
        right.set_title(dataset)
        right.set_xlabel("η")
        right.set_ylabel("test accuracy in percent")
        if curve:
            x, y, half = zip(*sorted(curve), strict=True)
            draw_curve(right, Curve("auto", x, y, half))
    return figure


SENSITIVITY = Experiment(
    "sensitivity",
    "Sensitivity to τ, λ and η",
    "How much do the temperature and the weight of the contrast, and the share of the "
    "ELU view, matter (the paper's sensitivity figures)?",
    plan,
    write,
    seeds=5,
)
