"""Fewer labels than the paper's twenty per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from elugcn.evaluation import Cell, Comparison, paired_difference
from elugcn.evaluation.statistics import Pair
from elugcn.evaluation.tables import (
    CSV_COLUMNS,
    blocks,
    csv_row,
    interval_text,
    markdown_block,
    shown_name,
)
from elugcn_reproduction.experiments.base import (
    Experiment,
    Finished,
    Planned,
    Scope,
    compare_finished,
    datasets_of,
    method_rows,
    plan_rows,
)
from elugcn_reproduction.figures import Curve, draw_curves
from elugcn_reproduction.page import Page
from elugcn_reproduction.published import read_rows

DATASETS = ("cora", "citeseer", "pubmed", "photo")
OURS = "auto"
METHODS = (OURS, "elu-gcn", "gcn", "appnp", "lpa", "cs")
LABELS, QUICK_LABELS = (1, 2, 3, 5, 10, 20), (1, 3, 10)
HEADER = (
    *CSV_COLUMNS,
    "labels_per_class",
    "difference",
    "difference_low",
    "difference_high",
    "difference_p",
)

Place = tuple[str, int]  # dataset and labels per class
Accuracies = dict[Pair, float]


def plan(scope: Scope) -> list[Planned]:
    """Each method with its defaults: the tuned options are for the published labels."""
    rows = method_rows(scope, METHODS)
    return [
        run
        for dataset in datasets_of(scope, DATASETS, DATASETS[:1])
        for labels in (QUICK_LABELS if scope.quick else LABELS)
        for run in plan_rows(
            rows, dataset, scope, group=str(labels), labels_per_class=labels
        )
    ]


def write(finished: list[Finished], page: Page) -> None:
    """A curve per method and dataset, then a table for each number of labels."""
    by_labels = {
        number: compare_finished(
            [f for f in finished if f.planned.group == str(number)]
        )
        for number in sorted({int(f.planned.group) for f in finished})
    }
    page.text(
        "Training labels are drawn for each run; validation and test nodes are those "
        "of the dataset's split. Every method selects on all of these validation "
        "nodes, however few the labels, and has its default options: nothing is tuned "
        "for these labels. The band is the standard error."
    )
    page.figure(
        draw_curves(curves(by_labels), "labels per class", log=True),
        "Test accuracy against labels per class, a curve per method, by dataset",
    )
    if found := leads(finished):
        page.text(f"## {OURS} beside the best of the others")
        page.text(
            "Which other method has the highest mean, and by how many points "
            f"{OURS} is ahead of it on the same draws, with 95 % confidence interval. "
            "The best of several is chosen by the same runs."
        )
        page.table(("dataset", "labels per class", "best other", "ahead by"), found)
    if since := gains(finished):
        page.text(f"## {OURS} beside the default of version 0.1")
        page.text(
            f"By how many points {OURS} is ahead of the default of version 0.1 on the "
            "same draws, with 95 % confidence interval."
        )
        page.table(("dataset", "labels per class", "ahead by"), since)
    for labels, comparison in by_labels.items():
        page.text(f"## {labels} {'label' if labels == 1 else 'labels'} per class")
        for block in blocks(comparison):
            page.text(markdown_block(comparison, block))
        for note in comparison.notes:
            page.note(note)
    page.csv(
        HEADER,
        (
            [*csv_row(cell), str(labels), *_difference(cell)]
            for labels, comparison in by_labels.items()
            for cell in comparison.rows()
            if cell.summary.runs
        ),
    )


def by_place(finished: Sequence[Finished]) -> dict[Place, dict[str, Accuracies]]:
    """Test accuracies by dataset and number of labels, then by row."""
    runs: dict[Place, dict[str, Accuracies]] = {}
    for f in finished:
        job, accuracy = f.planned.job, float(f.record["test_accuracy"])
        place = runs.setdefault((job.dataset, int(f.planned.group)), {})
        place.setdefault(f.planned.row, {})[job.split, job.seed] = accuracy
    return runs


def old_default() -> dict[Place, Accuracies]:
    """Test accuracies of the default of version 0.1."""
    found: dict[Place, Accuracies] = {}
    for row in read_rows("fewlabels_0_1.csv"):
        place = found.setdefault((row["dataset"], int(row["labels_per_class"])), {})
        place[int(row["split"]), int(row["seed"])] = float(row["test"])
    return found


def gains(finished: Sequence[Finished]) -> list[tuple[str, str, str]]:
    """Dataset, labels, and the paired difference to the default of version 0.1."""
    old, out = old_default(), []
    for (dataset, labels), rows in by_place(finished).items():
        theirs = old.get((dataset, labels), {})
        difference = paired_difference(rows.get(OURS, {}), theirs)
        if difference is not None:
            out.append((dataset, str(labels), interval_text(difference)))
    return out


def leads(finished: Sequence[Finished]) -> list[tuple[str, str, str, str]]:
    """Dataset, labels, the best other method, and the paired difference to it."""
    out = []
    for (dataset, labels), cell in by_place(finished).items():
        ours = cell.pop(OURS, {})
        # The mean of a method with fewer runs is over other draws.
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
                half=(*curve.half, cell.summary.standard_error),
            )
    return [(dataset, list(panel.values())) for dataset, panel in points.items()]


def _difference(cell: Cell) -> list[str]:
    d = cell.difference
    if d is None:
        return [""] * 4
    p = "" if d.t_pvalue is None else f"{d.t_pvalue:.3g}"
    return [f"{d.mean:.4f}", f"{d.low:.4f}", f"{d.high:.4f}", p]


FEWLABELS = Experiment(
    "fewlabels",
    "Few labels",
    "How accurate is each method with 1 to 20 labels per class, drawn at random (not "
    "in the paper, which has 20)?",
    plan,
    write,
)
