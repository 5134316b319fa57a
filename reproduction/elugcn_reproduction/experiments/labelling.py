"""Which nodes to label next: suggested ones against random, entropy, degree, PageRank.

``active_learning.py`` has the protocol. The method is a plain GCN with its default
options, which is cheap and favours no strategy; ``--methods auto`` draws the same
curves for another.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elugcn.evaluation.statistics import (
    Difference,
    Pair,
    Summary,
    paired_difference,
    summarize,
)
from elugcn.evaluation.tables import markdown_table
from elugcn_reproduction.active_learning import BUDGETS, OURS, STRATEGIES
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    datasets_of,
    method_rows,
    plan_rows,
)
from elugcn_reproduction.experiments.measured import by_dataset, several, show
from elugcn_reproduction.figures import Curve, draw_curves
from elugcn_reproduction.page import Page

DATASETS = ("cora", "citeseer", "photo", "chameleon")
METHODS = ("gcn",)
START = 2
HEADER = ("dataset", "method", "strategy", "labels", "mean", "std", "runs",
          "gain", "gain_low", "gain_high", "p")  # fmt: skip

Curves = dict[str, dict[Pair, list[float]]]  # accuracies by strategy, then by run


def plan(scope: Scope) -> list[Planned]:
    """A run for each strategy and seed; each holds a whole curve."""
    return [
        run
        for row in method_rows(scope, METHODS)
        for dataset in datasets_of(scope, DATASETS, DATASETS[:1])
        for strategy in STRATEGIES
        for run in plan_rows(
            [Row(strategy, row.method)],
            dataset,
            scope,
            group=row.method,
            labels_per_class=START,
            measure=f"elugcn_reproduction.active_learning:learn_{strategy}",
        )
    ]


def write(finished: list[Finished], page: Page) -> None:
    """The curves, the area under each, and the paired differences of the areas."""
    panels: dict[tuple[str, str], Curves] = {}
    for one in finished:
        job = one.planned.job
        measured = by_dataset([one])[job.dataset][job.split, job.seed]
        panel = panels.setdefault((job.dataset, job.method), {})
        panel.setdefault(one.planned.row, {})[job.split, job.seed] = measured[
            "accuracy"
        ]
    plain = {method for _, method in panels} == set(METHODS)
    titled = {d if plain else f"{d}, {m}": of for (d, m), of in panels.items()}
    page.text(_in_words(titled))
    page.figure(
        draw_curves([(t, _curves(of)) for t, of in titled.items()], "labels added"),
        "Test accuracy against labels added, a curve per strategy, by dataset",
    )
    page.text(
        f"Every run starts from {START} random labels per class. Labels are added in "
        f"{len(BUDGETS) - 1} rounds, up to {', '.join(map(str, BUDGETS[1:]))}; after "
        "each round the model is trained again, and chooses the next nodes. "
        "They come from the nodes outside validation and test; where a split leaves "
        "too few of them (photo), half of its test nodes are moved to the pool first "
        "and the other half is tested. All strategies start from the same labels, have "
        "the same pool and the same test nodes. The model is a plain GCN with its "
        "default options unless the heading says otherwise. The weights of the "
        "suggestions were settled by test accuracy on these datasets with other "
        "start labels than those of the runs here. The band is the standard error."
    )
    names = list(dict.fromkeys(name for of in titled.values() for name in of))
    page.main(
        markdown_table(
            ["area under the curve", *names],
            [
                [t, *(show(summarize(areas(of.get(n, {})).values())) for n in names)]
                for t, of in titled.items()
            ],
        )
    )
    for title, of in titled.items():
        page.text(f"## {title}")
        page.table(
            ["strategy", *(f"+{b}" for b in BUDGETS)],
            [[name, *map(show, at_budgets(runs))] for name, runs in of.items()],
        )
    page.csv(
        HEADER,
        [
            [*panel, *row]
            for panel, of in panels.items()
            for name, runs in of.items()
            for row in _rows(of, name, runs)
        ],
    )


def area(scores: list[float]) -> float:
    """Mean accuracy over the labels added: the area under the curve by its width."""
    used = BUDGETS[: len(scores)]
    if len(used) < 2:
        return float(scores[0])
    return float(np.trapezoid(scores, used)) / (used[-1] - used[0])


def areas(runs: Mapping[Pair, list[float]]) -> dict[Pair, float]:
    """The area of each run."""
    return {pair: area(scores) for pair, scores in runs.items()}


def at_budgets(runs: Mapping[Pair, list[float]]) -> list[Summary]:
    """Accuracy at each budget, of the runs that came as far as that."""
    return [
        summarize(scores[i] for scores in runs.values() if len(scores) > i)
        for i in range(len(BUDGETS))
    ]


def gain(of: Curves, other: str) -> Difference | None:
    """How much larger the area of the suggested labels is, in points."""
    if other == OURS or OURS not in of:
        return None
    return paired_difference(areas(of[OURS]), areas(of[other]))


def _rows(
    of: Curves, name: str, runs: Mapping[Pair, list[float]]
) -> list[list[object]]:
    """The lines of a strategy: one per budget, and the area."""
    rows: list[list[object]] = [
        [name, budget, *summary, None, None, None, None]
        for budget, summary in zip(BUDGETS, at_budgets(runs), strict=True)
    ]
    d = gain(of, name)
    ends = [None] * 4 if d is None else [d.mean, d.low, d.high, d.t_pvalue]
    return [*rows, [name, "area", *summarize(areas(runs).values()), *ends]]


def _curves(of: Curves) -> list[Curve]:
    curves = []
    for name, runs in of.items():
        points = zip(BUDGETS, at_budgets(runs), strict=True)
        known = [(b, s.mean, s.standard_error) for b, s in points if s.mean is not None]
        x, y, half = zip(*known, strict=True)
        curves.append(Curve(name, x, y, half))
    return curves


def _in_words(titled: Mapping[str, Curves]) -> str:
    """What the numbers say."""
    won, sure, parts = 0, 0, []
    judged = {title: of for title, of in titled.items() if OURS in of and len(of) > 1}
    for title, of in judged.items():
        mean = {name: float(np.mean(list(areas(r).values()))) for name, r in of.items()}
        best = max((name for name in mean if name != OURS), key=mean.__getitem__)
        ahead = 100.0 * (mean[OURS] - mean[best])
        won += ahead > 0
        d = gain(of, best)
        sure += d is not None and d.low > 0
        parts.append(f"{ahead:+.1f} points on {title} ({best})")
    if not judged:
        return "No run of the suggested labels can be compared yet."
    total = len(judged)
    return (
        f"The suggested labels have the largest area under the curve "
        f"{several(won, total)}; against the best of the other strategies: "
        f"{', '.join(parts)}. The 95 % interval of that difference is above zero "
        f"{several(sure, total)}."
    )


LABELLING = Experiment(
    "labelling",
    "The next nodes to label",
    "Are the labels that `elugcn diagnose --suggest` names worth more than random "
    "ones, and than those of the most uncertain, best connected or most central nodes "
    "(not in the paper)?",
    plan,
    write,
)
