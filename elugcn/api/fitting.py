"""From a graph to a fitted model: checks, memory, threads, one method."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api.baselines import all_baselines
from elugcn.api.config_files import resolve_config
from elugcn.api.memory import check_memory
from elugcn.data.fingerprint import graph_fingerprint
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.engine import CSR
from elugcn.errors import InputError
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import Problem
from elugcn.methods.registry import get_method, resolve_name
from elugcn.training.progress import SILENT, Progress
from elugcn.training.threads import choose_threads, isolated_torch_state, threads

MAX_SEED = 2**32 - 1  # what the generators of numpy and torch both take


class GraphSummary(BaseModel):
    """What a saved model keeps of a graph besides labels and names."""

    model_config = ConfigDict(strict=True, frozen=True)

    num_features: int
    num_edges: int
    fingerprint: str | None  # of edges and features


@dataclass
class Fitted:
    """A method fitted to a graph."""

    method: str
    config: MethodConfig  # every option, resolved
    seed: int
    data: Data  # the checked graph; without x and edge_index in a loaded model
    result: FitResult
    classes: NDArray[Any]  # in the form the user gave them
    threads: int
    device: str
    notes: tuple[str, ...] = ()  # what was unusual about the graph
    metadata: dict[str, Any] = field(default_factory=dict)  # how the graph was read
    # Class of every node by simpler models (gcn, mlp, lpa), −1 where there is none.
    baselines: dict[str, Tensor] = field(default_factory=dict)

    @property
    def proba(self) -> Tensor:
        """Class probabilities of every node of the fitted graph, n×c."""
        return self.result.proba

    def accuracy(self, mask: Tensor) -> float | None:
        """Share of right predictions among the labelled nodes of a mask."""
        return accuracy(self.result.logits.argmax(dim=1), self.data.y, mask)

    @cached_property
    def graph_summary(self) -> GraphSummary:
        """Sizes and fingerprint of the fitted graph, O(E + n·d)."""
        return GraphSummary(
            num_features=self.num_features,
            num_edges=self.data.edge_index.size(1),
            fingerprint=graph_fingerprint(self.data),
        )

    @property
    def num_features(self) -> int:
        """Columns of X."""
        x = self.data.get("x")
        return self.graph_summary.num_features if x is None else int(x.size(1))

    def logits_for(self, data: Data) -> Tensor:
        """Logits n×c of another checked graph with the same features."""
        if self.result.model is None:
            raise InputError(
                f"method {self.method!r} can't predict for another graph: it has no "
                "weights"
            )
        found, expected = int(data.x.size(1)), self.num_features
        if found != expected:
            raise InputError(
                f"the model was fitted with {expected} features; got {found}"
            )
        logits = self.result.model.logits(data).cpu()
        if logits.shape != (data.num_nodes, len(self.classes)):
            raise InputError("the model does not have the classes it was fitted to")
        if not bool(logits.isfinite().all()):
            raise InputError(
                "the predictions are not finite; are the features of this graph on "
                "the scale of those the model was fitted to?"
            )
        return logits


def accuracy(classes: Tensor, y: Tensor, mask: Tensor) -> float | None:
    """Share of nodes of a mask whose class is right; None if none has a label."""
    chosen = mask.cpu() & (y.cpu() >= 0)
    if not bool(chosen.any()):
        return None
    return float((classes.cpu() == y.cpu())[chosen].double().mean())


def fit(
    data: Data | CheckedGraph,
    method: str = "auto",
    options: Mapping[str, Any] | MethodConfig | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    n_threads: int | None = None,
    progress: Progress = SILENT,
    with_baselines: bool = False,
    metadata: Mapping[str, Any] | None = None,
) -> Fitted:
    """Fit a method to a graph.

    PyTorch's random generators, threads, gradient mode and default dtype are the
    caller's again afterwards.

    Args:
        data: A graph; it is checked unless it is checked already.
        method: Name of a method.
        options: Options of the method; unknown ones are errors.
        seed: From 0 to 2³² − 1.
        device: ``auto``, ``cpu`` or ``cuda``.
        n_threads: None: chosen by the size of the graph.
        progress: Shows how far the fit is.
        with_baselines: Train the simpler models that a report shows, too.
        metadata: How the graph was read; kept with the model.

    Raises:
        InputError: The graph or an option is wrong, the training would exceed the
            memory of this computer, or it diverged.
    """
    name = resolve_name(method)
    config = options
    if not isinstance(config, MethodConfig):
        config = resolve_config(name, options=config)
    seed, place = check_seed(seed), choose_device(device)
    with isolated_torch_state(place):
        start = time.perf_counter()  # another fit may have been waited for
        checked = (
            data if isinstance(data, CheckedGraph) else check_data(data, seed=seed)
        )
        graph = _without_inference_tensors(checked.data)
        if place.type == "cpu":
            check_memory(graph, config)
        problem = Problem.of(graph, config, place)
        x, width = problem.x, getattr(config, "hidden_channels", 1)
        entries = problem.label_adj.nnz + (x.nnz if isinstance(x, CSR) else x.numel())
        count = choose_threads(entries, width, n_threads)
        context = FitContext(seed=seed, device=place, progress=progress)
        with threads(count):
            result = get_method(name).fit(problem, config, context)
            result.logits = result.logits.cpu()
            if not bool(result.logits.isfinite().all()):
                raise InputError(
                    f"{name}: the training diverged, its output is not finite; "
                    "try a smaller lr"
                )
            result.seconds["total"] = time.perf_counter() - start
            baselines = {
                simple: (x.argmax(dim=1) if x.dim() == 2 else x).cpu()
                for simple, x in result.baselines.items()
            }
            if with_baselines:
                baselines = all_baselines(name, config, problem, context, baselines)
    return Fitted(
        method=name,
        config=config,
        seed=seed,
        data=graph,
        result=result,
        classes=_class_labels(graph, problem.num_classes),
        threads=count,
        device=str(place),
        notes=checked.notes,
        metadata=dict(metadata or {}),
        baselines=baselines,
    )


def predict_other(fitted: Fitted, data: Data, features: str | None = None) -> Fitted:
    """The model with another graph and the logits of its nodes; nothing is trained.

    ``features`` says how features are made; None: as for the fitted graph. Labels are
    kept for comparison if the classes are the same.
    """
    if fitted.result.model is not None and features is None:
        # A table schema says itself how features are made.
        from_tables = getattr(data, "table_schema", None) is not None
        features = None if from_tables else fitted.metadata.get("features")
    checked = check_data(data, features=features, require_labels=False).data
    logits = fitted.logits_for(checked)
    names = getattr(fitted.data, "class_names", None)
    if list(checked.class_names or []) != list(names or []):
        # Labels of other classes say nothing about these predictions.
        checked.y = torch.full_like(checked.y, -1)
        checked.class_names = names
    result = FitResult(logits=logits, model=fitted.result.model)
    return replace(fitted, data=checked, result=result, baselines={})


def choose_device(name: str) -> torch.device:
    """The device of that name; ``auto`` takes CUDA if there is any."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(name)):
        raise InputError(f"device must be auto, cpu or cuda; got {name!r}")
    cuda = torch.cuda.is_available()
    if str(name) == "auto":
        return torch.device("cuda" if cuda else "cpu")
    if str(name) != "cpu" and not cuda:
        raise InputError(f"device={name!r} was requested, but CUDA is not available")
    return torch.device(name)


def _class_labels(data: Data, num_classes: int) -> NDArray[Any]:
    """The classes in the form the user gave them.

    Arrays bring their own values, tables the strings of their label column, and a
    ``Data`` object its integers. Some PyG datasets use ``classes`` for other things.
    """
    classes = getattr(data, "classes", None)
    if isinstance(classes, np.ndarray) and classes.shape == (num_classes,):
        return classes
    if getattr(data, "table_schema", None) is not None:
        return np.asarray(data.class_names)
    return np.arange(num_classes)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, Python's or numpy's."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_seed(seed: Any, name: str = "seed") -> int:
    """A seed as Python's integer, if it is one that numpy and torch take."""
    if not is_whole(seed) or not 0 <= seed <= MAX_SEED:
        raise InputError(
            f"{name} must be a whole number from 0 to {MAX_SEED}; got {seed!r}"
        )
    return int(seed)


def _without_inference_tensors(data: Data) -> Data:
    """The graph; tensors made in inference mode can't take part in a gradient."""
    out = copy.copy(data)
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor) and value.is_inference():
            out[key] = value.clone()
    return out
