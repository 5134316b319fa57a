"""One look for every figure, and figures as bytes.

Figures are made without ``pyplot``: nothing is shared between them and no screen is
needed. The same figure gives the same file, so that a result that did not change does
not show up as a change.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

FORMATS = ("png", "svg")
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
_FIXED = {"elu-gcn": "#d55e00", "elu-gcn-paper": "#e69f00", "gcn": "#0072b2"}
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
    FigureCanvasAgg(figure)
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
    return name == "elu-gcn"


@styled()
def image(figure: Figure, form: str) -> bytes:
    """The figure as a file of one of ``FORMATS``, without dates or versions in it."""
    metadata = {"Date": None} if form == "svg" else {"Software": None}
    out = io.BytesIO()
    figure.savefig(out, format=form, metadata=metadata)
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
