"""``elugcn bench`` with the smallest real measurements."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from elugcn.bench import children, graph, scale, step
from elugcn.bench.base import Settings
from elugcn.bench.records import Outcome
from elugcn.bench.runner import get_suites
from elugcn.cli import bench
from tests.cli.conftest import Command, rows_of
from tests.cli.conftest import Outcome as Done

KEYS = ["suite", "dataset", "n", "metric", "value", "unit"]


def records(done: Done) -> list[dict[str, Any]]:
    """Standard output, which must be one list of records and nothing else."""
    assert done.code == 0, done.err
    assert done.out.count("\n") == 1
    found = json.loads(done.out, parse_constant=pytest.fail)
    assert all(list(record) == KEYS for record in found)
    return list(found)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "START_METHOD", "fork")
    monkeypatch.setattr(graph, "QUICK_SIZES", (100, 200))
    monkeypatch.setattr(scale, "QUICK_SIZES", (300, 600))


@pytest.mark.slow
def test_the_program(process: Command, folder: Path) -> None:
    done = process("bench", "graph", "--quick", "--repeats", "1", "--json")
    found = records(done)
    assert done.err == ""
    assert {r["suite"] for r in found} == {"graph"}
    assert [r["n"] for r in found if r["metric"] == "ratio_time"] == [500, 1000]
    place = folder / "results/quick/bench"
    assert sorted(p.name for p in place.iterdir()) == [
        f"graph.{form}" for form in ("csv", "md", "png", "svg")
    ]
    # The small version stays apart from the results.
    assert [p.name for p in (folder / "results").iterdir()] == ["quick"]
    rows = rows_of(place / "graph.csv")
    assert [float(r["value"]) for r in rows] == pytest.approx(
        [r["value"] for r in found], rel=1e-5
    )
    assert (
        "elugcn bench graph --quick --repeats 1\n" in (place / "graph.md").read_text()
    )


@pytest.mark.usefixtures("small")
def test_all_suites(elugcn: Command, folder: Path) -> None:
    done = elugcn(
        "bench", "all", "--quick", "--datasets", "karate", "--repeats", "1",
        "--epochs", "1", "--out", "pages", "--json",
    )  # fmt: skip
    found = records(done)
    assert done.err == ""
    metrics = {
        suite: {r["metric"] for r in found if r["suite"] == suite}
        for suite in ("step", "fit", "graph", "scale")
    }
    assert metrics["step"] == {
        "elu_gcn_ms", "pyg_gcn_ms", "pyg_gat_ms", "ratio_gcn", "ratio_gat", "floor_ms",
        "overhead",
    }  # fmt: skip
    assert {"ratio_gcn", "ratio_time", "ratio_memory"} <= metrics["fit"]
    assert {"ratio_time", "ratio_memory"} <= metrics["graph"]
    assert {"exponent_time", "exponent_memory", "peak_rss_mb"} <= metrics["scale"]
    pages = {p.stem: p.read_text() for p in (folder / "pages").glob("*.md")}
    options = "--repeats 1 --epochs 1 --out pages"
    assert f"elugcn bench graph --quick {options}\n" in pages["graph"]
    # Only suites that have datasets are told of them.
    assert f"elugcn bench step --quick --datasets karate {options}\n" in pages["step"]
    assert sorted(pages) == ["fit", "graph", "scale", "step"]


def test_a_part_does_not_take_the_place_of_the_whole(folder: Path) -> None:
    (suite,) = get_suites("step")
    parts = (
        Settings(True, ("digits",), None, None, None, print),
        Settings(True, None, None, 2, None, print),
        Settings(True, None, None, None, 3, print),
    )
    whole = Settings(True, None, None, None, None, print)
    place = folder / "bench"
    assert {bench._place(place, suite, s) for s in (whole, *parts)} == {place}
    place.mkdir()
    (place / "step.md").touch()
    assert {bench._place(place, suite, s) for s in parts} == {place / "part"}
    assert bench._place(place, suite, whole) == place


def test_says_where_the_page_is(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    def measure(settings: Settings) -> Outcome:
        outcome = Outcome("step")
        for metric in ("elu_gcn_ms", "floor_ms", "pyg_gcn_ms", "pyg_gat_ms"):
            outcome.add("karate", 34, metric, 2.0, "ms")
        for metric in ("ratio_gcn", "ratio_gat", "overhead"):
            outcome.add("karate", 34, metric, 1.0)
        settings.say("step: karate")
        return outcome

    from elugcn.bench import runner

    suite = step.SUITE
    fake = type(suite)(suite.name, suite.title, suite.question, measure, suite.write,
                       suite.datasets, suite.quick_datasets)  # fmt: skip
    monkeypatch.setitem(runner.SUITES, "step", fake)
    options = ["bench", "step", "--datasets", "karate"]
    done = elugcn(*options)
    assert (done.code, done.out, done.err) == (
        0, "step: 7 numbers, results/bench/step.md\n", "",
    )  # fmt: skip
    assert (folder / "results/bench/step.png").stat().st_size > 5000
    quiet = elugcn(*options, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    # On a terminal it says what it does, and nowhere else.
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(bench.sys.stderr, "isatty", lambda: True)
    assert elugcn(*options).err == "elugcn: step: karate\n"
    assert elugcn(*options, "--json").err == ""


class TestRefusals:
    def test_suite(self, refused: Callable[..., str]) -> None:
        refused("bench", "speed", says="unknown suite 'speed'; there are step, fit")
        refused("bench", says="(?i)Missing argument 'suite'")

    def test_dataset(self, refused: Callable[..., str]) -> None:
        refused("bench", "step", "--datasets", "coral", says="coral.*cora")
        refused("bench", "step", "--datasets", " , ", says="--datasets.*expected names")
        refused(
            "bench", "graph", "--datasets", "cora",
            says="--datasets goes with step and fit; graph draws its own",
        )  # fmt: skip

    def test_no_data(self, refused: Callable[..., str]) -> None:
        for suite in ("step", "fit", "all"):
            refused(
                "bench", suite, "--datasets", "cora", "--data-dir", "nowhere",
                says="nowhere is not an existing directory",
            )  # fmt: skip

    def test_numbers(self, refused: Callable[..., str]) -> None:
        refused("bench", "step", "--repeats", "0", says="--repeats.*1")
        refused("bench", "fit", "--epochs", "0", says="--epochs.*1")

    def test_place(self, refused: Callable[..., str], folder: Path) -> None:
        (folder / "file").write_text("")
        refused("bench", "step", "--out", "file", says="--out file: .*no directory")


@pytest.mark.usefixtures("small")
def test_interrupt(elugcn: Command, folder: Path) -> None:
    """Nothing is left computing, nothing is half-written."""
    family: list[psutil.Process] = []
    others = set(psutil.Process().children())

    def interrupt() -> None:
        while not family:
            time.sleep(0.05)
            family.extend(set(psutil.Process().children()) - others)
        os.kill(os.getpid(), signal.SIGINT)

    # A suite that runs in the background of a shell has the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        done = elugcn("bench", "scale", "--quick", "--epochs", "100000")
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert (done.code, done.out, done.err) == (130, "", "elugcn: interrupted\n")
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert list(folder.iterdir()) == []
