"""`compare`, `tune`, `reproduce` and `bench`: the commands that do many runs."""

import csv
import io
import json
from pathlib import Path

import pytest

from elugcn.api import fit
from elugcn.cli.app import run
from elugcn.data.datasets import load_dataset
from tests.cli.conftest import Command

COMPARE = ["compare", "--methods", "gcn,lpa", "--datasets", "karate", "--seeds", "2"]
COMPARE += ["--set", "gcn.epochs=3"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of a small comparison."""
    place = tmp_path_factory.mktemp("store")
    assert run([*COMPARE, "--quiet", "--store", str(place)]) == 0
    return place


def stored(place: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(place.rglob("*.jsonl"))]


def test_compare_measures_what_the_library_does(elugcn: Command, store: Path) -> None:
    before = stored(store)
    said = elugcn(*COMPARE, "--store", store, "--json").json
    assert said["runs"] == {"done": 4, "failed": 0}
    assert said["store"] == str(store)
    cells = {cell["method"]: cell for cell in said["cells"]}
    for method, options in (("gcn", {"epochs": 3}), ("lpa", {})):
        values = []
        for i in range(2):
            data = load_dataset("karate", split=i)
            fitted = fit(data, method, options, seed=i)
            values.append(fitted.accuracy(data.test_mask))
        mean = 100 * sum(map(float, values)) / 2  # type: ignore[arg-type]
        assert cells[method]["mean"] == pytest.approx(mean, abs=0.01)
    assert stored(store) == before  # nothing was run again


def test_compare_by_another_metric(elugcn: Command) -> None:
    asked = ["--methods", "gcn", "--seeds", "1", "--metric", "f1_macro", "--json"]
    asked += ["--class-weight", "balanced", "--set", "gcn.epochs=3"]
    said = elugcn("compare", "--datasets", "karate", "--store", "s", *asked).json
    weights = {"metric": "f1_macro", "class_weight": "balanced"}
    fitted = fit(load_dataset("karate"), "gcn", {"epochs": 3}, **weights)  # type: ignore[arg-type]
    score = fitted.score(fitted.data.test_mask)
    assert said["metric"] == "f1_macro"
    assert said["cells"][0]["mean"] == pytest.approx(100 * (score or 0.0))


def test_forms_of_the_table(elugcn: Command, store: Path, folder: Path) -> None:
    asked = [*COMPARE, "--store", store]
    said = elugcn(*asked, "--json").json
    mean = {cell["method"]: cell["mean"] for cell in said["cells"]}
    shown = elugcn(*asked).out
    for method in ("gcn", "lpa"):
        assert f"{mean[method]:.2f} ± " in shown
    out = elugcn(*asked, "--format", "csv").out
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(out))}
    assert float(rows["gcn"]["mean"]) == pytest.approx(mean["gcn"], abs=1e-4)
    assert elugcn(*asked, "--format", "csv", "--out", "t [1].csv").out == ""
    assert (folder / "t [1].csv").read_text() == out
    assert elugcn(*asked, "--quiet").out == ""


def test_failed_runs_are_named(elugcn: Command) -> None:
    asked = ["--methods", "gcn", "--datasets", "karate", "--seeds", "1", "--store", "s"]
    done = elugcn("compare", *asked, "--set", "gcn.lr=1e30", "--json")
    assert done.code == 1
    assert json.loads(done.out)["runs"] == {"done": 0, "failed": 1}
    (line,) = done.errors
    assert line.startswith("elugcn: failed: gcn on karate, ")
    assert "diverged" in line


def test_tune(elugcn: Command) -> None:
    pytest.importorskip("optuna")
    asked = ["tune", "--methods", "lpa", "--datasets", "karate", "--trials", "2"]
    said = elugcn(*asked, "--json").json
    assert (said["runs"], said["first"], said["store"]) == (1, 100, "runs/tune")
    (search,) = said["searches"]
    assert [trial["number"] for trial in search["trials"]] == [1, 2]
    best = search["best"]
    assert best["val_accuracy"] == max(t["val_accuracy"] for t in search["trials"])
    # The same command again runs nothing and shows the same.
    shown = elugcn(*asked).out.splitlines()
    row = next(line for line in shown if line.startswith("lpa"))
    assert row.split()[1:5] == [
        "karate", f"{100 * best['val_accuracy']:.1f}%", str(best["number"]), "of",
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["reproduce", "bench"])
def test_what_is_not_installed(
    command: str, elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.cli.app.entry_points", lambda **given: ())
    for arguments in ([], ["table1", "--json"], ["--help"]):
        done = elugcn(command, *arguments)
        assert (done.code, done.out) == (2, "")
        (line,) = done.errors
        assert line.startswith(f"elugcn: error: elugcn {command} is part of the ")
        assert line.endswith("install it with: pip install ./reproduction")
