"""From a graph to a fitted model: checks, memory, threads, one method."""

from __future__ import annotations

import copy
import math
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
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
from elugcn.errors import CollapseWarning, InputError
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.metrics import check_classes, check_metric, is_uneven, score
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import Problem, balanced_weight
from elugcn.methods.registry import get_method, resolve_name
from elugcn.training.progress import SILENT, Progress
from elugcn.training.threads import choose_threads, isolated_torch_state, threads

_MAX_NAMES = 3  # of classes in a message
MAX_SEED = 2**32 - 1  # what the generators of numpy and torch both take


# Weights of classes in training: all the same, or by class.
ClassWeight = Mapping[Any, Any] | str | None


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
    notes: tuple[str, ...] = ()  # what was unusual about the graph or the model
    metadata: dict[str, Any] = field(default_factory=dict)  # how the graph was read
    # Class of every node by simpler models (gcn, mlp, lpa), −1 where there is none.
    baselines: dict[str, Tensor] = field(default_factory=dict)
    metric: str = "accuracy"  # what validation selected by
    # "balanced": every class weighed the same in all; or the weight of each class.
    class_weight: str | list[float] | None = None

    @property
    def proba(self) -> Tensor:
        """Class probabilities of every node of the fitted graph, n×c."""
        return self.result.proba

    def accuracy(self, mask: Tensor) -> float | None:
        """Share of right predictions among the labelled nodes of a mask."""
        return accuracy(self.result.logits.argmax(dim=1), self.data.y, mask)

    def score(self, mask: Tensor, metric: str | None = None) -> float | None:
        """A metric, by default the fit's own, of the labelled nodes of a mask."""
        known = (mask.cpu() & (self.data.y >= 0)).nonzero()[:, 0]
        return self._score(known, self.result.logits[known], metric)

    def val_score(self, metric: str | None = None) -> float | None:
        """The same of the nodes that judged, by models that did not train on them."""
        return self._score(*self.validation(), metric)

    def validation(self) -> tuple[Tensor, Tensor]:
        """The nodes that judged, (m,), and the logits that were judged, m×c.

        They are the validation nodes, unless these trained the answer, too.
        """
        if self.result.held_out is not None:
            return self.result.held_out
        nodes = (self.data.val_mask & (self.data.y >= 0)).nonzero()[:, 0]
        return nodes, self.result.logits[nodes]

    def _score(self, nodes: Tensor, logits: Tensor, metric: str | None) -> float | None:
        y, c = self.data.y[nodes], len(self.classes)
        found = score(metric or self.metric, logits, y, c)
        return None if math.isnan(found) else found

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
    metric: str = "accuracy",
    class_weight: ClassWeight = None,
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
        metric: What validation selects by, one of ``elugcn.methods.metrics.METRICS``.
        class_weight: Weights of the classes in training: a mapping from classes to
            numbers (1 where there is none), or ``"balanced"``: all weigh the same.

    Raises:
        InputError: The graph or an option is wrong, the training would exceed the
            memory of this computer, or it diverged.

    Warns:
        CollapseWarning: The model predicts fewer classes than it has labels of.
    """
    name = resolve_name(method)
    check_selection(name, metric, class_weight)
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
        problem = Problem.of(graph, config, place, metric)
        check_classes(metric, problem.val_target)
        classes = _class_labels(graph, problem.num_classes)
        weights = _weights(class_weight, classes)
        if weights == "balanced":
            weight = balanced_weight(problem.train_target, problem.num_classes)
            problem = replace(problem, class_weight=weight)
        elif weights is not None:
            weight = torch.tensor(weights, device=place)
            problem = replace(problem, class_weight=weight)
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
    fitted = Fitted(
        method=name,
        config=config,
        seed=seed,
        data=graph,
        result=result,
        classes=classes,
        threads=count,
        device=str(place),
        notes=checked.notes,
        metadata=dict(metadata or {}),
        baselines=baselines,
        metric=metric,
        class_weight=weights,
    )
    if note := collapse_note(fitted):
        fitted.notes = (*fitted.notes, note)
        warnings.warn(note, CollapseWarning, stacklevel=2)
    return fitted


def check_selection(method: str, metric: str, class_weight: ClassWeight) -> None:
    """Refuse an unknown metric, and class weights that a method does not have."""
    check_metric(metric)
    if class_weight is None:
        return
    named = isinstance(class_weight, str) and class_weight == "balanced"
    if not named and not isinstance(class_weight, Mapping):
        raise InputError(
            "class_weight must be 'balanced' or a mapping from classes to weights; "
            f"got {class_weight!r}"
        )
    if not get_method(method).weighs_classes:
        raise InputError(f"class_weight: method {method!r} has no loss to weigh")


def _weights(given: ClassWeight, classes: NDArray[Any]) -> str | list[float] | None:
    """A mapping as the weight of each class, 1 where it has none; else as it is."""
    if not isinstance(given, Mapping):
        return given
    weights = dict.fromkeys(classes.tolist(), 1.0)
    for name, weight in given.items():
        if name not in weights:
            known = ", ".join(map(repr, weights))
            raise InputError(f"class_weight: unknown class {name!r}; known: {known}")
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not 0 < weight < math.inf:
            raise InputError(
                f"class_weight: the weight of {name!r} must be a positive number; "
                f"got {weight!r}"
            )
        weights[name] = float(weight)
    return list(weights.values())


def collapse_note(fitted: Fitted) -> str | None:
    """What to say if the model predicts fewer classes than it has labels of."""
    data, predicted = fitted.data, fitted.result.logits.argmax(dim=1)
    labels = data.y[data.train_mask]
    c = len(fitted.classes)
    given, found = (torch.bincount(y, minlength=c) for y in (labels, predicted))
    missing = ((given > 0) & (found == 0)).nonzero()[:, 0].tolist()
    if not missing:
        return None
    classes = data.class_names or fitted.classes
    names = ", ".join(str(classes[k]) for k in missing[:_MAX_NAMES])
    more = len(missing) - _MAX_NAMES
    names += f" and {more} more" if more > 0 else ""
    uneven = is_uneven(data.y, data.train_mask)
    weighs = get_method(fitted.method).weighs_classes
    if uneven and weighs and fitted.class_weight is None:
        advice = "class_weight='balanced' and metric='balanced_accuracy'"
    elif hasattr(fitted.config, "lr"):
        advice = "more epochs or a smaller lr"
        advice += "" if fitted.method == "auto" else ", or the method auto"
    else:
        advice = "more labels of them, or another method"
    return f"no node is predicted as {names}, though there are labels; try {advice}"


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
