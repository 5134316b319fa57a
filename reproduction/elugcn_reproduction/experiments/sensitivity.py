"""How much τ, λ and η matter."""

from __future__ import annotations

from collections import defaultdict

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
from elugcn_reproduction.figures import Curve, draw_curve, draw_grid, panels, styled
from elugcn_reproduction.page import Page

METHOD = "elu-gcn"
DATASETS = ("cora", "citeseer")
GRID, ETA = "tau and lambda", "eta"
VALUES, QUICK_VALUES = (0.1, 0.2, 0.4, 0.6, 1.0), (0.1, 0.4, 1.0)
ETAS, QUICK_ETAS = tuple(i / 10 for i in range(11)), (0.0, 0.3, 0.6, 1.0)
HEADER = ("dataset", "sweep", "tau", "lambda_con", "eta", "mean", "std", "runs",
          "seconds")  # fmt: skip
Setting = tuple[float, float, float]  # τ, λ, η
Sweeps = dict[tuple[str, str], dict[Setting, Summary]]  # by dataset and sweep


def plan(scope: Scope) -> list[Planned]:
    """The two-view setting with τ and λ, or η, changed."""
    values = QUICK_VALUES if scope.quick else VALUES
    etas = QUICK_ETAS if scope.quick else ETAS
    planned = []
    for dataset in datasets_of(scope, DATASETS, DATASETS[:1]):
        base = two_views(dataset)
        sweeps = {
            GRID: [
                {"tau": t, "lambda_con": weight} for t in values for weight in values
            ],
            ETA: [{"eta": eta} for eta in etas],
        }
        for group, settings in sweeps.items():
            rows = [Row(str(own), METHOD, base | own) for own in settings]
            wanted = only_methods(scope, rows)
            planned += plan_rows(wanted, dataset, scope, group=group)
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """A heat map and a curve for each dataset, and the numbers."""
    accuracies: dict[tuple[str, str], dict[Setting, list[float]]] = {}
    seconds = defaultdict(list)
    for one in finished:
        job, accuracy = one.planned.job, one.record["test_accuracy"]
        if accuracy is not None:
            sweep = job.dataset, one.planned.group
            tau, weight, eta = (job.config[k] for k in ("tau", "lambda_con", "eta"))
            setting = float(tau), float(weight), float(eta)
            accuracies.setdefault(sweep, {}).setdefault(setting, []).append(accuracy)
            seconds[sweep, setting].append(one.record["seconds"]["total"])
    found: Sweeps = {
        sweep: {setting: summarize(runs) for setting, runs in of.items()}
        for sweep, of in accuracies.items()
    }
    page.text(
        "`elu-gcn` on the backbone that was tuned for the GCN, with the text's closed "
        "form and H from the GCN. Test accuracies; no value was selected by them. The "
        "band is the standard error."
    )
    page.figure(
        draw(found),
        "Test accuracy over τ and λ as a heat map, and over η as a curve, by dataset",
    )
    for where, of in found.items():
        page.text(_in_words(*where, of))
    page.csv(
        HEADER,
        (
            (*sweep, *setting, *summary, float(np.mean(seconds[sweep, setting])))
            for sweep, of in found.items()
            for setting, summary in of.items()
        ),
    )


def _in_words(dataset: str, sweep: str, of: dict[Setting, Summary]) -> str:
    """The range of a sweep and where its ends are."""
    means = {setting: s.mean for setting, s in of.items() if s.mean is not None}
    best, worst = max(means, key=means.__getitem__), min(means, key=means.__getitem__)

    def at(setting: Setting) -> str:
        tau, weight, eta = setting
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


@styled
def draw(found: Sweeps) -> Figure:
    """A heat map and a curve side by side for each dataset."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    figure, axes = panels(2 * len(datasets), 2, 4.2, 3.2)
    for i, dataset in enumerate(datasets):
        left, right = axes[2 * i], axes[2 * i + 1]
        left.set_title(dataset)
        right.set_title(dataset)
        right.set_xlabel("η")
        right.set_ylabel("test accuracy in percent")
        if grid := found.get((dataset, GRID)):
            means = {(tau, weight): s.mean for (tau, weight, _), s in grid.items()}
            taus, weights = (sorted({key[k] for key in means}) for k in (0, 1))
            table = [[means.get((t, w)) for w in weights] for t in taus]
            draw_grid(left, np.array(table, dtype=np.float64), taus, weights, "τ", "λ")
        if curve := found.get((dataset, ETA)):
            points = sorted(
                (eta, s.mean, s.standard_error)
                for (_, _, eta), s in curve.items()
                if s.mean is not None
            )
            x, y, half = zip(*points, strict=True)
            draw_curve(right, Curve(METHOD, x, y, half))
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
