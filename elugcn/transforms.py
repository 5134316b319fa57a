"""PyG transforms: the ELU graph under anybody's model."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from elugcn.config import resolve_config
from elugcn.core.operators import ExplicitGraph
from elugcn.data.checks import check_data
from elugcn.fitting import fit_graph


@functional_transform("add_elu_graph")
class AddELUGraph(BaseTransform):  # type: ignore[misc]
    """Adds the learned graph as ``elu_edge_index`` and ``elu_edge_weight``.

    The edge at column e goes from ``elu_edge_index[0, e]`` to ``elu_edge_index[1, e]``
    with weight S*_{target, source}, as PyG's convolutions expect it. Labels outside
    ``train_mask`` are used for validation only, never for the graph.

    Args:
        topk: Neighbours kept for each node.
        random_state: Seed of the models behind the graph.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        options: Further options of the method (see ``ELUGCNConfig``).
    """

    def __init__(
        self,
        topk: int = 20,
        random_state: int = 0,
        features: str | None = None,
        **options: Any,
    ) -> None:
        self.topk = topk
        self.random_state = random_state
        self.features = features
        self.options = options

    def forward(self, data: Data) -> Data:
        """The graph with two more attributes."""
        config = resolve_config(
            "elu-graph",
            options=self.options | {"graph_mode": "topk", "topk": self.topk},
        )
        graph = check_data(data, features=self.features, seed=self.random_state)
        fitted = fit_graph(graph, "elu-graph", config, seed=self.random_state)
        learned = fitted.prediction.graph
        assert isinstance(learned, ExplicitGraph)
        csr = learned.csr
        data.elu_edge_index = torch.stack([csr.col.long(), csr.row])
        data.elu_edge_weight = csr.value
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(topk={self.topk})"
