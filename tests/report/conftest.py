"""Six nodes worked by hand, and a run on tables with names of every kind."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elugcn.api import Fitted, fit, metrics_of, write_run
from elugcn.data.tables import load_tables
from elugcn.elu.low_rank_graph import LowRankGraph
from elugcn.report import write_report
from elugcn.report.content import Content, collect
from tests.insight.conftest import by_hand, row_of_six

EVIL = "<img src=x onerror=alert(1)>"
ATTACK = '</script><script>alert("1")</script>'
ODD_ID = "n 7,</script><b>"
LABELS = (EVIL, "Vögel, 鳥", 'a "quoted" one')


@pytest.fixture
def six() -> Fitted:
    """Labels at 0 and 5; the class of 4 is unknown; 2 and 3 are tested.

    The model says left of 0 to 3. Label propagation says left of 0, 1 and 3 and hears
    nothing at 4; the GCN says right of 2.
    """
    proba = torch.tensor([[9, 1], [8, 2], [7, 3], [6, 4], [1, 9], [5.5, 4.5]]) / 10
    lpa = torch.eye(3)[[0, 0, 0, 0, 2, 1]][:, :2]
    gcn = torch.eye(2)[[0, 0, 1, 0, 1, 1]] * 0.8 + 0.1
    s = LowRankGraph(torch.rand(6, 2) + 0.1, torch.rand(6, 2) - 0.4)
    return by_hand(row_of_six(), lpa, gcn, proba=proba, graph=s)


def records(folder: Path, **metrics: Any) -> Path:
    """The files that a report reads besides the model."""
    usual = {"dataset": "six", "n_edges": 5, "notes": ["a <note>"]}
    (folder / "metrics.json").write_text(json.dumps(usual | metrics))
    (folder / "config.yaml").write_text("schema: 2\noptions: {lr: 0.01}\n")
    (folder / "environment.json").write_text('{"packages": {"torch": "2.13"}}')
    return folder


def contents(fitted: Fitted, **metrics: Any) -> Content:
    """What the report of a model shows."""
    return collect(fitted, {"dataset": "six", "n_edges": 5} | metrics, "lr: 0.01", "")


def write_tables(folder: Path) -> tuple[Path, Path]:
    """90 nodes of three classes with odd names; 80 to 89 are apart, without a label."""
    rng = np.random.default_rng(0)
    ids = [ODD_ID if i == 7 else f"n {i}" for i in range(90)]
    nodes = [
        [
            ids[i],
            "" if i == 3 else f"{rng.normal(3 * (i % 3)):.3f}",
            ("red", "blue")[i % 2],
            LABELS[i % 3] if i < 80 and (i % 3 or i % 2) else "",
        ]
        for i in range(90)
    ]
    steps = [(i, (i + step) % 80) for i in range(80) for step in (3, 6, 1)[: 2 + i % 2]]
    steps += [(i, i + 1) for i in range(80, 89)]
    tables = (
        ("nodes.csv", ["id", "size", "colour<b>", "label"], nodes),
        ("edges.csv", ["source", "target"], [[ids[a], ids[b]] for a, b in steps]),
    )
    for name, header, lines in tables:
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *lines])
    return folder / "nodes.csv", folder / "edges.csv"


@pytest.fixture(scope="session")
def fitted_tables(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """A short fit of the tables, with the simpler models."""
    data = load_tables(*write_tables(tmp_path_factory.mktemp("tables")))
    options = {"epochs": 12, "graph_mode": "topk"}
    return fit(data, "elu-gcn", options, with_baselines=True, n_threads=1)


@pytest.fixture(scope="session")
def run(fitted_tables: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of that fit, with its report."""
    out = tmp_path_factory.mktemp("run") / "run"
    metrics = metrics_of(fitted_tables, EVIL, 0, out)
    write_run(
        fitted_tables, metrics, out, {},
        lambda folder: write_report(folder, fitted=fitted_tables) and None,
    )  # fmt: skip
    return out
