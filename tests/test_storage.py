"""Saved models: what the tensors must be for a file to be believed."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.storage import json_safe, load_fitted, save_fitted

Draw = Callable[..., CheckedGraph]
Tensors = dict[str, Tensor]


def fit(checked: Draw, method: str = "elu-gcn", **options: object) -> Fitted:
    if method != "lpa":
        options = {"epochs": 3} | options
    return fit_graph(checked(), method, resolve_config(method, options=options))


@pytest.fixture(scope="module")
def explicit(checked: Draw) -> Fitted:
    options = {"graph_mode": "topk", "topk": 4, "variants": (), "keep_gcn": False}
    return fit(checked, **options)


@pytest.mark.parametrize("method", ["elu-gcn", "elu-graph", "gcn", "mlp", "lpa"])
def test_everything_comes_back(method: str, checked: Draw, tmp_path: Path) -> None:
    fitted = fit(checked, method)
    save_fitted(fitted, tmp_path)
    loaded = load_fitted(tmp_path)
    assert loaded.method == method
    assert loaded.config == fitted.config
    assert torch.equal(loaded.prediction.logits, fitted.prediction.logits)
    assert loaded.prediction.facts == fitted.prediction.facts
    assert loaded.prediction.history == fitted.prediction.history
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(loaded.data[name], fitted.data[name])
    assert loaded.data.class_names == fitted.data.class_names
    if method == "lpa":
        assert loaded.prediction.predictor is None
        return
    assert loaded.prediction.predictor is not None
    assert fitted.prediction.predictor is not None
    graph = checked(7).data
    assert torch.equal(
        loaded.prediction.predictor.logits(graph),
        fitted.prediction.predictor.logits(graph),
    )


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_normalised_networks_come_back(
    norm: str, checked: Draw, tmp_path: Path
) -> None:
    fitted = fit(checked, "gcn", norm=norm, num_layers=3, residual=True)
    save_fitted(fitted, tmp_path)
    loaded = load_fitted(tmp_path).prediction.predictor
    assert loaded is not None
    here = loaded.logits(checked().data)
    torch.testing.assert_close(here, fitted.prediction.logits)


def drop(key: str) -> Callable[[Tensors], None]:
    def apply(tensors: Tensors) -> None:
        del tensors[key]

    return apply


def put(key: str, change: Callable[[Tensor], Tensor]) -> Callable[[Tensors], None]:
    def apply(tensors: Tensors) -> None:
        tensors[key] = change(tensors[key]).contiguous()

    return apply


def with_first(value: int) -> Callable[[Tensor], Tensor]:
    def apply(tensor: Tensor) -> Tensor:
        out = tensor.clone()
        out[0] = value
        return out

    return apply


@pytest.mark.parametrize(
    "spoil",
    [
        drop("logits"),
        drop("y"),
        drop("val_mask"),
        drop("predictor.model.weights.0"),
        drop("graph.value"),
        put("logits", lambda t: t[:-1]),
        put("logits", lambda t: t[:, :-1]),
        put("logits", lambda t: t.long()),
        put("logits", lambda t: t[0]),
        put("y", lambda t: t.float()),
        put("y", lambda t: t + 7),
        put("train_mask", lambda t: t.long()),
        put("train_mask", lambda t: t[:5]),
        put("utilization.status", lambda t: t[:5]),
        put("predictor.model.weights.0", lambda t: t.T),
        put("graph.col", with_first(10**6)),
        put("graph.col", with_first(-1)),
        put("graph.crow", with_first(3)),
        put("graph.crow", lambda t: t[:-1]),
        put("graph.value", lambda t: t[:-1]),
        put("logits", lambda t: t.double()),
        put("logits", lambda t: t * math.nan),
        put("y", lambda t: t - 10),
        put("utilization.status", lambda t: t + 5),
        put("utilization.gcn", lambda t: t - 50),
        put("utilization.lpa", lambda t: t + 50),
        put("predictor.model.weights.0", lambda t: t.double()),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    spoil: Callable[[Tensors], None], explicit: Fitted, tmp_path: Path
) -> None:
    save_fitted(explicit, tmp_path)
    assert load_fitted(tmp_path).prediction.graph is not None
    tensors = load_file(tmp_path / "model.safetensors")
    spoil(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="not a model this version can read") as caught:
        load_fitted(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x80\x04cos\nsystem\n."])
def test_other_files_are_refused(
    content: bytes, explicit: Fitted, tmp_path: Path
) -> None:
    save_fitted(explicit, tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors: can't be read"):
        load_fitted(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"model\.safetensors: can't be read"):
        load_fitted(tmp_path)


def test_json_has_no_nan() -> None:
    value = {"a": float("nan"), 3: [float("inf"), 1.5, (2, torch.tensor([1.0]))]}
    assert json_safe(value) == {"a": None, "3": [None, 1.5, [2, [1.0]]]}


def test_others_may_read_it(explicit: Fitted, tmp_path: Path) -> None:
    save_fitted(explicit, tmp_path)
    modes = {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert len(modes) == 1  # whatever the user's mask makes of it


def test_what_was_loaded_can_be_saved(explicit: Fitted, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    save_fitted(explicit, tmp_path / "a")
    save_fitted(load_fitted(tmp_path / "a"), tmp_path / "b")
    for name in ("model.json", "model.safetensors"):
        one, two = ((tmp_path / d / name).read_bytes() for d in "ab")
        assert one == two


def test_a_full_disk_is_an_input_error(
    explicit: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise SafetensorError("File too large")

    monkeypatch.setattr("elugcn.storage.save_file", full)
    with pytest.raises(InputError, match=r"model.safetensors: can't be written"):
        save_fitted(explicit, tmp_path)


def test_scaling_without_its_numbers_is_refused(checked: Draw, tmp_path: Path) -> None:
    save_fitted(fit(checked, "gcn", feature_norm="standard"), tmp_path)
    path = tmp_path / "model.safetensors"
    whole = load_file(path)
    for spoil in (drop("predictor.scaler.mean"), put("predictor.scaler.std", half)):
        tensors = dict(whole)
        spoil(tensors)
        save_file(tensors, path)
        with pytest.raises(InputError, match="not a model this version can read"):
            load_fitted(tmp_path)


def half(tensor: Tensor) -> Tensor:
    return tensor[: len(tensor) // 2].clone()
