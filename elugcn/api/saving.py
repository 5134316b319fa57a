"""A fitted model on disk: ``model.json`` and ``model.safetensors``, never a pickle.

A model is rebuilt from its configuration; its weights are checked against that.
Nothing in the files is executed, and no size in them is trusted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import legacy
from elugcn.api.baselines import BASELINES
from elugcn.api.files import write_json, write_tensors
from elugcn.api.fit import Fitted, StoredGraph
from elugcn.atomic import atomic_directory
from elugcn.data.tables import TableSchema
from elugcn.elu.low_rank_graph import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.methods.contract import FitResult, Model
from elugcn.methods.network import below
from elugcn.methods.registry import config_for, get_method

SCHEMA = 2
TENSORS, DESCRIPTION = "model.safetensors", "model.json"
_MASKS = ("train_mask", "val_mask", "test_mask")
_UTILIZATION = ("lpa", "gcn", "status", "lpa_proba", "gcn_proba")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Graph(_Strict):
    """The fitted graph, without edges and features."""

    name: str | None
    directed: bool
    num_features: int
    num_edges: int
    fingerprint: str | None
    class_names: list[str] | None
    node_ids: list[str] | None
    table_schema: dict[str, Any] | None


class _Classes(_Strict):
    values: list[bool | int | float | str]
    dtype: str


class _Description(_Strict):
    """The content of ``model.json``."""

    schema_version: int = Field(alias="schema")
    elugcn: str
    method: str
    config: dict[str, Any]
    seed: int
    threads: int
    device: str
    classes: _Classes
    graph: _Graph
    model: dict[str, Any] | None
    graph_mode: str
    epochs: int
    history: list[dict[str, float | None]]
    seconds: dict[str, float]
    metadata: dict[str, Any]
    reading: dict[str, Any]
    notes: list[str]


def save(fitted: Fitted, folder: str | Path) -> None:
    """Write a fitted model into a new directory, whole or not at all."""
    with atomic_directory(Path(folder)) as work:
        write_model(fitted, work)


def write_model(fitted: Fitted, folder: Path) -> None:
    """Write ``model.json`` and ``model.safetensors`` into an existing directory."""
    data, result = fitted.data, fitted.result
    facts = fitted.graph_facts
    schema = getattr(data, "table_schema", None)
    description: dict[str, Any] = {
        "schema": SCHEMA,
        "elugcn": version("elugcn"),
        "method": fitted.method,
        "config": fitted.config.model_dump(mode="json"),
        "seed": fitted.seed,
        "threads": fitted.threads,
        "device": fitted.device,
        "classes": _plain_classes(fitted.classes),
        "graph": {
            "name": getattr(data, "name", None),
            "directed": bool(getattr(data, "directed", False)),
            "num_features": facts.num_features,
            "num_edges": facts.num_edges,
            "fingerprint": facts.fingerprint,
            "class_names": getattr(data, "class_names", None),
            "node_ids": getattr(data, "node_ids", None),
            "table_schema": None if schema is None else schema.model_dump(mode="json"),
        },
        "model": None if result.model is None else result.model.description(),
        "graph_mode": result.graph_mode,
        "epochs": result.epochs,
        "history": result.history,
        "seconds": result.seconds,
        "metadata": result.metadata,
        "reading": fitted.metadata,
        "notes": fitted.notes,
    }
    tensors: dict[str, Tensor | None] = {"logits": result.logits, "y": data.y}
    tensors |= {name: data[name] for name in _MASKS}
    if result.model is not None:
        tensors |= {f"model.{k}": v for k, v in result.model.tensors().items()}
    if result.label_utilization is not None:
        use = result.label_utilization
        tensors |= {f"utilization.{k}": getattr(use, k) for k in _UTILIZATION}
    if result.graph is not None:
        tensors |= _graph_tensors(result.graph)
    tensors |= {f"baselines.{k}": v for k, v in fitted.baselines.items()}
    write_tensors(folder / TENSORS, {k: v for k, v in tensors.items() if v is not None})
    write_json(folder / DESCRIPTION, description)


def load(folder: str | Path) -> Fitted:
    """Read a saved model, or the model of a run directory.

    Raises:
        InputError: There is no model, or its files are damaged.
    """
    folder = Path(folder)
    content = _read_description(folder)
    tensors = _read_tensors(folder)
    try:
        if content["schema"] == legacy.SCHEMA:
            _check_depth(content.get("predictor", {}), len(tensors))
            content, tensors = legacy.convert(content, tensors)
        fitted = _rebuild(_Description.model_validate(content), tensors)
        _check(fitted)
    except Exception as error:  # a file from anywhere can be wrong in any way
        raise InputError(
            f"{folder / DESCRIPTION}: not a model this version can read "
            f"({_one_line(error)})"
        ) from None
    return fitted


def attach_graph(fitted: Fitted, data: Data) -> bool:
    """Give a loaded model its graph back.

    Returns:
        Whether this is the graph that the model was fitted to; if not, nothing changes.
    """
    known, stored = fitted.data, fitted.graph_facts
    same = int(data.num_nodes) == int(known.num_nodes) and all(
        torch.equal(known[name], data[name]) for name in ("y", *_MASKS)
    )
    whole = Fitted(**{**vars(fitted), "data": data, "stored": None})
    facts = whole.graph_facts
    if stored.fingerprint is None:
        stored = StoredGraph(stored.num_features, stored.num_edges, facts.fingerprint)
    if not same or facts != stored:
        return False
    fitted.data, fitted.stored = data, None
    return True


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no saved model here ({DESCRIPTION} is missing)"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read ({_one_line(error)})") from None
    if not isinstance(content, dict) or content.get("schema") not in (
        legacy.SCHEMA,
        SCHEMA,
    ):
        raise InputError(f"{path}: expected a saved model of schema {SCHEMA}")
    return content


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / TENSORS
    try:
        path.open("rb").close()  # safetensors calls a forbidden file a missing one
        # Copied: tensors in the file are not aligned, and products of such tensors are
        # rounded differently.
        return {k: v.clone() for k, v in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: can't be read ({_one_line(error)})") from None


def _one_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}"
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _rebuild(said: _Description, tensors: Mapping[str, Tensor]) -> Fitted:
    use = below("utilization.", tensors)
    result = FitResult(
        logits=tensors["logits"],
        epochs=said.epochs,
        history=[
            {k: math.nan if v is None else v for k, v in record.items()}
            for record in said.history
        ],
        seconds=said.seconds,
        model=_restored(said, tensors),
        label_utilization=LabelUtilization(**use) if use else None,
        graph=_graph_from(below("graph.", tensors), said.graph_mode),
        graph_mode=said.graph_mode,
        metadata=said.metadata,
    )
    return Fitted(
        method=said.method,
        config=config_for(said.method, said.config),
        seed=said.seed,
        data=_bare_graph(said.graph, tensors),
        result=result,
        classes=np.asarray(said.classes.values, dtype=said.classes.dtype),
        threads=said.threads,
        device=said.device,
        notes=tuple(said.notes),
        metadata=said.reading,
        baselines=below("baselines.", tensors),
        stored=StoredGraph(
            said.graph.num_features, said.graph.num_edges, said.graph.fingerprint
        ),
    )


def _restored(said: _Description, tensors: Mapping[str, Tensor]) -> Model | None:
    """The trained model."""
    own = below("model.", tensors)
    if said.model is None:
        _require(not own, "there are weights but no model")
        return None
    for name, tensor in own.items():
        if tensor.is_floating_point():
            _require(tensor.dtype == torch.float32, f"model.{name} is not float32")
            _require(bool(tensor.isfinite().all()), f"model.{name} is not finite")
        if name.endswith(("scaler.mean", "scaler.std")):
            fits = tensor.shape == (said.graph.num_features,)
            _require(fits, f"model.{name} does not fit the features")
    _check_depth(said.model, len(own))
    method = get_method(str(said.model["method"]))
    return method.restore(said.model, own)


def _check_depth(description: Any, tensors: int) -> None:
    """Refuse more layers than there are tensors, before they are built one by one."""
    parts = description.values() if isinstance(description, dict) else description
    if isinstance(description, dict):
        layers = description.get("num_layers", 0)
        _require(isinstance(layers, int) and layers <= tensors, "too many layers")
    for part in parts:
        if isinstance(part, dict | list):
            _check_depth(part, tensors)


def _bare_graph(graph: _Graph, tensors: Mapping[str, Tensor]) -> Data:
    """Labels, splits and names: what is known of the graph without the graph."""
    data = Data(y=tensors["y"], num_nodes=tensors["y"].numel())
    for name in _MASKS:
        data[name] = tensors[name]
    for name in ("name", "directed", "class_names", "node_ids"):
        if getattr(graph, name) is not None:
            data[name] = getattr(graph, name)
    if graph.table_schema is not None:
        data.table_schema = TableSchema.parse(graph.table_schema)
    return data


def _check(fitted: Fitted) -> None:
    """Refuse tensors that do not belong together, before anything indexes with them."""
    data, result = fitted.data, fitted.result
    n, c = result.logits.shape
    _require(n > 0, "there are no nodes")
    _check_matrix("logits", result.logits, n, c)
    _check_classes("y", data.y, n, c)
    _require(data.y.dtype == torch.int64, "y is not int64")
    for name in _MASKS:
        mask = data[name]
        _require(mask.shape == (n,) and mask.dtype == torch.bool, f"{name} is no mask")
    _require(fitted.classes.shape == (c,), f"there are not {c} classes")
    for name, size in (("class_names", c), ("node_ids", n)):
        values = data.get(name, None)
        fits = values is None or len(values) == size
        _require(fits, f"{name} has not {size} entries")
    use = result.label_utilization
    if use is not None:
        _check_classes("utilization.lpa", use.lpa, n, c)
        _check_classes("utilization.gcn", use.gcn, n, c)
        low, high = min(Utilization), max(Utilization)
        _check_range("utilization.status", use.status, n, low, high)
        for name in ("lpa_proba", "gcn_proba"):
            value = getattr(use, name)
            if value is not None:
                _check_matrix(f"utilization.{name}", value, n, c)
    for name, classes in fitted.baselines.items():
        _require(name in BASELINES, f"{name} is no baseline")
        _check_classes(f"baselines.{name}", classes, n, c)
    _check_graph(result.graph, n)


def _check_matrix(name: str, values: Tensor, n: int, c: int) -> None:
    _require(values.shape == (n, c), f"{name} is not {n}×{c}")
    _require(values.dtype == torch.float32, f"{name} is not float32")
    _require(bool(values.isfinite().all()), f"{name} is not finite")


def _check_classes(name: str, values: Tensor, n: int, c: int) -> None:
    """−1 stands for no class."""
    _check_range(name, values, n, -1, c - 1)


def _check_range(name: str, values: Tensor, n: int, low: int, high: int) -> None:
    _require(values.shape == (n,), f"{name} has not one entry for each of {n} nodes")
    whole = not values.is_floating_point() and values.dtype != torch.bool
    inside = whole and bool(((values >= low) & (values <= high)).all())
    _require(inside, f"{name} is not from {low} to {high}")


def _check_graph(graph: ELUGraph | None, n: int) -> None:
    if graph is None:
        return
    if isinstance(graph, LowRankGraph):
        parts = {"graph.left": graph.left, "graph.right": graph.right}
        for name, factor in parts.items():
            _check_matrix(name, factor, n, graph.left.size(1))
        return
    assert isinstance(graph, ExplicitGraph)
    crow, col, value = graph.csr.crow, graph.csr.col, graph.csr.value
    _require(crow.shape == (n + 1,), f"graph is not {n}×{n}")
    _check_range("graph.crow", crow, n + 1, 0, col.numel())
    _check_range("graph.col", col, col.numel(), 0, n - 1)
    rising = int(crow[0]) == 0 and bool((crow.diff() >= 0).all())
    _require(rising and int(crow[-1]) == col.numel(), "graph.crow does not fit")
    _require(value.shape == col.shape, "graph.value does not fit")
    _require(value.dtype == torch.float32, "graph.value is not float32")
    _require(bool(value.isfinite().all()), "graph.value is not finite")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _graph_tensors(graph: ELUGraph) -> dict[str, Tensor]:
    if isinstance(graph, LowRankGraph):
        return {"graph.left": graph.left, "graph.right": graph.right}
    assert isinstance(graph, ExplicitGraph)
    csr = graph.csr
    return {"graph.crow": csr.crow, "graph.col": csr.col, "graph.value": csr.value}


def _graph_from(tensors: Mapping[str, Tensor], mode: str) -> ELUGraph | None:
    if not tensors:
        return None
    if mode == "implicit":
        return LowRankGraph(**tensors)
    crow, col, value = (tensors[name] for name in ("crow", "col", "value"))
    return ExplicitGraph(CSR(crow, col, value, crow.numel() - 1), mode)


def _plain_classes(classes: NDArray[Any]) -> dict[str, Any]:
    kind = "object" if classes.dtype == object else classes.dtype.str
    return {"values": classes.tolist(), "dtype": kind}
