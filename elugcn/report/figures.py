"""The figures of a report: matplotlib draws them, as SVG inside the page.

Colours are written as CSS variables, so that a figure follows the page into the dark
and onto paper.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from elugcn.report.node_map import node_map

# Okabe and Ito's colours, which colour-blind readers can tell apart.
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
GREY = "#7a7a7a"
INK, QUIET, RULE, CARD = "#1c2026", "#59626e", "#d9dde3", "#ffffff"
BLUE, RED = COLOURS[0], COLOURS[5]
# The variables of page.css that the colours above become.
THEME = {
    **{colour: f"var(--k{i})" for i, colour in enumerate(COLOURS)},
    GREY: "var(--grey)",
    INK: "var(--ink)",
    QUIET: "var(--quiet)",
    RULE: "var(--rule)",
    CARD: "var(--card)",
}
STYLE: dict[Any, Any] = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "text.color": INK,
    "text.parse_math": False,  # names come from the user's data
    "axes.edgecolor": QUIET,
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10.0,
    "grid.color": RULE,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "svg.fonttype": "none",
}
_MAX_POINTS, _MAX_VECTOR_POINTS = 4000, 800
_MAX_NAMES, _MAX_LETTERS = 24, 14


def svg(figure: Figure, name: str, alt: str) -> Markup:
    """A figure as an ``<svg>`` element.

    Args:
        figure: From matplotlib.
        name: Makes the ids of the element unique in the page.
        alt: What the figure shows, for those who can't see it.
    """
    out = io.StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}), warnings.catch_warnings():
        # The browser has fonts for the letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(out, format="svg", transparent=True, dpi=200)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style).*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in THEME.items():
        text = text.replace(f": {colour}", f": {variable}")
    label = f'<svg class="figure" role="img" aria-label="{escape(alt)}"'
    return Markup(text.replace("<svg", label, 1))


@rc_context(STYLE)
def history_figure(
    history: Sequence[dict[str, float]], columns: dict[str, str], best: int | None
) -> Figure | None:
    """Curves over epochs; None if there is none.

    Args:
        history: One record per epoch.
        columns: The name of the curve of each column.
        best: The epoch that validation selected, marked by a line.
    """
    figure, axis = _figure(4.4, 2.8)
    for colour, (column, name) in zip((BLUE, RED), columns.items(), strict=False):
        points = [
            (record["epoch"], value)
            for record in history
            if (value := record.get(column)) is not None and math.isfinite(value)
        ]
        # A curve of a few hundred points looks the same.
        points = points[:: max(1, math.ceil(len(points) / 300))]
        if len(points) > 1:
            axis.plot(*zip(*points, strict=True), color=colour, label=name)
    if not axis.lines:
        return None
    if "accuracy" in " ".join(columns):
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axis.set_ylim(0.0, 1.02)
    if best is not None:
        axis.axvline(best, color=QUIET, linestyle="--", linewidth=1, label="selected")
    axis.set_xlabel("epoch")
    axis.legend()
    return figure


@rc_context(STYLE)
def calibration_figure(
    confidence: Sequence[float], accuracy: Sequence[float], nodes: Sequence[int]
) -> Figure:
    """Accuracy over confidence; on the diagonal the probabilities are reliable."""
    figure, axis = _figure(4.4, 3.4)
    axis.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1)
    axis.plot(confidence, accuracy, color=BLUE)
    area = 20 + 280 * np.asarray(nodes) / max(1, sum(nodes))
    axis.scatter(confidence, accuracy, area, color=BLUE, alpha=0.8)
    axis.set_xlabel("confidence")
    axis.set_ylabel("accuracy")
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set(xlim=(0, 1.03), ylim=(0, 1.05))
    return figure


@rc_context(STYLE)
def heat_figure(means: Tensor, block_class: Sequence[int], names: list[str]) -> Figure:
    """Mean entries of blocks of nodes: red positive, blue negative, blank zero.

    The strongest colour is the 98 % quantile of the absolute means, so that a few
    blocks do not bleach the rest.
    """
    figure, axis = _figure(4.4, 4.4)
    values = means.numpy()
    limit = float(np.quantile(np.abs(values), 0.98)) or float(np.abs(values).max())
    limit = limit or 1.0
    axis.imshow(
        values, cmap=_diverging(), vmin=-limit, vmax=limit, interpolation="none"
    )
    starts = [i for i, c in enumerate(block_class) if i and c != block_class[i - 1]]
    for start in starts:
        axis.axhline(start - 0.5, color=QUIET, linewidth=0.4)
        axis.axvline(start - 0.5, color=QUIET, linewidth=0.4)
    ends = [0, *starts, len(block_class)]
    middle = [(a + b - 1) / 2 for a, b in pairwise(ends)]
    labels = [_short(names[block_class[a]]) for a in ends[:-1]]
    if len(labels) > _MAX_NAMES:
        middle, labels = [], []
    axis.set_xticks(middle, labels, rotation=90)
    axis.set_yticks(middle, labels)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    return figure


@rc_context(STYLE)
def map_figure(
    proba: Tensor, group: Tensor, colours: dict[int, str], names: list[str]
) -> Figure:
    """The nodes between the corners of their classes (see ``node_map``).

    Args:
        proba: Class probabilities of the nodes to draw, m×c.
        group: What decides the colour of each, (m,).
        colours: Colour per group, in drawing order.
        names: Of the classes.
    """
    figure, axis = _figure(4.4, 4.4)
    points, corners = node_map(proba)
    many = len(points) > _MAX_VECTOR_POINTS
    for value, colour in colours.items():
        x, y = points[group == value].T.numpy()
        # Classes beyond the eighth are rings of the same colours.
        hollow = value >= len(COLOURS)
        axis.plot(
            x, y, "o", markersize=3 if many else 5, markeredgecolor=colour,
            markerfacecolor="none" if hollow else colour, markeredgewidth=0.8,
            alpha=0.8, rasterized=many,
        )  # fmt: skip
    if len(names) <= _MAX_NAMES:
        predicted = proba.argmax(dim=1)
        for c in torch.unique(predicted).tolist():
            # Outside of its nodes, in the direction of its corner.
            reach = float((points[predicted == c] @ corners[c]).max())
            x, y = (corners[c] * max(0.7, reach + 0.12)).tolist()
            across = "center" if abs(x) < 0.3 else "left" if x > 0 else "right"
            axis.text(x, y, _short(names[c]), ha=across, va="center")
    axis.set_aspect("equal")
    axis.margins(0.12)
    axis.set_axis_off()
    return figure


def map_sample(n: int) -> Tensor:
    """The nodes of the map: all, or a draw that is the same each time, ascending."""
    draw = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return draw[:_MAX_POINTS].sort().values


def class_colours(count: int) -> dict[int, str]:
    """The colour of each class, in turn."""
    return {c: COLOURS[c % len(COLOURS)] for c in range(count)}


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots()


def _diverging() -> ListedColormap:
    """Blue, transparent at zero, red: right on any background."""
    strength = np.linspace(-1.0, 1.0, 255)[:, None]
    colour = np.where(strength < 0, to_rgb(BLUE), to_rgb(RED))
    return ListedColormap(np.hstack([colour, np.abs(strength)]))


def _short(name: str) -> str:
    """A name on one line that fits beside a figure."""
    name = " ".join(name.split())
    return name if len(name) <= _MAX_LETTERS else f"{name[: _MAX_LETTERS - 1]}…"
