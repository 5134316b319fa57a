"""A trained ELU-GCN for graphs it has not seen.

For a new node the ELU view needs one row of S* against the training graph:
s = l Rᵀ, so that s X W₁ = l (Rᵀ X W₁). The bracket is a c×h matrix, fixed once the
weights are, and l follows from the new node's own row of H: nothing of the training
graph but this summary has to be kept. In the explicit graph modes new nodes use the
factors too: a new node has no stored row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.operators import LowRankGraph, scale_rows
from elugcn.methods.base import Predictor, Problem, inputs
from elugcn.methods.elu_config import ELUGCNConfig, h_from
from elugcn.methods.neural import NetworkPredictor
from elugcn.nn import GCN


@dataclass(frozen=True)
class Summary:
    """The training graph as the ELU view of a new node sees it.

    Attributes:
        row_sum: Column sums of the right factor, (c,).
        hidden: Rᵀ X W₁, c×h.
        mean: Mean absolute row sum of S* on the training graph.
        scaling: How rows are scaled.
        h_output: Whether H is made of probabilities or of scores.
    """

    row_sum: Tensor
    hidden: Tensor
    mean: float
    scaling: str
    h_output: str

    def first_layer(self, scores: Tensor) -> Tensor:
        """S* X W₁ for new nodes, given the H source's scores of them, n×h."""
        # In the transposed form this is the row of H; in the paper's form the influence
        # q on a node that has no label of its own is best told by its row of H.
        left = h_from(scores, self.h_output)
        left = scale_rows(left, left @ self.row_sum, self.mean, self.scaling)
        return left @ self.hidden


class _KnownProduct:
    """An operator whose product with X W₁ is known already."""

    def __init__(self, product: Tensor) -> None:
        self.product = product

    def __matmul__(self, z: Tensor) -> Tensor:
        return self.product


class ELUGCNPredictor(Predictor):
    """The two-view GCN, the model that gives H, and the summary of S*."""

    def __init__(
        self,
        network: NetworkPredictor,
        eta: float,
        summary: Summary | None = None,
        source: Predictor | None = None,
    ) -> None:
        self.network = network
        self.eta = eta
        self.summary = summary
        self.source = source

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        problem: Problem,
        network: NetworkPredictor,
        config: ELUGCNConfig,
        graph: LowRankGraph,
        source: Predictor,
        eta: float,
    ) -> ELUGCNPredictor:
        """Keep what prediction needs; the ELU view only if η gives it a say.

        ``graph`` holds the factors before scaling.
        """
        if eta == 0.0:
            return cls(network, eta)
        assert isinstance(network.model, GCN)
        first = network.model.source(problem.x)
        summary = Summary(
            graph.right.sum(dim=0).cpu(),
            (graph.right.T @ first).cpu(),
            graph.mean_row_sum,
            config.scaling,
            config.h_output,
        )
        return cls(network, eta, summary, source)

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Scores n×c for a graph with the same features; no refit."""
        if self.summary is None or self.source is None:
            return self.network.logits(data)
        # On the CPU, as every predictor: what it was trained on may not be there.
        model = self.network.model.cpu().eval()
        assert isinstance(model, GCN)
        scores = self.source.logits(data)
        known = _KnownProduct(self.summary.first_layer(scores))
        x, adj = inputs(data, self.network.scaler, self.network.view, scores.device)
        original, elu = model(x, adj, known)
        return torch.lerp(original, elu, self.eta)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weights, summary and the H source, under prefixed names."""
        tensors, network = self.network.state()
        facts: dict[str, Any] = {"network": network, "eta": self.eta}
        if self.summary is not None and self.source is not None:
            s = self.summary
            tensors |= {
                "summary.row_sum": s.row_sum,
                "summary.hidden": s.hidden,
            }
            facts["summary"] = {
                "mean": s.mean,
                "scaling": s.scaling,
                "h_output": s.h_output,
            }
            nested, facts["source"] = self.source.state()
            kind = "elu" if isinstance(self.source, ELUGCNPredictor) else "network"
            facts["source_kind"] = kind
            tensors |= {f"source.{k}": v for k, v in nested.items()}
        return tensors, facts

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> ELUGCNPredictor:
        """The inverse of ``state``."""
        network = NetworkPredictor.restore(tensors, facts["network"])
        if "summary" not in facts:
            return cls(network, facts["eta"])
        summary = Summary(
            tensors["summary.row_sum"],
            tensors["summary.hidden"],
            **facts["summary"],
        )
        kinds: dict[str, type[Predictor]] = {"elu": cls, "network": NetworkPredictor}
        prefix = "source."
        nested = {
            k.removeprefix(prefix): v
            for k, v in tensors.items()
            if k.startswith(prefix)
        }
        source = kinds[facts["source_kind"]].restore(nested, facts["source"])
        return cls(network, facts["eta"], summary, source)
