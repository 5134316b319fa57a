"""A comparison as text: for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from elugcn.errors import InputError
from elugcn.evaluation.aggregate import Cell, Comparison, Published
from elugcn.evaluation.statistics import Difference, without_minus_zero
from elugcn.methods.metrics import TITLES

CSV_COLUMNS = ("method", "dataset", "mean", "std", "runs", "paper_mean", "paper_std",
               "seconds", "peak_rss_mb")  # fmt: skip
# Methods that differ from the published ones.
_NAMES = {"bagcn": "BAGCN (reconstructed)", "cogsl": "CoGSL (sparse variant)"}
_NOTHING = "–"


class Block(NamedTuple):
    """One table of a comparison."""

    caption: str
    show: Callable[[Cell], str]
    accuracies: bool = False  # the best are bold, the paper's stand behind them


def shown_name(method: str) -> str:
    """The name of a method in tables and figures."""
    return _NAMES.get(method, method)


def render(comparison: Comparison, form: str) -> str:
    """The comparison as text, in one of ``FORMATS``."""
    if form not in FORMATS:
        raise InputError(f"unknown format {form!r}; known: {', '.join(FORMATS)}")
    return FORMATS[form](comparison)


def blocks(comparison: Comparison) -> list[Block]:
    """Accuracies, differences to the reference if there are any, time and memory."""
    caption = f"Test {TITLES[comparison.metric]} in percent, mean ± standard deviation"
    caption += " over runs"
    published = any(cell.published is not None for cell in comparison.rows())
    caption += "; in parentheses the paper's." if published else "."
    found = [Block(caption, ours, accuracies=True)]
    if any(cell.difference is not None for cell in comparison.rows()):
        caption = (
            f"Difference to {comparison.reference} on the same splits and seeds, in "
            "points, with 95 % confidence interval and paired t-test."
        )
        found.append(Block(caption, difference_text))
    return [*found, Block("Mean seconds of a fit and peak memory.", cost_text)]


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lines of CSV, each as long as the header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row of {len(row)} under a header of {len(header)}")
        writer.writerow(row)
    return out.getvalue()


def csv_row(cell: Cell) -> list[str]:
    """The values of ``CSV_COLUMNS`` in percent, seconds and MB; empty: none."""

    def number(value: float | None, digits: int) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    mean, std, runs = cell.summary
    paper = cell.published or Published(None)
    out_of_memory = cell.published is not None and paper.mean is None
    return [
        cell.method,
        cell.dataset,
        number(mean, 4),
        number(std, 4),
        str(runs),
        "OOM" if out_of_memory else number(paper.mean, 2),
        number(paper.std, 2),
        number(cell.seconds, 3),
        number(cell.peak_rss_mb, 1),
    ]


def as_markdown(comparison: Comparison) -> str:
    """Accuracies, then differences to the reference, time and memory."""
    parts = [markdown_block(comparison, block) for block in blocks(comparison)]
    if comparison.notes:
        parts.append("\n".join(f"- {escape_markdown(n)}" for n in comparison.notes))
    return "\n\n".join(parts) + "\n"


def markdown_block(comparison: Comparison, block: Block) -> str:
    """One table in Markdown under its caption; the best accuracies are bold."""
    head = ["method", *map(escape_markdown, comparison.datasets)]
    rows = _rows(comparison, block, escape_markdown, str, "**{}**")
    return f"{block.caption}\n\n{markdown_table(head, rows)}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of escaped texts; its first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))


def as_latex(comparison: Comparison) -> str:
    """Booktabs tables of accuracies and differences; notes are comments above them."""

    def number(text: str) -> str:
        # Minus signs and comparisons as mathematics.
        signed = r"([+-]\d[\d.]*|p [<=] [\d.]+)"
        return re.sub(signed, r"$\1$", escape_latex(text))

    lines = [f"% {' '.join(note.split())}" for note in comparison.notes]
    begin = rf"\begin{{tabular}}{{l{'c' * len(comparison.datasets)}}}"
    head = ["Method", *map(escape_latex, comparison.datasets)]
    for block in blocks(comparison)[:-1]:
        rows = _rows(comparison, block, escape_latex, number, r"\textbf{{{}}}")
        first, *others = [" & ".join(row) + r" \\" for row in (head, *rows)]
        lines += [f"% {block.caption}", begin, r"\toprule", first, r"\midrule"]
        lines += [*others, r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def as_terminal(comparison: Comparison) -> str:
    """What a terminal shows, without colours."""
    out = io.StringIO()
    Console(file=out, width=1000, highlight=False).print(terminal(comparison))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def terminal(comparison: Comparison) -> RenderableType:
    """The tables, to be printed on a Rich console."""
    parts: list[RenderableType] = []
    for block in blocks(comparison):
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("method", no_wrap=True)
        for dataset in comparison.datasets:
            table.add_column(dataset, justify="right")
        for row in _rows(
            comparison, block, escape, escape, "[bold]{}[/]", "[dim]{}[/]"
        ):
            table.add_row(*map(Text.from_markup, row))
        parts += [Text(block.caption, style="dim"), table]
    return Group(*parts, *(Text(f"note: {note}") for note in comparison.notes))


def _rows(
    comparison: Comparison,
    block: Block,
    name: Callable[[str], str],
    number: Callable[[str], str],
    bold: str,
    published: str = "{}",
) -> list[list[str]]:
    """The lines of a table in the marks of a format."""

    def text(cell: Cell) -> str:
        shown = number(block.show(cell))
        if block.accuracies and cell.best:
            shown = bold.format(shown)
        if block.accuracies and cell.published is not None:
            shown += published.format(number(published_text(cell)))
        return shown

    cells, datasets = comparison.cells, comparison.datasets
    return [
        [name(shown_name(method)), *(text(cells[method, d]) for d in datasets)]
        for method in comparison.methods
    ]


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "terminal": as_terminal,
    "markdown": as_markdown,
    "csv": lambda comparison: csv_text(CSV_COLUMNS, map(csv_row, comparison.rows())),
    "latex": as_latex,
}


def ours(cell: Cell) -> str:
    """``81.50 ± 0.40``, with the number of runs where some failed or are missing."""
    mean, std, runs = cell.summary
    if mean is None:
        return "failed" if cell.failed else _NOTHING
    total = max(runs + cell.failed, cell.most)
    text = plus_minus(mean, std)
    return f"{text} [{runs} of {total}]" if runs < total else text


def published_text(cell: Cell) -> str:
    """The published number in parentheses, or nothing."""
    if cell.published is None:
        return ""
    mean, std = cell.published.mean, cell.published.std
    return " (OOM)" if mean is None else f" ({plus_minus(mean, std)})"


def plus_minus(mean: float | None, std: float | None, digits: int = 2) -> str:
    """``81.50 ± 0.40``; a dash for nothing, no spread for a single run."""
    if mean is None:
        return _NOTHING
    text = f"{without_minus_zero(mean, digits):.{digits}f}"
    return text if std is None else f"{text} ± {std:.{digits}f}"


def difference_text(cell: Cell) -> str:
    """``+1.20 [0.80, 1.60], p = 0.001``, with the number of pairs if runs miss."""
    d = cell.difference
    if d is None:
        return _NOTHING
    text = interval_text(d)
    if d.t_pvalue is not None:
        small = d.t_pvalue < 0.001
        text += ", p < 0.001" if small else f", p = {d.t_pvalue:.3f}"
    # Otherwise it would seem to contradict the means, which are of all runs.
    return text if d.pairs >= cell.most else f"{text}, {d.pairs} pairs"


def interval_text(d: Difference) -> str:
    """``+1.20 [0.80, 1.60]``."""
    mean, low, high = (without_minus_zero(v, 2) for v in (d.mean, d.low, d.high))
    return f"{mean:+.2f} [{low:.2f}, {high:.2f}]"


def cost_text(cell: Cell) -> str:
    """``1.2 s, 350 MB``."""
    if cell.seconds is None or cell.peak_rss_mb is None:
        return _NOTHING
    return f"{cell.seconds:.1f} s, {cell.peak_rss_mb:.0f} MB"


def escape_markdown(text: str) -> str:
    """Escape the characters that mean something to Markdown."""
    return re.sub(r"([|*_`<>\[\]\\])", r"\\\1", text)


def escape_latex(text: str) -> str:
    """Escape the characters that mean something to LaTeX."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
               "^": r"\textasciicircum{}", "±": r"$\pm$", _NOTHING: "--"}  # fmt: skip
    escaped = {character: f"\\{character}" for character in "&%$#_{}"}
    return "".join((special | escaped).get(one, one) for one in text)
