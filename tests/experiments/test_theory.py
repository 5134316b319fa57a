"""Theorem 1 on a page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elugcn.experiments import theory
from elugcn.experiments.base import Scope
from elugcn.experiments.measured import PAPER
from elugcn.report.blocks import Series, pair_figure
from tests.experiments.fake import write_page


def of(one: float | None, two: float, distance: float, own: float) -> dict[str, Any]:
    return {
        "complexity_one": one,
        "complexity_two": two,
        "label_distance": distance,
        "reached": 0.5,
        "label_accuracy": 0.25,
        "own_class": own,
    }


def run(elu: dict[str, Any], lpa: float) -> dict[str, Any]:
    spread = {"label_distance": lpa, "reached": 1.0, "label_accuracy": 0.75}
    original = of(4.0, 3.0, 0.9, 0.6)
    return {"nodes": 9, "original": original, "lpa": spread, "elu": elu}


def test_both_quantities_on_both_graphs(tmp_path: Path) -> None:
    measured = {
        "karate": [run(of(1.0, 5.0, 0.5, 0.7), 0.6), run(of(2.0, 4.0, 0.7, 0.7), 0.6)],
        "sbm": [run(of(3.0, 2.0, 0.8, 0.5), 0.7), run(of(None, 2.0, 0.8, 0.5), 0.7)],
    }
    page = write_page(theory.EXPERIMENT, measured, tmp_path)
    keys = [(r["dataset"], r["graph"]) for r in page.rows]
    graphs = ("original", "elu", "lpa")
    assert keys == [(d, g) for d in ("karate", "sbm") for g in graphs]
    elu = page.numbers(1)
    assert (elu["complexity_one"], elu["label_distance"]) == pytest.approx((1.5, 0.6))
    assert elu["complexity_two_std"] == pytest.approx(np.std([4, 5], ddof=1), 1e-5)
    assert (elu["reached"], elu["label_accuracy"], elu["runs"]) == (50, 25, 2)
    assert page.rows[2]["complexity_one"] == ""  # label propagation has no features
    assert page.numbers(2)["label_accuracy"] == 75
    # A run whose complexity is not finite is left out of the mean.
    assert page.numbers(4)["complexity_one"] == 3
    for text in (
        "lower on all 2 datasets after one layer and on 1 of 2 datasets after two",
        "one step of the original graph on all 2 datasets",
        "propagation on no dataset",
        "is larger on 1 of 2 datasets",
        "| karate | ELU graph | 1.50 ± 0.71 | 4.50 ± 0.71 | 0.60 ± 0.14 | 50.0 ± 0.0",
        "| karate | label propagation | – | – | 0.60 ± 0.00 | 100.0 ± 0.0",
    ):
        assert text in page.text
    assert page.png.startswith(b"\x89PNG")


def test_the_plan() -> None:
    plan = theory.plan(Scope(quick=False, seeds=2))
    assert tuple(p.job.dataset for p in plan[::2]) == PAPER
    assert {p.job.measure for p in plan} == {"theory"}
    assert all(p.job.config["variants"] == [] for p in plan)


def test_dumbbells() -> None:
    before = Series("before", [4.0, 1.0], [None, 0.5])
    after = Series("after", [2.0, None], [0.1, None])
    figure = pair_figure(["a", "b"], [("x", [before, after]), ("y", [before])])
    one, two = figure.axes
    bars = [line for line in one.lines if line.get_linewidth() == 2.5]
    # The first name is on top; a name with one point has no bar.
    assert [(list(b.get_xdata()), list(b.get_ydata())) for b in bars] == [
        ([2.0, 4.0], [1, 1])
    ]
    assert [t.get_text() for t in one.get_yticklabels()] == ["a", "b"]
    assert [line for line in two.lines if line.get_linewidth() == 2.5] == []
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["before", "after"]
