"""Fewer labels than the paper's twenty a class."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

from elugcn.evaluation.cells import Cell, Comparison
from elugcn.evaluation.statistics import Pair, paired_difference
from elugcn.evaluation.tables import (
    CSV_COLUMNS,
    accuracy_block,
    csv_row,
    further_blocks,
    interval_text,
    shown_name,
)
from elugcn.experiments.base import Experiment, Finished, Planned, Scope
from elugcn.experiments.output import Page
from elugcn.experiments.planning import datasets_of, method_rows, plan_rows
from elugcn.experiments.rows import compare_finished
from elugcn.experiments.sensitivity import standard_error
from elugcn.report.curves import Curve, draw_curves

DATASETS = ("cora", "citeseer", "pubmed", "photo")
QUICK_DATASETS = ("cora",)
OURS = "elu-gcn"
METHODS = (OURS, "elu-gcn-paper", "gcn", "appnp", "lpa", "cs")
LABELS = (1, 2, 3, 5, 10, 20)
QUICK_LABELS = (1, 3, 10)
HEADER = (
    *CSV_COLUMNS,
    "labels_per_class",
    "difference",
    "difference_low",
    "difference_high",
    "difference_p",
)


def plan(scope: Scope) -> list[Planned]:
    """Each method with its own values: the tuned ones are for the published labels."""
    rows = method_rows(scope, METHODS)
    return [
        run
        for dataset in datasets_of(scope, DATASETS, QUICK_DATASETS)
        for labels in (QUICK_LABELS if scope.quick else LABELS)
        for run in plan_rows(
            rows, dataset, scope, group=str(labels), labels_per_class=labels
        )
    ]


def write(finished: list[Finished], page: Page) -> None:
    """A curve a method and dataset, then a table for each number of labels."""
    by_labels = comparisons(finished)
    page.text(
        "Training labels are drawn anew for each run; validation and test nodes are "
        "those of the dataset's split, and every method selects on all of these "
        "validation nodes, however few the labels. Every method has its default values "
        "on every dataset: nothing is tuned for these labels. The band is the standard "
        "error."
    )
    page.figure(
        page.experiment.name,
        draw_curves(curves(by_labels), xlabel="labels per class", log=True),
        "Test accuracy against labels per class, a curve a method, by dataset",
    )
    if found := leads(finished):
        page.text(f"## {OURS} beside the best of the others")
        page.text(
            "Which other method has the highest mean, and by how many points "
            f"{OURS} is ahead of it on the same draws, with 95 % confidence interval. "
            "The best of several is chosen looking at the same runs."
        )
        page.table(("dataset", "labels a class", "best other", "ahead by"), found)
    for labels, comparison in by_labels.items():
        page.text(f"## {labels} {'label' if labels == 1 else 'labels'} a class")
        page.text(accuracy_block(comparison))
        page.text("\n\n".join(further_blocks(comparison)))
        for note in comparison.notes:
            if note not in page.notes:
                page.note(note)
    page.csv(
        page.experiment.name,
        HEADER,
        (
            [*csv_row(cell), str(labels), *_difference(cell)]
            for labels, comparison in by_labels.items()
            for cell in comparison.rows()
            if cell.summary.runs
        ),
    )


def comparisons(finished: list[Finished]) -> dict[int, Comparison]:
    """One table for each number of labels; nothing was published for them."""
    numbers = sorted({int(f.planned.group) for f in finished})
    return {
        number: compare_finished(
            [f for f in finished if f.planned.group == str(number)], {}
        )
        for number in numbers
    }


def leads(finished: list[Finished]) -> list[tuple[str, str, str, str]]:
    """Dataset, labels, the best other method, and the paired difference to it."""
    runs: dict[tuple[str, int], dict[str, dict[Pair, float]]] = {}
    for f in finished:
        job, accuracy = f.planned.job, f.record["test_accuracy"]
        cell = runs.setdefault((job.dataset, int(f.planned.group)), {})
        cell.setdefault(f.planned.row, {})[job.split, job.seed] = float(accuracy)
    out = []
    for (dataset, labels), cell in runs.items():
        ours = cell.pop(OURS, {})
        # Of methods with fewer runs the mean is of other draws.
        others = {row: a for row, a in cell.items() if ours.keys() <= a.keys()}
        if not ours or not others:
            continue
        best = max(others, key=lambda row: fmean(others[row].values()))
        difference = paired_difference(ours, others[best])
        if difference is not None:
            text = interval_text(difference)
            out.append((dataset, str(labels), shown_name(best), text))
    return out


def curves(by_labels: dict[int, Comparison]) -> list[tuple[str, list[Curve]]]:
    """The points of each method, by dataset."""
    points: dict[str, dict[str, Curve]] = {}
    for labels, comparison in by_labels.items():
        for cell in comparison.rows():
            if cell.summary.mean is None:
                continue
            panel = points.setdefault(cell.dataset, {})
            curve = panel.get(cell.method, Curve(cell.method, (), (), ()))
            panel[cell.method] = replace(
                curve,
                x=(*curve.x, labels),
                y=(*curve.y, cell.summary.mean),
                half=(*curve.half, standard_error(cell.summary)),
            )
    return [(dataset, list(panel.values())) for dataset, panel in points.items()]


def _difference(cell: Cell) -> list[str]:
    d = cell.difference
    if d is None:
        return [""] * 4
    p = "" if d.t_pvalue is None else f"{d.t_pvalue:.3g}"
    return [f"{d.mean:.4f}", f"{d.low:.4f}", f"{d.high:.4f}", p]


EXPERIMENT = Experiment(
    "fewlabels",
    "Few labels",
    "How accurate is each method with 1 to 20 labels a class, drawn at random (not in "
    "the paper, which has 20)?",
    plan,
    write,
)
