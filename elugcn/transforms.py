"""PyG transforms: the ELU graph under any model."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from elugcn.api import fit
from elugcn.data.validation import check_data
from elugcn.elu.low_rank_graph import ExplicitGraph
from elugcn.methods.registry import GRAPH_ONLY


@functional_transform("add_elu_graph")
class AddELUGraph(BaseTransform):  # type: ignore[misc]
    """Adds the ELU graph as ``elu_edge_index`` and ``elu_edge_weight``.

    Edge e goes from ``elu_edge_index[0, e]`` to ``elu_edge_index[1, e]`` and has the
    weight S*_{target, source}, as PyG's convolutions expect. Labels outside
    ``train_mask`` are used for validation only, never for the graph.

    Args:
        topk: Neighbours kept per node.
        random_state: Seed of the models behind the graph.
        features: ``"identity"`` or ``"degree"`` for a graph without features.
        options: Further options of ELU-GCN.
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
        options = self.options | {"graph_mode": "topk", "topk": self.topk}
        checked = check_data(data, features=self.features, seed=self.random_state)
        fitted = fit(checked, GRAPH_ONLY, options, seed=self.random_state)
        learned = fitted.result.graph
        assert isinstance(learned, ExplicitGraph)
        csr = learned.csr
        data.elu_edge_index = torch.stack([csr.col.long(), csr.row])
        data.elu_edge_weight = csr.value
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(topk={self.topk})"
