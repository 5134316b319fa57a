"""Bars with their spread, graphs as blocks of mean entries, and pairs of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from elugcn.report.style import COLOURS, GREY, panels, styled

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
