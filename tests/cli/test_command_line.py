"""What every command promises, and what only a process of its own can show."""

import contextlib
import json
import os
import pty
import re
import signal
from importlib import import_module
from pathlib import Path

import pytest

import elugcn as package
from elugcn.cli.app import COMMANDS, REPRODUCTION, run
from tests.cli.conftest import QUICK, SBM, Command, start

PROMISED = (
    "train diagnose explain predict graph datasets compare reproduce report bench tune"
)


def test_version(elugcn: Command) -> None:
    assert elugcn("--version").out == f"elugcn {package.__version__}\n"


def test_every_command_is_listed(elugcn: Command) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        done = elugcn(*arguments)
        assert (done.code, done.err) == (0, "")
        listed = re.findall(r"^│ ([a-z]+) ", done.out, re.M)
        assert sorted(listed) == sorted(PROMISED.split())
        for line in (COMMANDS | REPRODUCTION).values():
            # Cells are wrapped.
            words = " ".join(re.sub(r"[│\n]", " ", done.out).split())
            assert line in words


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name: str, elugcn: Command) -> None:
    done = elugcn(name, "--help")
    assert (done.code, done.errors) == (0, [])
    doc = import_module(f"elugcn.cli.{name}").run.__doc__
    assert doc.splitlines()[0] == COMMANDS[name]
    for option in ("--json", "--quiet"):
        assert f" {option} " in done.out


def test_json_and_an_error_of_a_process(folder: Path) -> None:
    children = [
        start("train", *SBM, *QUICK, "--no-report", "--json", "--out", "run"),
        start("trian"),
    ]
    ends = [(*child.communicate(timeout=240), child.returncode) for child in children]
    out, err, code = ends[0]
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((folder / "run/metrics.json").read_text())
    out, err, code = ends[1]
    assert (code, out) == (2, "")
    assert err.startswith("elugcn: error: No such command 'trian'")
    assert err.count("\n") == 1


SLOW_REPORT = """
import time
import elugcn.report
def write_report(*given, **more):
    print("begun", flush=True)
    time.sleep(60)
elugcn.report.write_report = write_report
from elugcn.cli import main
main(["train", "--dataset", "karate", "--method", "lpa", "--out", "runs/x"])
"""


def test_an_interrupt_leaves_nothing(folder: Path) -> None:
    child = start(program=["-c", SLOW_REPORT])
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "elugcn: interrupted\n")
    assert [path.name for path in folder.rglob("*")] == ["runs"]


def test_a_reader_that_goes_away(folder: Path) -> None:
    """More output than a pipe holds, nobody reading: no traceback, no failure."""
    large = ["--dataset", "sbm", "--data-option", "n=9000", "--method", "lpa"]
    assert run(["train", *large, "--no-report", "--quiet", "--out", "run"]) == 0
    child = start("predict", "run")
    assert child.stdout is not None
    assert child.stdout.readline() == "id,prediction,confidence,utilization,split\n"
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == ""
    assert child.wait(timeout=60) == 0


def test_a_pipe_that_is_not_utf8() -> None:
    child = start("--help", env={"PYTHONIOENCODING": "cp1252"}, text=False)
    out, err = child.communicate(timeout=240)
    assert (child.returncode, err) == (0, b"")
    assert "mean ± std" in " ".join(out.decode("utf-8").split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk() -> None:
    with Path("/dev/full").open("w") as full:
        child = start("--version", stdout=full)
        _, err = child.communicate(timeout=240)
    assert child.returncode == 2
    assert err == "elugcn: error: the output: No space left on device\n"


def test_a_narrow_terminal(folder: Path) -> None:
    ours, theirs = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    narrow = {"TERM": "xterm", "COLUMNS": "60"}
    child = start("train", *SBM, *QUICK, "--out", "run", env=narrow, **streams)
    os.close(theirs)
    written = b""
    with contextlib.suppress(OSError):  # Linux says so at the end
        while block := os.read(ours, 65536):
            written += block
    os.close(ours)
    assert child.wait(timeout=60) == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", written.decode("utf-8"))
    assert "━" in plain  # a progress bar
    shown = plain[plain.index("elu-gcn on sbm: 120 nodes") :]
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 60
    assert any(line.startswith("Test accuracy ") for line in lines)
    assert lines[-1] == "Next:  elugcn diagnose --run run"
