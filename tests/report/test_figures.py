"""What the figures show, read from matplotlib's own objects and from the SVG."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from elugcn.report.figures import (
    BLUE,
    calibration_figure,
    heat_figure,
    history_figure,
    svg,
)


def test_curves_are_the_history() -> None:
    history = [
        {"epoch": float(i), "loss": 900.0 - i, "val_loss": float("nan")}
        for i in range(900)
    ]
    columns = {"val_loss": "validation", "loss": "training", "other": "none"}
    figure = history_figure(history, columns, best=300)
    assert figure is not None
    curve, marked = figure.axes[0].lines
    # Thinned out, and every point on the curve; a column without values is left out.
    x, y = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert (len(x), x[:2].tolist(), curve.get_label()) == (300, [0.0, 3.0], "training")
    np.testing.assert_array_equal(y, 900 - x)
    assert np.asarray(marked.get_xdata()).tolist() == [300, 300]
    assert history_figure(history[:1], columns, None) is None
    assert history_figure([], columns, None) is None
    # Accuracies reach from 0% to 100%.
    figure = history_figure(history, {"loss": "val_accuracy", "val_accuracy": ""}, None)
    assert figure is not None
    assert figure.axes[0].get_ylim() == (0.0, 1.02)
    assert figure.axes[0].yaxis.get_major_formatter()(0.8) == "80%"


def test_calibration_is_drawn_where_it_is() -> None:
    bins = [(0.5, 0.25, 9), (1.0, 1.0, 1)]
    figure = calibration_figure(bins)
    (axis,) = figure.axes
    (dots,) = axis.collections
    assert np.asarray(dots.get_offsets()).tolist() == [[0.5, 0.25], [1.0, 1.0]]
    large, small = dots.get_sizes()
    assert large > small
    drawn = svg(figure, "c", "calibration")
    # Colours follow the page, and the same figure is the same text.
    assert "var(--blue)" in drawn
    assert BLUE not in drawn
    assert drawn == svg(calibration_figure(bins), "c", "calibration")


def test_blocks_are_coloured_by_sign_and_size() -> None:
    means = torch.tensor([[1.0, -0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.1, -1.0]])
    (axis,) = heat_figure(means, [0, 0, 2], ["left", "?", "r" * 30]).axes
    (image,) = axis.images
    np.testing.assert_allclose(np.asarray(image.get_array()), means)
    low, high = image.get_clim()
    assert -low == high == pytest.approx(1.0)
    strong, weak, blank = image.to_rgba(np.array([1.0, -0.5, 0.0]))
    opacity = [colour[3] for colour in (strong, weak, blank)]
    assert opacity == pytest.approx([1.0, 0.5, 0.0], abs=0.01)
    assert strong[0] > strong[2]
    assert weak[2] > weak[0]
    names = [text.get_text() for text in axis.get_yticklabels()]
    assert (names, list(axis.get_yticks())) == (["left", "r" * 17 + "…"], [0.5, 2.0])
    many = heat_figure(torch.zeros(30, 30), range(30), ["x"] * 30)
    assert list(many.axes[0].get_yticks()) == []


def test_svg_is_well_formed_and_names_are_text() -> None:
    names = ['</text><script>alert("1")</script>', "$x$ & 鳥"]
    figure = heat_figure(torch.eye(2), [0, 1], names)
    drawn = svg(figure, "one", 'a "quoted" <name>')
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"] == 'a "quoted" <name>'
    words = "".join(root.itertext())
    assert "</text><script>a…"[:12] in words
    assert "$x$ & 鳥" in words
    assert "<script" not in drawn
    ids = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
    assert ids
    assert all(i.startswith("one-") for i in ids)


def test_the_picture_of_the_readme() -> None:
    """Bars as long as accuracies; on the right, as high as shares of nodes."""
    path = Path(__file__).parents[2] / "docs/picture.py"
    draw = runpy.run_path(str(path))["draw"]
    names = ("ELU-GCN", "GCN", "label propagation", "elu share", "nelu share",
             "unreachable share", "elu accuracy", "nelu accuracy",
             "unreachable accuracy")  # fmt: skip
    values = (0.8, 0.7, 0.6, 0.5, 0.3, 0.2, 0.9, 0.4, 0.1)
    runs = [dict(zip(names, values, strict=True)) for _ in range(2)]
    runs[1]["ELU-GCN"] = 0.82
    left, right = draw(runs).axes
    lengths = [bar.get_width() for bar in [*left.patches, *right.patches]]
    assert lengths == pytest.approx([0.81, 0.7, 0.6, 0.9, 0.4, 0.1])
    heights = [bar.get_height() for bar in right.patches]
    assert heights == pytest.approx([0.5, 0.3, 0.2])
    assert [text.get_text() for text in left.texts] == ["81.0% ± 1.0", "70.0%", "60.0%"]
