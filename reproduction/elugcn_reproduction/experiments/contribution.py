"""What ELU nodes and the ELU graph add to the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from elugcn.evaluation import paired_difference, summarize
from elugcn.evaluation.statistics import Difference, Pair, Summary
from elugcn.evaluation.tables import interval_text, markdown_table, plus_minus
from elugcn_reproduction.experiments.base import (
    QUICK_EPOCHS,
    Experiment,
    Finished,
    Planned,
    Row,
    Scope,
    capped,
    datasets_of,
    only_methods,
    plan_rows,
)
from elugcn_reproduction.experiments.fewlabels import DATASETS as FEW_LABELS
from elugcn_reproduction.experiments.unseen import GRAPHS, SPLITS, TABLES, jobs_of
from elugcn_reproduction.figures import Panel, draw_dots
from elugcn_reproduction.page import Page

WITH, WITHOUT = Row("auto", "auto"), Row("auto, without ELU", "auto", {"elu": False})
LABELS, QUICK_LABELS = (1, 3, 5), (1,)
OWN = "the graph's own"  # training labels
COLUMNS = ("dataset", "labels", "runs", "auto", "without", "difference",
           "difference_low", "difference_high")  # fmt: skip


@dataclass(frozen=True)
class Added:
    """What ELU adds on a graph with some labels."""

    dataset: str
    labels: str
    accuracies: tuple[Summary, Summary]  # with and without, on the runs of both
    difference: Difference


def plan(scope: Scope) -> list[Planned]:
    """Both rows on every graph; the runs of ``auto`` are those of other pages."""
    rows, planned = only_methods(scope, (WITH, WITHOUT)), []
    for dataset in datasets_of(scope, (*GRAPHS, *TABLES), ("digits",)):
        for row in rows:
            for job in jobs_of(row, dataset, min(scope.seeds, SPLITS)):
                chosen = capped(job, QUICK_EPOCHS) if scope.quick else job
                planned.append(Planned(row.name, chosen, OWN))
        if dataset in FEW_LABELS:
            for labels in QUICK_LABELS if scope.quick else LABELS:
                planned += plan_rows(
                    rows,
                    dataset,
                    scope,
                    group=f"{labels} per class",
                    labels_per_class=labels,
                )
    return planned


def write(finished: list[Finished], page: Page) -> None:
    """The means over graphs, a figure, and every difference."""
    found = added(finished)
    by_labels = {
        labels: [one for one in found if one.labels == labels]
        for labels in dict.fromkeys(one.labels for one in found)
    }
    page.text(
        f"`{WITHOUT.name}` has `elu=False`: no member uses ELU nodes or the ELU graph. "
        "The difference is the test accuracy of `auto` minus that of this row on the "
        "same splits and seeds, in points, with 95 % confidence interval. Clearly "
        "above or below: the interval excludes 0."
    )
    page.main(
        markdown_table(
            ("training labels", "graphs", "mean difference", "clearly above 0",
             "clearly below 0"),
            [_in_total(labels, of) for labels, of in by_labels.items()],
        )
    )  # fmt: skip
    if not found:
        return
    ordered = [one for of in by_labels.values() for one in of]
    dots = {_name(one): _interval(one.difference) for one in ordered}
    page.figure(
        draw_dots(
            [Panel("with ELU – without", dots, 0.0)],
            list(dots),
            xlabel="difference in points",
            breaks=(len(by_labels.get(OWN, ())),),
            line="no difference",
        ),
        "What ELU adds to auto in points, with 95 % interval, by graph",
    )
    for labels, of in by_labels.items():
        page.text(f"## Training labels: {labels}")
        page.table(
            ("graph", "runs", WITH.name, WITHOUT.name, "difference"),
            [
                (
                    one.dataset,
                    one.difference.pairs,
                    *(plus_minus(a.mean, a.std) for a in one.accuracies),
                    interval_text(one.difference),
                )
                for one in of
            ],
        )
    page.csv(
        COLUMNS,
        [
            (one.dataset, one.labels, d.pairs, *(a.mean for a in one.accuracies),
             d.mean, d.low, d.high)
            for one in ordered
            for d in (one.difference,)
        ],
    )  # fmt: skip


def added(finished: Sequence[Finished]) -> list[Added]:
    """The difference on every graph where both rows have two runs or more."""
    runs: dict[tuple[str, str], dict[str, dict[Pair, float]]] = {}
    for f in finished:
        job = f.planned.job
        place = runs.setdefault((job.dataset, f.planned.group), {})
        of = place.setdefault(f.planned.row, {})
        of[job.split, job.seed] = float(f.record["test_accuracy"])
    out = []
    for (dataset, labels), rows in runs.items():
        ours, theirs = (rows.get(row.name, {}) for row in (WITH, WITHOUT))
        difference = paired_difference(ours, theirs)
        if difference is not None:
            both = [pair for pair in ours if pair in theirs]
            means = _over(ours, both), _over(theirs, both)
            out.append(Added(dataset, labels, means, difference))
    return out


def _over(runs: Mapping[Pair, float], both: Sequence[Pair]) -> Summary:
    return summarize(runs[pair] for pair in both)


def _in_total(labels: str, of: Sequence[Added]) -> tuple[str, ...]:
    """How many graphs, their mean difference, and on how many it is clear."""
    found = [one.difference for one in of]
    return (
        labels,
        str(len(found)),
        f"{fmean(d.mean for d in found):+.2f}",
        str(sum(d.low > 0 for d in found)),
        str(sum(d.high < 0 for d in found)),
    )


def _name(one: Added) -> str:
    return one.dataset if one.labels == OWN else f"{one.dataset}, {one.labels}"


def _interval(d: Difference) -> Summary:
    """The difference with half of its interval, for a dot with its bar."""
    return Summary(d.mean, (d.high - d.low) / 2, d.pairs)


CONTRIBUTION = Experiment(
    "contribution",
    "What ELU adds",
    "How much more accurate is `auto` for the ELU nodes and the ELU graph (not in the "
    "paper)?",
    plan,
    write,
)
