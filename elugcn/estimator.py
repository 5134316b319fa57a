"""``NodeClassifier``: any method with scikit-learn's verbs."""

from __future__ import annotations

import copy
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from elugcn.api import (
    MAX_SEED,
    Fitted,
    fit,
    load,
    resolve_config,
    save,
    with_effort,
)
from elugcn.api.fitting import ClassWeight, check_seed, is_whole
from elugcn.data.convert import to_data
from elugcn.data.datasets import dataset_info
from elugcn.data.labels import check_labels, encode_labels
from elugcn.data.validation import check_data
from elugcn.errors import InputError
from elugcn.methods.metrics import check_classes, check_metric, score
from elugcn.methods.options import unknown_option
from elugcn.methods.registry import get_method, resolve_name
from elugcn.training.progress import default_progress

Array = NDArray[Any]

# How a graph is read. A saved model keeps these.
_READING = ("directed", "features", "n_neighbors", "validation_fraction")
# Attributes of a fitted model that not every method has.
_ELU_ONLY = ("graph_", "label_utilization_")
# Parameters that a classifier of one method does not have.
_DEFAULT_ONLY = ("method", "effort", "time_limit")


class NodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify the nodes of a graph from few labels.

    Args:
        method: ``"auto"`` tries several methods and lets validation choose;
            ``"elu-gcn"`` is the method of the paper. ``elugcn.methods.registry`` has
            every name.
        effort: How much ``auto`` tries: ``"quick"`` (closed form only, seconds),
            ``"normal"`` or ``"thorough"``.
        time_limit: Seconds for ``auto``; what is done by then is the answer.
        metric: What validation selects by and ``score`` returns: ``"accuracy"``,
            ``"balanced_accuracy"``, ``"f1_macro"``, ``"roc_auc"`` or
            ``"average_precision"``, as scikit-learn defines them.
        class_weight: Weights of the classes in training: a mapping from classes to
            numbers (1 where there is none), or ``"balanced"``: all weigh the same.
        preset: Name of a dataset whose tuned options are the starting point.
        directed: Keep the direction of the edges of an adjacency. A ``Data`` object
            says it by its attribute ``directed``. Other graphs are read like the
            fitted one.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        n_neighbors: Neighbours per node if no adjacency is given.
        validation_fraction: Share of the labels held out if no mask says so.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        n_threads: Threads; None: chosen by the size of the graph.
        verbose: Show progress on a terminal.
        random_state: Seed; None draws one.
        options: Options of the method. An unknown one is an error.

    Attributes:
        classes_: The classes, in the form the labels were given.
        transduction_: Predicted class of every node of the fitted graph.
        label_distributions_: Class probabilities of every node, n×c.
        label_utilization_: Definition 1 for every node (``auto`` and ``elu-gcn``).
        graph_: The ELU graph, an operator (``auto`` and ``elu-gcn``).
        history_: One record per epoch.
        n_iter_: Epochs trained.
        notes_: What was unusual about the graph and how it was handled.
        n_features_in_: Number of features.
        feature_names_in_: Names of the columns of X, if it was a data frame.
        fitted_: Everything the fit left.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        effort: str = "normal",
        time_limit: float | None = None,
        metric: str = "accuracy",
        class_weight: ClassWeight = None,
        preset: str | None = None,
        directed: bool = False,
        features: str | None = None,
        n_neighbors: int = 10,
        validation_fraction: float = 0.2,
        device: str = "auto",
        n_threads: int | None = None,
        verbose: bool = False,
        random_state: int | None = None,
        **options: Any,
    ) -> None:
        self.method = method
        self.effort = effort
        self.time_limit = time_limit
        self.metric = metric
        self.class_weight = class_weight
        self.preset = preset
        self.directed = directed
        self.features = features
        self.n_neighbors = n_neighbors
        self.validation_fraction = validation_fraction
        self.device = device
        self.n_threads = n_threads
        self.verbose = verbose
        self.random_state = random_state
        self._options = options

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        if name in _ELU_ONLY and "fitted_" in self.__dict__:
            raise AttributeError(
                f"method {self.fitted_.method!r} has no {name}; use 'auto' or 'elu-gcn'"
            )
        kind = type(self).__name__
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        options = self.__dict__.get("_options", {})
        if name in options:
            options[name] = value
        else:
            super().__setattr__(name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters and options by name."""
        params: dict[str, Any] = super().get_params(deep)
        return params | self._options

    def set_params(self, **params: Any) -> Self:
        """Set parameters and options."""
        own = set(self._get_param_names())
        super().set_params(**{k: v for k, v in params.items() if k in own})
        options = {k: v for k, v in params.items() if k not in own}
        if options:
            kind = get_method(self.method).Config
            for name in options.keys() - kind.model_fields.keys():
                names = [*sorted(own), *kind.model_fields]
                raise InputError(unknown_option(name, names, type(self).__name__))
            self._options |= options
        return self

    def fit(self, X: Any, y: Any = None, *, adjacency: Any = None) -> Self:
        """Learn from a PyG ``Data`` object, or from features, labels and an adjacency.

        Args:
            X: A ``Data`` object, or features (n×d: array, data frame, scipy sparse
                matrix or tensor).
            y: Labels; −1, None, NaN or "" where unknown. Not with a ``Data`` object.
            adjacency: Scipy sparse, numpy, networkx (nodes 0 to n−1, or in the order
                of the rows) or an edge index. None: a k-nearest-neighbour graph.
        """
        self._check_parameters()
        seed = self.random_state
        if seed is None:
            seed = int(np.random.default_rng().integers(MAX_SEED))
        seed = check_seed(seed, "random_state")
        data = self._as_data(X, y, adjacency, self.directed)
        graph = check_data(
            data,
            features=self.features,
            directed=True if self.directed else None,
            val_fraction=self.validation_fraction,
            seed=seed,
        )
        reading = {name: getattr(self, name) for name in _READING}
        options = {k: v for k, v in self._options.items() if v is not None}
        effort = None if self.effort == "normal" else self.effort
        options = with_effort(self.method, options, effort, self.time_limit)
        preset = None if self.preset is None else dataset_info(self.preset).name
        fitted = fit(
            graph,
            self.method,
            resolve_config(self.method, preset, None, options),
            seed=seed,
            device=self.device,
            n_threads=self.n_threads,
            progress=default_progress(quiet=not self.verbose),
            metadata=reading | {"feature_names": _column_names(X)},
            metric=self.metric,
            class_weight=self.class_weight,
        )
        return self._keep(fitted)

    def predict_proba(self, X: Any = None, *, adjacency: Any = None) -> Array:
        """Class probabilities n×c of the fitted graph's nodes, or of another graph.

        Args:
            X: None for the fitted graph, else a ``Data`` object or features. Any graph
                you pass is treated as new and unlabelled.
            adjacency: As in ``fit``.
        """
        check_is_fitted(self, "fitted_")
        if X is None:
            if adjacency is not None:
                raise InputError("adjacency requires X, the features of its nodes")
            return self.label_distributions_.copy()
        _check_columns(
            _column_names(X), self.fitted_.metadata.get("feature_names") or []
        )
        directed = bool(getattr(self.fitted_.data, "directed", False))
        data = self._as_data(X, None, adjacency, directed, or_fewer=True)
        graph = check_data(
            _without_labels(data),
            features=self.features,
            directed=directed,
            require_labels=False,
        )
        return _softmax(self.fitted_.logits_for(graph.data))

    def predict(self, X: Any = None, *, adjacency: Any = None) -> Array:
        """Classes, in the user's own names; see ``predict_proba``."""
        best = self.predict_proba(X, adjacency=adjacency).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any = None, y: Any = None, *, adjacency: Any = None) -> float:
        """The metric: ``score(mask)`` on the fitted graph, ``score(X, y)`` on another.

        Nodes without a label do not count. Without arguments: the test nodes, or all
        labelled nodes if there are none.
        """
        check_is_fitted(self, "fitted_")
        check_metric(self.metric)
        if y is not None:
            proba = self.predict_proba(X, adjacency=adjacency)
            codes, classes = encode_labels(y, len(proba))
            place = {name: i for i, name in enumerate(self.classes_.tolist())}
            # A class that the model does not know is never predicted.
            own = [place.setdefault(name, len(place)) for name in classes.tolist()]
            y = torch.tensor([*own, -1])[codes]
            logits = torch.from_numpy(proba).log()
        elif isinstance(X, Data):
            logits = torch.from_numpy(self.predict_proba(X)).log()
            y = check_labels(X.y, len(logits), [], required=False)
        else:
            logits, y = self.fitted_.result.logits, self.fitted_.data.y
            y = torch.where(self._mask(X), y, -1)
        known = y >= 0
        if not bool(known.any()):
            raise InputError("score needs a labelled node; there is none")
        check_classes(self.metric, y[known], "nodes")
        unknown = max(0, int(y.max()) + 1 - logits.size(1))
        logits = F.pad(logits, (0, unknown), value=-torch.inf)
        return score(self.metric, logits[known], y[known], logits.size(1))

    def save(self, folder: str | Path) -> None:
        """Write ``model.safetensors`` and ``model.json`` into a new directory."""
        check_is_fitted(self, "fitted_")
        save(self.fitted_, folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a saved model, or a run directory of the command line."""
        fitted = load(folder)
        params: dict[str, Any] = fitted.config.model_dump(exclude_defaults=True)
        params |= {k: fitted.metadata[k] for k in _READING if k in fitted.metadata}
        params["random_state"] = fitted.seed
        weight: Any = fitted.class_weight
        if isinstance(weight, list):
            weight = dict(zip(fitted.classes.tolist(), weight, strict=True))
        params |= {"metric": fitted.metric, "class_weight": weight}
        return cls(fitted.method, **params)._keep(fitted)

    def __sklearn_tags__(self) -> Any:
        """Features may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Refuse values that nothing later would name."""
        resolve_name(self.method)
        threads = 1 if self.n_threads is None else self.n_threads
        counts = {"n_neighbors": self.n_neighbors, "n_threads": threads}
        for name, value in counts.items():
            if not is_whole(value) or value < 1:
                raise InputError(f"{name} must be a whole number from 1; got {value!r}")
        share: Any = self.validation_fraction
        number = isinstance(share, Real) and not isinstance(share, bool)
        if not number or not 0 <= share < 1:
            raise InputError(
                f"validation_fraction must be a number from 0 to below 1; got {share!r}"
            )

    def _as_data(
        self, X: Any, y: Any, adjacency: Any, directed: bool, or_fewer: bool = False
    ) -> Data:
        """A graph in any form; ``or_fewer``: new nodes may have fewer neighbours."""
        if isinstance(X, list | tuple) and X and isinstance(X[0], BaseData):
            raise InputError(
                f"X is a list of {len(X)} graphs, expected one; "
                "torch_geometric.data.Batch.from_data_list makes one of them"
            )
        if not isinstance(X, BaseData):
            k = self.n_neighbors
            return to_data(
                X, y, adjacency, n_neighbors=k, directed=directed, or_fewer=or_fewer
            )
        if not isinstance(X, Data):
            raise InputError(
                f"X is a {type(X).__name__}, expected a Data object with one kind of "
                "node and edge; try its to_homogeneous()"
            )
        if y is not None or adjacency is not None:
            raise InputError(
                "a Data object has its own labels and edges; pass it without y and "
                "adjacency"
            )
        return X

    def _mask(self, mask: Any) -> Tensor:
        """The nodes of the fitted graph to score."""
        test: Tensor = self.fitted_.data.test_mask
        if mask is None:
            return test if bool(test.any()) else torch.ones_like(test)
        try:
            chosen = torch.as_tensor(mask)
            given = f"{tuple(chosen.shape)} of {chosen.dtype}"
        except (TypeError, ValueError, RuntimeError):
            chosen, given = torch.empty(0), f"a {type(mask).__name__}"
        if chosen.dtype == torch.bool and chosen.shape == test.shape:
            return chosen
        expected = f"a mask of {test.numel()} booleans, or X and y"
        raise InputError(f"score takes {expected}; got {given}")

    def _keep(self, fitted: Fitted) -> Self:
        """Set the attributes of a fitted estimator."""
        for name in (*_ELU_ONLY, "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        result = fitted.result
        self.fitted_, self.classes_ = fitted, fitted.classes
        self.label_distributions_ = _softmax(result.logits)
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        if result.label_utilization is not None:
            self.label_utilization_ = result.label_utilization
        if result.graph is not None:
            self.graph_ = result.graph
        self.history_, self.n_iter_ = result.history, result.epochs
        self.notes_ = fitted.notes
        self.n_features_in_ = fitted.num_features
        if names := fitted.metadata.get("feature_names"):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return self


class ELUGCNClassifier(NodeClassifier):
    """ELU-GCN (ICML 2025): ``NodeClassifier("elu-gcn")`` with seed 0.

    Args:
        random_state: Seed; None draws one.
        parameters: The other parameters of ``NodeClassifier``, and options of the
            method under the paper's names: ``eta`` (η, share of the ELU view), ``tau``
            (τ) and ``lambda_con`` (λ) of the contrast, ``beta`` (β, ridge of the closed
            form), ``k`` (updates of Q), ``form``, ``graph_mode``, ``hidden_channels``,
            ``dropout``, ``lr``, ``epochs`` and others (``elugcn.elu.options``).
    """

    def __init__(self, *, random_state: int | None = 0, **parameters: Any) -> None:
        super().__init__("elu-gcn", random_state=random_state, **parameters)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Scikit-learn's list of parameters, without those of the default."""
        names = NodeClassifier._get_param_names()
        return [name for name in names if name not in _DEFAULT_ONLY]

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a saved ELU-GCN."""
        loaded = NodeClassifier.load(folder)
        if loaded.method != "elu-gcn":
            raise InputError(
                f"{folder}: holds a model of method {loaded.method!r}; load it with "
                "NodeClassifier"
            )
        given = loaded.get_params()
        params = {k: v for k, v in given.items() if k not in _DEFAULT_ONLY}
        return cls(**params)._keep(loaded.fitted_)


def _softmax(logits: Tensor) -> Array:
    return torch.softmax(logits, dim=1).numpy(force=True)


def _column_names(X: Any) -> list[str]:
    """Names of the columns of a data frame, if all are strings."""
    names = list(X.columns) if hasattr(X, "columns") and hasattr(X, "to_numpy") else []
    return names if all(isinstance(name, str) for name in names) else []


def _check_columns(found: list[str], fitted: list[str]) -> None:
    """Refuse a frame with other columns, or in another order."""
    for expected, name in zip(fitted, found, strict=False):
        if expected != name:
            moved = "; the order of the columns differs" if name in fitted else ""
            raise InputError(
                f"X has a column {name!r} where the model was fitted with "
                f"{expected!r}{moved}"
            )


def _without_labels(data: Data) -> Data:
    """The graph without classes and splits, which prediction does not read."""
    if data.x is None and data.get("num_nodes", None) is None:
        return data  # its labels tell how many nodes there are
    bare = copy.copy(data)
    for name in {"y", "train_mask", "val_mask", "test_mask"} & set(data.keys()):
        bare[name] = None
    return bare
