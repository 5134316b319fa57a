"""Definition 1 for people who bring their own model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.propagation import propagate_labels
from elugcn.core.sparse import normalized_adjacency
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.data.checks import check_data
from elugcn.errors import InputError
from elugcn.fitting import fit_graph
from elugcn.methods.network_config import GCNConfig


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
    """Which nodes make use of the labels that reach them (Definition 1).

    Args:
        data: Graph with ``y`` and, if some labels are held out, ``train_mask``. Where
            both predictions are given, only its number of nodes and names are read.
        gcn: Prediction of any model (tensor or array), scores n×c or classes (n,), as
            numbers or by name (``data.class_names`` says which number a name has);
            a plain GCN is trained if omitted.
        lpa: Label distribution n×c or classes (n,), −1 where no label reaches;
            label propagation from the training nodes if omitted.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        lpa_steps: Steps of label propagation.
        lpa_alpha: Share of the neighbours in each step.
        self_loops: Whether Â has self-loops.
        random_state: Seed of the GCN.
    """
    if gcn is not None and lpa is not None:
        n, names = int(data.num_nodes), _class_names(data)
    else:
        graph = check_data(data, features=features, seed=random_state)
        checked = graph.data
        n, names = int(checked.num_nodes), checked.class_names
    if lpa is None:
        weight = getattr(checked, "edge_weight", None)
        adj = normalized_adjacency(checked.edge_index, n, weight, self_loops)
        labels = torch.where(checked.train_mask, checked.y, -1)
        lpa = propagate_labels(
            adj, labels, int(checked.y.max()) + 1, lpa_steps, lpa_alpha
        )
    if gcn is None:
        config = GCNConfig(self_loops=self_loops)
        gcn = fit_graph(graph, "gcn", config, seed=random_state).prediction.logits
    named = {"lpa": _numbers(lpa), "gcn": _numbers(gcn)}
    words = [v for v in named.values() if isinstance(v, np.ndarray)]
    if words and names is None:
        if len(words) < len(named):
            raise InputError(
                "lpa and gcn must both name classes or both number them: "
                "data.class_names, which would say which is which, is missing"
            )
        names = np.unique(np.concatenate(words)).tolist()
    tensors = (_one_per_node(name, v, n, names) for name, v in named.items())
    return definition_one(*tensors)


def _class_names(data: Data) -> list[str] | None:
    """Names by class number, where the graph has them."""
    names = data.get("class_names", None)
    return [str(n) for n in names] if isinstance(names, list | tuple) else None


def _numbers(prediction: Any) -> Tensor | NDArray[np.str_]:
    """A prediction as a tensor, or as an array of words where it names classes."""
    if isinstance(prediction, Tensor):
        return prediction.detach().cpu()
    array = np.asarray(prediction)
    return array.astype(str) if array.dtype.kind in "OUS" else torch.as_tensor(array)


def _one_per_node(
    name: str, values: Tensor | NDArray[np.str_], n: int, names: list[str] | None
) -> Tensor:
    if values.ndim not in (1, 2) or len(values) != n:
        raise InputError(
            f"{name} must have one row per node ({n}); got {tuple(values.shape)}"
        )
    if not isinstance(values, Tensor):
        code = {word: i for i, word in enumerate(names or ())}
        unknown = sorted({str(word) for word in values.ravel()} - code.keys())
        if unknown or values.ndim == 2:
            raise InputError(
                f"{name} must be scores, numbers of classes or names of them; got "
                f"{(unknown or values.tolist())[0]!r}"
            )
        return torch.tensor([code[str(word)] for word in values])
    if values.is_floating_point() and not bool(values.isfinite().all()):
        raise InputError(f"{name} must be finite; it holds NaN or inf")
    if values.ndim == 1 and values.numel() and int(values.min()) < -1:
        raise InputError(f"{name} must be classes from 0 on, or -1; got {values.min()}")
    return values
