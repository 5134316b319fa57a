"""Models that version 0.1 saved load and predict the same."""

import json
import shutil
import zipfile
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone
from torch_geometric.data import Data

from elugcn import ELUGCNClassifier, InputError, NodeClassifier
from elugcn.api import Fitted, load, predict_other, resolve_config, save
from elugcn.data.tables import load_tables
from elugcn.methods.registry import GRAPH_ONLY, METHOD_NAMES

ARCHIVE = Path(__file__).resolve().parents[1] / "fixtures" / "models_0_1.zip"
with zipfile.ZipFile(ARCHIVE) as archive:
    MODELS = sorted({name.split("/")[0] for name in archive.namelist() if "/" in name})
# Trained on tables or arrays: they have graphs of their own.
OTHERS = {"tables", "tables-gcn", "estimator"}
assert set(METHOD_NAMES) - {"auto", "linear"} <= set(MODELS)
Expected = Mapping[str, np.ndarray]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def expected(models: Path) -> Expected:
    with np.load(models / "expected.npz") as content:
        return dict(content)


def graph(kind: str, expected: Expected) -> Data:
    """The graph to predict on that 0.1 predicted on."""
    edges = torch.from_numpy(expected[f"graph/{kind}/edge_index"]).long()
    data = Data(x=torch.from_numpy(expected[f"graph/{kind}/x"]), edge_index=edges)
    if kind == "directed":
        data.directed = True
    if f"graph/{kind}/edge_weight" in expected:
        data.edge_weight = torch.from_numpy(expected[f"graph/{kind}/edge_weight"])
    return data


def check_logits(fitted: Fitted, name: str, expected: Expected) -> None:
    before = torch.from_numpy(expected[f"logits/{name}"])
    torch.testing.assert_close(fitted.result.logits, before, rtol=1e-4, atol=1e-5)


def read(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "model.json").read_text("utf-8"))
    return content


@pytest.mark.parametrize("name", [m for m in MODELS if m not in OTHERS | {"lpa"}])
def test_the_same_predictions(name: str, models: Path, expected: Expected) -> None:
    other = graph(str(expected[f"graph_of/{name}"]), expected)
    check_logits(predict_other(load(models / name), other), name, expected)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_known_of_the_fit_stays(name: str, models: Path) -> None:
    fitted, before = load(models / name), read(models / name)
    tensors = load_file(models / name / "model.safetensors")
    renamed = {"elu-gcn": "auto", "elu-gcn-paper": "elu-gcn"}
    assert fitted.method == renamed.get(before["method"], before["method"])
    assert torch.equal(fitted.result.logits, tensors["logits"])
    assert torch.equal(fitted.data.y, tensors["y"])
    assert fitted.result.metadata == before["facts"]
    assert fitted.result.graph_mode == before["graph_mode"]
    assert len(fitted.result.history) == len(before["history"])
    assert fitted.classes.tolist() == before["classes"]["values"]
    assert fitted.data.class_names == before["class_names"]
    assert fitted.num_features == before["num_features"]
    now = {"features": "random_features"} if fitted.method == "nodeformer" else {}
    for option, value in before["config"].items():
        option = now.get(option, option)
        # The members of the default keep no directions apart.
        gone = fitted.method == "auto" and value == "apart"
        if option in type(fitted.config).model_fields and not gone:
            assert getattr(fitted.config, option) == value, option
    use = fitted.result.label_utilization
    assert (use is not None) == ("utilization.status" in tensors)
    if use is not None:
        assert torch.equal(use.status, tensors["utilization.status"])
    if "graph.left" in tensors:
        assert fitted.result.graph is not None
        dense = tensors["graph.left"] @ tensors["graph.right"].T
        torch.testing.assert_close(fitted.result.graph.to_dense(), dense)
    if "graph.crow" in tensors:
        assert fitted.result.graph is not None
        stored = fitted.result.graph.operator
        assert torch.equal(stored.value, tensors["graph.value"])  # type: ignore[union-attr]


def test_it_can_be_saved_again(
    models: Path, expected: Expected, tmp_path: Path
) -> None:
    for name in ("elu-gcn", "blend", "sampled", "cs-gcn", "gcn-lpa", "topk"):
        save(load(models / name), tmp_path / name)
        assert read(tmp_path / name)["schema"] == 2
        other = graph(str(expected[f"graph_of/{name}"]), expected)
        check_logits(predict_other(load(tmp_path / name), other), name, expected)


@pytest.mark.parametrize("name", ["tables", "tables-gcn"])
def test_tables(name: str, models: Path, expected: Expected) -> None:
    fitted = load(models / name)
    data = load_tables(
        models / "nodes1.csv",
        models / "edges1.csv",
        schema=fitted.data.table_schema,
    )
    other = predict_other(fitted, data)
    check_logits(other, name, expected)
    assert other.data.class_names == ["class 0", "class 1", "class 2"]


def test_the_estimator(models: Path, expected: Expected) -> None:
    loaded = NodeClassifier.load(models / "estimator")
    assert loaded.method == "auto"
    assert loaded.classes_.tolist() == ["ant", "bee", "cow"]
    proba = loaded.predict_proba(graph("plain", expected))
    np.testing.assert_allclose(proba, expected["proba/estimator"], rtol=1e-4, atol=1e-6)
    assert loaded.epochs == 4
    # Options of 0.1's ensemble are gone: it can be fitted again as it is.
    assert "eta" not in loaded.get_params()
    assert clone(loaded).get_params() == loaded.get_params()
    # The classifier of 0.1 is today's method auto, not the method of the paper.
    with pytest.raises(InputError, match=r"method 'auto'.*NodeClassifier"):
        ELUGCNClassifier.load(models / "estimator")
    paper = ELUGCNClassifier.load(models / "elu-gcn-paper")
    assert paper.predict_proba().shape == (72, 3)


HUGE = {"in_channels": 10**12, "hidden_channels": 10**12, "out_channels": 3}
HOSTILE: dict[str, tuple[tuple[str, ...], Any]] = {
    "method": (("method",), "rm -rf"),
    "kind": (("predictor_kind",), "os.system"),
    "huge": (("predictor", "network", "architecture"), HUGE),
    "norm": (("predictor", "network", "architecture", "norm"), "loud"),
    "depth": (("predictor", "network", "architecture", "num_layers"), 10**9),
    "source": (("predictor", "source_kind"), "x"),
    "seconds": (("seconds",), None),
    "schema of tables": (("table_schema",), {"version": 1, "columns": 3}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused(case: str, models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "h-from-mlp", tmp_path / "m")
    content = read(tmp_path / "m")
    (*path, last), value = HOSTILE[case]
    reduce(getitem, path, content)[last] = value
    (tmp_path / "m/model.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"model\.json: not a model") as caught:
        load(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_config_files_of_0_1(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"

    def configured(method: str, before: str, options: str) -> Any:
        path.write_text(f"schema: 1\nmethod: {before}\noptions: {{{options}}}\n")
        return resolve_config(method, file=path)

    config = configured("auto", "elu-gcn", "epochs: 30, k: 3, variants: []")
    assert config == resolve_config("auto", options={"epochs": 30})
    # The members of the default keep no directions apart.
    config = configured("auto", "elu-gcn", "direction: apart, self_loops: false")
    assert (config.direction, config.self_loops) == ("given", False)
    assert configured("auto", "elu-gcn", "direction: out").direction == "out"
    for method in ("elu-gcn", GRAPH_ONLY):
        assert configured(method, "elu-gcn-paper", "k: 3, variants: []").k == 3
    config = configured("nodeformer", "nodeformer", "features: 7, dropped: 1")
    assert config.random_features == 7
