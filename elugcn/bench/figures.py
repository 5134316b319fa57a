"""Figures whose numbers span orders of magnitude: logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from elugcn.report.curves import Curve, draw_curves
from elugcn.report.dots import Panel, draw_dots
from elugcn.report.style import styled


@dataclass(frozen=True)
class Line:
    """A name, and (n, value) for every size."""

    name: str
    points: Sequence[tuple[int, float]]


@styled()
def draw_growth(panels: Sequence[tuple[str, Sequence[Line]]]) -> Figure:
    """A panel for each quantity, both axes logarithmic.

    Args:
        panels: The unit of each panel and its lines.
    """
    content = []
    for label, lines in panels:
        curves = [
            Curve(
                line.name,
                [float(n) for n, _ in line.points],
                [value for _, value in line.points],
                [0.0] * len(line.points),
            )
            for line in lines
            if line.points
        ]
        content.append((label, curves))
    figure = draw_curves(content, xlabel="nodes", ylabel="", log=True)
    for axis, (label, lines) in zip(figure.axes, panels, strict=True):
        axis.set_title("")
        sizes = sorted({n for line in lines for n, _ in line.points})
        axis.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axis.set_ylabel(f"{label} (logarithmic)")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    return figure


@styled()
def draw_times(panels: Sequence[Panel], rows: Sequence[str], xlabel: str) -> Figure:
    """Dots on one logarithmic axis that all panels share.

    Args:
        panels: The dots of each dataset.
        rows: Every row from top to bottom.
        xlabel: What the dots tell.
    """
    figure = draw_dots(panels, rows, xlabel=f"{xlabel} (logarithmic)")
    values = [dot.mean for panel in panels for dot in panel.dots]
    for axis in figure.axes:
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 2, 2 * max(values))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
    return figure
