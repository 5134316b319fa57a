"""`elugcn report`, and the page that `elugcn train` leaves."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import LABELS, Command, Tables

QUICK = ["--set", "epochs=5"]
SBM = ["--dataset", "sbm", "--data-option", "n=120", "--data-option", "n_classes=3"]
ALL = [
    "accuracy", "labels", "graph", "map", "trust", "training", "suggestions", "nodes",
    "settings",
]  # fmt: skip


def data_of(page: Path) -> dict[str, object]:
    """The one block of data of a page."""
    text = page.read_text(encoding="utf-8")
    (block,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script', text
    )
    found = json.loads(block)
    assert isinstance(found, dict)
    return found


def test_train_leaves_a_page_and_report_makes_it_again(
    elugcn: Command, process: Command, folder: Path
) -> None:
    said = elugcn("train", *SBM, *QUICK, "--json", "--out", "run").json
    assert set(said["baselines"]) == {"gcn", "mlp", "lpa"}
    for found in said["baselines"].values():
        assert set(found) == {"val_accuracy", "test_accuracy"}
        assert all(0 <= v <= 1 for v in found.values())
    first = (folder / "run/report.html").read_bytes()
    assert len(first) < 3_000_000
    again = process("report", "run", "--json").json
    assert again["sections"] == ALL
    assert (again["run"], again["out"], again["notes"]) == (
        "run",
        "run/report.html",
        [],
    )
    assert (again["n_nodes"], again["table_nodes"], again["map_nodes"]) == (120,) * 3
    assert again["bytes"] == (folder / "run/report.html").stat().st_size
    # A run directory is enough: the page is the same, byte by byte.
    assert (folder / "run/report.html").read_bytes() == first


def test_a_page_is_where_it_is_asked_for(elugcn: Command, folder: Path) -> None:
    done = elugcn("train", *SBM, *QUICK, "--no-report", "--out", "run [b]")
    assert done.code == 0
    assert "report.html" not in done.out
    assert not (folder / "run [b]/report.html").exists()
    metrics = json.loads((folder / "run [b]/metrics.json").read_text())
    # Nothing is trained for a page that is not wanted.
    assert set(metrics["baselines"]) == {"gcn", "lpa"}
    done = elugcn("report", "run [b]", "--out", "page [i].html")
    assert re.fullmatch(r"page \[i\]\.html: 0\.\d\d MB\n", done.out)
    assert not (folder / "run [b]/report.html").exists()
    quiet = elugcn("report", "run [b]", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert (folder / "run [b]/report.html").exists()
    shown = elugcn("train", *SBM, *QUICK, "--out", "seen").out
    assert re.search(r"report +seen/report\.html", shown)


@pytest.mark.parametrize(
    ("method", "missing"),
    [("gcn", {"graph"}), ("lpa", {"graph", "training"}), ("mlp", {"graph"})],
)
def test_every_method_has_a_page(
    method: str, missing: set[str], elugcn: Command, folder: Path
) -> None:
    quick = [] if method == "lpa" else QUICK
    said = elugcn(
        "train", *SBM, "--method", method, *quick, "--json", "--out", "r"
    ).json
    assert method not in said["baselines"]
    again = elugcn("report", "r", "--json").json
    assert set(again["sections"]) == set(ALL) - missing
    assert data_of(folder / "r/report.html")["classes"] == ["0", "1", "2"]


def test_labels_of_strangers_are_text(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    evil = "<img src=x onerror=alert(1)>"
    for row in tables.rows:
        row[3] = evil if row[3] == LABELS[1] else row[3]
    assert elugcn("train", *tables.write(), *QUICK, "--quiet", "--out", "run").code == 0
    text = (folder / "run/report.html").read_text(encoding="utf-8")
    assert evil not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert evil in data_of(folder / "run/report.html")["classes"]  # type: ignore[operator]


def test_tables_that_moved_or_changed(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    assert elugcn("train", *tables.write(), *QUICK, "--quiet", "--out", "run").code == 0
    tables.rows[1][tables.column("label")] = ""
    tables.write()
    said = elugcn("report", "run", "--json").json
    assert "the graph has changed since the run was made" in said["notes"][0]
    assert "suggestions" not in said["sections"]
    tables.nodes.unlink()
    said = elugcn("report", "run", "--json").json
    assert "nodes.csv" in said["notes"][0]
    assert set(said["sections"]) == set(ALL) - {"suggestions"}
    done = elugcn("report", "run")
    assert done.out.startswith("note: what needs the graph itself is left out: ")
    text = (folder / "run/report.html").read_text(encoding="utf-8")
    assert "what needs the graph itself is left out" in text
    assert "Original graph" not in text
    # What training found out about the simpler models is in the run.
    assert "label propagation" in text


@pytest.mark.parametrize("what", ["a feature", "an edge"])
def test_tables_of_the_same_size_that_changed(
    what: str, elugcn: Command, tables: Tables
) -> None:
    assert elugcn("train", *tables.write(), *QUICK, "--quiet", "--out", "run").code == 0
    assert elugcn("report", "run", "--json").json["notes"] == []
    if what == "a feature":
        tables.rows[1][tables.column("size")] = "99"
    else:
        tables.edge_rows[-1] = ["n 0", "n 2"]
    tables.write()
    said = elugcn("report", "run", "--json").json
    assert "the graph has changed since the run was made" in said["notes"][0]


def test_a_run_is_the_same_from_wherever_it_is_looked_at(
    elugcn: Command, tables: Tables, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert elugcn("train", *tables.write(), *QUICK, "--quiet", "--out", "run").code == 0
    page = (folder / "run/report.html").read_bytes()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert elugcn("report", "../run", "--json").json["notes"] == []
    assert (folder / "run/report.html").read_bytes() == page
    again = ["--config", "../run/config.yaml", "--no-report", "--quiet"]
    assert elugcn("train", *again, "--out", "run").code == 0
    ours, theirs = (
        Path(run, "predictions.csv").read_text() for run in ("run", "../run")
    )
    assert ours == theirs


def test_a_page_that_fails_does_not_cost_the_run(
    elugcn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*rest: object) -> None:
        raise ZeroDivisionError("in the page")

    monkeypatch.setattr("elugcn.report.page.html.write_page", fail)
    done = elugcn("train", *SBM, *QUICK, "--json", "--out", "run")
    assert done.json["n_nodes"] == 120
    assert "warning: the report is not complete (ZeroDivisionError: in the" in done.err
    assert (folder / "run/predictions.csv").exists()
    assert not (folder / "run/report.html").exists()
    assert elugcn("report", "run", "--quiet").code == 0


def test_refusals(elugcn: Command, refused: Command, folder: Path) -> None:
    refused("report", says="Missing argument.*RUN")
    refused("report", "nowhere", says="nowhere: no saved model here")
    assert elugcn("train", *SBM, *QUICK, "--quiet", "--out", "run").code == 0
    refused("report", "run", "--out", "no/where.html", says="--out no/where.html")
    refused("report", "run", "--out", "run", says="is a directory")
    (folder / "run/metrics.json").write_text("[1]")
    before = (folder / "run/report.html").read_bytes()
    refused("report", "run", says="run/metrics.json: expected a JSON object")
    assert (folder / "run/report.html").read_bytes() == before
    (folder / "run/environment.json").unlink()
    (folder / "run/metrics.json").write_text("{}")
    refused("report", "run", says="run/environment.json: can't be read")


def test_datasets_are_looked_for_where_one_says(
    elugcn: Command, data_dir: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--dataset", "cora", "--method", "gcn", "--data-dir", data_dir, *QUICK]
    assert elugcn("train", *asked, "--quiet", "--out", "run").code == 0
    monkeypatch.delenv("ELUGCN_DATA", raising=False)
    said = elugcn("report", "run", "--data-dir", data_dir, "--json").json
    assert said["notes"] == []
    assert "suggestions" in said["sections"]
    assert said["bytes"] < 1_000_000
