"""A graph with the least likely of its edges taken out and the likeliest put in.

How alike two nodes are is a weighted sum of cosines, one a view, each scaled to [0, 1]:

    s_ij = Σ_view w (cos_ij − min cos) / (1 − min cos)

which up to a constant is the inner product of one long vector a node. An edge is a pair
of nodes here: its two directions come and go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.similarity import least_similarity, top_pairs
from elugcn.core.sparse import CSR


def undirected(graph: CSR) -> CSR:
    """A one for every pair of different nodes joined in either direction, O(E)."""
    given = graph.to_scipy().astype(np.float32)
    given.data[:] = 1.0
    a = sp.csr_array(given + given.T)
    a.data[:] = 1.0
    a.setdiag(0.0)
    a.eliminate_zeros()
    return CSR.from_scipy(a, symmetric=True).to(graph.value.device)


def joint_embedding(views: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Vectors e_i with e_i · e_j = s_ij plus a constant, n×(sum of widths).

    Args:
        views: Embeddings of the nodes, n×h each.
        weights: w of each view, not negative; views without weight are left out.

    Cost:
        O(n²·h / 2) for the smallest cosine of a view, where two views count.
    """
    counted = [(F.normalize(z), w) for z, w in zip(views, weights, strict=True) if w]
    if len(counted) == 1:
        return counted[0][0]
    scaled = []
    for z, weight in counted:
        span = max(1.0 - least_similarity(z), torch.finfo(z.dtype).eps)
        scaled.append(z * (weight / span) ** 0.5)
    return torch.cat(scaled, dim=1)


@dataclass(frozen=True)
class Refined:
    """The edges of a refined graph, sources over targets, and the pairs that changed.

    Attributes:
        edge_index: 2×E.
        added: Pairs that are new, 2×a.
        removed: Pairs that are gone, 2×r.
    """

    edge_index: Tensor
    added: Tensor
    removed: Tensor


@torch.no_grad()
def refine(graph: CSR, embedding: Tensor, add: float, remove: float) -> Refined:
    """Take out the pairs least alike, put in those most alike that are not joined.

    Args:
        graph: n×n; the diagonal and the values do not count.
        embedding: n×h, whose inner products say how alike nodes are.
        add: Pairs put in, as a share of the pairs joined.
        remove: Pairs taken out, as a share of the pairs joined, at most 1.

    Cost:
        O(E·h + n²·h / 2) time in blocks, O(E) memory.
    """
    n = graph.shape[0]
    joined = undirected(graph)
    once = joined.row < joined.col
    i, j = joined.row[once], joined.col[once].long()
    row, column = graph.row, graph.col.long()
    kept = row != column
    gone = torch.empty(2, 0, dtype=torch.long, device=row.device)
    count = round(remove * i.numel())
    if count:
        alike = (embedding[i] * embedding[j]).sum(dim=1)
        out = alike.topk(count, largest=False).indices.sort().values
        gone = torch.stack([i[out], j[out]])
        key = torch.minimum(row, column) * n + torch.maximum(row, column)
        kept &= ~torch.isin(key, gone[0] * n + gone[1])
    new = top_pairs(embedding, round(add * i.numel()), joined)
    edges = torch.cat([torch.stack([column, row])[:, kept], new, new.flip(0)], dim=1)
    return Refined(edges, new, gone)
