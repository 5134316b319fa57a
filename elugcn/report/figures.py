"""The figures of a report: matplotlib draws them, as SVG inside the page.

Colours are written as CSS variables, so that a figure follows the page into the dark
and onto paper.
"""

import io
import math
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from torch import Tensor

from elugcn.report.content import shorten

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#7a7a7a"
INK, QUIET, RULE = "#1c2026", "#59626e", "#d9dde3"
# The variables of page.css that the colours above become.
THEME = {BLUE: "blue", ORANGE: "orange", INK: "ink", QUIET: "quiet", RULE: "rule"}
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
    "grid.color": RULE,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "svg.fonttype": "none",
}
PERCENT = PercentFormatter(1.0, decimals=0)
# Blue, transparent at zero, orange: right on any background.
_STRENGTH = np.linspace(-1.0, 1.0, 255)[:, None]
_RGB = np.where(_STRENGTH < 0, to_rgb(BLUE), to_rgb(ORANGE))
DIVERGING = ListedColormap(np.hstack([_RGB, np.abs(_STRENGTH)]))
_MAX_POINTS = 300  # of a curve; more look the same
_MAX_NAMES, _MAX_LETTERS = 24, 18  # beside a picture


def svg(figure: Figure, name: str, alt: str) -> Markup:
    """A figure as an ``<svg>`` element; its ids begin with ``name``."""
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
        text = text.replace(f": {colour}", f": var(--{variable})")
    label = f'<svg class="figure" role="img" aria-label="{escape(alt)}"'
    return Markup(text.replace("<svg", label, 1))


@rc_context(STYLE)
def history_figure(
    history: Sequence[dict[str, float]], columns: dict[str, str], best: int | None
) -> Figure | None:
    """Some columns over epochs, with the names of their curves; None if all are empty.

    A line marks the epoch ``best``, which validation selected.
    """
    figure, axis = _figure(2.8)
    for colour, (column, name) in zip((BLUE, ORANGE), columns.items(), strict=False):
        points = [
            (record["epoch"], value)
            for record in history
            if (value := record.get(column)) is not None and math.isfinite(value)
        ]
        points = points[:: max(1, math.ceil(len(points) / _MAX_POINTS))]
        if len(points) > 1:
            axis.plot(*zip(*points, strict=True), color=colour, label=name)
    if not axis.lines:
        return None
    if "val_loss" not in columns:
        axis.yaxis.set_major_formatter(PERCENT)
        axis.set_ylim(0.0, 1.02)
    if best is not None:
        axis.axvline(best, color=QUIET, linestyle="--", linewidth=1, label="selected")
    axis.set_xlabel("epoch")
    axis.legend()
    return figure


@rc_context(STYLE)
def calibration_figure(bins: Sequence[tuple[float, float, int]]) -> Figure:
    """Accuracy over confidence: bins of confidence, accuracy and number of nodes."""
    figure, axis = _figure(3.4)
    confidence, accuracy, nodes = (np.asarray(c) for c in zip(*bins, strict=True))
    axis.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1)
    axis.plot(confidence, accuracy, color=BLUE)
    area = 20 + 280 * nodes / nodes.sum()
    axis.scatter(confidence, accuracy, area, color=BLUE, alpha=0.8)
    axis.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.03), ylim=(0, 1.05))
    for side in (axis.xaxis, axis.yaxis):
        side.set_major_formatter(PERCENT)
    return figure


@rc_context(STYLE)
def heat_figure(means: Tensor, block_class: Sequence[int], names: list[str]) -> Figure:
    """Mean entries of blocks of nodes: orange positive, blue negative, blank zero.

    The strongest colour is the 98 % quantile of the absolute means, so that a few
    blocks do not bleach the rest.
    """
    figure, axis = _figure(3.0)
    values = means.numpy()
    strongest = np.quantile(np.abs(values), 0.98) or np.abs(values).max() or 1.0
    scale = Normalize(-strongest, strongest)
    axis.imshow(values, DIVERGING, scale, interpolation="none")
    axis.set_yticks([])
    starts = [i for i, c in enumerate(block_class) if i and c != block_class[i - 1]]
    if len(starts) < _MAX_NAMES:
        for start in starts:
            axis.axhline(start - 0.5, color=QUIET, linewidth=0.4)
            axis.axvline(start - 0.5, color=QUIET, linewidth=0.4)
        ends = [0, *starts, len(block_class)]
        middle = [(a + b - 1) / 2 for a, b in pairwise(ends)]
        labels = [shorten(names[block_class[a]], _MAX_LETTERS) for a in ends[:-1]]
        axis.set_yticks(middle, labels)
    axis.tick_params(length=0, labelbottom=False)
    axis.grid(visible=False)
    axis.spines[:].set_visible(False)
    return figure


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(4.4, height))
    return figure, figure.subplots()
