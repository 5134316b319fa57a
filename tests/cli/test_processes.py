"""The installed program: what only a process of its own can show."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import elugcn as package
from tests.cli.conftest import Command, Tables, rows_of

pytestmark = pytest.mark.slow

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
PROGRAM = str(Path(sys.executable).with_name("elugcn"))


def test_version_and_help(process: Command) -> None:
    done = process("--version")
    assert (done.code, done.out, done.err) == (0, f"elugcn {package.__version__}\n", "")


def test_train_predict_and_an_error(process: Command, tables: Tables) -> None:
    done = process(
        "train", *tables.write(), "--set", "epochs=3", "--json", "--out", "run"
    )
    assert done.json["out"] == "run"
    assert done.err == ""
    done = process("predict", "run", "--json", "--out", "p.csv")
    assert done.json["n_nodes"] == 60
    assert Path("p.csv").read_text() == Path("run/predictions.csv").read_text()
    done = process("predict", "run", *tables.write(), "--out", "run/x/p.csv")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "Traceback" not in done.err


def test_diagnose(process: Command) -> None:
    arguments = ["--dataset", "karate", "--set", "epochs=3", "--json"]
    done = process("diagnose", *arguments)
    assert done.json["dataset"] == "karate"
    assert done.err == ""


def test_graph(process: Command) -> None:
    arguments = ["--dataset", "karate", "--set", "epochs=3", "--topk", "2", "--quiet"]
    done = process("graph", *arguments, "--out", "g.csv")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(rows_of(Path("g.csv"))) == 68


def test_datasets(process: Command) -> None:
    assert len(process("datasets", "--json").json["datasets"]) > 10


def test_too_large_an_explicit_graph_is_refused_quickly(process: Command) -> None:
    start = time.monotonic()
    done = process(
        "train", "--dataset", "sbm", "--data-option", "n=400000",
        "--data-option", "n_features=4", "--graph-mode", "paper",
        "--set", "epochs=1", "--out", "run",
    )  # fmt: skip
    assert done.code == 2
    (line,) = done.errors
    assert "graph mode 'paper' would need about" in line
    assert time.monotonic() - start < 60
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["trains", "writes"])
def test_interrupt_leaves_nothing(
    folder: Path, sent: signal.Signals, moment: str
) -> None:
    # The driver says when training, or writing the run, has begun; before that Python
    # is importing.
    driver = """
import faulthandler, pathlib, signal, sys, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
from elugcn.report.page import html
from elugcn.training import loop
_, begun, moment = sys.argv
before = loop._adam
def adam(*rest):
    pathlib.Path(begun).touch()
    return before(*rest)
def write_page(*rest):
    pathlib.Path(begun).touch()
    time.sleep(60)
many = 10_000_000 if moment == "trains" else 2
if moment == "trains":
    loop._adam = adam
else:
    html.write_page = write_page
from elugcn.cli import main
main(["train", "--dataset", "sbm", "--set", f"epochs={many}",
      "--set", f"patience={many}", "--out", "runs/x"])
"""
    begun = folder.parent / f"{folder.name}-begun"
    child = subprocess.Popen(
        [sys.executable, "-c", driver, str(begun), moment],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Under a shell that ignores the signal, children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        end = time.monotonic() + 120
        while not begun.exists():
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(0.5)
        child.send_signal(sent)
        try:
            out, err = child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            # It happened once in many hundred times: where does it hang?
            child.send_signal(signal.SIGUSR1)
            time.sleep(1.0)
            child.kill()
            pytest.fail(f"still running: {child.communicate()}")
    finally:
        child.kill()
    assert (child.returncode, out, err) == (130, "", "elugcn: interrupted\n")
    assert [path for path in folder.rglob("*") if path.name != "runs"] == []


def test_a_reader_that_goes_away(folder: Path) -> None:
    command = f"{PROGRAM} train --dataset karate --set epochs=2 --out run | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("elu-gcn on karate")
    assert done.stdout.count("\n") == 1
    assert "\x1b" not in done.stdout
    assert (folder / "run/model.json").is_file()


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_pipe_that_is_not_utf8(encoding: str, folder: Path, tables: Tables) -> None:
    for row in (*tables.rows, *tables.edge_rows):
        row[:] = ["νύξ" if cell == "n 0" else cell for cell in row]
    files = tables.write()
    environment = ENVIRONMENT | {"PYTHONIOENCODING": encoding}

    def output(*arguments: str) -> str:
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=folder, env=environment, capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode("utf-8")

    eta = output("train", *files, "--set", "epochs=3", "--no-report", "--out", "run")
    assert "η" in eta
    assert "νύξ" in output("predict", "run")
    assert "Options" in output("train", "--help")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "datasets", "--json"],
            cwd=folder, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "elugcn: error: the output: No space left on device\n"


def test_predictions_into_a_closed_pipe(folder: Path, process: Command) -> None:
    """More output than a pipe holds, nobody reading: no traceback, no failure."""
    arguments = ["--dataset", "sbm", "--data-option", "n=9000", "--method", "lpa"]
    assert process("train", *arguments, "--quiet", "--out", "run").code == 0
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {PROGRAM} predict run | head -1"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "id,prediction,confidence,utilization,split\n"


@pytest.mark.parametrize("dataset", ["cora", "citeseer"])
def test_as_shipped(dataset: str, process: Command, data_dir: Path) -> None:
    least = {"cora": 0.83, "citeseer": 0.72}[dataset]
    done = process(
        "train", "--dataset", dataset, "--data-dir", data_dir, "--seed", "0", "--json"
    )
    assert done.json["test_accuracy"] >= least
    assert done.err == ""
