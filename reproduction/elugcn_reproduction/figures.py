"""The figures of the pages, drawn with matplotlib and written as SVG.

Figures are made without ``pyplot``: nothing is shared between them, and no screen is
needed.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
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

from elugcn.evaluation.statistics import Summary

GREY = "#7a7a7a"
# Okabe and Ito's colours: colour-blind readers can tell them apart too.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6b5b95",
           "#a6761d")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
CONTROL = "NELU, a second GCN"
# What has the same colour everywhere.
_FIXED = {
    "auto": "#d55e00", "elu-gcn": "#e69f00", "gcn": "#0072b2", "gat": "#009e73",
    "appnp": "#cc79a7", "lpa": "#6b5b95", "cs": "#56b4e9", "mlp": "#a6761d",
    "sgc": "#4d4d4d", "grand": "#117733", "ELU": COLOURS[0], "NELU": COLOURS[5],
    "all test": COLOURS[4], "unreachable": GREY, CONTROL: GREY,
}  # fmt: skip
ACCURACY = "test accuracy in percent"
styled = mpl.rc_context(
    {
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
)


@dataclass(frozen=True)
class Panel:
    """The means of a dataset by row, and a value to draw a line at."""

    title: str
    rows: dict[str, Summary]
    line: float | None = None


@dataclass(frozen=True)
class Curve:
    """Points of a curve and half the height of the band around each."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    half: Sequence[float]


@dataclass(frozen=True)
class BlockMap:
    """A graph as the mean entries of its blocks, nodes ordered by class."""

    title: str
    means: Sequence[Sequence[float]]
    block_class: Sequence[int]
    block_size: Sequence[int]


# By the name of a colour: one summary for each dataset.
Series = Mapping[str, Sequence[Summary]]


def panels(
    count: int,
    columns: int = 4,
    width: float = 3.0,
    height: float = 2.6,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels of that size in inches, in rows of ``columns``."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharey=sharey)
    axes = [axis for line in grid for axis in line]
    for unused in axes[count:]:
        unused.remove()
    return figure, axes[:count]


@styled
def svg(figure: Figure) -> str:
    """The figure as SVG, without date or version: equal figures are equal files."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


@styled
def draw_dots(
    content: Sequence[Panel],
    rows: Sequence[str],
    *,
    xlabel: str = ACCURACY,
    columns: int = 3,
    breaks: Sequence[int] = (),
    log: bool = False,
    line: str = "the paper's ELU-GCN",
) -> Figure:
    """Means with their spread: panels with the same rows, each with its own scale.

    Args:
        content: The panels; a panel may lack some rows.
        rows: Every row from top to bottom.
        xlabel: What the dots tell.
        columns: Panels side by side.
        breaks: After how many rows a rule separates them from the next.
        log: Whether the axis is logarithmic, and the same for all panels.
        line: What the lines of the panels are.
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
        for name, (mean, std, _) in panel.rows.items():
            if mean is not None:
                axis.errorbar(
                    mean,
                    place[name],
                    xerr=std or 0.0,
                    fmt="o",
                    color=_FIXED.get(name, GREY),
                    markersize=6.0 if name == "auto" else 4.5,
                    elinewidth=1.2,
                    zorder=3,
                )
        axis.set_title(panel.title)
        axis.set_ylim(-0.6, len(rows) - 0.4)
        axis.set_yticks([place[name] for name in rows], rows)
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.08)
    if log:
        means = [s.mean for p in content for s in p.rows.values() if s.mean is not None]
        for axis in axes:
            axis.set_xscale("log")
            axis.set_xlim(min(means) / 2, 2 * max(means))
            axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
    figure.supxlabel(f"{xlabel} (logarithmic)" if log else xlabel, fontsize=9)
    if marked is not None:
        figure.legend([marked], [line], loc="outside upper right")
    return figure


def draw_curve(axis: Axes, curve: Curve, place: int = 0) -> None:
    """One curve with its band."""
    ours = curve.name == "auto"
    colour, y = _colour(curve.name, place), np.array(curve.y)
    axis.plot(
        curve.x,
        y,
        color=colour,
        marker=MARKERS[place % len(MARKERS)],
        linewidth=2.2 if ours else 1.5,
        label=curve.name,
        zorder=4 if ours else 3,
    )
    low, high = y - np.array(curve.half), y + np.array(curve.half)
    axis.fill_between(curve.x, low, high, color=colour, alpha=0.15, linewidth=0)


@styled
def draw_curves(
    content: Sequence[tuple[str, Sequence[Curve]]],
    xlabel: str,
    ylabel: str = ACCURACY,
    log: bool = False,
) -> Figure:
    """A panel with a title for each group of curves, one legend for all.

    With ``log`` the horizontal axis is logarithmic, with a tick at each point.
    """
    figure, axes = panels(len(content), 2, 3.9, 3.0)
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
            axis.set_xticks(points, [f"{x:,.0f}" for x in points])
            axis.xaxis.set_minor_locator(NullLocator())
    # As wide as the panels.
    _legend(figure, names, min(len(names), 3 * min(len(content), 2)))
    return figure


@styled
def draw_growth(content: Sequence[tuple[str, Sequence[Curve]]]) -> Figure:
    """A panel for each unit, both axes logarithmic, against the number of nodes."""
    figure = draw_curves(content, "nodes", log=True)
    for axis, (label, _) in zip(figure.axes, content, strict=True):
        axis.set_title("")
        axis.set_ylabel(f"{label} (logarithmic)")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    return figure


def draw_grid(
    axis: Axes,
    values: NDArray[np.float64],
    rows: Sequence[float],
    columns: Sequence[float],
    ylabel: str,
    xlabel: str,
) -> None:
    """Numbers on a coloured grid, rows upwards; not-a-number is left blank."""
    axis.imshow(values, origin="lower", cmap="viridis", aspect="auto")
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


@styled
def draw_costs(
    content: Sequence[tuple[str, Mapping[str, tuple[float, Summary]]]],
) -> Figure:
    """A panel for each dataset: seconds of a fit, logarithmic, against accuracy."""
    figure, axes = panels(len(content), 3, 3.1, 2.6)
    names = list(dict.fromkeys(name for _, points in content for name in points))
    for axis, (title, points) in zip(axes, content, strict=True):
        for name, (seconds, (mean, std, _)) in points.items():
            if mean is None:
                continue
            place = names.index(name)
            axis.errorbar(
                seconds,
                mean,
                yerr=std or 0.0,
                fmt=MARKERS[place % len(MARKERS)],
                color=_colour(name, place),
                markersize=6.5 if name == "auto" else 5.0,
                elinewidth=1.0,
                label=name,
            )
        axis.set_title(title)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.margins(x=0.15, y=0.2)
    # One legend for all: names beside the dots would lie upon each other.
    _legend(figure, names, len(names))
    figure.supxlabel("seconds of a fit", fontsize=9)
    figure.supylabel(ACCURACY, fontsize=9)
    return figure


@styled
def draw_utilization(
    datasets: Sequence[str], shares: Series, accuracies: Series
) -> Figure:
    """Figure 2: stacked shares above, the GCN's accuracy on each set below."""
    width = max(6.0, 1.05 * len(datasets) + 2.0)
    figure, (upper, lower) = panels(2, columns=1, width=width, height=2.4)
    bottom, places = np.zeros(len(datasets)), np.arange(len(datasets))
    for name, summaries in shares.items():
        height = np.nan_to_num(_means(summaries))
        upper.bar(places, height, 0.6, bottom, color=_FIXED[name], label=name)
        bottom += height
    upper.set_xticks(places, datasets)
    upper.grid(axis="x", visible=False)
    upper.set_ylabel("share of nodes, %")
    upper.set_title("Nodes outside the training set")
    halves = {name: [s.std for s in of] for name, of in accuracies.items()}
    _bars(lower, datasets, accuracies, halves)
    lower.set_ylabel("accuracy of the GCN, %")
    lower.set_ylim(0, 100)
    lower.set_title("The GCN on the test nodes of each set")
    for axis in (upper, lower):
        axis.set_xlim(-0.5, len(datasets) - 0.5)
    _legend(figure, list(shares))
    return figure


@styled
def draw_gains(
    datasets: Sequence[str],
    series: Series,
    halves: Mapping[str, Sequence[float | None]],
    label: str,
) -> Figure:
    """Grouped bars with intervals of these half widths, around a line at zero."""
    width = max(6.0, 1.05 * len(datasets) + 2.0)
    figure, (axis,) = panels(1, columns=1, width=width, height=3.0)
    _bars(axis, datasets, series, halves)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set_ylabel(label)
    _legend(figure, list(series))
    return figure


@styled
def draw_blocks(maps: Sequence[BlockMap]) -> Figure:
    """Graphs as block heat maps, classes parted by lines, one colour scale each.

    White is 0, red positive, blue negative; the strongest colour is the 98 % quantile
    of the absolute block means of a panel, so that a few blocks do not bleach the rest.
    """
    columns = 4 if len(maps) > 2 else 2
    figure, axes = panels(len(maps), columns, 2.7, 2.85)
    for axis, one in zip(axes, maps, strict=True):
        means = np.asarray(one.means, dtype=np.float64)
        limit = np.quantile(np.abs(means), 0.98) or np.abs(means).max() or 1.0
        edges = np.concatenate([[0], np.cumsum(one.block_size)])
        axis.pcolormesh(
            edges, edges, means / limit, cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True
        )
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
    scale = ScalarMappable(Normalize(-1, 1), "RdBu_r")
    bar = figure.colorbar(scale, ax=axes, shrink=0.6, pad=0.015, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["−q", "0", "q"])
    bar.set_label("mean entry of a block (q: 98 % quantile)")
    return figure


@styled
def draw_pairs(names: Sequence[str], content: Mapping[str, Series]) -> Figure:
    """Dumbbells: a panel per quantity, a line per name, a point per series."""
    height = 0.33 * len(names) + 1.2
    figure, axes = panels(len(content), 3, 3.3, height, sharey=True)
    places = np.arange(len(names))[::-1]
    for axis, (title, series) in zip(axes, content.items(), strict=True):
        table = np.array([_means(of) for of in series.values()])
        for at, line in zip(places, table.T, strict=True):
            seen = line[np.isfinite(line)]
            if seen.size > 1:
                ends = (seen.min(), seen.max())
                axis.plot(ends, (at, at), color="#c8c8c8", linewidth=2.5, zorder=1)
        for i, (name, of) in enumerate(series.items()):
            axis.errorbar(
                _means(of),
                places,
                xerr=[s.std or 0.0 for s in of],
                fmt="os^"[i % 3],
                color=(COLOURS[0], COLOURS[5], GREY)[i % 3],
                markersize=6,
                elinewidth=1.0,
                label=name,
            )
        axis.set_title(title)
        axis.set_xlim(left=0.0)
        axis.grid(axis="y", visible=False)
        axis.set_yticks(places, names)
        axis.set_ylim(-0.6, len(names) - 0.4)
    _legend(figure, list(dict.fromkeys(name for of in content.values() for name in of)))
    return figure


def _bars(
    axis: Axes,
    names: Sequence[str],
    series: Series,
    halves: Mapping[str, Sequence[float | None]],
) -> None:
    """Groups of bars, 0.8 wide, with error bars."""
    step = 0.8 / max(1, len(series))
    for i, (name, summaries) in enumerate(series.items()):
        place = np.arange(len(names)) - 0.4 + (i + 0.5) * step
        height = _means(summaries)
        axis.bar(place, height, 0.92 * step, color=_colour(name, i), label=name)
        errors: Any = [half or 0.0 for half in halves[name]]
        axis.errorbar(
            place, height, errors, fmt="none", ecolor="black", elinewidth=0.9,
            capsize=2.0,
        )  # fmt: skip
    axis.set_xticks(np.arange(len(names)), names)
    axis.grid(axis="x", visible=False)


def _legend(figure: Figure, names: Sequence[str], columns: int | None = None) -> None:
    """One legend above all panels, of what any of them shows under these names."""
    seen: dict[str, Artist] = {}
    for axis in figure.axes:
        handles, labels = axis.get_legend_handles_labels()
        seen.update(zip(labels, handles, strict=True))
    figure.legend(
        handles=[seen[name] for name in names],
        labels=list(names),
        loc="outside upper center",
        ncols=columns or len(names),
    )


def _colour(name: str, place: int) -> str:
    return _FIXED.get(name, COLOURS[place % len(COLOURS)])


def _means(summaries: Sequence[Summary]) -> NDArray[np.float64]:
    return np.array([np.nan if s.mean is None else s.mean for s in summaries])
