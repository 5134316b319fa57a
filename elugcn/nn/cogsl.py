"""CoGSL's networks: two views of a graph, re-weighted, and a fusion of both.

    view i        E = σ(V_i X W + b),   π_u· = softmax of wᵀ E_v over the v in row u
                  V' = V_i + μ π,       V'' = D^-½ (V' + V'ᵀ + I) D^-½
    fusion        V* = diag(β₁) V₁'' + diag(β₂) V₂''
    classifiers   three GCNs, one for each of V₁'', V₂'' and V*

β_u = softmax over the views of a (l log p₁ + (1 − l) log(p₁ − p₂)) for the two largest
class probabilities p₁ ≥ p₂ that the view's classifier gives node u: the surer view
counts for more. The published score is wᵀ [E_u, E_v]; the part of u is the same in a
whole row and cancels in its softmax, hence it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.edge_weights import row_softmax
from elugcn.core.pagerank import topk_pagerank
from elugcn.core.random import dropout
from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.nn.field import Operator
from elugcn.nn.layers import Features
from elugcn.nn.weighted import Edges, Propagation, WeightedGCN

# Below this gap between the two largest probabilities its logarithm would explode.
GAP = 1e-4


@dataclass(frozen=True, eq=False)
class View:
    """A view as it is given, V_i, and the places of the entries of V' + V'ᵀ.

    Attributes:
        given: V_i, whose entries are the candidates that the estimator re-weights.
        both: The pattern of V_i + V_iᵀ.
        here: For each entry (u, v) of ``both`` the place of (u, v) in V_i; nnz(V_i)
            where there is none.
        there: The same of (v, u).
    """

    given: CSR
    both: Edges
    here: Tensor
    there: Tensor

    @classmethod
    def of(cls, given: CSR) -> View:
        """Lay out V + Vᵀ, O(nnz log nnz)."""
        n, nnz = given.shape[0], given.nnz
        row, col = given.row, given.col.long()
        key, turned = row * n + col, col * n + row
        union = torch.unique(torch.cat([key, turned]))
        source, target = union % n, union // n
        # Ascending keys are in the order of the rows: no edge has to move.
        pattern = Edges.of_index(torch.stack([source, target]), n).pattern

        def places(wanted: Tensor) -> Tensor:
            at = torch.searchsorted(key, wanted).clamp_(max=max(0, nnz - 1))
            return torch.where(key[at] == wanted, at, nnz) if nnz else at

        return cls(given, Edges(pattern), places(union), places(source * n + target))

    def symmetric(self, value: Tensor, self_loops: bool = True) -> Propagation:
        """V'' for the entries of V', with gradients to them; O(nnz)."""
        value = F.pad(value, (0, 1))
        weight = value.index_select(0, self.here) + value.index_select(0, self.there)
        return Propagation(self.both, weight, self_loops)


# Of Â its layout alone: as part of a value it would keep its own key alive.
Layout = tuple[Edges, Tensor, Tensor]
_KEPT: WeakKeyDictionary[CSR, dict[tuple[float, int], tuple[Layout, View]]] = (
    WeakKeyDictionary()
)


def given_views(adj: CSR, restart: float, k: int) -> tuple[View, View]:
    """Â and its PageRank, k entries a row, normalised; kept as long as ``adj`` is."""
    kept = _KEPT.setdefault(adj, {})
    if (restart, k) not in kept:
        spread = topk_pagerank(adj, restart, k)
        index = torch.stack([spread.col.long(), spread.row])
        far = normalized_adjacency(index, adj.shape[0], spread.value, self_loops=False)
        near = View.of(adj)
        layout = near.both, near.here, near.there
        kept[restart, k] = layout, View.of(far.to(adj.col.device))
    layout, second = kept[restart, k]
    return View(adj, *layout), second


class Fused:
    """V* = Σ diag(β_i) V_i''."""

    def __init__(self, graphs: tuple[Propagation, Propagation], beta: Tensor) -> None:
        self.graphs = graphs
        self.beta = beta

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product, as the sum of both."""
        one, two = self.graphs
        return self.beta[:, :1] * (one @ z) + self.beta[:, 1:] * (two @ z)


def fusion_weights(logits: tuple[Tensor, Tensor], lam: float, power: float) -> Tensor:
    """β, n×2: how much each view counts for each node, O(n·c).

    Args:
        logits: Of each view's classifier, n×c.
        lam: l, the share of the largest probability; the rest is the gap's.
        power: a.
    """
    sure = []
    for z in logits:
        top = F.softmax(z, dim=1).topk(min(2, z.size(1)), dim=1).values
        gap = (top[:, 0] - top[:, -1]).clamp(min=GAP)
        sure.append(lam * top[:, 0].log() + (1 - lam) * gap.log())
    return F.softmax(power * torch.stack(sure, dim=1), dim=1)


class Estimator(nn.Module):
    """Re-weights the entries of one view.

    Args:
        in_channels: d.
        hidden_channels: Width of E.
        mu: μ, the weight of what is learned.
        dropout: Probability, on E.
        self_loops: V'' has the I of its equation.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        mu: float,
        dropout: float,
        self_loops: bool = True,
    ) -> None:
        super().__init__()
        self.mu = mu
        self.self_loops = self_loops
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(in_channels, hidden_channels))
        self.bias = nn.Parameter(torch.zeros(hidden_channels))
        self.head = nn.Linear(hidden_channels, 1, bias=False)
        nn.init.xavier_uniform_(self.weight)
        nn.init.xavier_uniform_(self.head.weight)

    def forward(self, x: Features, view: View) -> Propagation:
        """V'', O(nnz(X)·h + nnz(V)·h)."""
        given = view.given
        e = F.relu(given @ (x @ self.weight) + self.bias)
        score = self.head(dropout(e, self.dropout, self.training)).squeeze(1)
        share = row_softmax(given, score.index_select(0, given.col))
        return view.symmetric(given.value + self.mu * share, self.self_loops)


class CoGSL(nn.Module):
    """Two estimators and three classifiers.

    Args:
        in_channels: d.
        hidden_channels: Width of the classifiers.
        out_channels: c.
        dropout: Probability, on the inputs of the classifiers' layers.
        estimator_channels: Width of the estimators.
        estimator_dropout: Their dropout.
        mu: μ of both views.
        restart: Probability of a restart in the PageRank of the second view.
        k: Its entries a row.
        lam: l of the fusion.
        power: a of the fusion.
        self_loops: Views have the I of their equation.
        input_dropout: Of X in the classifiers, where it differs from ``dropout``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float,
        estimator_channels: int,
        estimator_dropout: float,
        mu: tuple[float, float],
        restart: float,
        k: int,
        lam: float,
        power: float,
        self_loops: bool = True,
        input_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.restart, self.k = restart, k
        self.lam, self.power = lam, power
        p = estimator_dropout
        self.estimators = nn.ModuleList(
            Estimator(in_channels, estimator_channels, m, p, self_loops) for m in mu
        )
        widths = in_channels, hidden_channels, out_channels
        self.classifiers = nn.ModuleList(
            WeightedGCN(*widths, dropout, input_dropout) for _ in range(3)
        )

    def views(self, x: Features, adj: CSR) -> tuple[Propagation, Propagation]:
        """V₁'' and V₂''."""
        given = given_views(adj, self.restart, self.k)
        one, two = (e(x, v) for e, v in zip(self.estimators, given, strict=True))
        return one, two

    def classify(
        self, x: Features, views: tuple[Propagation, Propagation]
    ) -> tuple[list[Tensor], Fused]:
        """Logits on V₁'', V₂'' and V*, and V*."""
        one, two = (self._classified(i, x, v) for i, v in enumerate(views))
        fused = Fused(views, fusion_weights((one, two), self.lam, self.power))
        return [one, two, self._classified(2, x, fused)], fused

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c on V*."""
        return self.classify(x, self.views(x, adj))[0][-1]

    def first_layer(self) -> list[nn.Parameter]:
        """What ``decay="first"`` decays: the first layers of the classifiers."""
        return [p for i in range(3) for p in self._classifier(i).first_layer()]

    def _classified(self, i: int, x: Features, graph: Operator) -> Tensor:
        return self._classifier(i).classify(x, graph)

    def _classifier(self, i: int) -> WeightedGCN:
        classifier = self.classifiers[i]
        assert isinstance(classifier, WeightedGCN)
        return classifier
