"""``elugcn reproduce`` with real runs of the smallest kind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from elugcn.evaluation.store import Store
from elugcn.experiments import fewlabels, runner, social, table1
from elugcn.experiments.base import Scope
from tests.cli.conftest import Command, rows_of
from tests.experiments.conftest import fill

KARATE = ["--datasets", "karate", "--methods", "lpa"]


def stored(folder: Path) -> dict[str, bytes]:
    place = "results/quick/store/*/*/*.json"
    return {p.name: p.read_bytes() for p in folder.glob(place)}


def karate(*methods: str, quick: bool = False, seeds: int = 2) -> Scope:
    return Scope(quick, seeds, ("karate",), methods)


@pytest.mark.slow
def test_runs_and_goes_on(process: Command, folder: Path) -> None:
    """One run is in the store already; the other is done, in a process of its own."""
    first, second = table1.plan(karate("lpa", quick=True))
    fill(Store("results/quick/store"), [first], lambda p: 0.25)
    before = stored(folder)
    done = process("reproduce", "table1", "--quick", *KARATE, "--json")
    (report,) = done.json["experiments"]
    assert report["experiment"] == "table1"
    assert report["runs"] == {"planned": 2, "done": 2, "failed": 0}
    assert sorted(report["files"]) == [
        f"results/quick/table1.{form}" for form in ("csv", "md", "png", "svg")
    ]
    assert done.json["skipped"] == []
    after = stored(folder)
    assert len(after) == 2
    assert all(after[name] == text for name, text in before.items())
    (row,) = rows_of(folder / "results/quick/table1.csv")
    record = json.loads(Store("results/quick/store").path(second.job).read_text())
    mean = 100 * (0.25 + record["test_accuracy"]) / 2
    assert float(row["mean"]) == pytest.approx(mean, abs=1e-4)
    assert row["runs"] == "2"
    page = (folder / "results/quick/table1.md").read_text()
    assert "elugcn reproduce table1 --quick --datasets karate --methods lpa\n" in page
    assert "(table1.md)" in (folder / "results/quick/README.md").read_text()
    # The small version stays apart from the results.
    assert [p.name for p in (folder / "results").iterdir()] == ["quick"]


@pytest.mark.slow
def test_interrupt(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("elugcn")), "reproduce", "table1",
               "--datasets", "digits", "--methods", "gat", "--seeds", "9"]  # fmt: skip
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
        # What a shell starts in the background ignores SIGINT, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    limit = time.monotonic() + 120
    while not list(folder.glob("results/store/gat/digits/*.lock")):
        assert child.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.05)
    workers = psutil.Process(child.pid).children()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "elugcn: interrupted\n")
    assert list(folder.glob("results/store/gat/digits/*.lock")) == []
    assert not list(folder.glob("results/*.md"))
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


def test_shows_a_store(elugcn: Command, folder: Path) -> None:
    plan = table1.plan(karate("gcn", "lpa", seeds=10))
    fill(Store("elsewhere"), plan[:15], lambda p: 0.5)
    done = elugcn(
        "reproduce", "table1", "--no-run", "--datasets", "karate",
        "--methods", "gcn,lpa", "--store", "elsewhere", "--out", "pages",
    )  # fmt: skip
    assert done.code == 0
    assert done.out.splitlines() == [
        "table1: 15 of 20 runs, pages/table1.md",
        "  note: fewer runs than planned: lpa on karate 5 of 10",
    ]
    assert [r["runs"] for r in rows_of(folder / "pages/table1.csv")] == ["10", "5"]
    page = (folder / "pages/table1.md").read_text()
    assert (
        "elugcn reproduce table1 --datasets karate --methods gcn,lpa --store elsewhere "
        "--out pages\n" in page
    )
    quiet = elugcn(
        "reproduce", "table1", "--no-run", "--datasets", "karate", "--seeds", "3",
        "--store", folder / "elsewhere", "--out", "pages", "--quiet",
    )  # fmt: skip
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    # A path of this computer is of no use to a reader.
    page = (folder / "pages/table1.md").read_text()
    assert "table1 --seeds 3 --datasets karate --out pages\n" in page


def test_all_goes_on_without_what_is_not_there(elugcn: Command, folder: Path) -> None:
    store = Store("results/quick/store")
    fill(store, table1.plan(karate("lpa", quick=True)), lambda p: 0.5)
    fill(store, fewlabels.plan(karate("lpa", quick=True)), lambda p: 0.5)
    done = elugcn("reproduce", "all", "--quick", "--no-run", *KARATE, "--json")
    names = [e["experiment"] for e in done.json["experiments"]]
    # The social networks have the same methods and, on this graph, the same runs.
    assert names == ["table1", "social", "runtime", "fewlabels"]
    assert len(done.json["skipped"]) == 8
    assert all(line.startswith("elugcn: skipped: ") for line in done.errors)
    overview = (folder / "results/quick/README.md").read_text()
    places = [overview.index(f"({name}.md)") for name in names]
    assert places == sorted(places)
    # The tables are shown there, the others by their figures.
    assert overview.count("| lpa |") == 2


def test_failures_are_told(
    elugcn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner.run_jobs
    monkeypatch.setattr(
        runner, "run_jobs", lambda *a, **k: real(*a, **(k | {"command": ["false"]}))
    )
    plan = social.plan(karate("lpa"))
    fill(Store("results/store"), plan[:1], lambda p: 0.5)
    done = elugcn("reproduce", "social", *KARATE, "--seeds", "2")
    assert done.code == 1
    (line,) = done.errors
    assert line.startswith("elugcn: failed: lpa on karate, split 1, seed 1: ended with")
    assert "1 failed, lpa on karate" in (folder / "results/social.md").read_text()
    (row,) = rows_of(folder / "results/social.csv")
    assert row["runs"] == "1"
    some = elugcn("reproduce", "table1", *KARATE, "--seeds", "3")
    assert some.code == 1
    assert some.out.startswith("table1: 1 of 3 runs, ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["table9"], "unknown experiment 'table9'; there are table1, social"),
        (["table1", "--seeds", "0"], "--seeds must be at least 1; got 0"),
        (["table1", "--datasets", "koala"], "unknown dataset 'koala'"),
        (["all", "--methods", "nope"], "unknown method 'nope'"),
        (["table1", "--methods", ","], "--methods ',': expected names"),
        (["table1", *KARATE, "--jobs", "0"], "jobs must be at least 1; got 0"),
        (["table1", *KARATE, "--threads", "0"], "threads must be at least 1"),
        (["table1", *KARATE, "--device", "abacus"], "device must be auto"),
        (["table1", *KARATE, "--no-run"], "--no-run: results/store has no run"),
        (["all", *KARATE, "--no-run"], "has no run of table1 yet"),
        (["sensitivity", *KARATE], "sensitivity has no run for these"),
        (["social", "--datasets", "uf21"], r"no dataset is there; uf21: .*UF21\.mat"),
        ([], "Missing argument"),
    ],
)
def test_refusals(arguments: list[str], says: str, refused: Callable[..., str]) -> None:
    refused("reproduce", *arguments, says=says)


def test_out_is_a_file(refused: Callable[..., str], folder: Path) -> None:
    (folder / "results").touch()
    refused("reproduce", "table1", *KARATE, says="--out results: .* no directory")
