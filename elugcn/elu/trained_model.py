"""A trained ELU-GCN for nodes it has not seen.

For a new node the ELU view needs one row of S* = L Rᵀ against the training graph: with
its row l of L, s X W₁ = l (Rᵀ X W₁). The bracket is c×h and fixed once the weights are.
The row l follows from the row of H of the new node. So nothing of the training graph is
kept but this summary. New nodes use the factors in the explicit graph modes, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.elu.low_rank_graph import LowRankGraph, scale_rows
from elugcn.elu.objective import mixed
from elugcn.elu.options import ELUConfig
from elugcn.engine import Features
from elugcn.methods.backbone import AnyGCN
from elugcn.methods.contract import Model
from elugcn.methods.network import NetworkModel, under


def h_of(logits: Tensor, h_output: str) -> Tensor:
    """H from a model's logits: probabilities, or the logits themselves, n×c."""
    return F.softmax(logits, dim=1) if h_output == "probabilities" else logits


@dataclass
class TwoViewModel(NetworkModel):
    """The two-view GCN, the model that gives H, and what is kept of S*."""

    config: ELUConfig
    source: Model  # gives H
    eta: float  # η, the share of the ELU view
    row_sum: Tensor  # column sums of R, (c,)
    hidden: Tensor  # Rᵀ X W₁, c×h
    mean: float  # mean absolute row sum of S*

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        gcn: NetworkModel,
        eta: float,
        graph: LowRankGraph,
        x: Features,
        source: Model,
    ) -> TwoViewModel:
        """The model of a trained GCN; ``graph`` holds the factors before scaling."""
        assert isinstance(gcn.network, AnyGCN)
        return cls(
            **vars(gcn),
            source=source,
            eta=eta,
            row_sum=graph.right.sum(dim=0).cpu(),
            hidden=(graph.right.T @ gcn.network.first_product(x)).cpu(),
            mean=graph.mean_row_sum,
        )

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features; every node counts as new."""
        # In the transposed form the left factor is H. In the paper's form it is the
        # influence q, and the row of H is the best estimate of it for a node without a
        # label.
        left = h_of(self.source.logits(data), self.config.h_output)
        left = scale_rows(left, left @ self.row_sum, self.mean, self.config.scaling)
        gcn = self.network.cpu().eval()
        assert isinstance(gcn, AnyGCN)
        views = gcn.views_given(self.inputs(data), left @ self.hidden)
        return mixed(views.tensors(), self.eta)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, summary of S*, and the tensors of the model that gives H."""
        summary = {"row_sum": self.row_sum, "hidden": self.hidden}
        source = under("source", self.source.tensors())
        return super().tensors() | under("summary", summary) | source

    def description(self) -> dict[str, Any]:
        """What rebuilds the model, and the description of the one that gives H."""
        own = {"eta": self.eta, "mean": self.mean}
        return super().description() | own | {"source": self.source.description()}
