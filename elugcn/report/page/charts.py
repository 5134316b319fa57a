"""The drawings of the page that stand still: curves, calibration, blocks of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from elugcn.report.page.calibration import Reliability
from elugcn.report.page.heat import BlockMap
from elugcn.report.page.svg import add, drawing, markup, number

# About what a phone shows without shrinking the letters.
WIDTH, HEIGHT = 380, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 10, 38
_POINTS = 300
_QUANTILE, _LEVELS = 0.98, 10


@dataclass(frozen=True)
class Frame:
    """Axes: from values to places in the drawing."""

    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point."""
        (x0, x1), (y0, y1) = self.x, self.y
        across, up = (x - x0) / (x1 - x0), (y - y0) / (y1 - y0)
        width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * width, HEIGHT - _BOTTOM - up * height

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """A line through the points."""
        places = (self.at(x, y) for x, y in zip(xs, ys, strict=True))
        return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)


@dataclass(frozen=True)
class Line:
    """A curve: its name, CSS class and points."""

    name: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]


def history_lines(
    history: Sequence[dict[str, float]], columns: dict[str, tuple[str, str]]
) -> list[Line]:
    """Curves of a training history, thinned out evenly to ``_POINTS`` points.

    Args:
        history: One record per epoch.
        columns: Name and CSS class of the curve of each column that is wanted.
    """
    out = []
    for column, (name, kind) in columns.items():
        found = [
            (float(record["epoch"]), float(value))
            for record in history
            if (value := record.get(column)) is not None and math.isfinite(value)
        ]
        found = found[:: max(1, math.ceil(len(found) / _POINTS))]
        if len(found) > 1:
            out.append(Line(name, kind, *map(list, zip(*found, strict=True))))
    return out


def line_chart(
    lines: Sequence[Line], title: str, percent: bool, mark: float | None = None
) -> Markup:
    """Curves over epochs; ``mark`` is the epoch that was kept."""
    xs = [x for line in lines for x in line.x]
    ys = [y for line in lines for y in line.y]
    ticks = _ticks(min(ys), max(ys))
    if percent:  # no share is below 0 or above 1
        ticks = sorted({min(max(t, 0.0), 1.0) for t in ticks})
    frame = Frame((min(xs), max(xs)), (ticks[0], ticks[-1]))
    root = drawing(WIDTH, HEIGHT, title)
    along = [t for t in _ticks(*frame.x) if frame.x[0] <= t <= frame.x[1]]
    _axes(root, frame, along, ticks, "epoch", percent)
    if mark is not None and frame.x[0] <= mark <= frame.x[1]:
        x, _ = frame.at(mark, ticks[0])
        add(root, "path", d=f"M{number(x)} {_TOP}V{HEIGHT - _BOTTOM}", class_="mark")
    for line in lines:
        add(root, "path", d=frame.path(line.x, line.y), class_=f"line {line.kind}")
    return markup(root)


def reliability_chart(found: Reliability) -> Markup:
    """Accuracy over confidence: on the diagonal the probabilities are honest."""
    said = f"{100 * found.confidence:.0f} % sure, {100 * found.accuracy:.0f} % right"
    root = drawing(WIDTH, HEIGHT, f"Calibration curve: on average {said}")
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    _axes(root, frame, ticks, ticks, "confidence", True, True)
    add(root, "path", d=frame.path([0, 1], [0, 1]), class_="mark")
    xs, ys = ([getattr(b, k) for b in found.bins] for k in ("confidence", "accuracy"))
    add(root, "path", d=frame.path(xs, ys), class_="line s0")
    for one in found.bins:
        x, y = frame.at(one.confidence, one.accuracy)
        radius = 2.5 + 9.0 * math.sqrt(one.nodes / found.nodes)
        dot = add(root, "circle", cx=x, cy=y, r=radius, class_="dot s0")
        add(
            dot,
            "title",
            f"{one.nodes:,} nodes: {100 * one.confidence:.0f} % sure, "
            f"{100 * one.accuracy:.0f} % right",
        )
    return markup(root)


def block_chart(one: BlockMap, block_class: Sequence[int]) -> Markup:
    """A graph as blocks: red joins, blue parts, as strong as the mean entry.

    The strongest colour is the 98 % quantile of the absolute means. Cells of one shade
    are one path, which keeps the page small. The bars on two sides are the classes.
    """
    means = one.means.numpy()
    count, edge = len(block_class), 2
    limit = float(np.quantile(np.abs(means), _QUANTILE)) or float(np.abs(means).max())
    shade = np.rint(np.clip(means / (limit or 1.0), -1, 1) * _LEVELS).astype(int)
    side = count + edge
    root = drawing(side, side, f"{one.name}: mean entries by class", "blocks")
    for level in (v for v in np.unique(shade) if v):
        rows, columns = np.nonzero(shade == level)
        cells = "".join(
            f"M{c + edge} {r + edge}h1v1h-1z"
            for r, c in zip(rows, columns, strict=True)
        )
        kind = "plus" if level > 0 else "minus"
        opacity = abs(int(level)) / _LEVELS
        add(root, "path", d=cells, class_=kind, fill_opacity=opacity)
    for c in dict.fromkeys(block_class):
        first, size = block_class.index(c), block_class.count(c)
        place, kind = first + edge, class_mark(c)
        thick = edge - 0.6
        add(root, "rect", x=place, y=0, width=size, height=thick, class_=kind)
        add(root, "rect", x=0, y=place, width=thick, height=size, class_=kind)
        if first:
            d = f"M{place} {edge}V{side}M{edge} {place}H{side}"
            add(root, "path", d=d, class_="rule")
    return markup(root)


def class_mark(c: int) -> str:
    """CSS class of a class's colour: eight colours, then the same as rings."""
    return f"k{c % 8}" + (" ring" if c // 8 % 2 else "")


def _axes(
    root: Element,
    frame: Frame,
    along: Sequence[float],
    up: Sequence[float],
    label: str,
    percent: bool,
    percent_along: bool = False,
) -> None:
    for tick in up:
        x, y = frame.at(frame.x[0], tick)
        d = f"M{_LEFT} {number(y)}H{WIDTH - _RIGHT}"
        add(root, "path", d=d, class_="grid")
        said = _said(tick, percent)
        add(root, "text", said, x=x - 6, y=y + 4, text_anchor="end")
    for tick in along:
        x, _ = frame.at(tick, frame.y[0])
        said = _said(tick, percent_along)
        # The last number would hang over the edge.
        anchor = "end" if x > WIDTH - _RIGHT - 8 else "middle"
        end = min(x, WIDTH - 2.0) + (8 if anchor == "end" else 0)
        add(root, "text", said, x=end, y=HEIGHT - _BOTTOM + 16, text_anchor=anchor)
    middle = _LEFT + (WIDTH - _LEFT - _RIGHT) / 2
    add(root, "text", label, x=middle, y=HEIGHT - 4, text_anchor="middle")


def _said(tick: float, percent: bool) -> str:
    return f"{100 * tick:g} %" if percent else f"{tick:g}"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that cover the range."""
    if low == high:
        low, high = low - 0.5, high + 0.5
    found = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(round(t, 10)) for t in found]
