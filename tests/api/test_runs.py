"""A run directory holds what the contract says, and is whole or absent."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch_geometric.data import Data

from elugcn import InputError
from elugcn.api import (
    Fitted,
    default_out,
    fit,
    load,
    metrics_of,
    resolve_config,
    write_predictions,
    write_run,
)
from elugcn.engine import engine_name

Fit = Callable[..., Fitted]
FILES = {
    "config.yaml", "metrics.json", "predictions.csv", "model.safetensors",
    "model.json", "history.csv", "environment.json",
}  # fmt: skip
METRICS = {
    "dataset", "method", "split", "seed", "n_nodes", "n_edges", "n_classes", "epochs",
    "train_accuracy", "val_accuracy", "test_accuracy", "elu_fraction",
    "unreachable_fraction", "graph_mode", "seconds", "peak_rss_mb", "threads", "out",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(fitted: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "one"
    metrics = metrics_of(fitted, "sbm", 2, out)
    write_run(fitted, metrics, out, {"dataset": "sbm", "split": 2})
    return out


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_files_of_a_run(run: Path, fitted: Fitted) -> None:
    assert {path.name for path in run.iterdir()} == FILES
    assert len({path.stat().st_mode for path in run.iterdir()}) == 1
    assert torch.equal(load(run).result.logits, fitted.result.logits)


def test_metrics(run: Path, fitted: Fitted, data: Data) -> None:
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    assert metrics.keys() >= METRICS
    expected = {
        "dataset": "sbm", "split": 2, "seed": 0, "n_nodes": 150, "n_classes": 3,
        "n_edges": data.edge_index.size(1) // 2, "epochs": 4, "graph_mode": "topk",
        "out": str(run),
    }  # fmt: skip
    assert metrics.items() >= expected.items()
    predicted = fitted.proba.argmax(dim=1)
    for part in ("train", "val", "test"):
        right = (predicted == data.y)[data[f"{part}_mask"]].double().mean()
        assert metrics[f"{part}_accuracy"] == pytest.approx(float(right))
    use = fitted.result.label_utilization
    assert use is not None
    assert metrics["elu_fraction"] == pytest.approx(float(use.elu.double().mean()))
    assert " ".join(metrics["seconds"]) == "pretrain utilization graph train total"
    assert 50 < metrics["peak_rss_mb"] < 1e5
    gcn = (fitted.baselines["gcn"] == data.y)[data.test_mask].double().mean()
    assert metrics["baselines"]["gcn"]["test_accuracy"] == pytest.approx(float(gcn))


def test_metrics_of_a_directed_graph_without_a_test_set(
    quick_fit: Fit, sbm: Callable[..., Data]
) -> None:
    data = sbm(0)
    one_way = data.edge_index[0] < data.edge_index[1]
    data.edge_index, data.directed = data.edge_index[:, one_way], True
    data.test_mask &= False
    metrics = metrics_of(fit(data, "lpa"), "mine", 0, Path("x"))
    assert metrics["n_edges"] == int(one_way.sum())
    assert metrics["test_accuracy"] is None
    assert metrics["elu_fraction"] is None
    assert (metrics["epochs"], metrics["graph_mode"]) == (0, "none")


def test_the_configuration_repeats_the_run(run: Path, fitted: Fitted) -> None:
    content = yaml.safe_load((run / "config.yaml").read_text("utf-8"))
    assert list(content) == [
        "schema", "method", "dataset", "split", "seed", "metric", "class_weight",
        "graph", "options",
    ]  # fmt: skip
    assert content["graph"] == {"dataset": "sbm", "split": 2}
    assert resolve_config("elu-gcn", file=run / "config.yaml") == fitted.config


def test_predictions(run: Path, fitted: Fitted, data: Data) -> None:
    found = rows(run / "predictions.csv")
    assert list(found[0]) == ["id", "prediction", "confidence", "utilization", "split"]
    assert [row["id"] for row in found] == [str(i) for i in range(150)]
    confidence, best = fitted.proba.max(dim=1)
    assert [row["prediction"] for row in found] == [str(c) for c in best.tolist()]
    given = torch.tensor([float(row["confidence"]) for row in found])
    torch.testing.assert_close(given, confidence, atol=1e-6, rtol=0)
    use = fitted.result.label_utilization
    assert use is not None
    assert [row["utilization"] for row in found] == use.names()
    splits = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
    for name, mask in splits.items():
        nodes = [i for i, row in enumerate(found) if row["split"] == name]
        assert nodes == data[mask].nonzero().squeeze(1).tolist()


def test_names_and_ids_are_quoted_where_they_must_be(
    sbm: Callable[..., Data], tmp_path: Path
) -> None:
    data = sbm(0)
    data.class_names = ["a,b", 'c"d', "e\nf"]
    data.node_ids = [f"n,{i}" for i in range(150)]
    with (tmp_path / "p.csv").open("w", newline="") as file:
        write_predictions(fit(data, "lpa"), file)
    found = rows(tmp_path / "p.csv")
    assert [row["id"] for row in found] == data.node_ids
    assert {row["prediction"] for row in found} == set(data.class_names)
    assert {row["utilization"] for row in found} == {""}


def test_history(run: Path, fitted: Fitted) -> None:
    found = rows(run / "history.csv")
    assert [int(row["epoch"]) for row in found] == [0, 1, 2, 3]
    for row, record in zip(found, fitted.result.history, strict=True):
        for name in ("loss", "val_accuracy", "val_loss"):
            assert float(row[name]) == pytest.approx(record[name], rel=1e-5)


def test_environment(run: Path) -> None:
    content = json.loads((run / "environment.json").read_text("utf-8"))
    assert content["packages"]["torch"] == torch.__version__
    assert content["threads"] == 1
    assert content["engine"]["engine"] == engine_name()
    assert content.keys() >= {"python", "platform", "cores", "engine", "commit", "date"}
    commit = content["commit"]
    assert commit is None or len(commit) == 40


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, InputError])
@pytest.mark.parametrize("stage", ["predictions", "model", "finish"])
def test_an_interrupt_leaves_nothing(
    stage: str,
    error: type[BaseException],
    fitted: Fitted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*arguments: Any) -> None:
        raise error("stopped")

    if stage != "finish":
        monkeypatch.setattr(f"elugcn.api.runs.write_{stage}", stop)
    metrics = metrics_of(fitted, "sbm", 0, tmp_path)
    with pytest.raises(error):
        write_run(fitted, metrics, tmp_path / "deep/run", {}, finish=stop)
    assert not list(tmp_path.rglob("*run*"))


def test_files_can_be_added_before_a_run_appears(
    fitted: Fitted, tmp_path: Path
) -> None:
    def finish(folder: Path) -> None:
        assert {path.name for path in folder.iterdir()} == FILES
        (folder / "report.html").write_text("<p>")

    metrics = metrics_of(fitted, "sbm", 0, tmp_path)
    write_run(fitted, metrics, tmp_path / "run", {}, finish)
    assert (tmp_path / "run/report.html").read_text() == "<p>"


def test_default_directories_do_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda form: "now")
    for end in ("", "-2", "-3"):
        out = default_out("cora", "gcn", 4)
        assert str(out) == f"runs/cora-gcn-4-now{end}"
        out.mkdir(parents=True)
