"""A fitted model on disk: ``model.safetensors`` and ``model.json``, never a pickle."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch_geometric.data import Data

from elugcn import __version__
from elugcn.atomic import make_readable
from elugcn.config import as_plain, make_config
from elugcn.core.operators import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.core.sparse import CSR
from elugcn.core.utilization import LabelUtilization, Utilization
from elugcn.data.described import is_schema
from elugcn.data.digest import graph_digest
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.methods.base import Prediction
from elugcn.methods.registry import PREDICTORS

SCHEMA = 1
TENSORS, FACTS = "model.safetensors", "model.json"
_MASKS = ("train_mask", "val_mask", "test_mask")


def save_fitted(fitted: Fitted, directory: Path) -> None:
    """Write the model into an existing directory."""
    prediction = fitted.prediction
    tensors: dict[str, Tensor] = {"logits": prediction.logits, "y": fitted.data.y}
    tensors |= {name: fitted.data[name] for name in _MASKS}
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "elugcn": __version__,
        "method": fitted.method,
        "config": as_plain(fitted.config),
        "seed": fitted.seed,
        "threads": fitted.threads,
        "device": fitted.device,
        "notes": list(fitted.notes),
        "classes": _plain_classes(fitted.classes),
        "name": getattr(fitted.data, "name", None),
        "num_features": num_features(fitted.data),
        "num_edges": num_edges(fitted.data),
        "digest": _digest(fitted.data),
        "directed": bool(getattr(fitted.data, "directed", False)),
        "class_names": getattr(fitted.data, "class_names", None),
        "node_ids": getattr(fitted.data, "node_ids", None),
        "table_schema": getattr(fitted.data, "table_schema", None),
        "epochs": prediction.epochs,
        "history": prediction.history,
        "seconds": prediction.seconds,
        "graph_mode": prediction.graph_mode,
        "facts": prediction.facts,
        "input": fitted.facts,
    }
    if prediction.predictor is not None:
        own, facts["predictor"] = prediction.predictor.state()
        kinds = {v: k for k, v in PREDICTORS.items()}
        facts["predictor_kind"] = kinds[type(prediction.predictor)]
        tensors |= {f"predictor.{k}": v for k, v in own.items()}
    if prediction.utilization is not None:
        u = prediction.utilization
        tensors |= {f"utilization.{k}": getattr(u, k) for k in ("lpa", "gcn", "status")}
    if prediction.graph is not None:
        tensors |= _graph_tensors(prediction.graph)
    write_tensors(tensors, directory / TENSORS)
    text = json.dumps(json_safe(facts), indent=1, allow_nan=False)
    (directory / FACTS).write_text(text + "\n", encoding="utf-8")


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a ``.safetensors`` file that others may read."""
    try:
        # safetensors refuses tensors that share memory or are not contiguous.
        save_file({k: _own(v) for k, v in tensors.items()}, path)
    except SafetensorError as error:  # a full disk
        raise InputError(f"{path.name}: can't be written ({error})") from None
    make_readable(path)


def num_features(data: Data) -> int:
    """Columns of X, of which a loaded model has the number alone."""
    return int(data.saved_num_features if data.x is None else data.x.size(1))


def num_edges(data: Data) -> int:
    """Stored edges, of which a loaded model has the number alone."""
    edges = data.edge_index
    return int(data.saved_num_edges if edges is None else edges.size(1))


def _digest(data: Data) -> str | None:
    """Of the graph, of which a loaded model has this alone (none if it is older)."""
    return data.saved_digest if data.edge_index is None else graph_digest(data)


def load_fitted(directory: str | Path) -> Fitted:
    """Read what ``save_fitted`` wrote; nothing in the files is executed."""
    folder = Path(directory)
    facts = _read_facts(folder)
    try:
        # It says of a file that it may not read that there is none.
        (folder / TENSORS).open("rb").close()
        # Copied: in the file they lie at any address, and products of tensors that are
        # not aligned are rounded in another way.
        tensors = {k: v.clone() for k, v in load_file(folder / TENSORS).items()}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder / TENSORS}: can't be read ({error})") from None
    try:
        _check_tensors(tensors, int(facts["num_features"]))
        fitted = _rebuild(facts, tensors)
        _check(fitted)
        return fitted
    except Exception as error:  # a file from anywhere can be wrong in any way
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(
            f"{folder / FACTS}: not a model this version can read ({what})"
        ) from None


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder}: no saved model here ({FACTS} is missing)"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read ({error})") from None
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        raise InputError(f"{path}: expected a model file with schema {SCHEMA}")
    return facts


def _rebuild(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Fitted:
    data = Data(y=tensors["y"])
    data.num_nodes = tensors["y"].numel()
    for name in _MASKS:
        data[name] = tensors[name]
    for name in ("name", "directed", "class_names", "node_ids", "table_schema"):
        if facts[name] is not None:
            data[name] = facts[name]
    # The graph itself is not kept: only its size, for records, and its digest.
    data.saved_num_edges = facts["num_edges"]
    data.saved_num_features = facts["num_features"]
    data.saved_digest = facts.get("digest")
    prediction = Prediction(
        logits=tensors["logits"],
        epochs=int(facts["epochs"]),
        history=list(facts["history"]),
        seconds=dict(facts["seconds"]),
        graph_mode=facts["graph_mode"],
        facts=dict(facts["facts"]),
    )
    if "predictor" in facts:
        kind = PREDICTORS[facts["predictor_kind"]]
        own = _below("predictor.", tensors)
        prediction.predictor = kind.restore(own, facts["predictor"])
    use = _below("utilization.", tensors)
    if use:
        prediction.utilization = LabelUtilization(use["lpa"], use["gcn"], use["status"])
    prediction.graph = _graph_from(_below("graph.", tensors), facts["graph_mode"])
    return Fitted(
        method=facts["method"],
        config=make_config(facts["method"], facts["config"]),
        seed=facts["seed"],
        data=data,
        prediction=prediction,
        classes=np.asarray(facts["classes"]["values"], dtype=facts["classes"]["dtype"]),
        threads=facts["threads"],
        device=facts["device"],
        notes=tuple(facts["notes"]),
        facts=dict(facts["input"]),
    )


def _check_tensors(tensors: dict[str, Tensor], num_features: int) -> None:
    """Refuse kinds of numbers that the package never writes."""
    for name, tensor in tensors.items():
        floats = tensor.is_floating_point()
        _require(not floats or tensor.dtype == torch.float32, f"{name} is no float32")
        if name.endswith((".scaler.mean", ".scaler.std")):
            fits = tensor.shape == (num_features,)
            _require(fits, f"{name} is not {num_features} long")


def _check(fitted: Fitted) -> None:
    """Refuse tensors that do not belong together, before anything indexes with them."""
    data, prediction = fitted.data, fitted.prediction
    n, c = prediction.logits.shape
    per_node = {"y": data.y} | {name: data[name] for name in _MASKS}
    if prediction.utilization is not None:
        per_node |= vars(prediction.utilization)
    for name, tensor in per_node.items():
        _require(
            tensor.shape == (n,), f"{name} has not one entry for each of {n} nodes"
        )
    _require(prediction.logits.is_floating_point(), "logits are no floats")
    _require(bool(prediction.logits.isfinite().all()), "logits are not finite")
    _require(
        all(data[name].dtype == torch.bool for name in _MASKS), "masks are no bools"
    )
    _require(data.y.dtype == torch.int64, "y is no int64")
    _require(n > 0 and _within(data.y, -1, c), f"y is not from -1 to {c - 1}")
    if prediction.utilization is not None:
        u = prediction.utilization
        # Nodes that no label reaches have no class of label propagation.
        _require(_within(u.gcn, 0, c), f"utilization.gcn is not from 0 to {c - 1}")
        _require(_within(u.lpa, -1, c), f"utilization.lpa is not from -1 to {c - 1}")
        low, high = min(Utilization), max(Utilization)
        _require(_within(u.status, low, high + 1), "utilization.status is no kind")
    schema = data.get("table_schema", None)
    _require(schema is None or is_schema(schema), "table_schema is none")
    _require(
        all(isinstance(record, dict) for record in prediction.history),
        "history is no list of records",
    )
    _require(fitted.classes.shape == (c,), f"there are not {c} classes")
    for name, size in (("class_names", c), ("node_ids", n)):
        values = data.get(name, None)
        _require(values is None or len(values) == size, f"{name} is not {size} long")
    graph = prediction.graph
    if isinstance(graph, LowRankGraph):
        _require(graph.left.shape == graph.right.shape, "graph factors differ in shape")
        _require(graph.left.is_floating_point(), "graph factors are no floats")
        _require(graph.right.is_floating_point(), "graph factors are no floats")
    if isinstance(graph, ExplicitGraph):
        crow, col = graph.csr.crow, graph.csr.col
        _require(int(crow[0]) == 0 and bool((crow.diff() >= 0).all()), "graph rows")
        _require(int(crow[-1]) == col.numel() == graph.csr.value.numel(), "graph size")
        _require(bool(((col >= 0) & (col < n)).all()), "graph columns")
    _require(graph is None or graph.shape == (n, n), f"graph is not {n}×{n}")


def _within(values: Tensor, low: int, end: int) -> bool:
    """Whether all are whole numbers from ``low`` to below ``end``."""
    return not values.is_floating_point() and bool(
        ((values >= low) & (values < end)).all()
    )


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _graph_tensors(graph: ELUGraph) -> dict[str, Tensor]:
    if isinstance(graph, LowRankGraph):
        return {"graph.left": graph.left, "graph.right": graph.right}
    assert isinstance(graph, ExplicitGraph)
    csr = graph.csr
    return {"graph.crow": csr.crow, "graph.col": csr.col, "graph.value": csr.value}


def _graph_from(tensors: dict[str, Tensor], mode: str) -> ELUGraph | None:
    if "left" in tensors:
        return LowRankGraph(tensors["left"], tensors["right"])
    if "crow" in tensors:
        crow, col, value = (tensors[k] for k in ("crow", "col", "value"))
        return ExplicitGraph(CSR(crow, col, value, crow.numel() - 1), mode)
    return None


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)
    }


def _own(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().clone()


def _plain_classes(classes: np.ndarray[Any, Any]) -> dict[str, Any]:
    kind = "object" if classes.dtype == object else classes.dtype.str
    return {"values": classes.tolist(), "dtype": kind}


def json_safe(value: Any) -> Any:
    """JSON has no NaN: missing numbers become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): json_safe(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(v) for v in value]
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return json_safe(value.tolist())
    return str(value) if isinstance(value, Path) else value
