import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elugcn.cli.app import run

LABELS = ("<b>A & B</b>", "two words", 'odd [/x], "quoted"')
COLOURS = ("red", "dark blue", "green")
SBM = ["--dataset", "sbm", "--data-option", "n=120", "--data-option", "n_classes=3"]
QUICK = ["--method", "elu-gcn", "--set", "epochs=5"]
LEARN = ["--set", "epochs=5"]  # for commands that learn the ELU graph alone


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
        assert self.out.count("\n") == 1
        value = json.loads(self.out, parse_constant=pytest.fail)
        assert isinstance(value, dict)
        return value

    @property
    def errors(self) -> list[str]:
        """Lines on standard error that are not warnings."""
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

    def command(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return command


def start(
    *arguments: str | Path, program: Sequence[str] = ("-m", "elugcn"), **given: Any
) -> subprocess.Popen[Any]:
    """A program in a process of its own."""
    env = os.environ | {"OMP_NUM_THREADS": "1"} | given.pop("env", {})
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | given
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, env=env, **given)


class Tables:
    """Two CSV files with string ids, a category, and labels full of markup.

    A test can change them before they are written.
    """

    def __init__(self, folder: Path, name: str = "nodes", seed: int = 0) -> None:
        rng, n = np.random.default_rng(seed), 60
        self.truth = [LABELS[i % 3] for i in range(n)]
        self.rows = [
            {
                "id": f"n {i}",
                "size": f"{rng.normal(3 * (i % 3)):.3f}",
                "colour": COLOURS[i % 3],
                "label": self.truth[i] if i % 2 else "",
                "weight_kg": f"{rng.normal():.3f}",
            }
            for i in range(n)
        ]
        self.edge_header = ["source", "target"]
        # Mostly inside a class, and one edge that leaves it.
        self.edge_rows = [
            [f"n {i}", f"n {(i + step) % n}"] for i in range(n) for step in (3, 6)
        ]
        self.edge_rows.append(["n 0", "n 1"])
        self.nodes, self.edges = folder / f"{name}.csv", folder / f"{name}-edges.csv"

    def set(self, column: str, values: Callable[[int], str | None]) -> None:
        """Give cells of a column another value; None keeps a cell."""
        for i, row in enumerate(self.rows):
            value = values(i)
            row[column] = row[column] if value is None else value

    def keep(self, **columns: str) -> None:
        """Keep these columns under these names, in this order."""
        self.rows = [
            {new: row[old] for new, old in columns.items()} for row in self.rows
        ]

    def rename(self, names: dict[str, str]) -> None:
        """Give nodes other ids."""
        self.set("id", lambda i: names.get(f"n {i}"))
        self.edge_rows = [[names.get(c, c) for c in row] for row in self.edge_rows]

    def write(self) -> list[str]:
        """Write the files; the options that name them."""
        nodes = [list(self.rows[0]), *(list(row.values()) for row in self.rows)]
        edges = [self.edge_header, *self.edge_rows]
        for path, rows in ((self.nodes, nodes), (self.edges, edges)):
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(rows)
        return ["--nodes", str(self.nodes), "--edges", str(self.edges)]


@pytest.fixture
def tables(folder: Path) -> Tables:
    return Tables(folder)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on tables, one on a dataset, and one of a plain method."""
    place = tmp_path_factory.mktemp("runs")
    own = Tables(place).write()
    for name, arguments in {
        "tables": [*own, "--method", "elu-gcn", "--set", "epochs=40"],
        "sbm": [*SBM, *QUICK],
        "gcn": [*SBM, "--method", "gcn", "--set", "epochs=5"],
        "lpa": [*SBM, "--method", "lpa"],
    }.items():
        report = ["--report" if name == "sbm" else "--no-report"]
        asked = ["train", *arguments, *report, "--quiet", "--out", str(place / name)]
        assert run(asked) == 0
    return place


def rows_of(path: Path) -> list[dict[str, str]]:
    """A CSV file as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
