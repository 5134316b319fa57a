"""From a graph to a fitted result: checks, threads, one method, what it leaves."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.sparse import CSR
from elugcn.data.checks import CheckedGraph
from elugcn.errors import InputError
from elugcn.memory import check_room
from elugcn.methods.base import BaseConfig, Prediction, Problem, Run, make_problem
from elugcn.methods.registry import get_method
from elugcn.training.progress import SILENT, Progress
from elugcn.training.threads import alone, choose_threads, threads

MAX_SEED = 2**32 - 1  # what numpy's and torch's generators both take


@dataclass
class Fitted:
    """A method fitted to a graph, with all that predictions and records need.

    ``facts`` is how the graph was read (made features, neighbours), so that a loaded
    model reads the next one alike.
    """

    method: str
    config: BaseConfig
    seed: int
    data: Data
    prediction: Prediction
    classes: np.ndarray[Any, Any]
    threads: int
    device: str
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def accuracy(self, mask: Tensor) -> float | None:
        """Share of right predictions among the labelled nodes of a mask."""
        return accuracy(self.prediction.logits, self.data.y, mask)


def accuracy(logits: Tensor, y: Tensor, mask: Tensor) -> float | None:
    """Accuracy on the labelled nodes of a mask; None if there is none."""
    chosen = mask.cpu() & (y.cpu() >= 0)
    if not bool(chosen.any()):
        return None
    right = logits.cpu().argmax(dim=1)[chosen] == y.cpu()[chosen]
    return float(right.double().mean())


def fit_graph(
    graph: CheckedGraph,
    method: str,
    config: BaseConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    n_threads: int | None = None,
    progress: Progress = SILENT,
) -> Fitted:
    """Fit a method to a checked graph."""
    place = choose_device(device)
    run = Run(seed=seed, device=place, progress=progress)
    with alone(place):
        start = time.perf_counter()  # not while another fit is waited for
        _make_trainable(graph.data)
        if place.type == "cpu":
            check_room(graph.data, config)
        problem = make_problem(graph.data, config, place)
        count = choose_threads(
            _stored(problem), getattr(config, "hidden_channels", 1), n_threads
        )
        with threads(count):
            prediction = get_method(method).fit(problem, config, run)
    if not bool(prediction.logits.isfinite().all()):
        raise InputError(
            f"{method}: training diverged, its output is not finite; try a smaller lr"
        )
    prediction.seconds["total"] = time.perf_counter() - start
    prediction.logits = prediction.logits.cpu()
    return Fitted(
        method=method,
        config=config,
        seed=seed,
        data=graph.data,
        prediction=prediction,
        classes=class_labels(graph.data, problem.num_classes),
        threads=count,
        device=str(place),
        notes=graph.notes,
    )


def class_labels(data: Data, num_classes: int) -> np.ndarray[Any, Any]:
    """Class names in the form the user gave them.

    Arrays bring their own values, tables the strings of their label column, and a
    ``Data`` object its integers.
    """
    classes = getattr(data, "classes", None)
    # Some PyG datasets use the name for other things.
    if isinstance(classes, np.ndarray) and classes.shape == (num_classes,):
        return classes
    if getattr(data, "table_schema", None) is not None:
        return np.asarray(data.class_names)
    return np.arange(num_classes)


def choose_device(name: str) -> torch.device:
    """``auto`` takes CUDA if there is any; a device that is not there is an error."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda; got {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda was asked for and torch finds no CUDA here")
    return device


def _stored(problem: Problem) -> int:
    x = problem.x
    return problem.adj.nnz + (x.nnz if isinstance(x, CSR) else x.numel())


def _make_trainable(data: Data) -> None:
    """Tensors that were made in inference mode can't be part of a gradient."""
    for name, value in data.to_dict().items():
        if isinstance(value, Tensor) and value.is_inference():
            data[name] = value.clone()
