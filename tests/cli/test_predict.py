"""`elugcn predict`: a saved run on its own graph and on others."""

import json
from pathlib import Path

import pytest

from elugcn.storage import load_fitted
from tests.cli.conftest import COLOURS, Command, Tables, rows_of

QUICK = ["--set", "epochs=5"]


@pytest.fixture
def trained(elugcn: Command, tables: Tables) -> Path:
    done = elugcn(
        "train", *tables.write(), "--set", "epochs=40", "--quiet", "--out", "run"
    )
    assert done.code == 0, done.err
    return Path("run")


@pytest.mark.parametrize("method", ["elu-gcn", "gcn", "mlp", "lpa"])
def test_own_graph_gives_the_same_bytes(method: str, elugcn: Command) -> None:
    asked = ["--dataset", "sbm", "--data-option", "n=120", "--method", method]
    quick = [] if method == "lpa" else QUICK
    assert elugcn("train", *asked, *quick, "--quiet", "--out", "run").code == 0
    expected = Path("run/predictions.csv").read_text()
    assert elugcn("predict", "run").out == expected
    said = elugcn("predict", "run", "--json", "--out", "p.csv").json
    assert said == {"run": "run", "n_nodes": 120, "accuracy": None, "out": "p.csv"}
    assert Path("p.csv").read_text() == expected


def test_names_of_classes_are_kept(elugcn: Command, trained: Path) -> None:
    assert elugcn("predict", trained).out == (trained / "predictions.csv").read_text()


def test_names_of_published_classes_are_kept(elugcn: Command, data_dir: Path) -> None:
    asked = ["--dataset", "cora", "--data-dir", data_dir, "--method", "gcn", *QUICK]
    assert elugcn("train", *asked, "--quiet", "--out", "run").code == 0
    out = elugcn("predict", "run").out
    assert out == Path("run/predictions.csv").read_text()
    assert "Neural_Networks" in out or "Neural Networks" in out


def test_quiet_and_summary(elugcn: Command, trained: Path) -> None:
    done = elugcn("predict", trained, "--out", "p.csv", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = elugcn("predict", trained, "--out", "p [red].csv")
    assert done.out == "60 nodes predicted: p [red].csv\n"


def test_another_order_of_columns_and_rows_is_the_same_graph(
    elugcn: Command, trained: Path, tables: Tables
) -> None:
    """The model is shown the graph it knows, shuffled and without labels."""
    order = [tables.column(c) for c in ("weight_kg", "colour", "id", "size")]
    tables.header = [tables.header[i] for i in order]
    tables.rows = [[row[i] for i in order] for row in reversed(tables.rows)]
    tables.edge_rows.reverse()
    done = elugcn("predict", trained, *tables.write(), "--out", "p.csv")
    assert done.code == 0, done.err
    here = {r["id"]: r for r in rows_of(Path("p.csv"))}
    there = {r["id"]: r for r in rows_of(trained / "predictions.csv")}
    assert here.keys() == there.keys()
    assert {i: r["prediction"] for i, r in here.items()} == {
        i: r["prediction"] for i, r in there.items()
    }
    # A wrong order of columns or a refit scaling would show here.
    for i in here:
        assert float(here[i]["confidence"]) == pytest.approx(
            float(there[i]["confidence"]), abs=0.02
        )


def test_another_graph_is_scored_on_its_labels(
    elugcn: Command, trained: Path, folder: Path
) -> None:
    other = Tables(folder, "other", seed=5)
    other.rows = other.rows[:45]
    names = {row[0] for row in other.rows}
    other.edge_rows = [r for r in other.edge_rows if set(r) <= names]
    before = (trained / "model.safetensors").read_bytes()
    said = elugcn("predict", trained, *other.write(), "--json", "--out", "p.csv").json
    rows = rows_of(Path("p.csv"))
    assert said["n_nodes"] == len(rows) == 45
    right = [r["prediction"] == t for r, t in zip(rows, other.truth, strict=False)]
    labelled = right[1::2]
    assert said["accuracy"] == pytest.approx(sum(labelled) / len(labelled))
    assert said["accuracy"] > 0.6
    assert (trained / "model.safetensors").read_bytes() == before


def test_a_category_never_seen_is_said(
    elugcn: Command, trained: Path, tables: Tables
) -> None:
    for row in tables.rows:
        if row[2] == COLOURS[0]:
            row[2] = "violet"
    done = elugcn("predict", trained, *tables.write(), "--out", "p.csv")
    assert done.code == 0
    assert "violet" in done.err
    assert done.errors == []
    assert len(rows_of(Path("p.csv"))) == 60


def test_direction_and_datasets(elugcn: Command) -> None:
    sbm = ["--dataset", "sbm", "--data-option"]
    assert elugcn("train", *sbm, "n=100", *QUICK, "--quiet", "--out", "run").code == 0
    said = elugcn("predict", "run", *sbm, "n=90", "--json", "--out", "p.csv").json
    assert said["n_nodes"] == 90
    assert 0 <= said["accuracy"] <= 1
    # A graph with fewer classes: the model's own names, and no score.
    said = elugcn(
        "predict", "run", *sbm, "n_classes=2", "--json", "--out", "p.csv"
    ).json
    assert said["accuracy"] is None
    assert {r["prediction"] for r in rows_of(Path("p.csv"))} <= {
        str(i) for i in range(5)
    }


def test_made_features_are_made_again(elugcn: Command) -> None:
    sbm = ["--dataset", "sbm", "--data-option"]
    arguments = [*sbm, "n=100", "--features", "degree", *QUICK, "--quiet"]
    assert elugcn("train", *arguments, "--out", "run").code == 0
    said = elugcn("predict", "run", *sbm, "n=90", "--json", "--out", "p.csv").json
    assert said["n_nodes"] == 90


def test_a_pipe_is_written_to_and_not_replaced(elugcn: Command, trained: Path) -> None:
    import os
    import threading

    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    assert elugcn("predict", trained, "--out", "pipe", "--quiet").code == 0
    reader.join(timeout=30)
    assert read == [(trained / "predictions.csv").read_text()]
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("column", ["size", "colour"])
def test_a_missing_feature_is_refused(
    column: str, refused: Command, trained: Path, tables: Tables
) -> None:
    at = tables.column(column)
    tables.header.pop(at)
    for row in tables.rows:
        row.pop(at)
    refused("predict", trained, *tables.write(), says=f"nodes.csv.*{column}")


def test_refusals(
    refused: Command, elugcn: Command, trained: Path, tables: Tables
) -> None:
    refused("predict", "nowhere", says="nowhere: no saved model here")
    refused("predict", "nodes.csv", says="nodes.csv")
    refused("predict", trained, "--json", says="--json needs --out")
    refused("predict", trained, "--nodes", "nodes.csv", says="--edges is missing")
    refused("predict", trained, "--dataset", "karate", says="trained with 5 features")
    both = ["--dataset", "karate", "--nodes", "nodes.csv"]
    refused("predict", trained, *both, says="not both")
    refused("predict", trained, "--out", "nodes.csv/p.csv", says="writable directory")
    refused("predict", trained, "--out", "run", says="is a directory")
    refused("predict", trained, "--out", "p.parquet", says="predictions are CSV")
    refused("predict", says="Missing argument.*RUN")


def test_runs_without_weights_or_tables(refused: Command, elugcn: Command) -> None:
    karate = ["--dataset", "karate"]
    elugcn("train", *karate, "--method", "lpa", "--quiet", "--out", "lpa")
    refused("predict", "lpa", *karate, says="lpa run can't predict for another graph")
    elugcn("train", *karate, *QUICK, "--quiet", "--out", "run")
    Tables(Path()).write()
    own = ["--nodes", "nodes.csv", "--edges", "nodes-edges.csv"]
    refused("predict", "run", *own, says="trained on a dataset, not on tables")


def test_a_model_that_was_tampered_with_is_refused(
    refused: Command, trained: Path
) -> None:
    facts = json.loads((trained / "model.json").read_text())
    (trained / "model.json").write_text(json.dumps(facts | {"classes": {}}))
    refused("predict", trained, says="model.json: not a model this version can read")
    (trained / "model.json").write_text(json.dumps(facts))
    assert load_fitted(trained).method == "elu-gcn"
    tensors = trained / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-50])
    refused("predict", trained, says="model.safetensors: can't be read")


def test_a_table_is_not_written_over(
    elugcn: Command, trained: Path, tables: Tables
) -> None:
    options = tables.write()
    before = tables.nodes.read_bytes()
    done = elugcn("predict", trained, *options, "--out", tables.nodes)
    assert done.code == 2
    assert "that is a table of this graph" in done.err
    assert tables.nodes.read_bytes() == before


@pytest.mark.parametrize("command", ["predict", "report"])
def test_nothing_of_a_run_is_written_over(
    command: str, elugcn: Command, refused: Command, tables: Tables, folder: Path
) -> None:
    options = tables.write()
    quick = ["--method", "gcn", "--set", "epochs=2", "--no-report"]
    assert elugcn("train", *options, *quick, "--out", "run").code == 0
    run = folder / "run"
    for path, says in (
        (run / "model.safetensors", "that is a file of the run"),
        (run / "metrics.json", "that is a file of the run"),
        (tables.nodes, "that is a table of this graph"),
        (tables.edges, "that is a table of this graph"),
        (folder, "is a directory; expected a file"),
    ):
        before = path.read_bytes() if path.is_file() else None
        refused(command, run, "--out", path, says=says)
        assert before is None or path.read_bytes() == before
    own = {"predict": "predictions.csv", "report": "report.html"}[command]
    assert elugcn(command, run, "--out", run / own).code == 0


def test_options_of_tables_need_tables(elugcn: Command, trained: Path) -> None:
    done = elugcn("predict", trained, "--label-column", "x", "--out", "p.csv")
    assert done.code == 2
    assert "--label-column goes with --nodes and --edges" in done.err


def test_features_of_another_scale(
    elugcn: Command, trained: Path, tables: Tables
) -> None:
    for row in tables.rows:
        row[tables.column("size")] = "3e38"
    done = elugcn("predict", trained, *tables.write(), "--out", "p.csv")
    assert (done.code, Path("p.csv").exists()) == (2, False)
    assert "not finite numbers" in done.err


def test_labels_that_the_model_does_not_know(
    elugcn: Command, trained: Path, tables: Tables
) -> None:
    for row in tables.rows[::2]:
        row[tables.column("label")] = "new"
    done = elugcn("predict", trained, *tables.write(), "--json", "--out", "p.csv")
    assert done.code == 0
    assert "does not know count as unlabelled: 'new'" in done.err
    assert done.json["accuracy"] > 0.5  # of the others


@pytest.mark.parametrize(
    "asked", [["--features", "degree"], ["--directed"], ["--split", "3"]]
)
def test_options_of_another_graph_need_one(
    asked: list[str], elugcn: Command, trained: Path
) -> None:
    done = elugcn("predict", trained, *asked)
    assert done.code == 2
    assert f"{asked[0]} goes with" in done.err


def test_a_run_is_not_written_over(elugcn: Command, trained: Path) -> None:
    before = (trained / "model.json").read_bytes()
    done = elugcn("predict", trained, "--out", trained / "model.json")
    assert done.code == 2
    assert "that is a file of the run" in done.err
    assert (trained / "model.json").read_bytes() == before
    assert elugcn("predict", trained, "--out", trained / "predictions.csv").code == 0
