"""Dots with error bars: rows beside each other, a panel for each dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from elugcn.report.style import GREY, colour_of, is_ours, panels, styled


@dataclass(frozen=True)
class Dot:
    """A mean with its spread; no spread: a single run."""

    name: str
    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class Panel:
    """The dots of a dataset, and a value to draw a line at."""

    title: str
    dots: Sequence[Dot]
    line: float | None = None


@styled()
def draw_dots(
    content: Sequence[Panel],
    rows: Sequence[str],
    *,
    xlabel: str = "test accuracy in percent",
    line: str = "the paper's ELU-GCN",
    columns: int = 3,
    breaks: Sequence[int] = (),
) -> Figure:
    """Panels with the same rows in the same order, each with its own scale.

    Args:
        content: the panels.
        rows: every row from top to bottom; a panel may lack some.
        xlabel: what the dots tell.
        line: what the thin line is.
        columns: panels beside each other at most.
        breaks: after how many rows a rule separates them from the next.
    """
    # Title, axis and legend need their room even above a single row.
    height = max(1.8, 0.75 + 0.21 * len(rows))
    figure, axes = panels(len(content), columns, 3.0, height, sharey=True)
    place = {name: len(rows) - 1 - i for i, name in enumerate(rows)}
    marked = None
    for axis, panel in zip(axes, content, strict=True):
        if panel.line is not None:
            marked = axis.axvline(panel.line, color=GREY, linewidth=1.0, zorder=1)
        for count in breaks:
            axis.axhline(len(rows) - count - 0.5, color="#bbbbbb", linewidth=0.8)
        for dot in panel.dots:
            axis.errorbar(
                dot.mean,
                place[dot.name],
                xerr=dot.spread or 0.0,
                fmt="o",
                color=colour_of(dot.name),
                markersize=6.0 if is_ours(dot.name) else 4.5,
                elinewidth=1.2,
                zorder=3,
            )
        axis.set_title(panel.title)
        axis.set_ylim(-0.6, len(rows) - 0.4)
        axis.set_yticks([place[name] for name in rows], rows)
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.08)
    figure.supxlabel(xlabel, fontsize=9)
    if marked is not None:
        figure.legend([marked], [line], loc="outside upper right")
    return figure
