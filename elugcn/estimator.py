"""``ELUGCNClassifier``: the method with scikit-learn's verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

from elugcn.atomic import whole_directory
from elugcn.config import make_config, resolve_config
from elugcn.core.operators import ELUGraph
from elugcn.core.utilization import LabelUtilization
from elugcn.data.checks import check_data
from elugcn.data.convert import to_data
from elugcn.data.labels import check_labels, encode_labels
from elugcn.errors import InputError
from elugcn.estimator_checks import (
    check_column_names,
    check_parameters,
    column_names,
    preset_of,
    refuse_other_graphs,
    seed_of,
    without_labels,
)
from elugcn.fitting import Fitted, accuracy, fit_graph
from elugcn.storage import load_fitted, num_features, save_fitted
from elugcn.training.progress import default_progress

Array = np.ndarray[Any, Any]


class ELUGCNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify the nodes of a graph from few labels (ELU-GCN, ICML 2025).

    Args:
        hidden_channels: Width of the GCN.
        dropout: Probability, before every layer.
        lr: Learning rate of Adam.
        weight_decay: L2 decay.
        epochs: At most this many.
        patience: Epochs without a better validation before training stops.
        eta: Share of the ELU view in the output; chosen again on validation.
        tau: Temperature of the contrastive loss.
        lambda_con: Weight λ of contrast and entropy.
        beta: Ridge β of the closed form.
        k: Updates of the label influence Q.
        form: ``"paper"`` or ``"transposed"`` closed form.
        init: Unlabelled rows of Q: ``"lpa"``, ``"zero"`` or ``"mlp"``.
        graph_mode: ``"implicit"``, ``"topk"`` or ``"paper"``.
        feature_norm: ``"auto"``, ``"row"``, ``"standard"`` or ``"none"``.
        self_loops: Add self-loops to Â.
        options: Any further option of the method by name (see ``ELUGCNConfig``).
        preset: Name of a dataset whose tuned values are the starting point.
        directed: Keep the direction of the edges of an adjacency (a ``Data`` says it
            by its attribute ``directed``). Other graphs are read as the fitted one.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        n_neighbors: Of the kNN graph that is built if no adjacency is given.
        validation_fraction: Share of the labels held out if no mask says so.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        n_threads: Threads; chosen by the size of the graph if None.
        verbose: Show progress on a terminal.
        random_state: Seed; None draws one.

    A parameter that is None keeps the method's default or, with ``preset``, the tuned
    value of that dataset.

    Attributes:
        classes_: The classes, in the form the labels were given.
        transduction_: Predicted class of every node of the fitted graph.
        label_distributions_: Class probabilities of every node, n×c.
        label_utilization_: Definition 1 for every node.
        graph_: The ELU graph, an operator.
        history_: One record per epoch.
        n_iter_: Epochs trained.
        notes_: What was unusual about the graph and how it was handled.
        feature_names_in_: Names of the columns of X, where it was a data frame.
    """

    def __init__(
        self,
        *,
        hidden_channels: int | None = None,
        dropout: float | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        eta: float | None = None,
        tau: float | None = None,
        lambda_con: float | None = None,
        beta: float | None = None,
        k: int | None = None,
        form: str | None = None,
        init: str | None = None,
        graph_mode: str | None = None,
        feature_norm: str | None = None,
        self_loops: bool | None = None,
        options: dict[str, Any] | None = None,
        preset: str | None = None,
        directed: bool = False,
        features: str | None = None,
        n_neighbors: int = 10,
        validation_fraction: float = 0.2,
        device: str = "auto",
        n_threads: int | None = None,
        verbose: bool = False,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_channels = hidden_channels
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.eta = eta
        self.tau = tau
        self.lambda_con = lambda_con
        self.beta = beta
        self.k = k
        self.form = form
        self.init = init
        self.graph_mode = graph_mode
        self.feature_norm = feature_norm
        self.self_loops = self_loops
        self.options = options
        self.preset = preset
        self.directed = directed
        self.features = features
        self.n_neighbors = n_neighbors
        self.validation_fraction = validation_fraction
        self.device = device
        self.n_threads = n_threads
        self.verbose = verbose
        self.random_state = random_state

    # The parameters that are options of the method under the same name.
    _METHOD_OPTIONS = (
        "hidden_channels", "dropout", "lr", "weight_decay", "epochs", "patience", "eta",
        "tau", "lambda_con", "beta", "k", "form", "init", "graph_mode", "feature_norm",
        "self_loops",
    )  # fmt: skip

    # And those that say how a graph is read, which a saved model keeps.
    _INPUT_OPTIONS = ("directed", "features", "n_neighbors", "validation_fraction")

    def set_params(self, **params: Any) -> ELUGCNClassifier:
        """As scikit-learn's. What is set holds for every variant among ``options``.

        A loaded model has the variants it was trained with there.
        """
        super().set_params(**params)
        options = self.options
        if isinstance(options, dict) and options.get("variants"):
            later = params.keys() & set(self._METHOD_OPTIONS)
            if later and "options" not in params:
                self.options = options | {
                    "variants": [
                        {k: v for k, v in one.items() if k not in later}
                        for one in options["variants"]
                    ]
                }
        return self

    def fit(
        self, X: Data | Any, y: Any = None, *, adjacency: Any = None
    ) -> ELUGCNClassifier:
        """Learn from a PyG ``Data``, or from features, labels and an adjacency.

        Args:
            X: A ``Data`` object, or features (n×d; numpy, scipy sparse, torch).
            y: Labels; −1, None, NaN or "" where unknown. Not with a ``Data``.
            adjacency: scipy sparse, numpy, networkx (nodes 0 to n−1, or listed in the
                order of the rows), edge index, or None for a k-nearest-neighbour graph
                of the features.
        """
        seed = seed_of(self.random_state)
        check_parameters(
            self.n_neighbors, self.n_threads, self.validation_fraction, self.options
        )
        data = self._as_data(X, y, adjacency, self.directed)
        graph = check_data(
            data,
            features=self.features,
            directed=True if self.directed else None,
            val_fraction=self.validation_fraction,
            seed=seed,
        )
        given = {name: getattr(self, name) for name in self._METHOD_OPTIONS}
        options = {k: v for k, v in given.items() if v is not None}
        config = resolve_config(
            "elu-gcn", preset_of(self.preset), options=options | (self.options or {})
        )
        fitted = fit_graph(
            graph,
            "elu-gcn",
            config,
            seed=seed,
            device=self.device,
            n_threads=self.n_threads,
            progress=default_progress(quiet=not self.verbose),
        )
        fitted.facts = {name: getattr(self, name) for name in self._INPUT_OPTIONS}
        fitted.facts["feature_names"] = column_names(X)
        return self._keep(fitted)

    def predict_proba(self, X: Any = None, *, adjacency: Any = None) -> Array:
        """Class probabilities (n×c) of the fitted graph's nodes, or of another graph.

        Args:
            X: None for the fitted graph; else a ``Data`` or features of other nodes.
                What is given counts as another graph, without labels, even if it is
                the fitted one: the answers can differ a little.
            adjacency: As in ``fit``.
        """
        check_is_fitted(self, "fitted_")
        if X is None:
            if adjacency is not None:
                raise InputError("an adjacency needs the features of its nodes: give X")
            return self.label_distributions_.copy()
        check_column_names(column_names(X), getattr(self, "feature_names_in_", None))
        directed = bool(getattr(self.fitted_.data, "directed", False))
        data = without_labels(self._as_data(X, None, adjacency, directed, new=True))
        graph = check_data(
            data, features=self.features, directed=directed, require_labels=False
        )
        expected = self.n_features_in_
        if graph.data.x.size(1) != expected:
            raise InputError(
                f"the model was fitted with {expected} features; "
                f"got {graph.data.x.size(1)}"
            )
        predictor = self.fitted_.prediction.predictor
        assert predictor is not None
        return torch.softmax(predictor.logits(graph.data), dim=1).cpu().numpy()

    def predict(self, X: Any = None, *, adjacency: Any = None) -> Array:
        """Classes, in the user's own names; see ``predict_proba``."""
        best = self.predict_proba(X, adjacency=adjacency).argmax(axis=1)
        predicted: Array = self.classes_[best]
        return predicted

    def score(self, X: Any = None, y: Any = None, *, adjacency: Any = None) -> float:
        """Accuracy: ``score(mask)`` on the fitted graph, ``score(X, y)`` elsewhere.

        Nodes without a label (−1, None, NaN, "") do not count. Without arguments: the
        test nodes, or all labelled nodes if there are none.
        """
        check_is_fitted(self, "fitted_")
        if y is not None:
            predicted = self.predict(X, adjacency=adjacency)
            codes, classes = encode_labels(y, len(predicted))
            labels = codes.numpy()
            known = labels >= 0
            return _share_right(predicted[known], classes[labels[known]])
        data = self.fitted_.data
        if isinstance(X, Data):
            best = self.predict_proba(X).argmax(axis=1)
            labels = check_labels(X.y, len(best), [], required=False).numpy()
            known = labels >= 0
            return _share_right(best[known], labels[known])
        if X is None:
            mask = data.test_mask if bool(data.test_mask.any()) else data.y >= 0
        else:
            try:
                mask = torch.as_tensor(X)
            except (TypeError, ValueError, RuntimeError):
                raise InputError(
                    f"score takes a mask of {data.y.numel()} booleans, or X and y; got "
                    f"a {type(X).__name__}"
                ) from None
        if mask.dtype != torch.bool or mask.shape != data.y.shape:
            raise InputError(
                f"score takes a mask of {data.y.numel()} booleans; got "
                f"{tuple(mask.shape)} of {mask.dtype}"
            )
        value = accuracy(self.fitted_.prediction.logits, data.y, mask)
        if value is None:
            raise InputError("score needs a labelled node in the mask; there is none")
        return value

    def save(self, directory: str | Path) -> None:
        """Write ``model.safetensors`` and ``model.json`` into a new directory."""
        check_is_fitted(self, "fitted_")
        try:
            with whole_directory(Path(directory)) as folder:
                save_fitted(self.fitted_, folder)
        except InputError as error:  # said for the command line
            raise InputError(str(error).removeprefix("--out ")) from None

    @classmethod
    def load(cls, directory: str | Path) -> ELUGCNClassifier:
        """Read a saved model (or a run directory of the command line)."""
        fitted = load_fitted(directory)
        if fitted.method != "elu-gcn":
            raise InputError(f"{directory}: holds a {fitted.method} model, not elu-gcn")
        given = {name: getattr(fitted.config, name) for name in cls._METHOD_OPTIONS}
        rest = {
            name: value
            for name, value in vars(fitted.config).items()
            if name not in given
        }
        asked = set(cls._INPUT_OPTIONS) & set(fitted.facts)
        given |= {name: fitted.facts[name] for name in asked}
        new = cls(**given, options=rest, random_state=fitted.seed)
        return new._keep(fitted)

    @staticmethod
    def default_options() -> dict[str, Any]:
        """Every option of the method with its default value."""
        return dict(vars(make_config("elu-gcn", {})))

    def __sklearn_tags__(self) -> Any:
        """As scikit-learn's: features may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _as_data(
        self, X: Any, y: Any, adjacency: Any, directed: bool, new: bool = False
    ) -> Data:
        refuse_other_graphs(X)
        if not isinstance(X, Data):
            return to_data(
                X,
                y,
                adjacency,
                n_neighbors=self.n_neighbors,
                directed=directed,
                or_fewer=new,  # a handful of new nodes has no more
            )
        if y is not None or adjacency is not None:
            raise InputError(
                "a Data object brings its own labels and edges: give it alone"
            )
        return X

    def _keep(self, fitted: Fitted) -> ELUGCNClassifier:
        prediction = fitted.prediction
        self.fitted_ = fitted
        self.classes_: Array = fitted.classes
        self.label_distributions_: Array = prediction.proba.numpy()
        best = self.label_distributions_.argmax(axis=1)
        self.transduction_: Array = self.classes_[best]
        self.label_utilization_: LabelUtilization | None = prediction.utilization
        self.graph_: ELUGraph | None = prediction.graph
        self.history_ = prediction.history
        self.n_iter_ = prediction.epochs
        self.notes_ = fitted.notes
        self.n_features_in_ = num_features(fitted.data)
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        names = fitted.facts.get("feature_names")
        if isinstance(names, list):
            self.feature_names_in_: Array = np.asarray(names, dtype=object)
        return self


def _share_right(predicted: Array, known: Array) -> float:
    if not len(known):
        raise InputError("score needs a labelled node; there is none")
    return float(np.mean(predicted == known))
