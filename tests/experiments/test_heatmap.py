"""The ELU graph by class: the page, the picture, and the command."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elugcn.experiments import heatmap
from elugcn.experiments.base import Scope
from elugcn.report.blocks import BlockMap, block_figure
from tests.cli.conftest import Command, process, rows_of
from tests.experiments.fake import write_page

__all__ = ["process"]  # a fixture


def run(original: float, positive: float, absolute: float, chance: float = 0.3) -> Any:
    return {
        "nodes": 10,
        "block_class": [0, 0, 1],
        "block_size": [3, 3, 4],
        "homophily": 0.5,
        "same_class_pairs": chance,
        "original": {"inside": original, "means": [[1, 0, 0]] * 3},
        "elu": {
            "inside": 2 * positive,
            "inside_positive": positive,
            "inside_absolute": absolute,
            "means": [[1.0, 0.5, -0.5]] * 3,
        },
    }


def test_shares_inside_classes(tmp_path: Path) -> None:
    measured = {
        "karate": [run(0.6, 0.8, 0.5), run(0.6, 0.9, 0.4)],
        "sbm": [run(0.7, 0.4, 0.3)] * 2,
        "digits": [run(0.7, 0.2, 0.1)] * 2,
    }
    page = write_page(heatmap.EXPERIMENT, measured, tmp_path)
    got = page.numbers(0)
    assert got["elu_inside_positive"] == pytest.approx(85)
    assert got["elu_inside_positive_std"] == pytest.approx(
        np.std([80, 90], ddof=1), 1e-5
    )
    assert (got["original_inside"], got["homophily"], got["runs"]) == (60, 50, 2)
    assert (got["elu_inside"], got["elu_inside_absolute"]) == pytest.approx((170, 45))
    assert "karate 85 % (Â 60 %, chance 30 %)" in page.text
    assert "above chance on 2 of 3 datasets and above the original graph on 1 of 3" in (
        page.text
    )
    # The picture is of the first seed.
    assert page.png.startswith(b"\x89PNG")


def test_the_picture() -> None:
    means = [[4.0, 0.0, -1.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 100.0]]
    figure = block_figure([BlockMap("a", means, [0, 0, 1], [2, 1, 3])], columns=1)
    panel = figure.axes[0]
    (mesh,) = panel.collections
    limit = np.quantile(np.abs(means), 0.98)
    assert np.allclose(np.asarray(mesh.get_array()), np.array(means) / limit)
    assert mesh.get_clim() == (-1, 1)
    # One border, after the three nodes of class 0; the first class is on top.
    assert [line.get_ydata()[0] for line in panel.lines[::2]] == [3]
    assert [line.get_xdata()[0] for line in panel.lines[1::2]] == [3]
    assert panel.get_ylim() == (6, 0)
    # A graph without entries is white, not a division by zero.
    empty = block_figure([BlockMap("b", [[0.0]], [0], [5])], columns=1)
    assert np.asarray(empty.axes[0].collections[0].get_array()).tolist() == [[0.0]]


def test_the_plan_learns_a_graph_in_every_run() -> None:
    assert heatmap.EXPERIMENT.seeds == 10
    plan = heatmap.plan(Scope(quick=False, seeds=10))
    assert [p.job.dataset for p in plan[::10]] == list(heatmap.DATASETS)
    for p in plan:
        assert p.job.measure == "heatmap"
        assert p.job.config["variants"] == []
        assert p.job.config["keep_gcn"] is False
        assert p.job.config["eta"] > 0


@pytest.mark.slow
def test_the_command(process: Command, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = process(
        "reproduce", "heatmap", "--quick", "--seeds", "1", "--datasets", "karate",
        "--json", "--out", "pages",
    )  # fmt: skip
    (report,) = done.json["experiments"]
    assert report["runs"] == {"planned": 1, "done": 1, "failed": 0}
    (row,) = rows_of(tmp_path / "pages/heatmap.csv")
    # 59 of the club's 78 edges are inside its communities of 13, 12, 4 and 5.
    assert float(row["homophily"]) == pytest.approx(100 * 59 / 78, rel=1e-4)
    pairs = (13**2 + 12**2 + 4**2 + 5**2) / 34**2
    assert float(row["same_class_pairs"]) == pytest.approx(100 * pairs, rel=1e-4)
    assert float(row["elu_inside_positive"]) > 100 * pairs
    assert (tmp_path / "pages/heatmap.svg").is_file()
