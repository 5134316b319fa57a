"""Edge lists in one form: sorted, distinct, without self-loops."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


def clean_edges(
    source: Array,
    target: Array,
    weight: Array | None,
    n: int,
    *,
    directed: bool,
) -> tuple[Tensor, Tensor | None, list[str]]:
    """Bring edges into the form that every method expects; O(E log E).

    Self-loops, edges of weight 0 and repeats are dropped. Undirected edges are stored
    in both directions, with the larger weight if the two differ. The result is sorted
    by source, then target.

    Args:
        source: Source of each edge, in 0..n-1.
        target: Target of each edge, in 0..n-1.
        weight: Finite weight >= 0 of each edge, or None if all are 1.
        n: Number of nodes.
        directed: Keep the direction instead of storing both.

    Returns:
        ``edge_index`` [2, E]; ``edge_weight`` [E], or None if all are 1; and one
        sentence per kind of change.
    """
    loop = source == target
    zero = np.zeros_like(loop) if weight is None else ~loop & (weight == 0)
    keep = ~loop & ~zero
    given = source[keep].astype(np.int64) * n + target[keep]
    if weight is not None:
        weight = weight[keep].astype(np.float32)
    key, weight = _largest_per_key(given, weight)
    changes = {
        "self-loops dropped": int(loop.sum()),
        "edges of weight 0 dropped": int(zero.sum()),
        "repeated edges dropped (largest weight kept)": len(given) - len(key),
    }
    if not directed:
        one_way = len(key)
        back = key % n * n + key // n
        weight = None if weight is None else np.concatenate([weight, weight])
        key, weight = _largest_per_key(np.concatenate([key, back]), weight)
        text = "edges given in one direction were added in the other"
        changes[text] = len(key) - one_way
    notes = [f"{what}: {count:,}" for what, count in changes.items() if count]
    edge_index = torch.from_numpy(np.stack(np.divmod(key, n)))
    if weight is None or bool((weight == 1).all()):
        return edge_index, None, notes
    return edge_index, torch.from_numpy(weight), notes


def _largest_per_key(key: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """Sort the keys and keep each once, with its largest weight."""
    if weight is None:
        return sorted_distinct(key), None
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    # reduceat needs at least one segment.
    return key[starts], np.maximum.reduceat(weight, starts) if len(key) else weight


def sorted_distinct(key: Array) -> Array:
    """Each key once, in order; keys are >= 0."""
    # Sorting is several times faster than np.unique, which hashes.
    key = np.sort(key)
    distinct: Array = key[np.diff(key, prepend=-1) != 0]
    return distinct
