"""`elugcn train`: what it prints and what it leaves on disk."""

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from elugcn.cli.common import settle
from elugcn.cli.options import FitOptions, GraphOptions
from elugcn.cli.train import _chosen
from elugcn.data.datasets import load_dataset
from elugcn.training.progress import SILENT, Progress
from tests.cli.conftest import LABELS, Command, Tables, rows_of

FILES = {
    "config.yaml",
    "environment.json",
    "history.csv",
    "metrics.json",
    "model.json",
    "model.safetensors",
    "predictions.csv",
    "report.html",
}
KEYS = {
    "dataset", "method", "split", "seed", "n_nodes", "n_edges", "n_classes", "epochs",
    "train_accuracy", "val_accuracy", "test_accuracy", "elu_fraction",
    "unreachable_fraction", "graph_mode", "seconds", "peak_rss_mb", "threads", "out",
}  # fmt: skip
QUICK = ["--set", "epochs=5"]
SBM = ["--dataset", "sbm", "--data-option", "n=120", "--data-option", "n_classes=3"]


@pytest.mark.parametrize("method", ["elu-gcn", "gcn", "mlp", "lpa"])
def test_every_method_leaves_a_whole_run(
    method: str, elugcn: Command, folder: Path
) -> None:
    quick = [] if method == "lpa" else QUICK
    done = elugcn("train", *SBM, "--method", method, *quick, "--json", "--out", "run")
    said = done.json
    assert done.err == ""
    assert said.keys() >= KEYS
    assert set(said["seconds"]) >= {
        "pretrain",
        "utilization",
        "graph",
        "train",
        "total",
    }
    assert (said["method"], said["dataset"], said["out"]) == (method, "sbm", "run")
    assert (said["n_nodes"], said["n_edges"], said["n_classes"]) == (120, 600, 3)
    for part in ("train", "val", "test"):
        assert 0.0 <= said[f"{part}_accuracy"] <= 1.0
    # The classes of this graph are easy: a percentage would be far above 1.
    assert said["test_accuracy"] > 0.5
    assert {p.name for p in (folder / "run").iterdir()} == FILES
    assert json.loads((folder / "run/metrics.json").read_text()) == said
    assert [p.name for p in folder.iterdir()] == ["run"]


def test_records_agree_with_each_other(elugcn: Command, folder: Path) -> None:
    said = elugcn("train", *SBM, *QUICK, "--seed", "3", "--json", "--out", "run").json
    rows = rows_of(folder / "run/predictions.csv")
    assert list(rows[0]) == ["id", "prediction", "confidence", "utilization", "split"]
    assert [r["id"] for r in rows] == [str(i) for i in range(120)]
    assert {r["split"] for r in rows} == {"train", "val", "test"}
    elu = sum(r["utilization"] == "elu" for r in rows) / len(rows)
    assert elu == pytest.approx(said["elu_fraction"])
    assert all(1 / 3 <= float(r["confidence"]) <= 1 for r in rows)
    history = rows_of(folder / "run/history.csv")
    assert [r["epoch"] for r in history] == [str(i) for i in range(said["epochs"])]
    config = yaml.safe_load((folder / "run/config.yaml").read_text())
    assert config["schema"] == 1
    assert (config["seed"], config["options"]["epochs"]) == (3, 5)
    environment = json.loads((folder / "run/environment.json").read_text())
    assert environment["threads"] == said["threads"]
    assert {"torch", "elugcn"} <= set(environment["packages"])


def test_the_config_of_a_run_repeats_it(elugcn: Command, folder: Path) -> None:
    asked = [*SBM, "--split", "2", "--seed", "7", "--method", "gcn", *QUICK]
    first = elugcn("train", *asked, "--set", "lr=2e-2", "--json", "--out", "a").json
    again = elugcn("train", "--config", "a/config.yaml", "--json", "--out", "b").json
    for key in ("dataset", "method", "split", "seed", "n_nodes", "test_accuracy"):
        assert again[key] == first[key]
    a, b = folder / "a", folder / "b"
    for name in ("predictions.csv", "history.csv", "config.yaml", "model.safetensors"):
        assert (a / name).read_bytes() == (b / name).read_bytes()
    other = elugcn(
        "train", "--config", "a/config.yaml", "--seed", "8", "--json", "--out", "c"
    ).json
    assert (other["seed"], other["split"]) == (8, 2)
    assert (folder / "c/predictions.csv").read_bytes() != (
        a / "predictions.csv"
    ).read_bytes()


def test_the_config_of_a_run_on_tables_repeats_it(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    tables.header[0] = "name"
    asked = [*tables.write(), "--id-column", "name", "--val-fraction", "0.4"]
    assert elugcn("train", *asked, *QUICK, "--quiet", "--out", "a").code == 0
    assert (
        elugcn("train", "--config", "a/config.yaml", "--quiet", "--out", "b").code == 0
    )
    assert (folder / "a/predictions.csv").read_bytes() == (
        folder / "b/predictions.csv"
    ).read_bytes()
    assert (
        elugcn("diagnose", "--config", "a/config.yaml", "--json").json["dataset"]
        == "nodes"
    )


def test_same_seed_same_bytes_other_seed_other_bytes(
    elugcn: Command, folder: Path
) -> None:
    for out, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        done = elugcn("train", *SBM, *QUICK, "--seed", seed, "--quiet", "--out", out)
        assert (done.code, done.out, done.err) == (0, "", "")
    a, b, c = ((folder / d / "predictions.csv").read_bytes() for d in "abc")
    assert a == b
    assert a != c


def test_own_tables_end_to_end(elugcn: Command, folder: Path, tables: Tables) -> None:
    said = elugcn(
        "train", *tables.write(), "--set", "epochs=60", "--json", "--out", "run"
    ).json
    assert (said["dataset"], said["n_nodes"], said["n_classes"]) == ("nodes", 60, 3)
    assert said["n_edges"] == 121
    assert any("no split column" in note for note in said["notes"])
    rows = rows_of(folder / "run/predictions.csv")
    assert [r["id"] for r in rows] == [f"n {i}" for i in range(60)]
    assert {r["prediction"] for r in rows} == set(LABELS)
    right = sum(r["prediction"] == t for r, t in zip(rows, tables.truth, strict=True))
    assert right / 60 > 0.8
    # Unlabelled nodes take no part in any split.
    assert all((r["split"] == "") == (i % 2 == 0) for i, r in enumerate(rows))


def test_the_summary_shows_names_as_they_are(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    """Square brackets in file names are markup to the printing library."""
    odd = Tables(folder, "my [red] graph")
    done = elugcn("train", *odd.write(), *QUICK, "--out", "run [b]")
    assert done.code == 0
    assert "my [red] graph" in done.out
    assert "run [b]" in done.out
    assert "\x1b" not in done.out + done.err
    assert "test accuracy" in done.out


def test_a_default_directory_is_made(elugcn: Command, folder: Path) -> None:
    said = elugcn("train", "--dataset", "karate", *QUICK, "--json").json
    assert said["out"].startswith("runs/karate-elu-gcn-0-")
    assert {p.name for p in (folder / said["out"]).iterdir()} == FILES
    second = elugcn("train", "--dataset", "karate", *QUICK, "--json").json
    assert second["out"] != said["out"]


def test_an_empty_directory_may_be_filled(elugcn: Command, folder: Path) -> None:
    (folder / "empty").mkdir()
    arguments = ["train", "--dataset", "karate", *QUICK, "--quiet", "--out", "empty"]
    assert elugcn(*arguments).code == 0
    assert {p.name for p in (folder / "empty").iterdir()} == FILES


def test_a_graph_without_edges_warns_and_trains(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    tables.edge_rows = []
    done = elugcn("train", *tables.write(), *QUICK, "--json", "--out", "run")
    assert "elugcn: warning: " in done.err
    assert "no edges" in done.err
    assert done.json["n_edges"] == 0
    assert done.json["unreachable_fraction"] > 0


def test_odd_edges_are_handled_and_said(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    tables.edge_rows = [row for row in tables.edge_rows if "n 58" not in row]
    tables.edge_rows += [["n 4", "n 4"], tables.edge_rows[0], tables.edge_rows[0][::-1]]
    said = elugcn("train", *tables.write(), *QUICK, "--json", "--out", "run").json
    notes = " ".join(said["notes"])
    for word in ("self-loop", "repeated", "isolated", "contain no training label"):
        assert word in notes, word
    assert said["n_edges"] == len(tables.edge_rows) - 3
    directed = elugcn(
        "train", *tables.write(), *QUICK, "--directed", "--json", "--out", "run2"
    ).json
    # The reversed copy of an edge is an edge of its own when direction counts.
    assert directed["n_edges"] == len(tables.edge_rows) - 2


def test_a_class_with_one_label_is_allowed(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    label = tables.column("label")
    for i, row in enumerate(tables.rows):
        row[label] = LABELS[i % 3] if i in (0, 3, 6, 9, 1) else ""
    said = elugcn("train", *tables.write(), *QUICK, "--json", "--out", "run").json
    assert said["n_classes"] == 2
    rows = rows_of(folder / "run/predictions.csv")
    assert rows[1]["split"] == "train"


def test_no_validation_warns(elugcn: Command, folder: Path, tables: Tables) -> None:
    label = tables.column("label")
    for i, row in enumerate(tables.rows):
        row[label] = LABELS[i % 3] if i in (0, 1) else ""
    done = elugcn("train", *tables.write(), *QUICK, "--json", "--out", "run")
    assert "elugcn: warning: there is no validation node" in done.err
    assert done.json["val_accuracy"] is None
    assert done.json["test_accuracy"] is None


def test_a_split_column_without_validation_gets_one(
    elugcn: Command, folder: Path, tables: Tables
) -> None:
    tables.header.append("split")
    for i, row in enumerate(tables.rows):
        row.append(("train" if i < 40 else "test") if i % 2 else "")
    said = elugcn("train", *tables.write(), *QUICK, "--json", "--out", "run").json
    assert any("no validation nodes were given" in note for note in said["notes"])
    splits = [r["split"] for r in rows_of(folder / "run/predictions.csv")]
    assert splits.count("test") == 10
    assert splits.count("train") + splits.count("val") == 20
    assert 0 < splits.count("val") < 10


@pytest.mark.parametrize("features", ["identity", "degree"])
def test_tables_without_features(
    features: str, elugcn: Command, folder: Path, tables: Tables
) -> None:
    keep = [tables.column("id"), tables.column("label")]
    tables.header = [tables.header[i] for i in keep]
    tables.rows = [[row[i] for i in keep] for row in tables.rows]
    arguments = ["train", *tables.write(), *QUICK, "--json", "--out"]
    said = elugcn(*arguments, "run", "--features", features).json
    assert said["n_nodes"] == 60
    model = json.loads((folder / "run/model.json").read_text())
    assert model["num_features"] == (60 if features == "identity" else 1)


def test_options_of_the_graph_reach_it(elugcn: Command, folder: Path) -> None:
    said = elugcn(
        "train", *SBM, *QUICK, "--graph-mode", "topk", "--set", "topk=3",
        "--threads", "2", "--labels-per-class", "2", "--json", "--out", "run",
    ).json  # fmt: skip
    assert (said["graph_mode"], said["threads"]) == ("topk", 2)
    with (folder / "run/predictions.csv").open() as file:
        assert sum(row["split"] == "train" for row in csv.DictReader(file)) == 6


def test_columns_of_any_name(elugcn: Command, folder: Path, tables: Tables) -> None:
    tables.header.append("split")
    for i, row in enumerate(tables.rows):
        row.append(("train", "val", "test")[i % 5 % 3] if i % 2 else "")
    tables.edge_header.append("weight")
    for i, row in enumerate(tables.edge_rows):
        row.append(str(1 + i % 4))
    usual = ["train", *tables.write(), *QUICK, "--quiet", "--out"]
    assert elugcn(*usual, "a").code == 0
    weighed = (folder / "a/predictions.csv").read_bytes()
    named = {"id": "who", "label": "kind", "split": "part"}
    tables.header = [named.get(name, name) for name in tables.header]
    # Another column comes first, so that the names matter.
    tables.edge_header = ["note", "a", "b", "strength"]
    tables.edge_rows = [["n 0", *row] for row in tables.edge_rows]
    columns = ["--id-column", "who", "--label-column", "kind", "--split-column", "part"]
    columns += ["--source-column", "a", "--target-column", "b"]
    own = ["train", *tables.write(), *columns, *QUICK, "--quiet", "--out"]
    assert elugcn(*own, "b", "--weight-column", "strength").code == 0
    assert (folder / "b/predictions.csv").read_bytes() == weighed
    assert elugcn(*own, "c").code == 0
    assert (folder / "c/predictions.csv").read_bytes() != weighed


def test_the_split_that_is_made(elugcn: Command, folder: Path, tables: Tables) -> None:
    def parts(*options: str) -> list[str]:
        out = f"run{len(list(folder.glob('run*')))}"
        done = elugcn(
            "train", *tables.write(), *QUICK, "--quiet", "--out", out, *options
        )
        assert done.code == 0, done.err
        return [row["split"] for row in rows_of(folder / out / "predictions.csv")]

    usual = parts()
    assert [usual.count(p) for p in ("train", "val", "test")] == [18, 6, 6]
    other = parts("--val-fraction", "0.4", "--test-fraction", "0.1")
    assert [other.count(p) for p in ("train", "val", "test")] == [15, 12, 3]
    assert parts() == usual
    assert parts("--seed", "1") != usual


def test_tuned_values_are_for_the_published_labels(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tuned(dataset: str, method: str, folder: object = None) -> dict[str, int]:
        return {"epochs": 3} if dataset == "sbm" else {}

    monkeypatch.setattr("elugcn.config.preset", tuned)
    base = ["train", *SBM, "--method", "gcn", "--set", "patience=4", "--json"]
    assert elugcn(*base).json["epochs"] == 3
    assert elugcn(*base, "--labels-per-class", "2").json["epochs"] > 3
    assert elugcn(*base, "--set", "epochs=2").json["epochs"] == 2


def test_progress_only_where_it_is_wanted(
    elugcn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def progress(quiet: bool) -> Progress:
        asked.append(quiet)
        return SILENT

    monkeypatch.setattr("elugcn.cli.common.default_progress", progress)
    base = ["train", "--dataset", "karate", *QUICK]
    for option in ([], ["--json"], ["--quiet"]):
        assert elugcn(*base, *option).code == 0
    assert asked == [False, True, True]


def test_accuracies_are_those_of_their_split(elugcn: Command, folder: Path) -> None:
    hard = [*SBM, "--data-option", "homophily=0.4", "--data-option", "feature_noise=3"]
    said = elugcn(
        "train",
        *hard,
        "--data-option",
        "label_rate=0.2",
        *QUICK,
        "--json",
        "--out",
        "a",
    ).json
    rows = rows_of(folder / "a/predictions.csv")
    truth = load_dataset(
        "sbm", n=120, n_classes=3, homophily=0.4, feature_noise=3, label_rate=0.2
    ).y.tolist()
    shares = set()
    for part in ("train", "val", "test"):
        right = [
            row["prediction"] == str(y)
            for row, y in zip(rows, truth, strict=True)
            if row["split"] == part
        ]
        assert said[f"{part}_accuracy"] == pytest.approx(sum(right) / len(right))
        shares.add(said[f"{part}_accuracy"])
    assert len(shares) == 3  # else one could stand for another


def test_people_read_percentages(elugcn: Command, folder: Path) -> None:
    out = elugcn("train", *SBM, *QUICK, "--out", "run").out
    said = json.loads((folder / "run/metrics.json").read_text())
    assert re.search(f"test accuracy +{100 * said['test_accuracy']:.1f} %", out)


def test_an_interrupt_is_said(
    elugcn: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*rest: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("elugcn.training.loop._adam", stop)
    done = elugcn("train", *SBM, "--out", "run")
    assert (done.code, done.out, done.err) == (130, "", "elugcn: interrupted\n")
    assert list(folder.iterdir()) == []


def test_data_dir_counts_beside_a_config(folder: Path) -> None:
    file = folder / "a.yaml"
    file.write_text("schema: 1\noptions: {}\ngraph: {dataset: cora, split: 2}\n")
    said = GraphOptions(data_dir=folder / "here")
    settings = settle(said, FitOptions(config=file))
    assert settings.graph == GraphOptions(
        dataset="cora", split=2, data_dir=folder / "here"
    )


def test_tables_have_one_split_the_first(elugcn: Command, tables: Tables) -> None:
    asked = ["train", *tables.write(), "--set", "epochs=2", "--split", "0", "--json"]
    assert elugcn(*asked, "--dry-run").code == 0


def test_no_validation_nodes_if_none_are_wanted(
    elugcn: Command, tables: Tables, folder: Path
) -> None:
    asked = ["--val-fraction", "0", "--set", "epochs=2", "--method", "gcn"]
    done = elugcn("train", *tables.write(), *asked, "--json", "--out", "run")
    assert done.code == 0
    assert done.json["val_accuracy"] is None
    splits = {row["split"] for row in rows_of(folder / "run/predictions.csv")}
    assert splits == {"train", "test", ""}


def test_the_share_of_the_elu_view_stands_beside_its_member() -> None:
    details = {
        "chosen": "random, round 1 + two views + gcn",
        "etas": {"random, round 1": 0.0, "two views": 0.35, "gcn": 0.0, "other": 0.1},
    }
    assert _chosen(details) == "random, round 1 + two views (η = 0.35) + gcn"
    assert _chosen(details | {"chosen": "gcn"}) == "gcn"
