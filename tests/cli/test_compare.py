"""``elugcn compare``: the real program, the real workers, real kills."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from elugcn.evaluation import harness
from tests.cli.conftest import Command

PROGRAM = str(Path(sys.executable).with_name("elugcn"))
SMALL = ["--datasets", "sbm", "--data-option", "sbm.n=100", "--store", "store"]


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [PROGRAM, "compare", *SMALL, *arguments],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Under a shell that ignores the signal, children would too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.wait()


def wait_for(holds: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def stored(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.glob("store/*/*/[0-9]*.json")}


@pytest.mark.slow
def test_killed_and_shared(
    folder: Path, start: Callable[..., subprocess.Popen[str]], elugcn: Command
) -> None:
    """Kill it in its second run; then two go on with it, and nothing is doubled."""
    arguments = ["--methods", "gcn", "--set", "gcn.epochs=3", "--seeds", "3", "--json"]
    child = start(*arguments)
    locks = folder / "store/gcn/sbm"
    wait_for(lambda: bool(stored(folder) and list(locks.glob("1-1-*.lock"))), child)
    workers = psutil.Process(child.pid).children()
    before = stored(folder)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert len(before) == 1
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []  # no orphan goes on computing

    pair = [start(*arguments) for _ in range(2)]
    results = [child.communicate(timeout=240) for child in pair]
    assert [child.returncode for child in pair] == [0, 0]
    assert [err for _, err in results] == ["", ""]
    one, two = (json.loads(out) for out, _ in results)
    assert one == two
    assert one["runs"] == {"done": 3, "failed": 0}
    assert one["cells"][0]["runs"] == 3
    after = stored(folder)
    assert sorted(name.split("-")[1] for name in after) == ["0", "1", "2"]
    assert all(after[name] == text for name, text in before.items())
    assert sorted(p.name for p in locks.iterdir()) == sorted(after)

    # All is there: the table takes no run, in this process or another.
    done = elugcn("compare", *SMALL, *arguments[:-1], "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.out))
    values = [100 * json.loads(text)["test_accuracy"] for text in after.values()]
    assert float(row["mean"]) == pytest.approx(sum(values) / 3, abs=1e-4)
    assert row["runs"] == "3"
    assert stored(folder) == after


@pytest.mark.slow
def test_interrupt(folder: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    child = start("--methods", "gcn", "--set", "gcn.epochs=9999999",
                  "--set", "gcn.patience=9999999")  # fmt: skip
    wait_for(lambda: bool(list(folder.glob("store/gcn/sbm/*.lock"))), child)
    time.sleep(0.3)
    workers = psutil.Process(child.pid).children()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "elugcn: interrupted\n")
    assert list(folder.glob("store/gcn/sbm/*")) == []
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []


@pytest.mark.slow
def test_peak_memory_is_the_runs_own(folder: Path, elugcn: Command) -> None:
    """This process holds more than a small run needs; the run is not charged."""
    ballast = bytearray(os.urandom(1 << 20) * 800)
    done = elugcn("compare", *SMALL, "--methods", "lpa", "--seeds", "1", "--json")
    assert 50 < done.json["cells"][0]["peak_rss_mb"] < 800
    assert len(ballast) == 800 << 20


@pytest.mark.slow
def test_failed_runs_are_reported_and_retried(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "check_data_of", lambda *rest: None)
    karate = [
        "--methods",
        "lpa",
        "--datasets",
        "karate",
        "--seeds",
        "1",
        "--store",
        "s",
    ]
    # More labels than the smallest class has: only the worker finds out.
    done = elugcn("compare", *karate, "--labels-per-class", "30")
    assert done.code == 1
    assert "failed" in done.out
    (line,) = done.errors
    assert line.startswith("elugcn: failed: lpa on karate, split 0, seed 0: ")
    (kept,) = Path("s/lpa/karate").glob("*")
    assert kept.name.endswith(".failed.json")
    assert json.loads(kept.read_text())["status"] == "failed"
    before = kept.stat().st_mtime_ns
    again = elugcn("compare", *karate, "--labels-per-class", "30", "--json")
    assert again.code == 1
    assert json.loads(again.out)["runs"] == {"done": 0, "failed": 1}
    assert kept.stat().st_mtime_ns > before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--methods", "nope"], "unknown method 'nope'"),
        (["--methods", ","], "at least one method"),
        (["--datasets", "koala"], "unknown dataset 'koala'"),
        (["--seeds", "0"], "seeds must be at least 1; got 0"),
        (["--jobs", "0"], "jobs must be at least 1; got 0"),
        (["--threads", "0"], "threads must be at least 1; got 0"),
        (["--device", "abacus"], "device must be auto, cpu or cuda"),
        (["--set", "epochs=3"], "--set epochs: expected --set METHOD.key=value"),
        (["--set", "gcn.epochs"], "--set gcn.epochs: expected key=value"),
        (["--set", "gcn.epoch=3"], "unknown option 'epoch' of method gcn"),
        (["--set", "gcn.epochs=0"], "epochs must be at least 1"),
        (["--data-option", "sbm.n=100"], "which is not compared"),
        (["--labels-per-class", "0"], "labels_per_class must be at least 1"),
        (["--labels-per-class", "900"], "labels"),
        (["--format", "html"], "unknown --format 'html'"),
        (["--out", "nowhere/t.md"], "--out nowhere/t.md: expected a file"),
        (["--data-dir", "nowhere", "--datasets", "cora"], "not an existing directory"),
    ],
)
def test_refusals(arguments: list[str], says: str, refused: Callable[..., str]) -> None:
    refused("compare", "--store", "store", *arguments, says=says)


def test_a_store_that_is_a_file(refused: Callable[..., str], folder: Path) -> None:
    (folder / "store").touch()
    refused("compare", "--store", "store", says="--store store: ")
