"""`elugcn predict`: a saved run on its own graph and on others."""

import os
import threading
from pathlib import Path

import pytest

from elugcn.api import load, predict_other
from elugcn.data.datasets import load_dataset
from tests.cli.conftest import COLOURS, SBM, Command, Tables, rows_of


@pytest.mark.parametrize("name", ["tables", "sbm", "gcn", "lpa"])
def test_the_graph_of_a_run(name: str, elugcn: Command, runs: Path) -> None:
    run = runs / name
    expected = (run / "predictions.csv").read_text()
    assert elugcn("predict", run).out == expected
    said = elugcn("predict", run, "--json", "--out", "p.csv").json
    assert said["accuracy"] is None
    assert said["n_nodes"] == expected.count("\n") - 1
    assert Path("p.csv").read_text() == expected


def test_another_graph_gets_what_the_library_predicts(
    elugcn: Command, runs: Path
) -> None:
    other = ["--dataset", "sbm", "--data-option", "n=90", "--data-option"]
    asked = [*other, "n_classes=3", "--split", "1", "--json", "--out", "p.csv"]
    said = elugcn("predict", runs / "sbm", *asked).json
    data = load_dataset("sbm", split=1, n=90, n_classes=3)
    expected = predict_other(load(runs / "sbm"), data)
    rows = rows_of(Path("p.csv"))
    classes = expected.proba.argmax(1)
    assert [r["prediction"] for r in rows] == [str(c) for c in classes.tolist()]
    assert said["accuracy"] == pytest.approx(float((classes == data.y).float().mean()))


def test_another_order_of_columns_and_rows(
    elugcn: Command, runs: Path, tables: Tables
) -> None:
    """The model is shown the graph it knows, shuffled and without labels."""
    tables.keep(weight_kg="weight_kg", colour="colour", id="id", size="size")
    tables.rows.reverse()
    tables.edge_rows.reverse()
    done = elugcn("predict", runs / "tables", *tables.write(), "--out", "p.csv")
    assert (done.code, done.out) == (0, "p.csv: 60 nodes predicted\n")
    here = {r["id"]: r for r in rows_of(Path("p.csv"))}
    there = {r["id"]: r for r in rows_of(runs / "tables/predictions.csv")}
    assert here.keys() == there.keys()
    for name, row in here.items():
        assert row["prediction"] == there[name]["prediction"]
        # A wrong order of columns or a new scaling would show here.
        confidence = float(there[name]["confidence"])
        assert float(row["confidence"]) == pytest.approx(confidence, abs=0.02)


def test_another_graph_is_scored_on_its_labels(
    elugcn: Command, runs: Path, folder: Path
) -> None:
    other = Tables(folder, "other [x]", seed=5)
    other.rows = other.rows[:45]
    names = {row["id"] for row in other.rows}
    other.edge_rows = [r for r in other.edge_rows if set(r) <= names]
    own = other.write()
    said = elugcn("predict", runs / "tables", *own, "--json", "--out", "p.csv").json
    rows = rows_of(Path("p.csv"))
    assert said["n_nodes"] == len(rows) == 45
    right = [r["prediction"] == t for r, t in zip(rows, other.truth, strict=False)]
    share = sum(right[1::2]) / len(right[1::2])
    assert said["accuracy"] == pytest.approx(share)
    assert share > 0.6
    shown = elugcn("predict", runs / "tables", *own, "--out", "p [x].csv").out
    percent = f"{100 * share:.1f}%"
    assert shown == f"p [x].csv: 45 nodes predicted, {percent} of the labels right\n"
    quiet = elugcn("predict", runs / "tables", *own, "--out", "p.csv", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")


def test_unknown_categories_and_labels_are_said(
    elugcn: Command, runs: Path, tables: Tables
) -> None:
    tables.set("colour", lambda i: "violet" if i % 3 == 0 else None)
    tables.set("label", lambda i: "new" if i % 2 == 0 else None)
    own = [*tables.write(), "--json", "--out", "p.csv"]
    done = elugcn("predict", runs / "tables", *own)
    assert done.errors == []
    assert "violet" in done.err
    assert "'new'" in done.err
    assert done.json["accuracy"] > 0.5  # of the known labels
    assert COLOURS[0] not in done.err


def test_made_features_are_made_again(elugcn: Command) -> None:
    asked = [*SBM, "--features", "degree", "--method", "gcn", "--set", "epochs=3"]
    assert elugcn("train", *asked, "--no-report", "--out", "run").code == 0
    other = ["--dataset", "sbm", "--data-option", "n=90", "--data-option"]
    asked = [*other, "n_classes=3", "--json", "--out", "p.csv"]
    assert elugcn("predict", "run", *asked).json["n_nodes"] == 90


def test_a_pipe_is_written_to_and_not_replaced(elugcn: Command, runs: Path) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    assert elugcn("predict", runs / "sbm", "--out", "pipe", "--quiet").code == 0
    reader.join(timeout=30)
    assert read == [(runs / "sbm/predictions.csv").read_text()]
    assert Path("pipe").is_fifo()
