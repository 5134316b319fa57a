"""Curves with bands, and values on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from elugcn.report.style import (
    SEQUENTIAL,
    colour_of,
    is_ours,
    legend_for_all,
    marker_of,
    panels,
    styled,
)


@dataclass(frozen=True)
class Curve:
    """Points of a curve and half the height of the band around each."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    half: Sequence[float]


def draw_curve(axis: Axes, curve: Curve, place: int = 0) -> None:
    """One curve with its band."""
    colour, y, half = colour_of(curve.name, place), np.array(curve.y), curve.half
    axis.plot(
        curve.x,
        y,
        color=colour,
        marker=marker_of(place),
        linewidth=2.2 if is_ours(curve.name) else 1.5,
        label=curve.name,
        zorder=4 if is_ours(curve.name) else 3,
    )
    low, high = y - np.array(half), y + np.array(half)
    axis.fill_between(curve.x, low, high, color=colour, alpha=0.15, linewidth=0)


@styled()
def draw_curves(
    content: Sequence[tuple[str, Sequence[Curve]]],
    *,
    xlabel: str,
    ylabel: str = "test accuracy in percent",
    log: bool = False,
    columns: int = 2,
) -> Figure:
    """A panel with a title for each group of curves, one legend for all.

    Args:
        content: title and curves of each panel.
        xlabel: the horizontal axis.
        ylabel: the vertical axis.
        log: whether the horizontal axis is logarithmic, with a tick at each point.
        columns: panels beside each other at most.
    """
    figure, axes = panels(len(content), columns, 3.9, 3.0)
    names = list(dict.fromkeys(c.name for _, curves in content for c in curves))
    for axis, (title, curves) in zip(axes, content, strict=True):
        for curve in curves:
            draw_curve(axis, curve, names.index(curve.name))
        axis.set_title(title)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(ylabel)
        if log:
            axis.set_xscale("log")
            points = sorted({x for curve in curves for x in curve.x})
            axis.set_xticks(points, [f"{x:g}" for x in points])
            axis.xaxis.set_minor_locator(NullLocator())
    # As wide as the panels.
    legend_for_all(figure, names, min(len(names), 3 * min(len(content), columns)))
    return figure


def draw_grid(
    axis: Axes,
    values: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    rows: Sequence[float],
    columns: Sequence[float],
    ylabel: str,
    xlabel: str,
) -> None:
    """Numbers on a coloured grid, rows upwards; not-a-number is left blank."""
    axis.imshow(values, origin="lower", cmap=SEQUENTIAL, aspect="auto")
    known = values[~np.isnan(values)]
    middle = (known.min() + known.max()) / 2 if known.size else 0.0
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            ink = "white" if value <= middle else "black"
            axis.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink)
    axis.set_yticks(range(len(rows)), [f"{v:g}" for v in rows])
    axis.set_xticks(range(len(columns)), [f"{v:g}" for v in columns])
    axis.set_ylabel(ylabel)
    axis.set_xlabel(xlabel)
    axis.grid(visible=False)
