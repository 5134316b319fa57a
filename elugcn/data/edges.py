"""Edge lists in one form: sorted, distinct, without self-loops."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.utils import coalesce, to_undirected

Array = NDArray[Any]


def clean_edges(
    source: Array, target: Array, weight: Array | None, n: int, *, directed: bool
) -> tuple[Tensor, Tensor | None, list[str]]:
    """Bring edges into the form that every method expects; O(E log E).

    Self-loops, edges of weight 0 and repeats are dropped. Undirected edges are stored
    in both directions, with the larger weight if the two differ. The result is sorted
    by source, then target. Weights are finite and >= 0.

    Returns:
        ``edge_index`` [2, E]; ``edge_weight`` [E], or None if all are 1; and one
        sentence per kind of change.
    """
    loop = source == target
    zero = np.zeros_like(loop) if weight is None else ~loop & (weight == 0)
    keep = ~loop & ~zero
    given = torch.from_numpy(np.stack([source[keep], target[keep]]).astype(np.int64))
    weights = None
    if weight is not None:
        weights = torch.from_numpy(weight[keep].astype(np.float32))
    edges, weights = coalesce(given, weights, n, reduce="max")
    changes = {
        "self-loops dropped": int(loop.sum()),
        "edges of weight 0 dropped": int(zero.sum()),
        "repeated edges dropped (largest weight kept)": given.size(1) - edges.size(1),
    }
    if not directed:
        one_way = edges.size(1)
        edges, weights = to_undirected(edges, weights, n, reduce="max")
        text = "edges given in one direction were added in the other"
        changes[text] = edges.size(1) - one_way
    if weights is not None and bool((weights == 1).all()):
        weights = None
    notes = [f"{what}: {count:,}" for what, count in changes.items() if count]
    return edges, weights, notes
