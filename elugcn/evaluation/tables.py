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
from elugcn.evaluation.cells import Cell, Comparison
from elugcn.evaluation.paper import Published
from elugcn.evaluation.statistics import Difference, without_minus_zero

CSV_COLUMNS = (
    "method",
    "dataset",
    "mean",
    "std",
    "runs",
    "paper_mean",
    "paper_std",
    "seconds",
    "peak_rss_mb",
)
# Rows that people must not take for the published method.
_NAMES = {"bagcn": "BAGCN (reconstructed)", "cogsl": "CoGSL (sparse variant)"}
_NOTHING = "–"
_COST_CAPTION = "Mean seconds of a fit and peak memory."
_CAPTION = "Test accuracy in percent, mean ± standard deviation over runs"


def shown_name(method: str) -> str:
    """What a table or figure calls a method."""
    return _NAMES.get(method, method)


def render(comparison: Comparison, form: str) -> str:
    """The comparison as text in one of ``FORMATS``."""
    if form not in FORMATS:
        raise InputError(f"unknown format {form!r}; there are {', '.join(FORMATS)}")
    return FORMATS[form](comparison)


def as_csv(comparison: Comparison) -> str:
    """One line per method and dataset; percent, seconds and MB; empty: none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows(csv_row(cell) for cell in comparison.rows())
    return out.getvalue()


def csv_row(cell: Cell) -> list[str]:
    """The values of ``CSV_COLUMNS``."""
    paper = cell.paper or Published(None, None)
    # A published cell without a number is one that ran out of memory.
    oom = cell.paper is not None and paper.mean is None
    return [
        cell.method,
        cell.dataset,
        _number(cell.summary.mean, 4),
        _number(cell.summary.std, 4),
        str(cell.summary.runs),
        "OOM" if oom else _number(paper.mean, 2),
        _number(paper.std, 2),
        _number(cell.seconds, 3),
        _number(cell.peak_rss_mb, 1),
    ]


def as_markdown(comparison: Comparison) -> str:
    """Accuracies, then differences to the reference, time and memory."""
    blocks = [accuracy_block(comparison), *further_blocks(comparison)]
    if comparison.notes:
        blocks.append("\n".join(f"- {escape_markdown(n)}" for n in comparison.notes))
    return "\n\n".join(blocks) + "\n"


def accuracy_block(comparison: Comparison) -> str:
    """The accuracies in Markdown, the paper's beside them."""
    return f"{_caption(comparison)}\n\n{_markdown(comparison, _markdown_cell)}"


def _caption(comparison: Comparison) -> str:
    published = any(cell.paper is not None for cell in comparison.rows())
    return f"{_CAPTION}; in parentheses the paper's." if published else f"{_CAPTION}."


def further_blocks(comparison: Comparison) -> list[str]:
    """Differences to the reference if there are any, then time and memory."""
    blocks = []
    if _has_differences(comparison):
        table = _markdown(comparison, difference_text)
        blocks.append(f"{_difference_caption(comparison)}\n\n{table}")
    return [*blocks, f"{_COST_CAPTION}\n\n{_markdown(comparison, cost)}"]


def as_latex(comparison: Comparison) -> str:
    """Booktabs tables of accuracies and differences; notes are comments above them."""
    lines = [f"% {' '.join(note.split())}" for note in comparison.notes]
    lines += [f"% {_caption(comparison)}", *_tabular(comparison, _latex_cell)]
    if _has_differences(comparison):
        lines += ["", f"% {_difference_caption(comparison)}"]
        lines += _tabular(comparison, _latex_difference)
    return "\n".join(lines) + "\n"


def _tabular(comparison: Comparison, show: Callable[[Cell], str]) -> list[str]:
    lines = [rf"\begin{{tabular}}{{l{'c' * len(comparison.datasets)}}}", r"\toprule"]
    header = ["Method", *comparison.datasets]
    lines.append(" & ".join(map(escape_latex, header)) + r" \\")
    lines.append(r"\midrule")
    for method in comparison.methods:
        cells = [show(comparison.cells[method, d]) for d in comparison.datasets]
        name = escape_latex(shown_name(method))
        lines.append(" & ".join([name, *cells]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def as_terminal(comparison: Comparison) -> str:
    """What a terminal shows, as plain text."""
    out = io.StringIO()
    Console(file=out, width=1000, highlight=False).print(terminal(comparison))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def terminal(comparison: Comparison) -> RenderableType:
    """The tables for people, to be printed on a Rich console."""
    parts: list[RenderableType] = [
        Text(_caption(comparison), style="dim"),
        _rich(comparison, _terminal_cell),
    ]
    if _has_differences(comparison):
        parts.append(Text(_difference_caption(comparison), style="dim"))
        parts.append(_rich(comparison, lambda cell: Text(difference_text(cell))))
    parts.append(Text(_COST_CAPTION, style="dim"))
    parts.append(_rich(comparison, lambda cell: Text(cost(cell))))
    parts += [Text(f"note: {note}") for note in comparison.notes]
    return Group(*parts)


FORMATS: dict[str, Callable[[Comparison], str]] = {
    "terminal": as_terminal,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}


def ours(cell: Cell) -> str:
    """``81.50 ± 0.40``, and of how many runs where some failed or are missing."""
    if cell.summary.mean is None:
        return "failed" if cell.failed else _NOTHING
    text = plus_minus(cell.summary.mean, cell.summary.std)
    runs = cell.summary.runs
    total = max(runs + cell.failed, cell.most)
    return f"{text} [{runs} of {total}]" if runs < total else text


def papers(cell: Cell) -> str:
    """The paper's number in parentheses, or nothing."""
    if cell.paper is None:
        return ""
    if cell.paper.mean is None:
        return " (OOM)"
    return f" ({plus_minus(cell.paper.mean, cell.paper.std)})"


def plus_minus(mean: float, std: float | None) -> str:
    """Two decimals; a single run has no spread."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def difference_text(cell: Cell) -> str:
    """``+1.20 [0.80, 1.60], p = 0.001``; and of how many pairs, if fewer than runs."""
    d = cell.difference
    if d is None:
        return _NOTHING
    text = interval_text(d)
    if d.t_pvalue is not None:
        small = d.t_pvalue < 0.001
        text += ", p < 0.001" if small else f", p = {d.t_pvalue:.3f}"
    # Else it would seem to contradict the means of all runs.
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


def escape_latex(text: str) -> str:
    """The characters that LaTeX would take for commands."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    special["^"] = r"\textasciicircum{}"
    return re.sub(
        r"[\\&%$#_{}~^]", lambda m: special.get(m[0], f"\\{m[0]}"), text
    ).replace("±", r"$\pm$")


def _difference_caption(comparison: Comparison) -> str:
    return (
        f"Difference to {comparison.reference} on the same splits and seeds, in "
        "points, with 95 % confidence interval and paired t-test."
    )


def _has_differences(comparison: Comparison) -> bool:
    return any(cell.difference is not None for cell in comparison.rows())


def _markdown(comparison: Comparison, show: Callable[[Cell], str]) -> str:
    lines = [["method", *map(escape_markdown, comparison.datasets)]]
    lines.append(["---", *("---:" for _ in comparison.datasets)])
    for method in comparison.methods:
        cells = (comparison.cells[method, d] for d in comparison.datasets)
        name = shown_name(method)
        lines.append([escape_markdown(name), *map(show, cells)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _markdown_cell(cell: Cell) -> str:
    text = ours(cell)
    return (f"**{text}**" if cell.best else text) + papers(cell)


def escape_markdown(text: str) -> str:
    """The characters that Markdown would take for markup."""
    return re.sub(r"([|*_`<>\[\]\\])", r"\\\1", text)


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(ours(cell).replace(_NOTHING, "--"))
    text = rf"\textbf{{{text}}}" if cell.best else text
    return text + escape_latex(papers(cell))


def _latex_difference(cell: Cell) -> str:
    text = escape_latex(difference_text(cell).replace(_NOTHING, "--"))
    # Minus signs and comparisons as mathematics.
    return re.sub(r"([+-]\d[\d.]*|p [<=] [\d.]+)", r"$\1$", text)


def _terminal_cell(cell: Cell) -> Text:
    style = "bold" if cell.best else ("red" if cell.summary.mean is None else "")
    return Text.assemble((ours(cell), style), (papers(cell), "dim"))


def _rich(comparison: Comparison, show: Callable[[Cell], Text]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for dataset in comparison.datasets:
        table.add_column(dataset, justify="right")
    for method in comparison.methods:
        cells = (comparison.cells[method, d] for d in comparison.datasets)
        table.add_row(Text(shown_name(method)), *map(show, cells))
    return table


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
