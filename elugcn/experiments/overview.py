"""The overview of a directory of results, made from the pages that are in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from elugcn.atomic import whole_path
from elugcn.experiments.base import Experiment
from elugcn.experiments.output import MAIN_END, MAIN_START

NAME = "README.md"
# Of the others the figure says it better.
_TABLES = ("table1", "social")


def write_overview(
    folder: Path, experiments: Iterable[Experiment], quick: bool = False
) -> Path:
    """Write ``README.md``: title, question, figure and link of every page.

    Args:
        folder: where the pages are.
        experiments: those that may have a page, in their order.
        quick: whether the pages are small versions.
    """
    what = "Small versions of the experiments" if quick else "Results"
    words = "Each page has the command that made it, its versions and its date."
    if quick:
        words += " These are quick runs, to see that everything works: no results."
    parts = [f"# {what}", words]
    for experiment in experiments:
        page = folder / f"{experiment.name}.md"
        if page.is_file():
            parts += _section(experiment, page)
    path = folder / NAME
    with whole_path(path) as work:
        work.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _section(experiment: Experiment, page: Path) -> list[str]:
    parts = [
        f"## [{experiment.title}]({page.name})",
        experiment.question,
    ]
    if page.with_suffix(".png").is_file():
        parts.append(f"![{experiment.title}]({experiment.name}.png)")
    table = main_table(page.read_text(encoding="utf-8"))
    if experiment.name in _TABLES and table:
        parts.append(table)
    return parts


def main_table(markdown: str) -> str:
    """The part of a page that is marked as its main table; empty if there is none."""
    _, found, rest = markdown.partition(MAIN_START)
    table, closed, _ = rest.partition(MAIN_END)
    return table.strip() if found and closed else ""
