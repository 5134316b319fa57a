"""A fitted model on disk: ``model.json`` and ``model.safetensors``, never a pickle.

A model is rebuilt from its configuration; its weights are checked against that.
Nothing in the files is executed, and no size in them is trusted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import legacy
from elugcn.api.baselines import BASELINES
from elugcn.api.files import write_json, write_tensors
from elugcn.api.fitting import Fitted, GraphSummary
from elugcn.atomic import atomic_directory
from elugcn.data.tables import TableSchema
from elugcn.data.validation import check_data
from elugcn.elu.low_rank_graph import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.elu.utilization import LabelUtilization, Utilization
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.methods.contract import FitResult, Model
from elugcn.methods.network import below
from elugcn.methods.registry import config_for, get_method

SCHEMA = 2
TENSORS, DESCRIPTION = "model.safetensors", "model.json"
_MAX_CLASS_BYTES = 2**16
_MASKS = ("train_mask", "val_mask", "test_mask")
_SIDES = ("left", "right")
# Stored under the names of the attributes of the graph, ``Fitted`` and ``FitResult``.
_OF_THE_GRAPH = ("name", "directed", "class_names", "node_ids")
_OF_THE_FIT = ("method", "seed", "threads", "device")
_OF_THE_RESULT = ("graph_mode", "epochs", "history", "seconds", "metadata")


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
    data, result, model = fitted.data, fitted.result, fitted.result.model
    schema = getattr(data, "table_schema", None)
    graph = asdict(fitted.graph_summary) | {k: data.get(k) for k in _OF_THE_GRAPH}
    graph["table_schema"] = None if schema is None else schema.model_dump(mode="json")
    classes = fitted.classes
    kind = "object" if classes.dtype == object else classes.dtype.str
    description: dict[str, Any] = {
        "schema": SCHEMA,
        "elugcn": version("elugcn"),
        **{name: getattr(fitted, name) for name in _OF_THE_FIT},
        "config": fitted.config.model_dump(mode="json"),
        "classes": {"values": classes.tolist(), "dtype": kind},
        "graph": graph,
        "model": None if model is None else model.description(),
        **{name: getattr(result, name) for name in _OF_THE_RESULT},
        "reading": fitted.metadata,
        "notes": fitted.notes,
    }
    tensors: dict[str, Tensor | None] = {"logits": result.logits, "y": data.y}
    tensors |= {name: data[name] for name in _MASKS}
    if model is not None:
        tensors |= {f"model.{k}": v for k, v in model.tensors().items()}
    if result.label_utilization is not None:
        use = vars(result.label_utilization)
        tensors |= {f"utilization.{k}": v for k, v in use.items()}
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
        description = _Description.model_validate(content)
        _check_tensors(description, tensors)
        return _rebuild(description, tensors)
    except Exception as error:  # a file from anywhere can be wrong in any way
        raise InputError(
            f"{folder / DESCRIPTION}: not a model this version can read "
            f"({_one_line(error)})"
        ) from None


def attach_graph(fitted: Fitted, data: Data) -> bool:
    """Give a loaded model its graph back.

    Returns:
        Whether this is the graph that the model was fitted to; if not, nothing changes.
    """
    found, stored = replace(fitted, data=data).graph_summary, fitted.graph_summary
    if stored.fingerprint is None:  # some models of version 0.1 have none
        stored = replace(stored, fingerprint=found.fingerprint)
    same = data.num_nodes == fitted.data.num_nodes and all(
        torch.equal(fitted.data[name], data[name]) for name in ("y", *_MASKS)
    )
    if not same or found != stored:
        return False
    fitted.data, fitted.graph_summary = data, found
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
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _check_tensors(description: _Description, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors that do not belong together, before anything indexes with them."""
    n, c = tensors["logits"].shape
    _require(n > 0, "there are no nodes")
    labels, scores = ((n,), range(-1, c)), ((n, c), torch.float32)
    expected: dict[str, tuple[tuple[int, ...], range | torch.dtype]] = {
        "logits": scores,
        "y": labels,
        **{name: ((n,), torch.bool) for name in _MASKS},
        "utilization.lpa": labels,
        "utilization.gcn": labels,
        "utilization.status": ((n,), range(min(Utilization), max(Utilization) + 1)),
        "utilization.lpa_proba": scores,
        "utilization.gcn_proba": scores,
        **{f"baselines.{name}": labels for name in BASELINES},
    }
    if "graph.left" in tensors:
        factor = (n, tensors["graph.left"].size(1))
        expected |= {f"graph.{side}": (factor, torch.float32) for side in _SIDES}
    if "graph.crow" in tensors:
        crow, nnz = tensors["graph.crow"], tensors["graph.col"].numel()
        expected["graph.crow"] = ((n + 1,), range(nnz + 1))
        expected["graph.col"] = ((nnz,), range(n))
        expected["graph.value"] = ((nnz,), torch.float32)
        rising = bool((crow.diff() >= 0).all()) and int(crow[0]) == 0
        _require(rising and int(crow[-1]) == nnz, "graph.crow does not fit")
    for name, tensor in tensors.items():
        if name.startswith("model."):
            floats = tensor.is_floating_point()
            expected[name] = tensor.shape, torch.float32 if floats else tensor.dtype
        _require(name in expected, f"{name} is unknown")
        _check_tensor(name, tensor, *expected[name])
    _require(tensors["y"].dtype == torch.int64, "y is not int64")
    for name, count in {"class_names": c, "node_ids": n}.items():
        values = getattr(description.graph, name)
        fits = values is None or len(values) == count
        _require(fits, f"{name} must have {count} entries")
    _require(len(description.classes.values) == c, f"there must be {c} classes")
    size = np.dtype(description.classes.dtype).itemsize
    _require(size <= _MAX_CLASS_BYTES, f"a class must not take {size:,} bytes")


def _check_tensor(
    name: str, values: Tensor, shape: tuple[int, ...], kind: range | torch.dtype
) -> None:
    """Check a shape, and a range of whole numbers or a dtype without NaN."""
    _require(values.shape == shape, f"{name} must have shape {list(shape)}")
    if isinstance(kind, torch.dtype):
        _require(values.dtype == kind, f"{name} must be {kind}")
        _require(bool(values.isfinite().all()), f"{name} must be finite")
        return
    whole = not values.is_floating_point() and values.dtype != torch.bool
    inside = whole and bool(((values >= kind.start) & (values < kind.stop)).all())
    _require(inside, f"{name} must be from {kind.start} to {kind.stop - 1}")


def _rebuild(description: _Description, tensors: Mapping[str, Tensor]) -> Fitted:
    graph, classes = description.graph, description.classes
    use = below("utilization.", tensors)
    about = {name: getattr(description, name) for name in _OF_THE_RESULT}
    about["history"] = [
        {k: math.nan if v is None else v for k, v in record.items()}
        for record in description.history
    ]
    result = FitResult(
        logits=tensors["logits"],
        model=_restored(description, tensors),
        label_utilization=LabelUtilization(**use) if use else None,
        graph=_graph_from(below("graph.", tensors), description.graph_mode),
        **about,
    )
    data = Data(y=tensors["y"], num_nodes=tensors["y"].numel())
    data.update({name: tensors[name] for name in _MASKS})
    known = {name: getattr(graph, name) for name in _OF_THE_GRAPH}
    data.update({name: value for name, value in known.items() if value is not None})
    if graph.table_schema is not None:
        data.table_schema = TableSchema.parse(graph.table_schema)
    fitted = Fitted(
        **{name: getattr(description, name) for name in _OF_THE_FIT},
        config=config_for(description.method, description.config),
        data=data,
        result=result,
        classes=np.asarray(classes.values, dtype=classes.dtype),
        notes=tuple(description.notes),
        metadata=description.reading,
        baselines=below("baselines.", tensors),
    )
    _require(fitted.classes.ndim == 1, "classes must have one dimension")
    sizes = graph.num_features, graph.num_edges
    fitted.graph_summary = GraphSummary(*sizes, graph.fingerprint)
    if result.model is not None:
        _predict_once(fitted, result.model)
    return fitted


def _predict_once(fitted: Fitted, model: Model) -> None:
    """Predict for two nodes: what does not fit is found here, not by a user."""
    widest = max(max(tensor.shape, default=0) for tensor in model.tensors().values())
    _require(fitted.num_features <= widest, "the weights do not fit the features")
    x, edges = torch.zeros(2, fitted.num_features), torch.tensor([[0, 1], [1, 0]])
    pair = check_data(Data(x=x, edge_index=edges), require_labels=False)
    fitted.logits_for(pair.data)


def _restored(description: _Description, tensors: Mapping[str, Tensor]) -> Model | None:
    """The trained model."""
    own = below("model.", tensors)
    if description.model is None:
        _require(not own, "there are weights but no model")
        return None
    _check_depth(description.model, len(own))
    return get_method(description.model["method"]).restore(description.model, own)


def _check_depth(description: Any, tensors: int) -> None:
    """Refuse more layers than there are tensors, before they are built one by one."""
    parts = description.values() if isinstance(description, dict) else description
    if isinstance(description, dict):
        layers = description.get("num_layers", 0)
        _require(isinstance(layers, int) and layers <= tensors, "too many layers")
    for part in parts:
        if isinstance(part, dict | list):
            _check_depth(part, tensors)


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
