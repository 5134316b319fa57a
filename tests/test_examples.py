"""The examples run as they stand, and show what they say."""

import re
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What an example prints. In this process: importing PyTorch takes seconds."""

    def output(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return output


def accuracies(pattern: str, text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(pattern, text, re.M)}


def test_own_tables(tmp_path: Path) -> None:
    script = str(EXAMPLES / "own_tables.py")  # from any folder
    out = subprocess.check_output([sys.executable, script], text=True, cwd=tmp_path)
    found = accuracies(r"^([\w-]+) +(0\.\d+) ", out)
    assert list(found) == ["mlp", "lpa", "gcn", "elu-gcn"]
    # Features and edges both carry signal, and more together than alone.
    assert 0.55 < found["mlp"] < found["gcn"] < found["elu-gcn"]
    assert 0.6 < found["lpa"] < found["elu-gcn"]


def test_the_tables_are_what_their_script_draws(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "people/make.py", tmp_path)
    subprocess.run([sys.executable, str(tmp_path / "make.py")], check=True)
    for name in ("nodes.csv", "edges.csv", "truth.csv"):
        drawn = (tmp_path / name).read_text("utf-8")
        assert drawn == (EXAMPLES / "people" / name).read_text("utf-8")
    rows = (EXAMPLES / "people/nodes.csv").read_text("utf-8").splitlines()
    assert rows[0] == "id,age,city,height,label"
    assert len(rows) == 401
    assert sum(not row.endswith(",") for row in rows[1:]) == 60


def test_first_fit(run: Callable[..., str]) -> None:
    out = run("first_fit.py")
    assert accuracies(r"(test accuracy) (\S+)", out)["test accuracy"] > 0.9
    assert "LabelUtilization(elu=" in out
    assert "LowRankGraph(n=1797, rank≤10" in out


def test_elu_graph(run: Callable[..., str]) -> None:
    out = run("elu_graph.py")
    on = accuracies(r"GCN on (\w+) test nodes: (\S+)", out)
    assert on["ELU"] > 0.9 > on["NELU"]
    plain = accuracies(r"share (\S+) of the ELU graph: (\S+)", out)
    assert plain["0.5"] > plain["0.0"] > 0.8


def test_compare(run: Callable[..., str]) -> None:
    found = accuracies(r"^([\w-]+) +(\d+\.\d) ±", run("compare.py", "karate"))
    assert list(found) == ["gcn", "mlp", "lpa", "appnp", "elu-gcn"]
    assert all(0 < value <= 100 for value in found.values())
