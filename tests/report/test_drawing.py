import numpy as np
import pytest
from matplotlib.axes import Axes

from elugcn.report.curves import Curve, draw_curves, draw_grid
from elugcn.report.dots import Dot, Panel, draw_dots
from elugcn.report.scatter import Point, draw_scatter
from elugcn.report.style import GREY, colour_of, image, panels


def points(axis: Axes) -> set[tuple[float, float]]:
    """Where the markers are."""
    return {
        (round(float(x), 6), round(float(y), 6))
        for line in axis.lines
        if line.get_marker() not in ("", "None", None)
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)  # type: ignore[arg-type]
    }


def test_dots_are_where_their_row_is() -> None:
    content = [
        Panel("one", [Dot("elu-gcn", 84.0, 0.5), Dot("x", 80.0)], 84.29),
        Panel("two", [Dot("x", 60.0, 1.0)]),
    ]
    figure = draw_dots(content, ["elu-gcn", "gcn", "x"], breaks=[1])
    one, two = figure.axes
    assert points(one) == {(84.0, 2.0), (80.0, 0.0)}
    assert points(two) == {(60.0, 0.0)}
    ticks = zip(one.get_yticks(), one.get_yticklabels(), strict=True)
    assert [(y, label.get_text()) for y, label in ticks] == [
        (2, "elu-gcn"), (1, "gcn"), (0, "x"),
    ]  # fmt: skip
    assert any(list(line.get_xdata()) == [84.29, 84.29] for line in one.lines)
    assert any(list(line.get_ydata()) == [1.5, 1.5] for line in two.lines)
    # The first row is at the top.
    assert one.get_ylim()[0] < one.get_ylim()[1]
    assert [t.get_text() for t in figure.legends[0].get_texts()] == [
        "the paper's ELU-GCN"
    ]
    assert draw_dots([content[1]], ["x"]).legends == []


def test_curves() -> None:
    ours = Curve("elu-gcn", [1, 2, 20], [60.0, 70.0, 80.0], [1.0, 2.0, 3.0])
    other = Curve("gcn", [1, 2], [50.0, 55.0], [0.0, 0.0])
    figure = draw_curves(
        [("cora", [ours, other]), ("photo", [other])], xlabel="labels", log=True
    )
    left, right = figure.axes
    assert points(left) == {(1, 60), (2, 70), (20, 80), (1, 50), (2, 55)}
    assert points(right) == {(1, 50), (2, 55)}
    assert [t.get_text() for t in left.get_xticklabels()] == ["1", "2", "20"]
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["elu-gcn", "gcn"]
    band = left.collections[0].get_paths()[0].vertices
    assert {(1.0, 59.0), (1.0, 61.0), (20.0, 77.0), (20.0, 83.0)} <= {
        (float(x), float(y)) for x, y in band
    }


def test_grid() -> None:
    figure, (axis,) = panels(1)
    draw_grid(
        axis, np.array([[1.0, 2.04], [np.nan, 4.0]]), [0.1, 1], [0.2, 0.4], "τ", "λ"
    )
    texts = {t.get_position(): (t.get_text(), t.get_color()) for t in axis.texts}
    # Dark ink on light cells, and light on dark.
    assert texts == {
        (0, 0): ("1.0", "white"), (1, 0): ("2.0", "white"), (1, 1): ("4.0", "black"),
    }  # fmt: skip
    assert [t.get_text() for t in axis.get_yticklabels()] == ["0.1", "1"]
    assert axis.get_ylim() == (-0.5, 1.5)
    assert image(figure, "png")


def test_scatter() -> None:
    close = [Point("gcn", 1.0, 80.0, 0.5), Point("elu-gcn", 16.0, 84.0)]
    figure = draw_scatter([("cora", close)])
    (axis,) = figure.axes
    assert points(axis) == {(1.0, 80.0), (16.0, 84.0)}
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["gcn", "elu-gcn"]
    assert axis.get_xscale() == "log"
    assert image(draw_scatter([("cora", close[:1])]), "png")


@pytest.mark.parametrize("form", ["png", "svg"])
def test_the_same_figure_is_the_same_file(form: str) -> None:
    def draw() -> bytes:
        return image(draw_dots([Panel("one", [Dot("gcn", 1.0, 0.5)])], ["gcn"]), form)

    assert draw() == draw()
    start = b"\x89PNG" if form == "png" else b"<?xml"
    assert draw().startswith(start)


def test_panels_fill_rows() -> None:
    figure, axes = panels(5, columns=3)
    assert len(axes) == len(figure.axes) == 5
    assert figure.get_size_inches()[0] == 9.0


def test_colours() -> None:
    assert colour_of("gcn") == colour_of("gcn", 5) != colour_of("elu-gcn")
    assert colour_of("a row") == GREY
    assert colour_of("a row", 0) != colour_of("a row", 1)


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_the_legend_of_curves_is_whole(panels: int) -> None:
    names = ["elu-gcn", "elu-gcn-paper", "gcn", "appnp", "lpa", "cs"]
    curves = [Curve(name, (1, 2), (50.0, 60.0), (1.0, 1.0)) for name in names]
    figure = draw_curves([(str(i), curves) for i in range(panels)], xlabel="labels")
    figure.canvas.draw()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0
    assert box.x1 <= whole.x1
    assert box.y1 <= whole.y1
