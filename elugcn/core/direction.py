"""Which edges a node listens to, where edges have a direction.

    in     row i gathers from the nodes that point to i (as PyG does)
    out    row i gathers from the nodes that i points to
    both   the direction is forgotten
    apart  [Â_in, Â_out], n×2n: both, each with weights of its own

On a graph without direction the first three are the same matrix.
"""

from __future__ import annotations

from typing import Literal

import scipy.sparse as sp
from torch import Tensor

from elugcn.core.sparse import CSR, normalized_adjacency
from elugcn.data.edges import clean_edges

LabelGraph = Literal["edges", "coupled"]


def directed_adjacency(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    self_loops: bool = True,
    direction: str = "given",
) -> CSR:
    """Â as one direction sees it, O(E log E); n×2n for ``apart``, else n×n.

    ``given`` takes the edges as they are stored, which is ``in``.
    """

    def normalized(edges: Tensor, weight: Tensor | None) -> CSR:
        return normalized_adjacency(edges, num_nodes, weight, self_loops)

    if direction == "both":
        edges, weight = mirrored(edge_index, edge_weight, num_nodes)
        return normalized(edges, weight)
    if direction == "out":
        return normalized(edge_index.flip(0), edge_weight)
    into = normalized(edge_index, edge_weight)
    if direction in ("given", "in"):
        return into
    out_of = normalized(edge_index.flip(0), edge_weight)
    return CSR.from_scipy(sp.hstack([into.to_scipy(), out_of.to_scipy()]))


def mirrored(
    edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """The edges in both directions, with the larger weight if the two differ."""
    source, target = edge_index.numpy(force=True)
    weight = None if edge_weight is None else edge_weight.numpy(force=True)
    edges, weights, _ = clean_edges(source, target, weight, num_nodes, directed=False)
    return edges, weights


def label_operator(spread: CSR, graph: str) -> CSR | Coupled:
    """What labels travel by: the edges, or shared neighbours (``coupled``)."""
    return Coupled(spread) if graph == "coupled" else spread


class Coupled:
    """Â Âᵀ as an operator: two sparse products, O(nnz·k).

    Two nodes are coupled when they point to the same nodes. Where edges join unlike
    nodes (pages that link to other kinds of pages), nodes that point to the same
    places are alike, and labels travel better along this graph than along edges.
    """

    def __init__(self, adj: CSR) -> None:
        self.adj = adj

    def __matmul__(self, z: Tensor) -> Tensor:
        return self.adj @ (self.adj.T @ z)
