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
from elugcn.methods.backbone import AnyGCN
from elugcn.methods.contract import Model
from elugcn.methods.network import NetworkModel, below
from elugcn.methods.problem import Problem
from elugcn.methods.registry import get_method


def h_of(logits: Tensor, h_output: str) -> Tensor:
    """H from a model's logits: probabilities, or the logits themselves, n×c."""
    return F.softmax(logits, dim=1) if h_output == "probabilities" else logits


@dataclass(frozen=True)
class Summary:
    """The training graph as the ELU view of a new node needs it."""

    row_sum: Tensor  # column sums of the right factor R, (c,)
    hidden: Tensor  # Rᵀ X W₁, c×h
    mean: float  # mean absolute row sum of S*
    scaling: Scaling  # how rows of S* are scaled
    h_output: str  # whether H holds probabilities or logits

    @classmethod
    @torch.no_grad()
    def of(
        cls, graph: LowRankGraph, network: AnyGCN, problem: Problem,
        scaling: Scaling, h_output: str,
    ) -> Summary:  # fmt: skip
        """Summarise the training graph; ``graph`` holds the factors before scaling."""
        hidden = graph.right.T @ network.first_product(problem.x)
        row_sum = graph.right.sum(dim=0)
        return cls(row_sum.cpu(), hidden.cpu(), graph.mean_row_sum, scaling, h_output)

    def first_layer(self, logits: Tensor) -> Tensor:
        """S* X W₁ of new nodes, m×h, given the logits of the model behind H.

        In the transposed form the left factor is H. In the paper's form it is the
        influence q, and the row of H is the best estimate of it for a node without a
        label.
        """
        left = h_of(logits, self.h_output)
        left = scale_rows(left, left @ self.row_sum, self.mean, self.scaling)
        return left @ self.hidden


@dataclass
class TwoViewModel(Model):
    """The two-view GCN, the model that gives H, and the summary of S*."""

    network: NetworkModel  # the GCN with its configuration and scaling
    eta: float  # η, the share of the ELU view
    summary: Summary  # what is kept of the training graph
    source: Model  # gives H

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features; every node counts as new."""
        elu_product = self.summary.first_layer(self.source.logits(data))
        gcn = self.network.network.cpu().eval()
        assert isinstance(gcn, AnyGCN)
        views = gcn.views_given(self.network.inputs(data), elu_product)
        return mixed(views.tensors(), self.eta)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, summary, and the tensors of the model that gives H."""
        summary = {
            "summary.row_sum": self.summary.row_sum,
            "summary.hidden": self.summary.hidden,
        }
        source = {f"source.{k}": v for k, v in self.source.tensors().items()}
        return self.network.tensors() | summary | source

    def description(self) -> dict[str, Any]:
        """What rebuilds the model, and the description of the one that gives H."""
        s = self.summary
        return self.network.description() | {
            "eta": self.eta,
            "summary": {"mean": s.mean, "scaling": s.scaling, "h_output": s.h_output},
            "source": self.source.description(),
        }

    @classmethod
    def restore(
        cls,
        network: NetworkModel,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
    ) -> TwoViewModel:
        """Rebuild a saved model around its restored network."""
        summary = Summary(
            tensors["summary.row_sum"],
            tensors["summary.hidden"],
            **description["summary"],
        )
        source = description["source"]
        method = get_method(source["method"])
        restored = method.restore(source, below("source.", tensors))
        return cls(network, float(description["eta"]), summary, restored)
