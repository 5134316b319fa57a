"""Finished runs as the tables of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from elugcn.evaluation.cells import REFERENCE, Comparison, summarize_rows
from elugcn.evaluation.deviations import FAR, deviations
from elugcn.evaluation.harness import Outcomes
from elugcn.evaluation.paper import published
from elugcn.evaluation.tables import (
    CSV_COLUMNS,
    accuracy_block,
    csv_row,
    escape_markdown,
    further_blocks,
    ours,
    papers,
    shown_name,
)
from elugcn.experiments.base import Finished
from elugcn.experiments.output import Page
from elugcn.report.dots import Dot, Panel, draw_dots


def compare_finished(
    finished: Sequence[Finished],
    papers: Mapping[str, str] | None = None,
    reference: str = REFERENCE,
) -> Comparison:
    """The cells of the rows that have runs.

    Args:
        finished: the runs, in the order of the plan.
        papers: per row, the method whose published number belongs to it; None: the
            row is the method.
        reference: the row that the others are compared with.
    """
    runs = [(f.planned.row, f.planned.job) for f in finished]
    outcomes = Outcomes(done={f.planned.job: f.record for f in finished})
    if papers is None:
        papers = {name: name for name, _ in runs}
    return summarize_rows(runs, outcomes, papers, reference)


def write_csv(page: Page, comparison: Comparison) -> None:
    """The table's CSV, named like the experiment; cells without runs are left out."""
    cells = [cell for cell in comparison.rows() if cell.summary.runs]
    page.csv(page.experiment.name, CSV_COLUMNS, map(csv_row, cells))


def write_tables(page: Page, comparison: Comparison) -> None:
    """Accuracies (shown in the overview too), differences, time and memory."""
    page.main(accuracy_block(comparison))
    for block in further_blocks(comparison):
        page.text(block)
    say_notes(page, comparison)


def write_deviations(page: Page, comparison: Comparison) -> None:
    """A line for each number that is far from the paper's."""
    far = deviations(comparison)
    if not far:
        return
    page.text("## Far from the paper")
    page.text(
        f"Means that differ from the paper's by more than {FAR:g} standard deviations "
        "(the larger of both), by what is known about why."
    )
    for known in dict.fromkeys(d.known for d in far):
        lines = [f"{known[0].upper()}{known[1:]}:", ""]
        for d in far:
            if d.known == known:
                name = shown_name(d.cell.method)
                lines.append(
                    f"- {name} on {escape_markdown(d.cell.dataset)}: {ours(d.cell)}, "
                    f"the paper {papers(d.cell).strip(' ()')} ({d.difference:+.2f})"
                )
        page.text("\n".join(lines))


def trained_to_the_end(finished: Sequence[Finished]) -> str | None:
    """Which cells have half of their runs or more end with their last epoch."""
    ended: dict[tuple[str, str], list[bool]] = {}
    for f in finished:
        limit = f.record.get("config", {}).get("epochs")
        if limit is not None:
            cell = ended.setdefault((f.planned.row, f.planned.job.dataset), [])
            cell.append(f.record.get("epochs", 0) >= limit)
    names = [
        f"{shown_name(row)} on {dataset} ({sum(runs)} of {len(runs)})"
        for (row, dataset), runs in ended.items()
        if 2 * sum(runs) >= len(runs)
    ]
    if not names:
        return None
    return (
        "half of the runs or more trained to their last epoch, so that a higher limit "
        f"might do better: {'; '.join(names)}"
    )


def say_notes(page: Page, comparison: Comparison) -> None:
    """What must be said about the numbers, at the end of the page."""
    for note in comparison.notes:
        page.note(note)


def draw_comparison(
    comparison: Comparison,
    *,
    columns: int = 3,
    breaks: Sequence[int] = (),
    with_paper: bool = True,
) -> Figure:
    """Dots, one panel a dataset, with the paper's ELU-GCN as a line where it has one.

    Args:
        comparison: the cells.
        columns: panels side by side.
        breaks: rows before which a gap is left.
        with_paper: whether the line is drawn.
    """
    names = {method: shown_name(method) for method in comparison.methods}
    panels = []
    for dataset in comparison.datasets:
        cells = [comparison.cells[name, dataset] for name in names]
        dots = [
            Dot(names[cell.method], cell.summary.mean, cell.summary.std)
            for cell in cells
            if cell.summary.mean is not None
        ]
        theirs = published("elu-gcn", dataset) if with_paper else None
        panels.append(Panel(dataset, dots, theirs.mean if theirs else None))
    return draw_dots(panels, list(names.values()), columns=columns, breaks=breaks)
