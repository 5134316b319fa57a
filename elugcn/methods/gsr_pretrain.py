"""GSR's first stage: encoders of two views that learn which nodes are joined.

For a batch of edges (u, v), which the graph of the messages does not have:

    L = w · ½ Σ_a C(q_a(u), k_a(v)) + (1 − w) · ½ Σ_{a≠b} C(g_ab(q_a(u)), k_b(v))
    C(q, k) = −log( exp(q·k/τ) / (exp(q·k/τ) + Σ_negatives exp(q·k⁻/τ)) )

q_a is the encoder of view a, k_a a copy of it that follows slowly (momentum), g_ab a
decoder from one view to the other; all vectors have length 1.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.sparse import CSR
from elugcn.nn import GCN
from elugcn.nn.layers import Features
from elugcn.training.progress import Progress

# The publication's numbers that nobody has to choose.
TAU = 0.07
DECODER = 48
LAST_LR = 1e-4


@dataclass(frozen=True)
class Pretraining:
    """How the encoders are trained."""

    width: int
    steps: int
    batch: int
    negatives: int
    intra: float
    lr: float
    weight_decay: float
    momentum: float


class HeldOut:
    """The normalised graph without some of its edges, O(E) for every choice.

    Args:
        graph: n×n, a symmetric pattern without diagonal.
    """

    def __init__(self, graph: CSR) -> None:
        self.graph = graph
        self.pairs = (graph.row < graph.col).nonzero().squeeze(1)
        # Where the entry (j, i) stands, for each entry (i, j).
        self.turned = graph.pattern.perm
        self.degree = (graph.crow[1:] - graph.crow[:-1]).float()

    def without(self, entries: Tensor) -> CSR:
        """D^-½ A D^-½ of the edges that are left.

        Args:
            entries: Which are taken out, once each, whichever of its two directions.
        """
        graph = self.graph
        keep = torch.ones_like(graph.value)
        keep[entries] = 0.0
        keep[self.turned[entries]] = 0.0
        ends = torch.cat([graph.row[entries], graph.col[entries].long()])
        lost = torch.bincount(ends, minlength=graph.n_cols)
        left = self.degree - lost
        root = left.rsqrt().masked_fill_(left == 0, 0.0)
        keep.mul_(root.index_select(0, graph.row)).mul_(root.index_select(0, graph.col))
        return CSR(graph.crow, graph.col, keep, graph.n_cols, symmetric=True)

    @property
    def whole(self) -> CSR:
        """D^-½ A D^-½ of all edges."""
        return self.without(self.pairs[:0])


class Views(nn.Module):
    """An encoder for each view, and decoders between them."""

    def __init__(self, channels: tuple[int, int], width: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(
            GCN(d, width, width, num_layers=2, dropout=0.0) for d in channels
        )
        self.decoders = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, DECODER), nn.ELU(), nn.Linear(DECODER, width), nn.ELU()
            )
            for _ in channels
        )

    def embeddings(self, xs: tuple[Features, Features], adj: CSR) -> list[Tensor]:
        """Of all nodes, n×h for each view; O(nnz(X)·h + nnz(Â)·h)."""
        return [encode(x, adj)[0] for encode, x in zip(self.encoders, xs, strict=True)]

    def loss(
        self, queries: list[Tensor], keys: list[Tensor], others: list[Tensor],
        same: Tensor, intra: float,
    ) -> Tensor:  # fmt: skip
        """L of a batch, for queries, keys (B×h) and negatives (N×h) of both views."""
        total = queries[0].new_zeros(())
        for a, b in ((0, 1), (1, 0)):
            own = contrast(F.normalize(queries[a]), keys[a], others[a], same)
            told = F.normalize(self.decoders[a](queries[a]))
            other = contrast(told, keys[b], others[b], same)
            total = total + intra * own / 2 + (1.0 - intra) * other / 2
        return total


def contrast(query: Tensor, key: Tensor, others: Tensor, same: Tensor) -> Tensor:
    """C, the mean over a batch, O(B·N·h).

    Args:
        query: B×h, rows of length 1.
        key: B×h, what each query should find.
        others: Negatives of all queries, N×h.
        same: B×N, where a negative is the very node the query should find.
    """
    right = (query * key).sum(dim=1, keepdim=True)
    wrong = (query @ others.T).masked_fill(same, -torch.inf)
    logits = torch.cat([right, wrong], dim=1) / TAU
    return F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long))


@torch.no_grad()
def follow(copy: nn.Module, model: nn.Module, momentum: float) -> None:
    """Move the copy: θ' ← m θ' + (1 − m) θ."""
    for slow, fast in zip(copy.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1.0 - momentum)


def pretrain(
    xs: tuple[Features, Features],
    channels: tuple[int, int],
    graph: CSR,
    config: Pretraining,
    progress: Progress,
) -> Views:
    """Train the encoders, each step a pass of both views over the whole graph.

    Args:
        xs: Features of both views.
        channels: Their widths.
        graph: n×n, a symmetric pattern without diagonal.
        config: How.
        progress: Told of every step.

    Cost:
        O(steps · (nnz(X)·h + E·h + B·N·h)) time, O(E + B·N) memory.
    """
    views = Views(channels, config.width).to(graph.value.device)
    held = HeldOut(graph)
    if not held.pairs.numel():
        return views
    slow = deepcopy(views.encoders).eval().requires_grad_(False)
    optimizer = torch.optim.Adam(
        views.parameters(), config.lr, weight_decay=config.weight_decay, fused=True
    )
    with progress.stage("pre-training", config.steps) as advance:
        for step in range(config.steps):
            optimizer.param_groups[0]["lr"] = rate(step, config)
            optimizer.zero_grad(set_to_none=True)
            loss = _batch_loss(views, slow, xs, held, config)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            follow(slow, views.encoders, config.momentum)
            advance({"loss": float(loss.detach())})
    return views.eval()


def rate(step: int, config: Pretraining) -> float:
    """The learning rate falls to ``LAST_LR`` as the square of the way that is left."""
    last = min(LAST_LR, config.lr)
    return last + (config.lr - last) * (1.0 - step / config.steps) ** 2


def _batch_loss(
    views: Views,
    slow: nn.ModuleList,
    xs: tuple[Features, Features],
    held: HeldOut,
    config: Pretraining,
) -> Tensor:
    graph = held.graph
    device = graph.value.device
    # Of a small graph enough has to be left to carry messages.
    count = max(1, min(config.batch, held.pairs.numel() // 4))
    entries = held.pairs[torch.randperm(held.pairs.numel(), device=device)[:count]]
    forth = torch.rand(count, device=device) < 0.5
    directed = torch.where(forth, entries, held.turned[entries])
    u, v = graph.row[directed], graph.col[directed].long()
    # A node is negative as often as it is the end of an edge, as in a queue of keys.
    ends = torch.randint(graph.nnz, (config.negatives,), device=device)
    other = graph.col[ends].long()
    adj = held.without(entries)
    queries = [z[u] for z in views.embeddings(xs, adj)]
    with torch.no_grad():
        keys = [
            F.normalize(encode(x, adj)[0]) for encode, x in zip(slow, xs, strict=True)
        ]
    return views.loss(
        queries,
        [z[v] for z in keys],
        [z[other] for z in keys],
        v[:, None] == other,
        config.intra,
    )
