"""Definition 1 for any two predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.api import fit
from elugcn.data.validation import check_data
from elugcn.elu.label_propagation import propagate_labels
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.engine import normalized_adjacency
from elugcn.errors import InputError


def label_utilization(
    data: Data,
    gcn: Any = None,
    lpa: Any = None,
    *,
    features: str | None = None,
    lpa_steps: int = 50,
    lpa_alpha: float = 0.9,
    self_loops: bool = True,
    random_state: int = 0,
) -> LabelUtilization:
    """Which nodes use the labels that reach them (Definition 1).

    Args:
        data: Graph with ``y`` and, if some labels are held out, ``train_mask``. If both
            predictions are given, only its number of nodes and class names are read.
        gcn: Prediction of any model (tensor or array): scores n×c, or classes (n,) as
            numbers or names. ``data.class_names`` gives the number of a name. A plain
            GCN is trained if omitted.
        lpa: Label distribution n×c or classes (n,), −1 where no label reaches. Labels
            are propagated from the training nodes if omitted.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        lpa_steps: Steps of label propagation.
        lpa_alpha: Share of the neighbours in each step.
        self_loops: Whether Â has self-loops.
        random_state: Seed of the GCN.

    Raises:
        InputError: A prediction has the wrong size, or its classes are unknown.
    """
    if gcn is not None and lpa is not None:
        n, names = int(data.num_nodes), data.get("class_names", None)
    else:
        graph = check_data(data, features=features, seed=random_state)
        data = graph.data
        n, names = int(data.num_nodes), data.class_names
    if lpa is None:
        weight = getattr(data, "edge_weight", None)
        adj = normalized_adjacency(data.edge_index, n, weight, self_loops)
        labels, c = torch.where(data.train_mask, data.y, -1), int(data.y.max()) + 1
        lpa = propagate_labels(adj, labels, c, lpa_steps, lpa_alpha)
    if gcn is None:
        options = {"self_loops": self_loops}
        gcn = fit(graph, "gcn", options, seed=random_state).result.logits
    given = {"lpa": _read(lpa), "gcn": _read(gcn)}
    names = [str(name) for name in names] if isinstance(names, list | tuple) else None
    words = [v for v in given.values() if isinstance(v, np.ndarray)]
    if words and names is None:
        if len(words) < len(given):
            raise InputError(
                "lpa and gcn must both name classes or both number them, because "
                "data.class_names is missing"
            )
        names = np.unique(np.concatenate(words)).tolist()
    tensors = (_classes(name, v, n, names) for name, v in given.items())
    return definition_one(*tensors)


def _read(prediction: Any) -> Tensor | NDArray[np.str_]:
    """A prediction as a tensor, or as an array of strings if it names classes."""
    if isinstance(prediction, Tensor):
        return prediction.detach().cpu()
    array = np.asarray(prediction)
    return array.astype(str) if array.dtype.kind in "OUS" else torch.as_tensor(array)


def _classes(
    name: str, values: Tensor | NDArray[np.str_], n: int, names: list[str] | None
) -> Tensor:
    """Scores or class numbers, one row per node, checked."""
    if values.ndim not in (1, 2) or len(values) != n:
        shape = tuple(values.shape)
        raise InputError(f"{name} must have one row per node ({n}); got shape {shape}")
    if not isinstance(values, Tensor):
        number = {word: i for i, word in enumerate(names or ())}
        unknown = sorted({str(word) for word in values.ravel()} - number.keys())
        if unknown or values.ndim == 2:
            raise InputError(
                f"{name} must contain scores, class numbers or class names; got "
                f"{(unknown or values.tolist())[0]!r}"
            )
        return torch.tensor([number[str(word)] for word in values])
    if values.is_floating_point() and not bool(values.isfinite().all()):
        raise InputError(f"{name} must be finite; it contains NaN or infinity")
    if values.ndim == 1 and values.numel() and int(values.min()) < -1:
        raise InputError(
            f"{name} must contain classes from 0, or -1; got {values.min()}"
        )
    return values
