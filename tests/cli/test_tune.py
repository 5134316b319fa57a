"""``elugcn tune``: the real program, the real workers, a real kill."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elugcn.config import make_config
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.fitting import fit_graph
from tests.cli.conftest import Command

PROGRAM = str(Path(sys.executable).with_name("elugcn"))
SPACE = """
schema: 1
budget: {trials: 2, runs: 1, first: 100}
spaces:
  lpa:
    start: [{lpa_steps: 1}, {lpa_steps: 3}]
    values: {lpa_steps: [1, 3, 5], lpa_alpha: {low: 0.5, high: 0.9, step: 0.1}}
"""
TUNE = ["tune", "--methods", "lpa", "--datasets", "karate", "--space", "space.yaml",
        "--store", "store", "--out", "out"]  # fmt: skip


@pytest.fixture(autouse=True)
def space(folder: Path) -> Path:
    path = folder / "space.yaml"
    path.write_text(SPACE)
    return path


def own_accuracy(**options: float) -> float:
    """Validation accuracy of label propagation on split 100, computed here."""
    graph = check_data(load_dataset("karate", 100), seed=100)
    fitted = fit_graph(graph, "lpa", make_config("lpa", options), seed=100)
    found = fitted.accuracy(fitted.data.val_mask)
    assert found is not None
    return found


@pytest.mark.slow
def test_killed_and_taken_up_again(folder: Path, elugcn: Command) -> None:
    """Kill the program in its second trial; the same command ends the search."""
    command = [PROGRAM, *TUNE, "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    place = folder / "store/lpa/karate"
    end = time.monotonic() + 120
    while not (list(place.glob("*.json")) and list(place.glob("*.lock"))):
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGKILL)
    assert child.communicate()[0] == b""
    (kept,) = place.glob("*.json")
    text = kept.read_bytes()

    found = elugcn(*TUNE, "--json", "--write-presets", "--presets", ".").json
    assert kept.read_bytes() == text
    assert len(list(place.glob("*.json"))) == 2
    (search,) = found["searches"]
    values = [own_accuracy(lpa_steps=steps) for steps in (1, 3)]
    with Path("out/karate-lpa.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["val_accuracy"]) for r in rows] == values
    assert [r["lpa_steps"] for r in rows] == ["1", "3"]
    assert search["val_accuracy"] == max(values)
    assert search["best_trial"] == values.index(max(values)) + 1
    assert (search["trials"], search["failed"], search["std"]) == (2, 0, None)
    assert search["options"]["lpa_steps"] == (1, 3)[values.index(max(values))]
    assert search["searched"]["lpa_steps"] == search["options"]["lpa_steps"]
    assert "test" not in json.dumps(found)
    assert Path("karate.yaml").read_text().startswith("schema: 1\nlpa:  # best of 2")

    # All is there: people get a table, and no run is needed for it.
    shown = elugcn(*TUNE)
    assert (shown.code, shown.err) == (0, "")
    assert f"{100 * max(values):.1f} %" in shown.out
    assert f"lpa_steps={search['options']['lpa_steps']}" in shown.out
    quiet = elugcn(*TUNE, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    # And the best options are a configuration that `train` takes.
    trained = elugcn("train", "--dataset", "karate", "--method", "lpa", "--split", "100",
                     "--seed", "100", "--config", "out/karate-lpa.yaml", "--json")  # fmt: skip
    assert trained.json["val_accuracy"] == max(values)


def test_a_search_in_which_all_fails(elugcn: Command, folder: Path) -> None:
    """The failure is in the store already: no run, one line, exit code 1."""
    one = [*TUNE, "--trials", "1"]
    from elugcn.evaluation import Store, make_jobs

    (job,) = make_jobs(["lpa"], ["karate"], 1, first=100,
                       options={"lpa": {"lpa_steps": 1}})  # fmt: skip
    path = Store("store").failed_path(job)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"error": "no luck", "exit_code": 1}))
    done = elugcn(*one)
    assert done.code == 1
    assert "failed" in done.out
    assert done.errors == ["elugcn: failed: lpa on karate, trial 1: no luck"]
    assert not (folder / "out/karate-lpa.yaml").exists()
    again = elugcn(*one, "--json")
    (search,) = json.loads(again.out)["searches"]
    assert (again.code, search["errors"], search["yaml"]) == (1, ["no luck"], None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--methods", "nope"], "unknown method 'nope'"),
        (["--methods", ","], "at least one method and one dataset"),
        (
            ["--methods", "gcn"],
            "--space space.yaml: no space for method 'gcn'; known: lpa",
        ),
        (["--datasets", "koala"], "unknown dataset 'koala'"),
        (["--trials", "0"], "--trials must be at least 1; got 0"),
        (["--runs", "0"], "--runs must be at least 1; got 0"),
        (["--first", "-1"], "--first must be at least 0; got -1"),
        (["--first", str(2**32)], "first must be 0 to"),
        (["--search-seed", "-1"], "--search-seed must be at least 0; got -1"),
        (["--jobs", "0"], "jobs must be at least 1; got 0"),
        (["--threads", "0"], "threads must be at least 1; got 0"),
        (["--device", "abacus"], "device must be auto, cpu or cuda"),
        (["--space", "nowhere.yaml"], "--space nowhere.yaml: no such file"),
        (["--presets", "nowhere"], "--presets nowhere: not an existing directory"),
        (["--out", "space.yaml"], "--out space.yaml: .* is not a writable directory"),
        (
            ["--out", "space.yaml/out"],
            "--out space.yaml/out: .* not a writable directory",
        ),
        (["--store", "space.yaml"], "--store space.yaml: "),
        (["--data-dir", "nowhere", "--datasets", "cora"], "not an existing directory"),
    ],
)
def test_refusals(arguments: list[str], says: str, refused: Callable[..., str]) -> None:
    refused(*TUNE, *arguments, says=says)


def test_optuna_absent(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    refused(*TUNE, says=r"optuna is not installed.*'elugcn\[tune\]'")
