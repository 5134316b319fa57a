"""`elugcn train`: what it prints and what it leaves on disk."""

import json
from pathlib import Path

import pytest
from sklearn.metrics import roc_auc_score

from elugcn.api import fit, load
from elugcn.data.datasets import load_dataset
from elugcn.training.progress import SILENT
from tests.cli.conftest import LABELS, QUICK, SBM, Command, Tables, rows_of

FILES = {
    "config.yaml", "environment.json", "history.csv", "metrics.json", "model.json",
    "model.safetensors", "predictions.csv", "report.html",
}  # fmt: skip
PROMISED = {
    "dataset", "method", "split", "seed", "n_nodes", "n_edges", "n_classes", "epochs",
    "train_accuracy", "val_accuracy", "test_accuracy", "elu_fraction",
    "unreachable_fraction", "graph_mode", "seconds", "peak_rss_mb", "threads", "out",
}  # fmt: skip
BARE = [*QUICK, "--no-report"]


def test_values_are_those_of_the_library(elugcn: Command, folder: Path) -> None:
    said = elugcn("train", *SBM, *QUICK, "--seed", "3", "--json", "--out", "run").json
    data = load_dataset("sbm", n=120, n_classes=3)
    fitted = fit(data, "elu-gcn", {"epochs": 5}, seed=3)
    for part in ("train", "val", "test"):
        assert said[f"{part}_accuracy"] == fitted.accuracy(data[f"{part}_mask"])
    use = fitted.result.label_utilization
    assert use is not None
    assert said["elu_fraction"] == use.elu_fraction
    assert said["unreachable_fraction"] == use.unreachable_fraction
    assert said["epochs"] == fitted.result.epochs
    assert (said["n_nodes"], said["n_edges"], said["n_classes"]) == (120, 600, 3)
    assert (said["method"], said["dataset"], said["out"]) == ("elu-gcn", "sbm", "run")
    rows = rows_of(folder / "run/predictions.csv")
    classes = fitted.proba.argmax(1).tolist()
    assert [int(row["prediction"]) for row in rows] == classes
    assert [row["utilization"] for row in rows] == use.names()


@pytest.mark.parametrize("method", ["auto", "elu-gcn", "lpa"])
def test_a_whole_run(method: str, elugcn: Command, folder: Path) -> None:
    quick = ["--set", "epochs=5"] if method != "lpa" else []
    done = elugcn("train", *SBM, "--method", method, *quick, "--json", "--out", "run")
    said = done.json
    assert done.err == ""
    assert said.keys() >= PROMISED
    stages = {"pretrain", "utilization", "graph", "train", "total"}
    assert set(said["seconds"]) >= stages
    assert said["test_accuracy"] > 0.5
    assert {p.name for p in (folder / "run").iterdir()} == FILES
    assert json.loads((folder / "run/metrics.json").read_text()) == said
    assert [p.name for p in folder.iterdir()] == ["run"]


def test_defaults(elugcn: Command, folder: Path) -> None:
    done = elugcn("train", "--set", "epochs=1", "--no-report")
    (run,) = (folder / "runs").iterdir()
    assert run.name.startswith("digits-auto-0-")
    said = json.loads((run / "metrics.json").read_text())
    assert (said["method"], said["dataset"], said["seed"]) == ("auto", "digits", 0)
    tried = said["details"]["trials"]
    heaviest = max(tried, key=lambda trial: trial["weight"])
    lines = done.out.splitlines()
    (members,) = (line for line in lines if line.startswith("Members: "))
    assert members.endswith(f" (of {len(tried)} tried).")
    share = f"{100 * heaviest['weight']:.0f}%"
    assert members.startswith(f"Members: {share} {heaviest['name']}")
    assert sum(line.startswith("ELU members ") for line in lines) == 1


def test_what_a_validation_number_was_measured_on(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    """30 labels in two of three rows: 18 train, 6 validate, 6 are tested."""
    own = ["train", *tables.write(), "--effort", "quick", "--no-report", "--out"]
    lines = elugcn(*own, "a").out.splitlines()
    said = json.loads((folder / "a/metrics.json").read_text())
    assert said["measured_on"]["val"] == 24
    assert f"(validation {100 * said['val_accuracy']:.1f}%, " in lines[1]
    assert lines[2] == (
        "Validation is cross-validation: 24 labelled nodes, in 5 folds. "
        "Validation nodes trained the answer, too."
    )
    plain = elugcn(*own, "b", "--set", "elu=false").out
    assert "Members: " in plain
    assert "ELU members" not in plain


def test_the_name_of_version_0_1_is_an_alias(elugcn: Command) -> None:
    asked = ["--method", "elu-gcn-paper", "--set", "epochs=5", "--json", "--no-report"]
    done = elugcn("train", *SBM, *asked)
    assert done.json["method"] == "elu-gcn"
    assert done.err == "elugcn: warning: elu-gcn-paper is now called elu-gcn\n"


def test_the_summary(elugcn: Command, folder: Path) -> None:
    done = elugcn("train", *SBM, *QUICK, "--out", "run")
    said = json.loads((folder / "run/metrics.json").read_text())
    lines = done.out.splitlines()
    assert lines[0] == "elu-gcn on sbm: 120 nodes, 600 edges, 3 classes"
    test, val = (f"{100 * said[f'{p}_accuracy']:.1f}%" for p in ("test", "val"))
    on = f" on {n} nodes" if (n := said["measured_on"]["test"]) < 100 else ""
    assert lines[1].startswith(f"Test accuracy {test}{on} (validation {val}, training ")
    agree = f"agree on {100 * said['elu_fraction']:.1f}% of the nodes (ELU)"
    assert lines[2].startswith(f"Label propagation and the GCN {agree}")
    assert lines[-2:] == [
        "Files: run (predictions.csv, report.html, the model)",
        "Next:  elugcn diagnose --run run",
    ]

    lpa = elugcn("train", *SBM, "--method", "lpa", "--no-report", "--out", "lpa").out
    assert "Label propagation and" not in lpa
    assert "Files: lpa (predictions.csv, the model)" in lpa
    assert lpa.endswith("Next:  elugcn predict lpa --out FILE\n")


def test_names_are_shown_as_they_are(elugcn: Command, folder: Path) -> None:
    """Square brackets are markup to the printing library."""
    odd = Tables(folder, "my [red] graph")
    done = elugcn("train", *odd.write(), *BARE, "--out", "run [b]")
    assert "elu-gcn on my [red] graph: 60 nodes, 121 edges, 3 classes" in done.out
    assert "Files: run [b] (" in done.out
    assert "--run 'run [b]'" in done.out
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("where", ["dataset", "tables"])
def test_the_config_of_a_run_repeats_it(
    where: str, elugcn: Command, folder: Path, tables: Tables
) -> None:
    tables.keep(name="id", size="size", label="label")
    own = [*tables.write(), "--id-column", "name", "--val-fraction", "0.4"]
    graph = own if where == "tables" else [*SBM, "--split", "2"]
    asked = ["--seed", "7", *BARE, "--set", "lr=2e-2", "--json"]
    first = elugcn("train", *graph, *asked, "--out", "a").json
    again = ["train", "--config", "a/config.yaml", "--no-report", "--json", "--out"]
    assert elugcn(*again, "b").json["test_accuracy"] == first["test_accuracy"]
    for name in ("predictions.csv", "history.csv", "config.yaml", "model.safetensors"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()
    # What the command line names comes first.
    other = elugcn(*again, "c", "--seed", "8", "--method", "elu-gcn").json
    assert (other["seed"], other["split"]) == (8, first["split"])
    one, two = (rows_of(folder / d / "predictions.csv") for d in "ac")
    assert [r["confidence"] for r in one] != [r["confidence"] for r in two]
    assert elugcn(*again, "d", "--dataset", "karate").json["n_nodes"] == 34


def test_own_tables_end_to_end(runs: Path) -> None:
    said = json.loads((runs / "tables/metrics.json").read_text())
    assert (said["dataset"], said["n_nodes"], said["n_edges"]) == ("nodes", 60, 121)
    assert any("no split was given" in note for note in said["notes"])
    rows = rows_of(runs / "tables/predictions.csv")
    assert [r["id"] for r in rows] == [f"n {i}" for i in range(60)]
    right = [r["prediction"] == LABELS[i % 3] for i, r in enumerate(rows)]
    assert sum(right) / 60 > 0.8
    # Unlabelled nodes take no part in any split.
    assert all((r["split"] == "") == (i % 2 == 0) for i, r in enumerate(rows))


def test_columns_of_any_name(elugcn: Command, folder: Path, tables: Tables) -> None:
    tables.set("split", lambda i: ("train", "val", "test")[i % 5 % 3] if i % 2 else "")
    tables.edge_header.append("weight")
    for i, row in enumerate(tables.edge_rows):
        row.append(str(1 + i % 4))
    usual = ["train", *tables.write(), *BARE, "--quiet", "--out"]
    assert elugcn(*usual, "a").code == 0
    weighted = (folder / "a/predictions.csv").read_bytes()
    same = {name: name for name in ("size", "colour", "weight_kg")}
    tables.keep(who="id", kind="label", part="split", **same)
    tables.edge_header = ["note", "a", "b", "strength"]
    tables.edge_rows = [["n 0", *row] for row in tables.edge_rows]
    columns = ["--id-column", "who", "--label-column", "kind", "--split-column", "part"]
    columns += ["--source-column", "a", "--target-column", "b"]
    own = ["train", *tables.write(), *columns, *BARE, "--quiet", "--out"]
    assert elugcn(*own, "b", "--weight-column", "strength").code == 0
    assert (folder / "b/predictions.csv").read_bytes() == weighted
    assert elugcn(*own, "c").code == 0
    assert (folder / "c/predictions.csv").read_bytes() != weighted


def test_notes_about_the_graph(elugcn: Command, tables: Tables) -> None:
    tables.edge_rows = [row for row in tables.edge_rows if "n 58" not in row]
    tables.edge_rows += [["n 4", "n 4"], tables.edge_rows[0], tables.edge_rows[0][::-1]]
    own = ["train", *tables.write(), *BARE]
    said = elugcn(*own, "--json").json
    assert said["n_edges"] == len(tables.edge_rows) - 3
    assert said["unreachable_fraction"] == pytest.approx(1 / 60)
    shown = elugcn(*own).out
    for note in said["notes"]:
        assert f"Note: {note}." in shown
    assert "No label reaches 1.7%." in shown
    # The reversed copy of an edge is an edge of its own when direction counts.
    directed = elugcn(*own, "--directed", "--json").json
    assert directed["n_edges"] == len(tables.edge_rows) - 2


def test_uneven_classes(elugcn: Command, folder: Path, tables: Tables) -> None:
    """One label of five is rare, and nothing tells those nodes from the others."""
    tables.set("label", lambda i: ("rare" if i % 10 == 1 else "usual") if i % 2 else "")
    own = ["train", *tables.write(), "--method", "gcn", "--set", "epochs=20"]
    done = elugcn(*own, "--out", "a")
    said = json.loads((folder / "a/metrics.json").read_text())
    assert said["uneven_classes"]
    assert said["measured_on"] == {"train": 18, "val": 6, "test": 6}
    assert said["recall"] == {"rare": 0.0, "usual": 1.0}
    assert said["test_balanced_accuracy"] == 0.5
    lines = done.out.splitlines()
    assert lines[1] == (
        "Test balanced accuracy 50.0% on 6 nodes (validation 50.0%, training 50.0%)."
    )
    assert (
        lines[2] == "Test accuracy 83.3% on 6 nodes (validation 83.3%, training 77.8%)."
    )
    assert lines[3] == "Recall: rare 0.0%, usual 100.0%."
    note = "no node is predicted as rare, though there are labels; try --class-weight "
    note += "'balanced' and --metric 'balanced_accuracy'"
    assert done.err == f"elugcn: warning: {note}\n"
    assert f"Note: {note}." in lines
    page = (folder / "a/report.html").read_text()
    assert (
        "<strong>50%</strong> balanced accuracy, 83% accuracy on 6 test nodes" in page
    )
    assert "<li>no node is predicted as rare, though there are labels" in page

    balanced = ["--class-weight", "balanced", "--metric", "roc_auc", "--no-report"]
    again = elugcn(*own, *balanced, "--out", "b")
    said = json.loads((folder / "b/metrics.json").read_text())
    fitted = load(folder / "b")
    assert (fitted.metric, fitted.class_weight) == ("roc_auc", "balanced")
    for part in ("train", "val", "test"):
        mask = fitted.data[f"{part}_mask"]
        y, z = fitted.data.y[mask], fitted.result.logits[mask]
        ranked = roc_auc_score(y, z[:, 1] - z[:, 0])
        assert said[f"{part}_score"] == pytest.approx(ranked)
    assert again.out.splitlines()[1].startswith("Test ROC AUC ")
    assert "val_score" in rows_of(folder / "b/history.csv")[0]
    third = elugcn("train", "--config", "b/config.yaml", "--no-report", "--json").json
    same = "metric", "class_weight", "val_score", "test_score"
    assert [third[key] for key in same] == [said[key] for key in same]


@pytest.mark.parametrize("val", [0.4, 0.0])
def test_the_split_that_is_drawn(
    val: float, elugcn: Command, folder: Path, tables: Tables
) -> None:
    """Of 30 labels; the nodes have no features but their degree."""
    tables.keep(id="id", label="label")
    own = [*tables.write(), "--val-fraction", val, "--test-fraction", "0.1"]
    done = elugcn("train", *own, *BARE, "--features", "degree", "--out", "run")
    rows = rows_of(folder / "run/predictions.csv")
    parts = [row["split"] for row in rows]
    expected = [27 - 30 * val, 30 * val, 3]
    assert [parts.count(p) for p in ("train", "val", "test")] == expected
    assert ("(validation –, training " in done.out) == (not val)
    assert ("elugcn: warning: " in done.err) == (not val)
    assert load(folder / "run").num_features == 1


def test_options_reach_the_graph_and_the_method(elugcn: Command, folder: Path) -> None:
    said = elugcn(
        "train", *SBM, *BARE, "--graph-mode", "topk", "--set", "topk=3",
        "--labels-per-class", "2", "--json", "--out", "run",
    ).json  # fmt: skip
    assert said["graph_mode"] == "topk"
    rows = rows_of(folder / "run/predictions.csv")
    assert sum(row["split"] == "train" for row in rows) == 6
    lpa = ["--method", "lpa", "--no-report", "--threads", "2", "--json"]
    assert elugcn("train", *SBM, *lpa).json["threads"] == 2


def test_presets_are_for_the_published_labels(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preset(method: str, dataset: str) -> dict[str, int]:
        return {"epochs": 3} if dataset == "sbm" else {}

    monkeypatch.setattr("elugcn.api.config_files.preset_of", preset)
    base = ["train", *SBM, "--method", "gcn", "--no-report", "--json"]
    assert elugcn(*base).json["epochs"] == 3
    assert elugcn(*base, "--labels-per-class", "2").json["epochs"] > 3
    assert elugcn(*base, "--set", "epochs=2").json["epochs"] == 2


def test_a_dry_run_trains_nothing(elugcn: Command, folder: Path) -> None:
    plan = elugcn("train", *SBM, "--dry-run", "--json").json
    assert (plan["method"], plan["n_nodes"], plan["n_edges"]) == ("auto", 120, 600)
    memory = plan["memory_mb"]
    assert 400 < memory["total"] < 2000
    shown = elugcn("train", *SBM, "--dry-run").out
    assert "auto on sbm: 120 nodes, 600 edges, 64 features\n" in shown
    assert f"Training would need about {memory['total']:,.0f} MB; " in shown
    large = ["--data-option", "n=50000", "--set", "hidden_channels=2000000"]
    shown = elugcn("train", *SBM, *large, "--method", "gcn", "--dry-run").out
    assert "Try fewer hidden_channels." in shown
    assert list(folder.iterdir()) == []


def test_a_report_that_fails_does_not_cost_the_run(
    elugcn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.report.write_report", "not a function")
    done = elugcn("train", *SBM, *QUICK, "--out", "run")
    reason = "the report was not written (TypeError: 'str' object is not callable)"
    assert (done.code, done.err) == (0, f"elugcn: warning: {reason}\n")
    assert {p.name for p in (folder / "run").iterdir()} == FILES - {"report.html"}


def test_progress_only_where_it_is_wanted(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(
        "elugcn.cli.options.default_progress",
        lambda quiet: asked.append(quiet) or SILENT,
    )
    for option in ([], ["--json"], ["--quiet"]):
        assert elugcn("train", "--dataset", "karate", *BARE, *option).code == 0
    assert asked == [False, True, True]
