"""Which labels to buy next: suggested ones against random, entropy, degree, PageRank.

Protocol (``active_learning.py``): two random labels a class to start with, then 5, 10,
20 and 40 more in four rounds; the model is trained anew after each and the next
round's nodes are chosen with it. Validation nodes stay those of the published split.
The method is a plain GCN with its default values, which is cheap and favours no
strategy; ``--methods elu-gcn`` draws the same curves for another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elugcn.evaluation.statistics import Difference, Pair, paired_difference
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
from elugcn_reproduction.experiments.measured import (
    Number,
    by_dataset,
    mean_std,
    several,
    show,
)
from elugcn_reproduction.figures import Curve, draw_curves
from elugcn_reproduction.page import Page

DATASETS = ("cora", "citeseer", "photo", "chameleon")
QUICK_DATASETS = ("cora",)
METHODS = ("gcn",)
START = 2
AREA = "area"

Scores = Mapping[str, Mapping[Pair, Sequence[float]]]  # by strategy, then by run
Panel = tuple[str, str]  # dataset and method


def plan(scope: Scope) -> list[Planned]:
    """A run for each strategy and seed; each holds a whole curve."""
    return [
        run
        for row in method_rows(scope, METHODS)
        for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS)
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
    panels = collect(finished)
    page.text(_seen(panels))
    page.figure(
        draw_curves(
            [(_title(panel, panels), _curves(of)) for panel, of in panels.items()],
            xlabel="labels bought",
        ),
        "Test accuracy against labels bought, a curve a strategy, by dataset",
    )
    page.text(
        f"Every run starts from {START} random labels a class. Labels are bought in "
        f"{len(BUDGETS) - 1} rounds, up to {', '.join(map(str, BUDGETS[1:]))}; after "
        "each round the model is trained anew, and the next nodes are chosen with it. "
        "They come from the nodes outside validation and test; where a split leaves "
        "too few of them (photo), half of its test nodes are moved to the pool first "
        "and the other half is tested. All strategies start from the same labels, have "
        "the same pool and the same test nodes. The consumer is a plain GCN with its "
        "default values unless the heading says otherwise. How the suggestions weigh "
        "what they weigh was settled by test accuracy on these datasets with other "
        "start labels than those of the runs here. The band is the standard error."
    )
    page.main(_area_table(page, panels))
    for panel, of in panels.items():
        page.text(f"## {_title(panel, panels)}")
        page.table(
            ["strategy", *(f"+{b}" for b in BUDGETS)],
            [
                [name, *(show(*number(runs, i)) for i in range(len(BUDGETS)))]
                for name, runs in of.items()
            ],
        )
    page.csv(_HEADER, _csv_rows(panels))


def collect(
    finished: list[Finished],
) -> dict[Panel, dict[str, dict[Pair, list[float]]]]:
    """The accuracies of every run, by panel and strategy; in the plan's order."""
    out: dict[Panel, dict[str, dict[Pair, list[float]]]] = {}
    for one in finished:
        ((dataset, runs),) = by_dataset([one]).items()
        ((pair, measured),) = runs.items()
        panel = out.setdefault((dataset, one.planned.job.method), {})
        scores = [float(value) for value in measured["accuracy"]]
        panel.setdefault(one.planned.row, {})[pair] = scores
    return out


def area(scores: Sequence[float], budgets: Sequence[int] = BUDGETS) -> float:
    """Mean accuracy over the labels bought: the area under the curve by its width."""
    used = budgets[: len(scores)]
    if len(used) < 2:
        return float(scores[0])
    return float(np.trapezoid(scores, used)) / (used[-1] - used[0])


def areas(runs: Mapping[Pair, Sequence[float]]) -> dict[Pair, float]:
    """The area of each run."""
    return {pair: area(scores) for pair, scores in runs.items()}


def number(runs: Mapping[Pair, Sequence[float]], place: int) -> Number:
    """Mean and spread in percent at a budget."""
    return mean_std([100.0 * s[place] for s in runs.values() if len(s) > place])


def gain(of: Scores, other: str) -> Difference | None:
    """How much larger the area of the suggested labels is, in points."""
    if OURS not in of or other not in of:
        return None
    return paired_difference(areas(of[OURS]), areas(of[other]))


_HEADER = ("dataset", "method", "strategy", "labels", "mean", "std", "runs",
           "gain", "gain_low", "gain_high", "p")  # fmt: skip


def _csv_rows(panels: Mapping[Panel, Scores]) -> list[list[object]]:
    rows: list[list[object]] = []
    for (dataset, method), of in panels.items():
        for name, runs in of.items():
            for i, budget in enumerate(BUDGETS):
                count = sum(len(s) > i for s in runs.values())
                mean, std = number(runs, i)
                line = [dataset, method, name, budget, mean, std, count]
                rows.append([*line, None, None, None, None])
            whole = mean_std([100.0 * a for a in areas(runs).values()])
            d = gain(of, name) if name != OURS else None
            ends = [None] * 4 if d is None else [d.mean, d.low, d.high, d.t_pvalue]
            rows.append([dataset, method, name, AREA, *whole, len(runs), *ends])
    return rows


def _area_table(page: Page, panels: Mapping[Panel, Scores]) -> str:
    names = list(dict.fromkeys(name for of in panels.values() for name in of))
    head = ["area under the curve", *names]
    lines = [head, ["---", *("---:" for _ in names)]]
    for panel, of in panels.items():
        cells = []
        for name in names:
            values = [100.0 * a for a in areas(of.get(name, {})).values()]
            cells.append(show(*mean_std(values)))
        lines.append([_title(panel, panels), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _curves(of: Scores) -> list[Curve]:
    out = []
    for name, runs in of.items():
        points = [number(runs, i) for i in range(len(BUDGETS))]
        known = [(b, m, s) for b, (m, s) in zip(BUDGETS, points, strict=True)
                 if m is not None]  # fmt: skip
        # Of the runs that came as far as that.
        there = {b: sum(len(run) > i for run in runs.values())
                 for i, b in enumerate(BUDGETS)}  # fmt: skip
        half = [0.0 if s is None else s / there[b] ** 0.5 for b, _, s in known]
        out.append(
            Curve(name, [b for b, _, _ in known], [m for _, m, _ in known], half)
        )
    return out


def _title(panel: Panel, panels: Mapping[Panel, Scores]) -> str:
    dataset, method = panel
    alone = {m for _, m in panels} == set(METHODS)
    return dataset if alone else f"{dataset}, {method}"


def _seen(panels: Mapping[Panel, Scores]) -> str:
    """What the numbers say."""
    won, sure, parts = 0, 0, []
    judged = {panel: of for panel, of in panels.items() if OURS in of and len(of) > 1}
    for panel, of in judged.items():
        mean = {name: float(np.mean(list(areas(r).values()))) for name, r in of.items()}
        best = max((name for name in mean if name != OURS), key=mean.__getitem__)
        ahead = 100.0 * (mean[OURS] - mean[best])
        won += ahead > 0
        d = gain(of, best)
        sure += d is not None and d.low > 0
        parts.append(f"{ahead:+.1f} points on {_title(panel, panels)} ({best})")
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
    "The next labels to buy",
    "Are the labels that `elugcn diagnose --suggest` names worth more than random "
    "ones, and than those of the most uncertain, best connected or most central nodes "
    "(not in the paper)?",
    plan,
    write,
)
