"""The figures of the pages, drawn with matplotlib and written as SVG.

Figures are made without ``pyplot``: nothing is shared between them, and no screen is
needed.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    NullFormatter,
    NullLocator,
    StrMethodFormatter,
)
from numpy.typing import NDArray

GREY = "#7a7a7a"
# Okabe and Ito's colours: told apart by colour-blind readers too.
COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#6b5b95",
    "#a6761d",
)
# What is ours stands out; the GCN is what everything is measured against.
_FIXED = {"auto": "#d55e00", "elu-gcn": "#e69f00", "gcn": "#0072b2"}
_OTHERS = {
    "gat": "#009e73",
    "appnp": "#cc79a7",
    "lpa": "#6b5b95",
    "cs": "#56b4e9",
    "mlp": "#a6761d",
    "sgc": "#4d4d4d",
    "grand": "#117733",
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
SEQUENTIAL = "viridis"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 150,
    "svg.hashsalt": "elugcn",
    "svg.fonttype": "path",
}


@contextmanager
def styled() -> Iterator[None]:
    """The style; for a block, or as ``@styled()`` for a function that draws."""
    with mpl.rc_context(STYLE):
        yield


def panels(
    count: int,
    columns: int = 4,
    width: float = 3.0,
    height: float = 2.6,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels, at most ``columns`` beside each other.

    Args:
        count: how many panels.
        columns: the most in a row.
        width: of a panel, in inches.
        height: of a panel, in inches.
        sharey: whether the panels have the same vertical axis.
    """
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    axes = [axis for line in grid for axis in line]
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


def colour_of(name: str, place: int | None = None) -> str:
    """The colour of a method everywhere; of anything else by its place, or grey."""
    other = GREY if place is None else COLOURS[place % len(COLOURS)]
    return (_FIXED | _OTHERS).get(name, other)


def marker_of(place: int) -> str:
    """A shape for those who print without colour."""
    return MARKERS[place % len(MARKERS)]


def is_ours(name: str) -> bool:
    """Whether a row is to stand out."""
    return name == "auto"


@styled()
def svg(figure: Figure) -> str:
    """The figure as SVG, without date or version: equal figures are equal files."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def legend_for_all(figure: Figure, names: Sequence[str], columns: int) -> None:
    """One legend above all panels, of what any of them shows under these names."""
    seen: dict[str, Artist] = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        seen.update(zip(labels, handles, strict=True))
    figure.legend(
        handles=[seen[name] for name in names],
        labels=list(names),
        loc="outside upper center",
        ncols=columns,
    )


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


DIVERGING = "RdBu_r"
_QUANTILE = 0.98
_WIDTH = 0.8  # of a group of bars
CONTROL = "NELU, a second GCN"
_SETS = {
    "ELU": COLOURS[0],
    "NELU": COLOURS[5],
    "all test": COLOURS[4],
    "unreachable": GREY,
    CONTROL: GREY,
}
Numbers = Sequence[float | None]


@dataclass(frozen=True)
class Series:
    """Bars of one colour: heights and error bars, None where there is none."""

    name: str
    values: Numbers
    errors: Numbers

    @classmethod
    def of(
        cls, name: str, pairs: Sequence[tuple[float | None, float | None]]
    ) -> Series:
        """From pairs of mean and spread."""
        return cls(name, [mean for mean, _ in pairs], [std for _, std in pairs])


@dataclass(frozen=True)
class BlockMap:
    """A graph as the mean entries of its blocks, nodes ordered by class."""

    title: str
    means: Sequence[Sequence[float]]
    block_class: Sequence[int]
    block_size: Sequence[int]


@styled()
def utilization_figure(
    datasets: Sequence[str], shares: Sequence[Series], accuracies: Sequence[Series]
) -> Figure:
    """Figure 2: stacked shares above, the GCN's accuracy on each set below."""
    width = max(6.0, 1.05 * len(datasets) + 2.0)
    figure, (upper, lower) = panels(2, columns=1, width=width, height=2.4)
    bottom, place_of = np.zeros(len(datasets)), np.arange(len(datasets))
    for place, one in enumerate(shares):
        height = _filled(one.values, 0.0)
        colour = _colour(one.name, place)
        upper.bar(place_of, height, 0.6, bottom, color=colour, label=one.name)
        bottom += height
    upper.set_xticks(place_of, datasets)
    upper.grid(axis="x", visible=False)
    upper.set_ylabel("share of nodes, %")
    upper.set_title("Nodes outside the training set")
    _bars(lower, datasets, accuracies)
    lower.set_ylabel("accuracy of the GCN, %")
    lower.set_ylim(0, 100)
    lower.set_title("The GCN on the test nodes of each set")
    for axis in (upper, lower):
        axis.set_xlim(-0.5, len(datasets) - 0.5)
    _outside_legend(figure, upper)
    return figure


@styled()
def bar_figure(datasets: Sequence[str], series: Sequence[Series], label: str) -> Figure:
    """Grouped bars with error bars around a line at zero."""
    width = max(6.0, 1.05 * len(datasets) + 2.0)
    figure, (axis,) = panels(1, columns=1, width=width, height=3.0)
    _bars(axis, datasets, series)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set_ylabel(label)
    _outside_legend(figure, axis)
    return figure


@styled()
def block_figure(maps: Sequence[BlockMap], columns: int = 4) -> Figure:
    """Graphs as block heat maps, classes parted by lines, one colour scale each.

    White is 0, red positive, blue negative; the strongest colour is the 98 % quantile
    of the absolute block means of a panel, so that a few blocks do not bleach the rest.
    """
    figure, axes = panels(len(maps), columns=columns, width=2.7, height=2.85)
    for axis, one in zip(axes, maps, strict=True):
        _block_map(axis, one)
    scale = ScalarMappable(Normalize(-1, 1), DIVERGING)
    bar = figure.colorbar(scale, ax=axes, shrink=0.6, pad=0.015, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["−q", "0", "q"])
    bar.set_label("mean entry of a block (q: 98 % quantile)")
    return figure


@styled()
def pair_figure(
    names: Sequence[str],
    pairs: Sequence[tuple[str, Sequence[Series]]],
    columns: int = 3,
) -> Figure:
    """Dumbbells: one panel a quantity, one line a name, one point a series."""
    height = 0.33 * len(names) + 1.2
    figure, axes = panels(
        len(pairs), columns=columns, width=3.3, height=height, sharey=True
    )
    place = np.arange(len(names))[::-1]
    for axis, (title, series) in zip(axes, pairs, strict=True):
        table = np.array([_filled(one.values, np.nan) for one in series])
        for at, line in zip(place, table.T, strict=True):
            seen = line[np.isfinite(line)]
            if seen.size > 1:
                ends = (seen.min(), seen.max())
                axis.plot(ends, (at, at), color="#c8c8c8", linewidth=2.5, zorder=1)
        for i, one in enumerate(series):
            axis.errorbar(
                _filled(one.values, np.nan),
                place,
                xerr=_filled(one.errors, 0.0),
                fmt="os^"[i % 3],
                color=(COLOURS[0], COLOURS[5], GREY)[i % 3],
                markersize=6,
                elinewidth=1.0,
                label=one.name,
            )
        axis.set_title(title)
        axis.set_xlim(left=0.0)
        axis.grid(axis="y", visible=False)
        axis.set_yticks(place, names)
        axis.set_ylim(-0.6, len(names) - 0.4)
    most = max(range(len(pairs)), key=lambda i: len(pairs[i][1]))
    _outside_legend(figure, axes[most])
    return figure


def _block_map(axis: Axes, one: BlockMap) -> None:
    means = np.asarray(one.means, dtype=np.float64)
    limit = float(np.quantile(np.abs(means), _QUANTILE)) or float(np.abs(means).max())
    edges = np.concatenate([[0], np.cumsum(one.block_size)])
    axis.pcolormesh(
        edges, edges, means / (limit or 1.0), cmap=DIVERGING, vmin=-1, vmax=1,
        rasterized=True,
    )  # fmt: skip
    of_class = np.asarray(one.block_class)
    for border in edges[1:-1][of_class[1:] != of_class[:-1]]:
        axis.axhline(border, color="black", linewidth=0.4)
        axis.axvline(border, color="black", linewidth=0.4)
    axis.invert_yaxis()
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(visible=False)
    axis.spines[["top", "right"]].set_visible(True)
    axis.set_title(one.title, fontsize=8.5)


def _bars(axis: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    step = _WIDTH / max(1, len(series))
    for i, one in enumerate(series):
        place = np.arange(len(names)) - _WIDTH / 2 + (i + 0.5) * step
        height = _filled(one.values, np.nan)
        axis.bar(place, height, 0.92 * step, color=_colour(one.name, i), label=one.name)
        axis.errorbar(
            place, height, _filled(one.errors, 0.0), fmt="none", ecolor="black",
            elinewidth=0.9, capsize=2.0,
        )  # fmt: skip
    axis.set_xticks(np.arange(len(names)), names)
    axis.grid(axis="x", visible=False)


def _outside_legend(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))


def _colour(name: str, place: int) -> str:
    return _SETS.get(name, COLOURS[(place + 2) % len(COLOURS)])


def _filled(numbers: Numbers, fill: float) -> NDArray[np.float64]:
    return np.array([fill if v is None else v for v in numbers], dtype=np.float64)


@styled()
def draw_growth(content: Sequence[tuple[str, Sequence[Curve]]]) -> Figure:
    """A panel for each unit, both axes logarithmic, against the number of nodes."""
    figure = draw_curves(content, xlabel="nodes", ylabel="", log=True)
    for axis, (label, curves) in zip(figure.axes, content, strict=True):
        sizes = sorted({n for curve in curves for n in curve.x})
        axis.set_title("")
        axis.set_xticks(sizes, [f"{n:,.0f}" for n in sizes])
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
