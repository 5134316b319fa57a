"""How much two graphs tell about each other: CoGSL's estimate of mutual information.

Of each graph, a layer of GCN and a shared projection give every node a vector. The
better the two vectors of a node can be told from those of other nodes, the more one
graph says about the other (InfoNCE). A sample of nodes stands for all: only their rows
of the graphs are multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import Weighted
from elugcn.core.sparse import CSR, features
from elugcn.nn.layers import Features
from elugcn.nn.losses import info_nce
from elugcn.nn.weighted import Propagation


@dataclass(frozen=True, eq=False)
class Anchors:
    """Some rows of V'', for what is computed of a sample of nodes only.

    Attributes:
        nodes: The rows.
        part: The pattern of these rows.
        places: Where their entries stand in V''.
    """

    nodes: Tensor
    part: CSR
    places: Tensor

    @classmethod
    def of(cls, graph: Propagation, nodes: Tensor) -> Anchors:
        """The rows ``nodes`` of a view, O(their entries)."""
        pattern = graph.weights.adj
        start = pattern.crow.long()
        count = (start[1:] - start[:-1])[nodes]
        crow = F.pad(count.cumsum(0), (1, 0))
        row = torch.repeat_interleave(count)
        places = torch.arange(row.numel(), device=row.device) - crow[row]
        places += start[nodes][row]
        part = CSR(
            crow.int(), pattern.col[places], pattern.value[places], pattern.n_cols
        )
        return cls(nodes, part, places)

    def rows(self, graph: Propagation, z: Tensor) -> Tensor:
        """These rows of V'' z, with gradients to both."""
        z = z * graph.scale
        value = graph.weights.value.index_select(0, self.places)
        out = Weighted(self.part, value) @ z
        if graph.self_loops:
            out = out + z.index_select(0, self.nodes)
        return out * graph.scale.index_select(0, self.nodes)

    @torch.no_grad()
    def matrix(self, graph: Propagation) -> sp.csr_array:
        """These rows of V'', without gradients."""
        scale = graph.scale.squeeze(1)
        value = graph.weights.value.index_select(0, self.places)
        value = value * scale.index_select(0, self.part.col)
        value = value * scale.index_select(0, self.nodes)[self.part.row]
        rows = sp.csr_array(self.part.with_values(value).to_scipy())
        if not graph.self_loops:
            return rows
        loops = scale.square().index_select(0, self.nodes).numpy(force=True)
        at = (range(self.nodes.numel()), self.nodes.numpy(force=True))
        return sp.csr_array(rows + sp.csr_array((loops, at), shape=self.part.shape))


class MutualInformation(nn.Module):
    """The three encoders, one a graph, and their projection.

    Args:
        in_channels: d.
        hidden_channels: Width h of the vectors.
        tau: Temperature of InfoNCE.
    """

    def __init__(self, in_channels: int, hidden_channels: int, tau: float) -> None:
        super().__init__()
        h = hidden_channels
        self.tau = tau
        self.weights = nn.ParameterList(torch.empty(in_channels, h) for _ in range(3))
        self.biases = nn.ParameterList(torch.zeros(h) for _ in range(3))
        self.slopes = nn.ModuleList(nn.PReLU() for _ in range(3))
        self.project = nn.Sequential(nn.Linear(h, h), nn.ELU(), nn.Linear(h, h))
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)

    def hidden(self, x: Features) -> list[Tensor]:
        """X W of each encoder, n×h, without gradients: fixed while graphs learn."""
        with torch.no_grad():
            return [x @ w for w in self.weights]

    def of_graphs(
        self,
        hidden: Sequence[Tensor],
        views: Sequence[Propagation],
        beta: Tensor,
        anchors: Sequence[Anchors],
    ) -> Tensor:
        """The loss with gradients to the graphs.

        Args:
            hidden: X W of each encoder.
            views: V₁'' and V₂''.
            beta: β of all nodes, n×2.
            anchors: The sample, in each view.
        """
        each = [a.rows(v, z) for a, v, z in zip(anchors, views, hidden, strict=False)]
        fused = [a.rows(v, hidden[2]) for a, v in zip(anchors, views, strict=True)]
        share = beta.index_select(0, anchors[0].nodes)
        each.append(share[:, :1] * fused[0] + share[:, 1:] * fused[1])
        return self._loss(each)

    def of_features(self, gathered: Sequence[Features]) -> Tensor:
        """The loss with gradients to the encoders, from V X of each graph (m×d)."""
        pairs = zip(gathered, self.weights, strict=True)
        return self._loss([x @ w for x, w in pairs])

    def _loss(self, rows: Sequence[Tensor]) -> Tensor:
        """0.3 l(V₁, V₂) + 0.35 (l(V*, V₁) + l(V*, V₂)), O(m²·h)."""
        parts = zip(rows, self.biases, self.slopes, strict=True)
        one, two, both = (self.project(slope(z + b)) for z, b, slope in parts)
        fused = info_nce(both, one, self.tau) + info_nce(both, two, self.tau)
        return 0.3 * info_nce(one, two, self.tau) + 0.35 * fused


def gathered_features(
    x: Features, views: Sequence[Propagation], beta: Tensor, anchors: Sequence[Anchors]
) -> list[Features]:
    """V X of the sampled nodes for V₁'', V₂'' and V*, m×d, without gradients."""
    rows = [a.matrix(v) for a, v in zip(anchors, views, strict=True)]
    share = beta.index_select(0, anchors[0].nodes).numpy(force=True)
    rows.append(share[:, :1] * rows[0] + share[:, 1:] * rows[1])
    if isinstance(x, CSR):
        columns, device = x.to_scipy(), x.value.device
        dense = (CSR.from_scipy(r @ columns).to_dense() for r in rows)
        return [features(v).to(device) for v in dense]
    return [CSR.from_scipy(r).to(x.device) @ x for r in rows]
