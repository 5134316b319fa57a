"""A trained ELU-GCN for nodes it has not seen.

For a new node the ELU view needs one row of S* = L Rᵀ against the training graph: with
its row l of L, s X W₁ = l (Rᵀ X W₁). The bracket is c×h and fixed once the weights are.
The row l follows from the row of H of the new node. So nothing of the training graph is
kept but this summary. New nodes use the factors in the explicit graph modes, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.elu.low_rank_graph import LowRankGraph, Scaling, scale_rows
from elugcn.elu.objective import mixed
from elugcn.elu.options import ELUConfig
from elugcn.methods.backbone import AnyGCN
from elugcn.methods.contract import Model
from elugcn.methods.network import NetworkModel, below
from elugcn.methods.problem import Problem
from elugcn.methods.registry import get_method


def h_of(logits: Tensor, h_output: str) -> Tensor:
    """H from a model's logits: probabilities, or the logits themselves, n×c."""
    return F.softmax(logits, dim=1) if h_output == "probabilities" else logits


@dataclass
class TwoViewModel(NetworkModel):
    """The two-view GCN, the model that gives H, and what is kept of S*."""

    source: Model  # gives H
    eta: float  # η, the share of the ELU view
    row_sum: Tensor  # column sums of R, (c,)
    hidden: Tensor  # Rᵀ X W₁, c×h
    mean: float  # mean absolute row sum of S*
    scaling: Scaling  # how rows of S* are scaled
    h_output: str  # whether H holds probabilities or logits

    @classmethod
    @torch.no_grad()
    def of(
        cls, gcn: NetworkModel, eta: float, graph: LowRankGraph,
        problem: Problem, source: Model,
    ) -> TwoViewModel:  # fmt: skip
        """The model of a trained GCN; ``graph`` holds the factors before scaling."""
        network, config = gcn.network, gcn.config
        assert isinstance(network, AnyGCN)
        assert isinstance(config, ELUConfig)
        return cls(
            **vars(gcn),
            source=source,
            eta=eta,
            row_sum=graph.right.sum(dim=0).cpu(),
            hidden=(graph.right.T @ network.first_product(problem.x)).cpu(),
            mean=graph.mean_row_sum,
            scaling=config.scaling,
            h_output=config.h_output,
        )

    def elu_product(self, data: Data) -> Tensor:
        """S* X W₁ of new nodes, m×h.

        In the transposed form the left factor is H. In the paper's form it is the
        influence q, and the row of H is the best estimate of it for a node without a
        label.
        """
        left = h_of(self.source.logits(data), self.h_output)
        left = scale_rows(left, left @ self.row_sum, self.mean, self.scaling)
        return left @ self.hidden

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features; every node counts as new."""
        gcn = self.network.cpu().eval()
        assert isinstance(gcn, AnyGCN)
        views = gcn.views_given(self.inputs(data), self.elu_product(data))
        return mixed(views.tensors(), self.eta)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, summary, and the tensors of the model that gives H."""
        summary = {"summary.row_sum": self.row_sum, "summary.hidden": self.hidden}
        source = {f"source.{k}": v for k, v in self.source.tensors().items()}
        return super().tensors() | summary | source

    def description(self) -> dict[str, Any]:
        """What rebuilds the model, and the description of the one that gives H."""
        facts = {"mean": self.mean, "scaling": self.scaling, "h_output": self.h_output}
        return super().description() | {
            "eta": self.eta,
            "summary": facts,
            "source": self.source.description(),
        }

    @classmethod
    def restore(
        cls, gcn: NetworkModel, description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> TwoViewModel:  # fmt: skip
        """Rebuild a saved model around its restored GCN."""
        source = description["source"]
        restored = get_method(source["method"]).restore(
            source, below("source.", tensors)
        )
        return cls(
            **vars(gcn),
            source=restored,
            eta=float(description["eta"]),
            row_sum=tensors["summary.row_sum"],
            hidden=tensors["summary.hidden"],
            **description["summary"],
        )
