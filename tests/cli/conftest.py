import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elugcn.cli.app import _run

LABELS = ("<b>A & B</b>", "two words", 'odd [/x], "quoted"')
COLOURS = ("red", "dark blue", "green")


@dataclass
class Outcome:
    """What a command leaves behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        assert self.code == 0, self.err
        value = json.loads(self.out, parse_constant=pytest.fail)
        assert isinstance(value, dict)
        assert self.out.count("\n") == 1
        return value

    @property
    def errors(self) -> list[str]:
        """Lines on standard error that are no warnings."""
        lines = self.err.splitlines()
        return [line for line in lines if not line.startswith("elugcn: warning: ")]


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def elugcn(capsys: pytest.CaptureFixture[str]) -> Command:
    """A command in this process: quick, and a bug shows as its exception."""

    def run(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = _run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture
def process() -> Command:
    """The installed program in a process of its own."""

    def run(*arguments: str | Path) -> Outcome:
        command = [Path(sys.executable).with_name("elugcn"), *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=240
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def refused(elugcn: Command, folder: Path) -> Callable[..., str]:
    """Run what must be refused: exit code 2, one line, nothing written."""

    def run(*arguments: str | Path, says: str) -> str:
        before = sorted(folder.rglob("*"))
        outcome = elugcn(*arguments)
        assert outcome.code == 2
        assert outcome.out == ""
        (line,) = outcome.errors
        assert line.startswith("elugcn: error: ")
        assert re.search(says, line), line
        assert sorted(folder.rglob("*")) == before
        return line

    return run


class Tables:
    """Two CSV files that a test can spoil before they are used."""

    def __init__(self, folder: Path, name: str = "nodes", seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n = 60
        self.truth = [LABELS[i % 3] for i in range(n)]
        self.header = ["id", "size", "colour", "label", "weight_kg"]
        self.rows = [
            [f"n {i}", f"{rng.normal(3 * (i % 3)):.3f}", COLOURS[i % 3],
             self.truth[i] if i % 2 else "", f"{rng.normal():.3f}"]
            for i in range(n)
        ]  # fmt: skip
        self.edge_header = ["source", "target"]
        # Mostly inside a class, and one edge that leaves it.
        self.edge_rows = [
            [f"n {i}", f"n {(i + step) % n}"] for i in range(n) for step in (3, 6)
        ] + [["n 0", "n 1"]]
        self.nodes = folder / f"{name}.csv"
        self.edges = folder / f"{name}-edges.csv"

    def column(self, name: str) -> int:
        return self.header.index(name)

    def write(self) -> list[str]:
        """Write the files; the options that name them."""
        for path, header, rows in (
            (self.nodes, self.header, self.rows),
            (self.edges, self.edge_header, self.edge_rows),
        ):
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([header, *rows])
        return ["--nodes", str(self.nodes), "--edges", str(self.edges)]


@pytest.fixture
def tables(folder: Path) -> Tables:
    """String ids, a category, labels with spaces, markup, commas and quotes."""
    return Tables(folder)


def rows_of(path: Path) -> list[dict[str, str]]:
    """A CSV file as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
