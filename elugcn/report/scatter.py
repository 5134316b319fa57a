"""Time against accuracy: a dot for each method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from elugcn.report.style import (
    colour_of,
    is_ours,
    legend_for_all,
    marker_of,
    panels,
    styled,
)


@dataclass(frozen=True)
class Point:
    """A method: seconds, accuracy and its spread."""

    name: str
    x: float
    y: float
    spread: float | None = None


@styled()
def draw_scatter(
    content: Sequence[tuple[str, Sequence[Point]]],
    *,
    xlabel: str = "seconds of a fit",
    ylabel: str = "test accuracy in percent",
    columns: int = 3,
) -> Figure:
    """A panel with a title for each group of points; the time is logarithmic."""
    figure, axes = panels(len(content), columns, 3.1, 2.6)
    names = list(dict.fromkeys(p.name for _, points in content for p in points))
    for axis, (title, points) in zip(axes, content, strict=True):
        for point in points:
            _draw(axis, point, names.index(point.name))
        axis.set_title(title)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.margins(x=0.15, y=0.2)
    # One legend for all: names beside the dots would lie upon each other.
    legend_for_all(figure, names, len(names))
    figure.supxlabel(xlabel, fontsize=9)
    figure.supylabel(ylabel, fontsize=9)
    return figure


def _draw(axis: Axes, point: Point, place: int) -> None:
    axis.errorbar(
        point.x,
        point.y,
        yerr=point.spread or 0.0,
        fmt=marker_of(place),
        color=colour_of(point.name, place),
        markersize=6.5 if is_ours(point.name) else 5.0,
        elinewidth=1.0,
        label=point.name,
    )
