"""The ELU graph beside the original one, as mean entries of blocks of nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from elugcn.core.blocks import (
    class_blocks,
    group_means,
    group_sums,
    inside_share,
    sampled_inside_shares,
)
from elugcn.core.operators import ELUGraph, ExplicitGraph, LowRankGraph
from elugcn.fitting import Fitted
from elugcn.methods.base import GraphView

_BLOCKS = 48
# Nodes among which the signs of S* are looked at: 4,096² entries at most, in slices.
_SAMPLE = 4096
_FEW = 0.5


@dataclass(frozen=True)
class BlockMap:
    """Mean entry of each block, classes ascending, and the weight inside classes."""

    name: str
    means: Tensor
    inside: float | None


@dataclass(frozen=True)
class Blocks:
    """Both graphs over the same blocks of nodes.

    ``by_prediction``: too few labels are known, so predicted classes fill the gaps.
    ``chance`` is the share of pairs of nodes that have one class; ``dense`` whether
    every pair has an entry in S*.
    """

    maps: tuple[BlockMap, ...]
    block_class: tuple[int, ...]
    nodes: int
    by_prediction: bool
    chance: float
    dense: bool


def blocks_of(fitted: Fitted) -> Blocks | None:
    """Block means of Â and S*, exact; None where the run learned no graph.

    O(E + n·c) time; without the graph of the run only S* is shown.
    """
    learned = fitted.prediction.graph
    if learned is None:
        return None
    learned = learned.to(torch.device("cpu"))
    data, labels = fitted.data, fitted.data.y
    by_prediction = float((labels >= 0).double().mean()) < _FEW
    if by_prediction:
        guessed = fitted.prediction.logits.argmax(dim=1)
        labels = torch.where(labels >= 0, labels, guessed)
    block, of_class = class_blocks(labels, _BLOCKS)
    count, classes = of_class.numel(), int(labels.max()) + 1
    maps = []
    if "edge_index" in data:
        # Without self-loops: they would outshine every edge and join nothing.
        adj = GraphView(self_loops=False).adjacency(data)
        inside = inside_share(group_sums(adj, labels, classes))
        maps.append(
            BlockMap("Original graph", group_means(adj, block, count), _finite(inside))
        )
    inside = _inside_positive(learned, labels, classes)
    maps.append(
        BlockMap("ELU graph", group_means(learned, block, count), _finite(inside))
    )
    size = torch.bincount(labels[labels >= 0]).double()
    return Blocks(
        maps=tuple(maps),
        block_class=tuple(of_class.tolist()),
        nodes=int(size.sum()),
        by_prediction=by_prediction,
        chance=float((size**2).sum() / size.sum() ** 2),
        dense=isinstance(learned, LowRankGraph),
    )


def _inside_positive(graph: ELUGraph, labels: Tensor, classes: int) -> float:
    """Share of Σ max(S_ij, 0) inside classes, exact up to ``_SAMPLE`` nodes."""
    if isinstance(graph, ExplicitGraph):
        positive = replace(graph.csr, value=graph.csr.value.clamp(min=0.0))
        return inside_share(group_sums(positive, labels, classes))
    assert isinstance(graph, LowRankGraph)
    known = (labels >= 0).nonzero().squeeze(1)
    m = min(_SAMPLE, known.numel())
    chosen = known[torch.arange(m) * known.numel() // max(1, m)]
    part = LowRankGraph(graph.left[chosen], graph.right[chosen])
    return sampled_inside_shares(part, labels[chosen], m)[0]


def _finite(value: float) -> float | None:
    return value if value == value else None
