"""Saved models come back as they were, and nothing else is believed."""

import json
import math
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch_geometric.data import Data

from elugcn import InputError
from elugcn.api import Fitted, attach_graph, json_safe, load, save
from elugcn.data.validation import check_data

Fit = Callable[..., Fitted]
Tensors = dict[str, Tensor]
METHODS = ("auto", "elu-gcn", "elu-graph", "gcn", "mlp", "lpa", "cs")
NOT_A_MODEL = "not a model this version can read"


@pytest.fixture
def saved(fitted: Fitted, tmp_path: Path) -> Path:
    save(fitted, tmp_path / "m")
    return tmp_path / "m"


@pytest.mark.parametrize("method", METHODS)
def test_everything_comes_back(method: str, quick_fit: Fit, tmp_path: Path) -> None:
    fitted = quick_fit(method)
    save(fitted, tmp_path / "m")
    loaded = load(tmp_path / "m")
    for name in (
        "method", "config", "seed", "threads", "device", "notes", "num_features",
        "graph_summary", "metadata",
    ):  # fmt: skip
        assert getattr(loaded, name) == getattr(fitted, name), name
    for name in ("metadata", "history", "seconds", "epochs", "graph_mode"):
        assert getattr(loaded.result, name) == getattr(fitted.result, name), name
    assert torch.equal(loaded.result.logits, fitted.result.logits)
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(loaded.data[name], fitted.data[name])
    assert loaded.data.class_names == fitted.data.class_names
    folds = fitted.result.metadata.get("judged_on", "").endswith("folds")
    assert (loaded.result.held_out is not None) == folds == (method == "auto")
    for mine, other in zip(fitted.validation(), loaded.validation(), strict=True):
        assert torch.equal(mine, other)
    assert loaded.baselines.keys() == fitted.baselines.keys()
    for name, classes in fitted.baselines.items():
        assert torch.equal(loaded.baselines[name], classes)
    use, before = loaded.result.label_utilization, fitted.result.label_utilization
    assert (use is None) == (before is None)
    if use is not None and before is not None:
        assert torch.equal(use.status, before.status)
    if fitted.result.graph is not None:
        assert loaded.result.graph is not None
        expected = fitted.result.graph.to_dense()
        assert torch.equal(loaded.result.graph.to_dense(), expected)


def test_what_was_loaded_can_be_saved(saved: Path, tmp_path: Path) -> None:
    save(load(saved), tmp_path / "again")
    for name in ("model.json", "model.safetensors"):
        one, two = ((d / name).read_bytes() for d in (saved, tmp_path / "again"))
        assert one == two


def test_a_full_disk_leaves_nothing(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr("elugcn.api.files.save_file", full)
    with pytest.raises(InputError, match=r"model\.safetensors: can't be written"):
        save(fitted, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# A loaded model and its graph


def test_a_loaded_model_takes_its_graph_back(
    fitted: Fitted, saved: Path, data: Data
) -> None:
    loaded = load(saved)
    assert loaded.data.get("x") is None
    changed = check_data(data).data
    changed.x = changed.x + 1
    relabelled = check_data(data).data
    relabelled.y = 1 - relabelled.y.clamp(max=1)
    for wrong in (changed, relabelled):
        assert not attach_graph(loaded, wrong)
        assert loaded.data.get("x") is None
    assert attach_graph(loaded, check_data(data).data)
    assert torch.equal(loaded.data.x, fitted.data.x)
    assert loaded.graph_summary == fitted.graph_summary


# Files from anywhere


def drop(key: str) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__delitem__(key)


def put(key: str, change: Callable[[Tensor], Tensor]) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.update({key: change(tensors[key]).contiguous()})


def first(value: int) -> Callable[[Tensor], Tensor]:
    return lambda t: torch.cat([torch.full_like(t[:1], value), t[1:]])


SPOILED_TENSORS = {
    "no logits": drop("logits"),
    "no y": drop("y"),
    "no graph values": drop("graph.value"),
    "no utilization status": drop("utilization.status"),
    "a class too few": put("logits", lambda t: t[:, :-1]),
    "no nodes": put("logits", lambda t: t[:0]),
    "nan logits": put("logits", lambda t: t * math.nan),
    "labels above": put("y", lambda t: t + 7),
    "labels below": put("y", lambda t: t - 10),
    "labels of 32 bits": put("y", lambda t: t.int()),
    "mask of numbers": put("train_mask", lambda t: t.long()),
    "short status": put("utilization.status", lambda t: t[:5]),
    "unknown status": put("utilization.status", lambda t: t + 5),
    "class of lpa above": put("utilization.lpa", lambda t: t + 50),
    "narrow distribution": put("utilization.lpa_proba", lambda t: t[:, :1]),
    "column outside": put("graph.col", first(10**6)),
    "rows that start late": put("graph.crow", first(3)),
    "rows that go back": put("graph.crow", lambda t: t.flip(0)),
    "nan values": put("graph.value", lambda t: t * math.nan),
    "narrow summary": put("model.summary.hidden", lambda t: t[:, :2]),
    "short scaling": put("model.scaler.std", lambda t: t[:3]),
    "no scaling": drop("model.scaler.mean"),
    "double weights": put("model.network.W1", lambda t: t.double()),
    "infinite weights": put("model.network.W1", lambda t: t / 0),
    "baseline outside": put("baselines.gcn", lambda t: t + 9),
    "baseline unknown": lambda t: t.update({"baselines.os": t["y"].clone()}),
}


def refused(folder: Path, message: str = NOT_A_MODEL) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(folder)
    assert str(folder / "model.") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("case", SPOILED_TENSORS)
def test_tensors_that_do_not_fit_are_refused(case: str, saved: Path) -> None:
    tensors = load_file(saved / "model.safetensors")
    SPOILED_TENSORS[case](tensors)
    save_file(tensors, saved / "model.safetensors")
    refused(saved)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 64, b"\x80\x04cos\nsystem\n.", b"\xff" * 7 + b"\x7f" + b"{}"],
    ids=["empty", "noise", "pickle", "huge header"],
)
def test_other_files_are_refused(content: bytes, saved: Path) -> None:
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    for spoiled in (content, whole[: len(whole) // 2]):
        path.write_bytes(spoiled)
        refused(saved, r"model\.safetensors: can't be read")
    path.unlink()
    with pytest.raises(InputError, match=r"no saved model here \(model\.safetensors"):
        load(saved)


GARBLED = {
    "empty": "",
    "half": '{"schema": 2, ',
    "a list": "[]",
    "unknown schema": '{"schema": 3}',
    "no schema": "{}",
    "nothing but a schema": '{"schema": 2}',
    "nothing but an old schema": '{"schema": 1}',
    "endless brackets": "[" * 100_000,
    "nested objects": '{"schema": 2, "config": ' + '{"a": ' * 5_000,
    "a long number": '{"schema": 2, "seed": ' + "9" * 100_000 + "}",
    "no text": "\x00\xff",
}


@pytest.mark.parametrize("case", GARBLED)
def test_garbled_descriptions_are_refused(case: str, saved: Path) -> None:
    (saved / "model.json").write_text(GARBLED[case], encoding="latin-1")
    refused(saved, r"model\.json")


HUGE = {"in_channels": 10**12, "out_channels": 3}
HOSTILE: dict[str, tuple[tuple[str, ...], Any]] = {
    "unknown method": (("method",), "rm -rf"),
    "a module for a method": (("model", "method"), "os:system"),
    "a wrong option": (("config", "epochs"), "many"),
    "an unknown option": (("config", "nope"), 1),
    "no classes": (("classes",), None),
    "two classes of three": (("classes", "values"), ["a", "b"]),
    "classes of another kind": (("classes", "values"), ["a", "b", "c"]),
    "an unknown dtype": (("classes", "dtype"), "nothing"),
    "a dtype of structures": (("classes", "dtype"), "i4,(9,9,9,9,9,9,9,9,9)i8"),
    "one class name": (("graph", "class_names"), ["a"]),
    "a wrong schema of tables": (("graph", "table_schema"), {"columns": 3}),
    "a dtype of gigabytes": (("classes", "dtype"), "<U400000000"),
    "an unknown key": (("nope",), 1),
    "no stages": (("result", "seconds"), None),
    "no model": (("model",), None),
    "huge layers": (("model", "shapes"), HUGE),
    "many layers": (("model", "config", "num_layers"), 10**9),
    "another width": (("model", "config", "hidden_channels"), 7),
    "an unknown norm": (("model", "config", "norm"), "loud"),
    "an unknown source": (("model", "source", "method"), "x"),
    "no share": (("model", "eta"), math.nan),
    "a word for a number": (("model", "mean"), "x"),
    "billions of features": (("graph_summary", "num_features"), 10**10),
    "fewer features": (("graph_summary", "num_features"), 3),
    "another mode": (("result", "graph_mode"), "implicit"),
}


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads((folder / "model.json").read_text("utf-8"))
    change(content)
    (folder / "model.json").write_text(json.dumps(content))


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_descriptions_are_refused(case: str, saved: Path) -> None:
    (*path, last), value = HOSTILE[case]
    rewrite(saved, lambda content: reduce(getitem, path, content).update({last: value}))
    refused(saved)


@pytest.mark.parametrize("weights", [[], [0.0, 0.0], [-1.0, 1.0], ["a", 1]], ids=str)
def test_weights_of_members_that_do_not_fit(
    weights: list[Any], quick_fit: Fit, tmp_path: Path
) -> None:
    save(quick_fit("auto"), tmp_path / "m")
    rewrite(tmp_path / "m", lambda content: content["model"].update(weights=weights))
    refused(tmp_path / "m")


@pytest.mark.parametrize(
    "spoiled",
    [{"temperatures": ["a"]}, {"temperatures": [1.0] * 99}, {"temperatures": [math.nan]},
     {"bias": [0.1, 0.2]}, {"bias": [math.nan] * 3}, {"bias": {"a": 1}}],
    ids=str,
)  # fmt: skip
def test_temperatures_and_a_bias_that_do_not_fit(
    spoiled: dict[str, Any], quick_fit: Fit, tmp_path: Path
) -> None:
    save(quick_fit("auto"), tmp_path / "m")
    rewrite(tmp_path / "m", lambda content: content["model"].update(spoiled))
    refused(tmp_path / "m")


SPOILED_JUDGEMENTS = {
    "no logits": drop("held_out.logits"),
    "a class too few": put("held_out.logits", lambda t: t[:, :-1]),
    "a node too few": put("held_out.nodes", lambda t: t[1:]),
    "a node outside": put("held_out.nodes", first(10**6)),
    "nan": put("held_out.logits", lambda t: t * math.nan),
}


@pytest.mark.parametrize("case", SPOILED_JUDGEMENTS)
def test_judged_nodes_that_do_not_fit(
    case: str, quick_fit: Fit, tmp_path: Path
) -> None:
    save(quick_fit("auto"), tmp_path / "m")
    tensors = load_file(tmp_path / "m/model.safetensors")
    SPOILED_JUDGEMENTS[case](tensors)
    save_file(tensors, tmp_path / "m/model.safetensors")
    refused(tmp_path / "m")


def test_members_that_nest_without_end_are_refused(saved: Path) -> None:
    def nest(content: dict[str, Any]) -> None:
        for _ in range(300):
            member = content["model"]
            nested = {"method": "auto", "members": [member], "weights": [1.0]}
            content["model"] = nested

    rewrite(saved, nest)
    refused(saved)


def test_places_without_a_model(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(InputError, match="no saved model here"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"model\.json"):
        load(saved / "model.json")
    (saved / "model.json").unlink()
    (saved / "model.json").mkdir()
    with pytest.raises(InputError, match=r"model\.json: can't be read"):
        load(saved)


def test_json_has_no_nan() -> None:
    value = {"a": math.nan, 3: [math.inf, 1.5, (2, torch.tensor([1.0]))]}
    assert json_safe(value) == {"a": None, "3": [None, 1.5, [2, [1.0]]]}
    others = [np.float32(0.5), np.array([1, 2]), Path("a"), None, "x"]
    assert json_safe(others) == [0.5, [1, 2], "a", None, "x"]
