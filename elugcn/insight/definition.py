"""Definition 1 for any two predictions."""

from typing import Any

import numpy as np
import torch
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

    ``gcn`` and ``lpa`` are predictions, tensors or arrays: scores n×c, or classes (n,)
    as numbers or names; ``data.class_names`` gives the number of a name. A zero row or
    −1 in ``lpa`` is a node that no label reaches. If both are given, only the number of
    nodes and the class names of ``data`` are read.

    Otherwise ``data`` needs ``y`` and, if some labels are held out, ``train_mask``. A
    missing ``lpa`` is propagated from the training nodes with ``lpa_steps`` and
    ``lpa_alpha``; a missing ``gcn`` is a plain GCN with seed ``random_state``.
    ``features`` is ``"identity"`` or ``"degree"`` for a graph without features, and
    ``self_loops`` says whether Â has them.
    """
    if gcn is None or lpa is None:
        graph = check_data(data, features=features, seed=random_state)
        data = graph.data
    n, names = int(data.num_nodes), data.get("class_names", None)
    if lpa is None:
        weight = getattr(data, "edge_weight", None)
        adj = normalized_adjacency(data.edge_index, n, weight, self_loops)
        labels, c = torch.where(data.train_mask, data.y, -1), int(data.y.max()) + 1
        lpa = propagate_labels(adj, labels, c, lpa_steps, lpa_alpha)
    if gcn is None:
        options = {"self_loops": self_loops}
        gcn = fit(graph, "gcn", options, seed=random_state).result.logits
    given = {"lpa": _values(lpa), "gcn": _values(gcn)}
    if not isinstance(names, list | tuple):
        words = [v.ravel() for v in given.values() if v.dtype.kind == "U"]
        if len(words) == 1:
            raise InputError(
                "lpa and gcn must both name classes or both number them, because "
                "data.class_names is missing"
            )
        names = np.unique(np.concatenate(words)) if words else ()
    number = {str(name): i for i, name in enumerate(names)}
    tensors = (_checked(name, v, n, number) for name, v in given.items())
    return definition_one(*tensors)


def _values(prediction: Any) -> np.ndarray[Any, Any]:
    """A prediction as numbers, or as strings if it names classes."""
    if isinstance(prediction, Tensor):
        half = prediction.dtype == torch.bfloat16  # which numpy does not have
        return (prediction.float() if half else prediction).numpy(force=True)
    array = np.asarray(prediction)
    return array.astype(str) if array.dtype.kind in "OUS" else array


def _checked(
    name: str, values: np.ndarray[Any, Any], n: int, number: dict[str, int]
) -> Tensor:
    """Scores or class numbers, one row per node."""
    if values.ndim not in (1, 2) or len(values) != n:
        shape = values.shape
        raise InputError(f"{name} must have one row per node ({n}); got shape {shape}")
    if values.dtype.kind == "U":
        unknown = sorted(set(values.ravel()) - number.keys())
        if unknown or values.ndim == 2:
            wrong = str((unknown or values.tolist())[0])
            raise InputError(
                f"{name} must contain scores, class numbers or class names; "
                f"got {wrong!r}"
            )
        return torch.tensor([number[word] for word in values])
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite; it contains NaN or infinity")
    if values.ndim == 1 and values.min(initial=0) < -1:
        least = values.min()
        raise InputError(f"{name} must contain classes from 0, or -1; got {least}")
    return torch.as_tensor(values)
