"""Definition 1 for people who bring their own model."""

from __future__ import annotations

from typing import Any

import torch
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
    lpa_steps: int = 50,
    lpa_alpha: float = 0.9,
    self_loops: bool = True,
    random_state: int = 0,
) -> LabelUtilization:
    """Which nodes make use of the labels that reach them (Definition 1).

    Args:
        data: Graph with ``y`` and, if some labels are held out, ``train_mask``.
        gcn: Prediction of any model (tensor or array), scores n×c or classes (n,);
            a plain GCN is trained if omitted.
        lpa: Label distribution n×c or classes (n,), −1 where no label reaches;
            label propagation from the training nodes if omitted.
        lpa_steps: Steps of label propagation.
        lpa_alpha: Share of the neighbours in each step.
        self_loops: Whether Â has self-loops.
        random_state: Seed of the GCN.
    """
    graph = check_data(data, seed=random_state)
    checked = graph.data
    n = int(checked.num_nodes)
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
    return definition_one(_one_per_node("lpa", lpa, n), _one_per_node("gcn", gcn, n))


def _one_per_node(name: str, prediction: Any, n: int) -> Tensor:
    values = torch.as_tensor(prediction).cpu()
    if values.dim() not in (1, 2) or values.size(0) != n:
        raise InputError(
            f"{name} must have one row per node ({n}); got {tuple(values.shape)}"
        )
    if values.is_floating_point() and not bool(values.isfinite().all()):
        raise InputError(f"{name} must be finite; it holds NaN or inf")
    return values
