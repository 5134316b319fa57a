"""A fitted model on disk: ``model.json`` and ``model.safetensors``, never a pickle.

A model is rebuilt from its configuration; its weights are checked against that.
Nothing in the files is executed, and no size in them is trusted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
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
from elugcn.methods.metrics import check_metric
from elugcn.methods.network import below, under
from elugcn.methods.registry import config_for, get_method

SCHEMA = 2
TENSORS, DESCRIPTION = "model.safetensors", "model.json"
_MAX_CLASS_BYTES = 2**16
_MASKS = ("train_mask", "val_mask", "test_mask")
_OF_BASELINES = [f"baselines.{name}" for name in BASELINES]
_LABELS = ("y", "utilization.lpa", "utilization.gcn", *_OF_BASELINES)
_SCORES = ("logits", "utilization.lpa_proba", "utilization.gcn_proba")
_OF_THE_FIT = ("method", "seed", "threads", "device", "metric", "class_weight")

# JSON has no NaN; the schema of tables may be of version 1.
_Number = Annotated[float, BeforeValidator(lambda x: math.nan if x is None else x)]
_Schema = Annotated[
    TableSchema | None, BeforeValidator(lambda x: x and TableSchema.parse(x))
]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Graph(_Strict):
    """Attributes of the fitted graph."""

    name: str | None
    directed: bool
    class_names: list[str] | None
    node_ids: list[str] | None
    table_schema: _Schema


class _Classes(_Strict):
    values: list[bool | int | float | str]
    dtype: str


class _Result(_Strict):
    """Attributes of ``FitResult``."""

    graph_mode: str
    epochs: int
    history: list[dict[str, _Number]]
    seconds: dict[str, float]
    metadata: dict[str, Any]


class _Description(_Strict):
    """The content of ``model.json``."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[2] = Field(alias="schema")
    elugcn: str
    method: str
    config: dict[str, Any]
    seed: int
    threads: int
    device: str
    metric: str = "accuracy"
    class_weight: str | list[float] | None = None
    notes: list[str]
    reading: dict[str, Any]
    classes: _Classes
    graph: _Graph
    graph_summary: GraphSummary
    model: dict[str, Any] | None
    result: _Result


def save(fitted: Fitted, folder: str | Path) -> None:
    """Write a fitted model into a new directory, whole or not at all."""
    with atomic_directory(Path(folder)) as work:
        write_model(fitted, work)


def write_model(fitted: Fitted, folder: Path) -> None:
    """Write ``model.json`` and ``model.safetensors`` into an existing directory."""
    data, result, model = fitted.data, fitted.result, fitted.result.model
    classes = fitted.classes
    kind = "object" if classes.dtype == object else classes.dtype.str
    description = {
        "schema": SCHEMA,
        "elugcn": version("elugcn"),
        **{name: getattr(fitted, name) for name in _OF_THE_FIT},
        "config": fitted.config,
        "notes": fitted.notes,
        "reading": fitted.metadata,
        "classes": {"values": classes, "dtype": kind},
        "graph": {name: data.get(name) for name in _Graph.model_fields},
        "graph_summary": fitted.graph_summary,
        "model": None if model is None else model.description(),
        "result": {name: getattr(result, name) for name in _Result.model_fields},
    }
    tensors = {name: data[name] for name in ("y", *_MASKS)} | {"logits": result.logits}
    if model is not None:
        tensors |= under("model", model.tensors())
    if (use := result.label_utilization) is not None:
        known = {name: x for name, x in vars(use).items() if x is not None}
        tensors |= under("utilization", known)
    if (graph := result.graph) is not None:
        low_rank = isinstance(graph, LowRankGraph)
        names = ("left", "right") if low_rank else ("crow", "col", "value")
        tensors |= {f"graph.{name}": getattr(graph.operator, name) for name in names}
    if result.held_out is not None:
        nodes, logits = result.held_out
        tensors |= {"held_out.nodes": nodes, "held_out.logits": logits}
    write_tensors(folder / TENSORS, tensors | under("baselines", fitted.baselines))
    write_json(folder / DESCRIPTION, description)


def load(folder: str | Path) -> Fitted:
    """Read a saved model, or the model of a run directory."""
    path = Path(folder) / DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        path = Path(folder) / TENSORS
        path.open("rb").close()  # safetensors calls a forbidden file a missing one
        # Copied: tensors in the file are not aligned, and products of such tensors are
        # rounded differently.
        tensors = {name: x.clone() for name, x in load_file(path).items()}
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no saved model here ({path.name} is missing)"
        ) from None
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise InputError(f"{path}: can't be read ({_one_line(error)})") from None
    try:
        if isinstance(content, dict) and content.get("schema") == legacy.SCHEMA:
            content, tensors = legacy.convert(content, tensors)
        description = _Description.model_validate(content)
        _check_tensors(description, tensors)
        return _rebuild(description, tensors)
    except Exception as error:  # a file from anywhere can be wrong in any way
        raise InputError(
            f"{Path(folder) / DESCRIPTION}: not a model this version can read "
            f"({_one_line(error)})"
        ) from None


def attach_graph(fitted: Fitted, data: Data) -> bool:
    """Give a loaded model its graph back; False, and no change, if it is another."""
    found, stored = replace(fitted, data=data).graph_summary, fitted.graph_summary
    if stored.fingerprint is None:  # some models of version 0.1 have none
        stored = stored.model_copy(update={"fingerprint": found.fingerprint})
    same = data.num_nodes == fitted.data.num_nodes and all(
        torch.equal(fitted.data[name], data[name]) for name in ("y", *_MASKS)
    )
    if not same or found != stored:
        return False
    fitted.data, fitted.graph_summary = data, found
    return True


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
    expected: dict[str, tuple[tuple[int, ...], range | torch.dtype]] = {
        "utilization.status": ((n,), range(min(Utilization), max(Utilization) + 1)),
        **dict.fromkeys(_MASKS, ((n,), torch.bool)),
        **dict.fromkeys(_LABELS, ((n,), range(-1, c))),
        **dict.fromkeys(_SCORES, ((n, c), torch.float32)),
    }
    if "held_out.nodes" in tensors:
        m = tensors["held_out.nodes"].numel()
        expected["held_out.nodes"] = (m,), range(n)
        expected["held_out.logits"] = (m, c), torch.float32
    if "graph.left" in tensors:
        factor = (n, tensors["graph.left"].size(1))
        expected["graph.left"] = expected["graph.right"] = factor, torch.float32
    if "graph.crow" in tensors:
        crow, nnz = tensors["graph.crow"], tensors["graph.col"].numel()
        expected["graph.crow"] = ((n + 1,), range(nnz + 1))
        expected["graph.col"] = ((nnz,), range(n))
        expected["graph.value"] = ((nnz,), torch.float32)
        rising = bool((crow.diff() >= 0).all()) and int(crow[0]) == 0
        _require(rising and int(crow[-1]) == nnz, "graph.crow does not fit")
    for name, values in tensors.items():
        if name.startswith("model."):
            floats = values.is_floating_point()
            expected[name] = values.shape, torch.float32 if floats else values.dtype
        _require(name in expected, f"{name} is unknown")
        shape, kind = expected[name]
        _require(values.shape == shape, f"{name} must have shape {list(shape)}")
        if isinstance(kind, range):
            whole = not values.is_floating_point() and values.dtype != torch.bool
            inside = (values >= kind.start) & (values < kind.stop)
            fits = whole and bool(inside.all())
            _require(fits, f"{name} must be from {kind.start} to {kind.stop - 1}")
        else:
            fits = values.dtype == kind and bool(values.isfinite().all())
            _require(fits, f"{name} must be {kind} and finite")
    _require(tensors["y"].dtype == torch.int64, "y is not int64")
    graph, classes = description.graph, description.classes.values
    counts = (graph.class_names, c), (graph.node_ids, n), (classes, c)
    for names, count in counts:
        fits = names is None or len(names) == count
        _require(fits, f"there must be {n} nodes and {c} classes")
    size = np.dtype(description.classes.dtype).itemsize
    _require(size <= _MAX_CLASS_BYTES, f"a class must not take {size:,} bytes")


def _rebuild(description: _Description, tensors: Mapping[str, Tensor]) -> Fitted:
    classes, own = description.classes, below("model.", tensors)
    model = None
    if (about := description.model) is not None:
        model = get_method(about["method"]).restore(about, own)
    _require(model is not None or not own, "there are weights but no model")
    use, mode = below("utilization.", tensors), description.result.graph_mode
    judged = below("held_out.", tensors)
    data = Data(y=tensors["y"], num_nodes=tensors["y"].numel())
    data.update({name: tensors[name] for name in _MASKS})
    data.update({name: x for name, x in description.graph if x is not None})
    check_metric(description.metric)
    fitted = Fitted(
        **{name: getattr(description, name) for name in _OF_THE_FIT},
        config=config_for(description.method, description.config),
        notes=tuple(description.notes),
        data=data,
        result=FitResult(
            logits=tensors["logits"],
            model=model,
            label_utilization=LabelUtilization(**use) if use else None,
            graph=_graph_from(below("graph.", tensors), mode),
            held_out=(judged["nodes"], judged["logits"]) if judged else None,
            **dict(description.result),
        ),
        classes=np.asarray(classes.values, dtype=classes.dtype),
        metadata=description.reading,
        baselines=below("baselines.", tensors),
    )
    fitted.graph_summary = description.graph_summary
    _require(fitted.classes.ndim == 1, "classes must have one dimension")
    if model is not None:
        _predict_once(fitted, model)
    return fitted


def _graph_from(tensors: Mapping[str, Tensor], mode: str) -> ELUGraph | None:
    if not tensors:
        return None
    if mode == "implicit":
        return LowRankGraph(**tensors)
    crow, col, value = (tensors[name] for name in ("crow", "col", "value"))
    return ExplicitGraph(CSR(crow, col, value, crow.numel() - 1), mode)


def _predict_once(fitted: Fitted, model: Model) -> None:
    """Predict for two nodes: what does not fit is found here, not by a user."""
    widest = max(max(tensor.shape, default=0) for tensor in model.tensors().values())
    _require(fitted.num_features <= widest, "the weights do not fit the features")
    x, edges = torch.zeros(2, fitted.num_features), torch.tensor([[0, 1], [1, 0]])
    pair = check_data(Data(x=x, edge_index=edges), require_labels=False)
    fitted.logits_for(pair.data)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
