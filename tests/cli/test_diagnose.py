"""`elugcn diagnose`: what it prints, against what the library computes."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from elugcn.api import attach_graph, json_safe, load
from elugcn.cli.diagnose import show
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import check_data
from elugcn.insight import diagnose
from tests.cli.conftest import LABELS, LEARN, SBM, Command, rows_of


def test_values_are_those_of_the_library(elugcn: Command, runs: Path) -> None:
    run = runs / "sbm"
    said = elugcn("diagnose", "--run", run, "--json").json
    fitted = load(run)
    data = check_data(load_dataset("sbm", n=120, n_classes=3)).data
    assert attach_graph(fitted, data)
    assert said == {"dataset": "sbm", "seed": 0} | json_safe(diagnose(fitted))
    counts = [row["utilization"] for row in rows_of(run / "predictions.csv")]
    for status, row in said["overall"].items():
        assert row["nodes"] == counts.count(status)
    assert sum(row["nodes"] for row in said["degrees"]) == 120
    assert said["distances"][0]["nodes"] == 6
    assert 0 < said["graphs"]["original"]["homophily"] < 1
    assert 0 < said["graphs"]["elu"]["homophily"] < 1


def test_a_graph_without_a_run(elugcn: Command, folder: Path) -> None:
    said = elugcn("diagnose", *SBM, *LEARN, "--seed", "4", "--json").json
    assert (said["dataset"], said["seed"]) == ("sbm", 4)
    # The plain GCN of the paper's method, with the options that diagnose has.
    same = ["--set", "epochs=5", "--set", "dropout=0.8", "--set", "lpa_steps=50"]
    run = ["--method", "elu-gcn", *same, "--seed", "4", "--no-report", "--json"]
    trained = elugcn("train", *SBM, *run, "--out", "run").json
    assert said["overall"]["elu"]["share"] == pytest.approx(trained["elu_fraction"])
    assert [p.name for p in folder.iterdir()] == ["run"]


def test_everything_is_shown(elugcn: Command, runs: Path) -> None:
    said = elugcn("diagnose", "--run", runs / "tables", "--json").json
    shown = elugcn("diagnose", "--run", runs / "tables").out
    assert shown.startswith("What the labels do on nodes\n• Label propagation and")
    for sentence in said["findings"]:
        assert f"• {sentence}\n" in shown
    for title in ("class by GCN", "neighbours", "edges to a label", "graph "):
        assert f"\n{title}" in shown
    share = f"{100 * said['overall']['elu']['share']:.1f}%"
    assert f"ELU: label propagation and GCN agree  {share}" in shown
    for name in LABELS:
        assert f"\n{name} " in shown
    assert "\x1b" not in shown
    assert elugcn("diagnose", "--run", runs / "tables", "--quiet").out == ""


def test_suggestions(elugcn: Command, runs: Path) -> None:
    asked = ["diagnose", "--run", runs / "tables", "--suggest"]
    chosen = elugcn(*asked, "7", "--json").json["suggestions"]
    assert len({s["node"] for s in chosen}) == 7
    labelled = {f"n {i}" for i in range(1, 60, 2)}
    assert not labelled & {s["node"] for s in chosen}
    assert chosen[0]["gain"] > chosen[-1]["gain"] >= 0
    shown = elugcn(*asked, "7").out
    for one in chosen:
        assert f"\n{one['node']} " in shown
        assert f"{one['gain']:.1f}" in shown
        assert one["reason"] in shown
    # More than there are: all of them.
    assert len(elugcn(*asked, "99", "--json").json["suggestions"]) == 30


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal(width: int, elugcn: Command, runs: Path) -> None:
    """Lines fit; long names are cut, numbers are not."""
    run = ["diagnose", "--run", runs / "tables", "--suggest", "2", "--json"]
    said = elugcn(*run).json
    long = "a class with a name that no terminal has room for, not even half of it"
    for row in said["classes"]:
        row["name"] = row["pulled_to"] = long
        row["pulled_share"] = 0.5
    said["findings"] = ["Words " * 20 + "agree."]
    file = io.StringIO()
    show(said, Console(width=width, force_terminal=True, color_system=None, file=file))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert sum(line.rstrip().endswith("50.0%") for line in lines) == 3
    assert sum("a class" in line and "…" in line for line in lines) == 3
