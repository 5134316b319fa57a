"""`elugcn report`: the page of a run, made again."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import QUICK, Command, Tables


@pytest.fixture
def run(runs: Path, folder: Path) -> Path:
    """A copy of a run, which may be changed."""
    return Path(shutil.copytree(runs / "sbm", folder / "run"))


def test_a_run_directory_is_enough(elugcn: Command, run: Path) -> None:
    first = (run / "report.html").read_bytes()
    said = elugcn("report", run, "--json").json
    assert (run / "report.html").read_bytes() == first
    assert (said["run"], said["out"]) == (str(run), str(run / "report.html"))
    assert (said["bytes"], said["notes"], said["n_nodes"]) == (len(first), [], 120)
    assert {"accuracy", "labels", "graph", "nodes"} <= set(said["sections"])


def test_a_page_is_where_it_is_asked_for(elugcn: Command, run: Path) -> None:
    (run / "report.html").unlink()
    done = elugcn("report", run, "--out", "page [i].html")
    size = f"{Path('page [i].html').stat().st_size / 1e6:.1f} MB"
    assert done.out == f"page [i].html ({size}); open it in a browser\n"
    assert not (run / "report.html").exists()
    quiet = elugcn("report", run, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert (run / "report.html").exists()


def test_tables_that_changed_or_moved(
    elugcn: Command, tables: Tables, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ["train", *tables.write(), *QUICK, "--no-report", "--out", "run"]
    assert elugcn(*own).code == 0
    assert elugcn("report", "run", "--json").json["notes"] == []
    page = (folder / "run/report.html").read_bytes()
    # A run is the same from wherever it is looked at.
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert elugcn("report", "../run", "--json").json["notes"] == []
    assert (folder / "run/report.html").read_bytes() == page
    monkeypatch.chdir(folder)

    tables.edge_rows[-1] = ["n 0", "n 2"]
    tables.write()
    (note,) = elugcn("report", "run", "--json").json["notes"]
    assert (
        note == "parts that need the graph are left out: it has changed since the run"
    )
    done = elugcn("diagnose", "--run", "run")
    assert (done.code, done.err) == (2, f"elugcn: error: --run run: {note}\n")
    tables.nodes.unlink()
    done = elugcn("report", "run")
    assert re.match(r"Note: parts that need .* are left out: .*nodes\.csv", done.out)
