"""Edge lists in one form: sorted, distinct, without self-loops."""

from typing import Any

import numpy as np
import scipy.sparse as sp
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
    source, target = source[keep], target[keep]
    weights = None
    if weight is None:
        edges, one_way = _without_weights(source, target, n, directed)
    else:
        given = torch.from_numpy(np.stack([source, target]).astype(np.int64))
        weights = torch.from_numpy(weight[keep].astype(np.float32))
        edges, weights = coalesce(given, weights, n, reduce="max")
        one_way = edges.size(1)
        if not directed:
            edges, weights = to_undirected(edges, weights, n, reduce="max")
        if bool((weights == 1).all()):
            weights = None
    changes = {
        "self-loops dropped": int(loop.sum()),
        "edges of weight 0 dropped": int(zero.sum()),
        "repeated edges dropped (largest weight kept)": len(source) - one_way,
        "edges given in one direction were added in the other": edges.size(1) - one_way,
    }
    notes = [f"{what}: {count:,}" for what, count in changes.items() if count]
    return edges, weights, notes


def _without_weights(
    source: Array, target: Array, n: int, directed: bool
) -> tuple[Tensor, int]:
    """Distinct edges, sorted, and how many there are before directions are added.

    As the pattern of a matrix they take a quarter of the memory of a sorted list.
    """
    ones = np.ones(len(source), dtype=np.int8)
    a = sp.csr_array((ones, (source, target)), shape=(n, n))
    a.sum_duplicates()
    one_way = a.nnz
    if not directed:
        a.data[:] = 1  # sums of repeated edges may have wrapped around
        a = sp.csr_array(a + a.T.tocsr())
    row = np.repeat(np.arange(n, dtype=np.int64), np.diff(a.indptr))
    edges = np.stack([row, a.indices.astype(np.int64)])
    return torch.from_numpy(edges), one_way
