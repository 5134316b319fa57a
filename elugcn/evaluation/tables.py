"""A comparison as text: for a terminal, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from elugcn.errors import InputError
from elugcn.evaluation.aggregate import Cell, Comparison, Published
from elugcn.evaluation.statistics import Difference, without_minus_zero

CSV_COLUMNS = ("method", "dataset", "mean", "std", "runs", "paper_mean", "paper_std",
               "seconds", "peak_rss_mb")  # fmt: skip
# Methods that differ from the published ones.
_NAMES = {"bagcn": "BAGCN (reconstructed)", "cogsl": "CoGSL (sparse variant)"}
_NOTHING = "–"
# A table of the comparison: its caption and the text of each cell.
Block = tuple[str, Callable[[Cell], str]]


def shown_name(method: str) -> str:
    """The name of a method in tables and figures."""
    return _NAMES.get(method, method)


def render(comparison: Comparison, form: str) -> str:
    """The comparison as text, in one of ``FORMATS``."""
    if form not in FORMATS:
        raise InputError(f"unknown format {form!r}; known: {', '.join(FORMATS)}")
    return FORMATS[form](comparison)


def accuracies(comparison: Comparison) -> Block:
    """The table of accuracies."""
    caption = "Test accuracy in percent, mean ± standard deviation over runs"
    published = any(cell.published is not None for cell in comparison.rows())
    return caption + ("; in parentheses the paper's." if published else "."), ours


def further_blocks(comparison: Comparison) -> list[Block]:
    """Differences to the reference, if there are any, then time and memory."""
    blocks: list[Block] = [("Mean seconds of a fit and peak memory.", cost)]
    if any(cell.difference is not None for cell in comparison.rows()):
        caption = (
            f"Difference to {comparison.reference} on the same splits and seeds, in "
            "points, with 95 % confidence interval and paired t-test."
        )
        blocks.insert(0, (caption, difference_text))
    return blocks


def as_csv(comparison: Comparison) -> str:
    """One line per method and dataset; percent, seconds and MB; empty: none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(csv_row(cell) for cell in comparison.rows())
    return out.getvalue()


def csv_row(cell: Cell) -> list[str]:
    """The values of ``CSV_COLUMNS``."""
    paper = cell.published or Published(None)
    out_of_memory = cell.published is not None and paper.mean is None
    return [
        cell.method,
        cell.dataset,
        _number(cell.summary.mean, 4),
        _number(cell.summary.std, 4),
        str(cell.summary.runs),
        "OOM" if out_of_memory else _number(paper.mean, 2),
        _number(paper.std, 2),
        _number(cell.seconds, 3),
        _number(cell.peak_rss_mb, 1),
    ]


def as_markdown(comparison: Comparison) -> str:
    """Accuracies, then differences to the reference, time and memory."""
    tables = [accuracies(comparison), *further_blocks(comparison)]
    parts = [markdown_block(comparison, block) for block in tables]
    if comparison.notes:
        parts.append("\n".join(f"- {escape_markdown(n)}" for n in comparison.notes))
    return "\n\n".join(parts) + "\n"


def markdown_block(comparison: Comparison, block: Block) -> str:
    """One table in Markdown under its caption; the best accuracies are bold."""
    caption, show = block

    def text(cell: Cell) -> str:
        if show is not ours:
            return show(cell)
        return (f"**{ours(cell)}**" if cell.best else ours(cell)) + published(cell)

    lines = [["method", *map(escape_markdown, comparison.datasets)]]
    lines.append(["---", *("---:" for _ in comparison.datasets)])
    lines += _grid(comparison, text, escape_markdown)
    return f"{caption}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_latex(comparison: Comparison) -> str:
    """Booktabs tables of accuracies and differences; notes are comments above them."""

    def accuracy(cell: Cell) -> str:
        text = escape_latex(ours(cell))
        text = rf"\textbf{{{text}}}" if cell.best else text
        return text + escape_latex(published(cell))

    def difference(cell: Cell) -> str:
        # Minus signs and comparisons as mathematics.
        text = escape_latex(difference_text(cell))
        return re.sub(r"([+-]\d[\d.]*|p [<=] [\d.]+)", r"$\1$", text)

    lines = [f"% {' '.join(note.split())}" for note in comparison.notes]
    for caption, show in [accuracies(comparison), *further_blocks(comparison)[:-1]]:
        latex = accuracy if show is ours else difference
        head = ["Method", *map(escape_latex, comparison.datasets)]
        body = [head, *_grid(comparison, latex, escape_latex)]
        rows = [" & ".join(row) + r" \\" for row in body]
        columns = "c" * len(comparison.datasets)
        lines += [f"% {caption}", rf"\begin{{tabular}}{{l{columns}}}", r"\toprule"]
        lines += [rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def as_terminal(comparison: Comparison) -> str:
    """What a terminal shows, without colours."""
    out = io.StringIO()
    Console(file=out, width=1000, highlight=False).print(terminal(comparison))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def terminal(comparison: Comparison) -> RenderableType:
    """The tables, to be printed on a Rich console."""

    def accuracy(cell: Cell) -> Text:
        style = "bold" if cell.best else ("red" if cell.summary.mean is None else "")
        return Text.assemble((ours(cell), style), (published(cell), "dim"))

    parts: list[RenderableType] = []
    for caption, show in [accuracies(comparison), *further_blocks(comparison)]:
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("method", no_wrap=True)
        for dataset in comparison.datasets:
            table.add_column(dataset, justify="right")
        for method in comparison.methods:
            cells = [comparison.cells[method, d] for d in comparison.datasets]
            texts = [accuracy(c) if show is ours else Text(show(c)) for c in cells]
            table.add_row(Text(shown_name(method)), *texts)
        parts += [Text(caption, style="dim"), table]
    return Group(*parts, *(Text(f"note: {note}") for note in comparison.notes))


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "terminal": as_terminal,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def ours(cell: Cell) -> str:
    """``81.50 ± 0.40``, with the number of runs where some failed or are missing."""
    if cell.summary.mean is None:
        return "failed" if cell.failed else _NOTHING
    text = plus_minus(cell.summary.mean, cell.summary.std)
    runs = cell.summary.runs
    total = max(runs + cell.failed, cell.most)
    return f"{text} [{runs} of {total}]" if runs < total else text


def published(cell: Cell) -> str:
    """The published number in parentheses, or nothing."""
    if cell.published is None:
        return ""
    if cell.published.mean is None:
        return " (OOM)"
    return f" ({plus_minus(cell.published.mean, cell.published.std)})"


def plus_minus(mean: float, std: float | None) -> str:
    """Two decimals; a single run has no spread."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


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


def cost(cell: Cell) -> str:
    """``1.2 s, 350 MB``."""
    if cell.seconds is None or cell.peak_rss_mb is None:
        return _NOTHING
    return f"{cell.seconds:.1f} s, {cell.peak_rss_mb:.0f} MB"


def escape_markdown(text: str) -> str:
    """Escape the characters that mean something to Markdown."""
    return re.sub(r"([|*_`<>\[\]\\])", r"\\\1", text)


def escape_latex(text: str) -> str:
    """Escape the characters that mean something to LaTeX."""
    special = {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        _NOTHING: "--",
    }
    return re.sub(
        rf"[\\&%$#_{{}}~^±{_NOTHING}]", lambda m: special.get(m[0], f"\\{m[0]}"), text
    )


def _grid(
    comparison: Comparison, show: Callable[[Cell], str], escape: Callable[[str], str]
) -> list[list[str]]:
    return [
        [
            escape(shown_name(method)),
            *(show(comparison.cells[method, d]) for d in comparison.datasets),
        ]
        for method in comparison.methods
    ]


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
