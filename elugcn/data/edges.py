"""Lists of edges brought into the one form the package works with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class EdgeReport:
    """What cleaning a list of edges dropped or added.

    Attributes:
        self_loops: Edges from a node to itself, dropped.
        zero_weights: Edges of weight 0, dropped.
        repeats: Exact repeats, dropped; the largest weight stays.
        one_way: Edges that were there in one direction and got the other.
        mutual: Edges that were there in both directions (undirected only).
    """

    self_loops: int
    zero_weights: int
    repeats: int
    one_way: int
    mutual: int

    def dropped(self) -> list[str]:
        """One sentence for each kind of edge that was dropped."""
        return [
            text.format(count)
            for count, text in (
                (self.self_loops, "{:,} self-loops dropped"),
                (self.zero_weights, "{:,} edges of weight 0 dropped"),
                (self.repeats, "{:,} repeated edges dropped (largest weight kept)"),
            )
            if count
        ]

    def mirrored(self) -> list[str]:
        """A sentence when edges were given in one direction only."""
        if not self.one_way:
            return []
        return [
            f"edges given in one direction only were mirrored: {self.one_way:,} edges"
        ]


def clean_edges(
    source: Array,
    target: Array,
    weight: Array | None,
    n: int,
    *,
    directed: bool,
) -> tuple[Tensor, Tensor | None, EdgeReport]:
    """Bring edges into the one form the package works with.

    Self-loops, edges of weight 0 and repeats go; undirected edges are held in
    both directions, with the larger weight if the two differ; the result is
    sorted by source, then target.

    Args:
        source: Source of each edge, in 0..n-1.
        target: Target of each edge, in 0..n-1.
        weight: Finite weight >= 0 of each edge, or None for 1 each.
        n: Number of nodes.
        directed: Keep the direction instead of mirroring.

    Returns:
        ``edge_index`` [2, E], ``edge_weight`` [E] or None when all are 1, and
        what was changed.
    """
    source = source.astype(np.int64, copy=False)
    target = target.astype(np.int64, copy=False)
    if weight is not None:
        weight = weight.astype(np.float32, copy=False)
    keep = source != target
    self_loops = len(keep) - int(keep.sum())
    zero_weights = 0
    if weight is not None:
        positive = weight > 0
        zero_weights = int((keep & ~positive).sum())
        keep &= positive
        weight = weight[keep]
    key = source[keep] * n + target[keep]
    given = len(key)
    key, weight = _largest_per_key(key, weight)
    distinct = len(key)
    if not directed:
        key, weight = _mirror(key, weight, n)
    report = EdgeReport(
        self_loops=self_loops,
        zero_weights=zero_weights,
        repeats=given - distinct,
        one_way=0 if directed else len(key) - distinct,
        mutual=0 if directed else distinct - len(key) // 2,
    )
    edge_index = edge_tensor(key, n)
    if weight is None or bool((weight == 1).all()):
        return edge_index, None, report
    return edge_index, torch.from_numpy(weight), report


def _mirror(key: Array, weight: Array | None, n: int) -> tuple[Array, Array | None]:
    """Add the other direction of each edge to sorted, distinct edges."""
    source, target = np.divmod(key, n)
    back = target * n + source
    if weight is None:
        return _largest_per_key(np.concatenate([key, back]), None)
    order = np.argsort(back)
    if bool((back[order] == key).all()) and bool((weight[order] == weight).all()):
        return key, weight
    return _largest_per_key(
        np.concatenate([key, back]), np.concatenate([weight, weight])
    )


def _largest_per_key(key: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """Sort the keys and keep each once, with its largest weight."""
    if weight is None:
        return sorted_distinct(key), None
    if bool((key[1:] > key[:-1]).all()):
        return key, weight
    order = np.argsort(key)
    key, weight = key[order], weight[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    return key[starts], np.maximum.reduceat(weight, starts)


def sorted_distinct(key: Array) -> Array:
    """Each key once, in order; keys are >= 0."""
    if bool((key[1:] > key[:-1]).all()):
        return key
    # Sorting is several times quicker than np.unique, which hashes.
    key = np.sort(key)
    distinct: Array = key[np.diff(key, prepend=-1) != 0]
    return distinct


def edge_tensor(key: Array, n: int) -> Tensor:
    """``edge_index`` [2, E] of edges given as source * n + target."""
    return torch.from_numpy(np.stack(np.divmod(key, n)))


def layout_notes(edge_index: Tensor, n: int, *, directed: bool) -> list[str]:
    """Sentences on clean edges: whether they have a direction, whom they miss."""
    notes = []
    if directed:
        notes.append(f"edges keep their direction: {edge_index.shape[1]:,} edges")
    if edge_index.shape[1] and (isolated := _count_isolated(edge_index, n)):
        notes.append(f"{isolated:,} isolated nodes")
    return notes


def _count_isolated(edge_index: Tensor, n: int) -> int:
    alone = torch.ones(n, dtype=torch.bool)
    alone[edge_index[0]] = False
    alone[edge_index[1]] = False
    return int(alone.sum())
