"""Graphs of ever more distant neighbours, each reaching twice as far as the last.

    Â₁ = Â,    Â_{i+1} = D_r^-½ P D_c^-½ where P has a one wherever Â_i Â_i is not zero

With self-loops Â_i joins nodes that are up to 2^{i−1} hops apart. Such graphs fill up
fast: what would have too many entries is refused while it grows.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.errors import InputError

# Of one graph: 2²⁴ entries take 0.2 GB as CSR and a tenth of a second a product.
MAX_ENTRIES = 2**24
# Rows squared at once.
_ROWS = 512

_KEPT: WeakKeyDictionary[CSR, list[CSR]] = WeakKeyDictionary()


def wider_graphs(adj: CSR, order: int) -> list[CSR]:
    """Â₁ … Â_order, built once and kept as long as ``adj`` is.

    Args:
        adj: Â, n×n.
        order: How many graphs; 0 gives none.
    """
    if order < 1:
        return []
    # Not Â itself, which as a value would keep its own key alive.
    kept = _KEPT.setdefault(adj, [])
    while len(kept) < order - 1:
        kept.append(_squared(kept[-1] if kept else adj, len(kept) + 2))
    return [adj, *kept[: order - 1]]


def _squared(adj: CSR, order: int) -> CSR:
    a = adj.to_scipy().astype(np.float32)
    a.data[:] = 1.0
    rows, columns, total = [], [], 0
    for start in range(0, a.shape[0], _ROWS):
        part = sp.coo_array(a[start : start + _ROWS] @ a)
        total += part.nnz
        if total > MAX_ENTRIES:
            raise InputError(
                f"rb_order={order}: joining neighbours of neighbours gives more than "
                f"{MAX_ENTRIES:,} edges on this graph; use rb_order={order - 1}"
            )
        rows.append(part.coords[0].astype(np.int64) + start)
        columns.append(part.coords[1].astype(np.int64))
    edges = np.stack([np.concatenate(columns), np.concatenate(rows)])
    wider = normalized_adjacency(
        torch.from_numpy(edges), adj.shape[0], self_loops=False
    )
    return wider.to(adj.value.device)
