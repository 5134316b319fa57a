"""Accuracy of every method: table 1, social networks, other labels, time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from elugcn.evaluation import Comparison
from elugcn.evaluation.tables import (
    CSV_COLUMNS,
    blocks,
    csv_row,
    escape_markdown,
    markdown_block,
    ours,
    published_text,
    shown_name,
)
from elugcn.methods.presets import preset
from elugcn.methods.registry import METHOD_NAMES
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
from elugcn_reproduction.figures import Panel, draw_costs, draw_dots
from elugcn_reproduction.page import Page
from elugcn_reproduction.published import FAR, NOTES, deviations, published

PAPER_DATASETS = ("cora", "citeseer", "pubmed", "computers", "photo", "chameleon",
                  "squirrel")  # fmt: skip
TABLE1_DATASETS = (*PAPER_DATASETS, "chameleon_filtered", "squirrel_filtered")
TABLE1_QUICK = ("cora", "citeseer", "photo", "chameleon")
# The user has to bring the file of the last one.
SOCIAL_DATASETS = ("caltech36", "northeastern19", "hamilton46", "tulane29", "uf21")
CITATION = ("cora", "citeseer", "pubmed")
_FIRST = ("auto", "elu-gcn", "gcn", "gat", "appnp", "sgc", "mlp", "lpa", "cs")
METHODS = tuple(dict.fromkeys([*_FIRST, *METHOD_NAMES]))
QUICK_METHODS = ("auto", "elu-gcn", "gcn", "appnp", "lpa")
RUNTIME_METHODS = ("gcn", "gat", "auto", "elu-gcn")
LABELS = 20  # of the experiment with other labels, per class


def write_tables(page: Page, comparison: Comparison) -> None:
    """Accuracies (the overview shows them too), differences, time, memory, CSV."""
    main, *further = [markdown_block(comparison, b) for b in blocks(comparison)]
    page.main(main)
    page.text("\n\n".join(further))
    write_notes(page, comparison)
    write_csv(page, comparison)


def write_csv(page: Page, comparison: Comparison) -> None:
    """A line for each cell that has runs."""
    cells = [cell for cell in comparison.rows() if cell.summary.runs]
    page.csv(CSV_COLUMNS, map(csv_row, cells))


def write_notes(page: Page, comparison: Comparison) -> None:
    """What must be said about the numbers, at the end of the page."""
    for dataset, note in NOTES.items():
        cells = [cell for cell in comparison.rows() if cell.dataset == dataset]
        if any(cell.published is not None for cell in cells):
            page.note(f"{dataset}: {note}")
    for note in comparison.notes:
        page.note(note)


def draw_accuracies(
    comparison: Comparison,
    *,
    columns: int = 3,
    breaks: Sequence[int] = (),
    with_paper: bool = True,
) -> Figure:
    """Dots, one panel per dataset, with the paper's ELU-GCN as a line."""
    names = {method: shown_name(method) for method in comparison.methods}
    panels = []
    for dataset in comparison.datasets:
        cells = [comparison.cells[name, dataset] for name in names]
        rows = {names[cell.method]: cell.summary for cell in cells}
        theirs = published("elu-gcn", dataset) if with_paper else None
        panels.append(Panel(dataset, rows, theirs.mean if theirs else None))
    return draw_dots(panels, list(names.values()), columns=columns, breaks=breaks)


def write_accuracies(finished: list[Finished], page: Page) -> None:
    """Dots by dataset, the tables, and what is far from the paper."""
    comparison = compare_finished(finished, published)
    page.figure(
        draw_accuracies(comparison),
        "Test accuracy of each method, mean and standard deviation, by dataset",
    )
    write_tables(page, comparison)
    if ended := trained_to_the_end(finished):
        page.note(ended)
    write_deviations(page, comparison)


def write_deviations(page: Page, comparison: Comparison) -> None:
    """A line for each number that is far from the paper's."""
    far = deviations(comparison)
    if not far:
        return
    page.text("## Far from the paper")
    page.text(
        f"Means that differ from the paper's by more than {FAR:g} standard deviations "
        "(the larger of both), grouped by what is known about the reason."
    )
    for reason in dict.fromkeys(d.reason for d in far):
        lines = [f"{reason[0].upper()}{reason[1:]}:", ""]
        for d in far:
            if d.reason == reason:
                name = shown_name(d.cell.method)
                theirs = published_text(d.cell).strip(" ()")
                lines.append(
                    f"- {name} on {escape_markdown(d.cell.dataset)}: {ours(d.cell)}, "
                    f"the paper {theirs} ({d.difference:+.2f})"
                )
        page.text("\n".join(lines))


def trained_to_the_end(finished: Sequence[Finished]) -> str | None:
    """Which cells have at least half of their runs end with the last epoch."""
    ended: dict[tuple[str, str], list[bool]] = {}
    for f in finished:
        limit = f.record["config"].get("epochs")
        if limit is not None:
            cell = ended.setdefault((f.planned.row, f.planned.job.dataset), [])
            cell.append(f.record["epochs"] >= limit)
    names = [
        f"{shown_name(row)} on {dataset} ({sum(runs)} of {len(runs)})"
        for (row, dataset), runs in ended.items()
        if 2 * sum(runs) >= len(runs)
    ]
    if not names:
        return None
    return (
        "at least half of the runs trained to their last epoch, so a higher limit "
        f"might do better: {'; '.join(names)}"
    )


def plan_methods(
    datasets: Sequence[str],
    quick: Sequence[str] = TABLE1_QUICK,
    methods: Sequence[str] = METHODS,
    quick_methods: Sequence[str] = QUICK_METHODS,
) -> Callable[[Scope], list[Planned]]:
    """A plan: each method, as tuned for each dataset."""

    def plan(scope: Scope) -> list[Planned]:
        rows = method_rows(scope, methods, quick_methods)
        chosen = datasets_of(scope, datasets, quick)
        return [run for dataset in chosen for run in plan_rows(rows, dataset, scope)]

    return plan


def plan_draws(scope: Scope) -> list[Planned]:
    """Each method as tuned for the public split, with other labels of that number."""
    planned = []
    for dataset in datasets_of(scope, CITATION, CITATION[:1]):
        rows = [
            replace(row, options=preset(row.method, dataset))
            for row in method_rows(scope, ("auto", "grand", "gcn"))
        ]
        planned += plan_rows(rows, dataset, scope, labels_per_class=LABELS)
    return planned


def write_draws(finished: list[Finished], page: Page) -> None:
    """Dots by dataset, then the tables, with differences to GRAND."""
    # The best published numbers on these graphs are GRAND's.
    comparison = compare_finished(finished, reference="grand")
    page.text(
        f"Each run draws {LABELS} training labels per class. Validation and test nodes "
        "are those of the public split, and so are the tuned options. With the seeds "
        "of one split only the method's own randomness varies; here the labels vary "
        "too."
    )
    page.figure(
        draw_accuracies(comparison, with_paper=False),
        "Test accuracy of each method, mean and standard deviation, by dataset",
    )
    write_tables(page, comparison)


def write_runtime(finished: list[Finished], page: Page) -> None:
    """A panel per dataset, then the tables."""
    comparison = compare_finished(finished, published)
    panels = []
    for dataset in comparison.datasets:
        cells = [comparison.cells[name, dataset] for name in comparison.methods]
        points = {
            cell.method: (cell.seconds, cell.summary)
            for cell in cells
            if cell.seconds is not None
        }
        panels.append((dataset, points))
    page.text(
        "Seconds are those of a whole fit: for `elu-gcn` label propagation, the first "
        "GCN and the MLP, the graph and the training; for `auto` every member that it "
        "tries. Loading the data is not counted."
    )
    page.figure(
        draw_costs(panels), "Seconds of a fit against test accuracy, by dataset"
    )
    write_tables(page, comparison)


TABLE1 = Experiment(
    "table1",
    "Table 1: node classification",
    "How accurate is each method on the paper's seven datasets, and on two of them "
    "without repeated pages (table 1 of the paper)?",
    plan_methods(TABLE1_DATASETS),
    write_accuracies,
)
SOCIAL = Experiment(
    "social",
    "Social networks",
    "How accurate is each method on the Facebook friendships of colleges (the paper's "
    "table of social networks)?",
    plan_methods(SOCIAL_DATASETS, ("caltech36", "hamilton46")),
    write_accuracies,
)
DRAWS = Experiment(
    "draws",
    "Other labels",
    "Is `auto` ahead of GRAND and GCN on the citation graphs when their 20 labels per "
    "class are drawn anew (the paper has the public split only)?",
    plan_draws,
    write_draws,
)
RUNTIME = Experiment(
    "runtime",
    "Time against accuracy",
    "What does the accuracy cost: seconds of a fit against test accuracy of GCN, GAT "
    "and ELU-GCN (figure 4 of the paper)?",
    # The runs of the tables, so none is done twice.
    plan_methods(
        (*TABLE1_DATASETS, *SOCIAL_DATASETS),
        methods=RUNTIME_METHODS,
        quick_methods=RUNTIME_METHODS,
    ),
    write_runtime,
)
