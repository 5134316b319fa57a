"""The part of a graph that the output of a few nodes depends on.

Validation looks at some hundred nodes after every epoch. A GCN of L layers needs the
nodes within L steps of them, one step fewer in every layer, and their rows of S*:

    H̄[V] = Â[V,N₁] σ(Â[N₁,N₀] X[N₀] W₁) W₂,    H̃[V] = Â[V,N₁] σ(L[N₁] (Rᵀ X) W₁) W₂

where N₁ are the neighbours of V, N₀ those of N₁, and Rᵀ X, c×d, is computed once. So is
Â[N₁] X where it has fewer entries than X[N₀]. The values are those of the whole graph;
only rows that nobody reads are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elugcn.core.operators import LowRankGraph
from elugcn.core.propagation import MixedOrder
from elugcn.core.sparse import CSR, SPARSE_DENSITY, rows_of

Features = CSR | Tensor
# Above this share of the entries of Â a field saves too little for its copies.
WORTH = 0.75
# Columns of a matrix with a row for every node that are held at once.
BLOCK = 64
# Â[N₁] X is dense where X is: it has to save some rows of X, and more entries than this
# (256 MB) are not held.
FEWER = 0.75
HELD = 2**26


class Operator(Protocol):
    """Anything that multiplies a dense matrix: Â, S*, in factors or explicit."""

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with a matrix of as many rows as there are nodes."""


@dataclass(frozen=True)
class Layer:
    """How one layer propagates.

    Attributes:
        operator: Its rows are the nodes that the layer answers for.
        rows: Where those nodes are among the layer's input; None: they are all of it.
    """

    operator: Operator
    rows: Tensor | None = None

    def own(self, z: Tensor) -> Tensor:
        """The input's rows of the nodes that the layer answers for."""
        return z if self.rows is None else z[self.rows]


@dataclass(frozen=True)
class Field:
    """What ``GCN.evaluate`` needs to answer for some nodes.

    Attributes:
        x: The rows of X that are read.
        layers: Of every layer that propagates.
        at: Where the nodes are in the output of each hidden layer.
        elu_graph: The rows of S* that the first layer answers for, or None.
        elu_x: What ``elu_graph`` multiplies, before W₁; None: ``x``.
    """

    x: Features
    layers: Sequence[Layer]
    at: Sequence[Tensor]
    elu_graph: Operator | None = None
    elu_x: Tensor | None = None


class Shape(Protocol):
    """What a field has to know of a network."""

    weights: Any
    order: int
    residual: bool
    jump: str
    directions: int
    input_dropout: float


@dataclass(frozen=True)
class _Picked:
    """Some rows of a product that can't be computed for them alone."""

    operator: Operator
    rows: Tensor

    def __matmul__(self, z: Tensor) -> Tensor:
        return (self.operator @ z)[self.rows]


class Identity:
    """No propagation: the features have been propagated before."""

    def __matmul__(self, z: Tensor) -> Tensor:
        return z


@torch.no_grad()
def field_of(
    model: Shape, x: Features, adj: CSR, graph: Operator | None, nodes: Tensor
) -> Field | None:
    """The field of some nodes, or None where the whole graph is as cheap.

    Args:
        model: The network that will be evaluated.
        x: X.
        adj: Â.
        graph: S*, for a second view; explicit graphs have no field.
        nodes: Indices, ascending.
    """
    if not nodes.numel() or not (graph is None or isinstance(graph, LowRankGraph)):
        return None
    if model.order:
        return _mixed_field(model, x, adj, graph, nodes)
    return _stepwise_field(model, x, adj, graph, nodes)


def _stepwise_field(
    model: Shape, x: Features, adj: CSR, graph: LowRankGraph | None, nodes: Tensor
) -> Field | None:
    n, matrix = adj.shape[0], adj.to_scipy()
    wanted = asked = nodes.numpy(force=True)
    layers: list[Layer] = []
    at: list[Tensor] = []
    answered, whole, entries = wanted, False, 0
    for i in reversed(range(len(model.weights))):
        rows = matrix[wanted]
        entries += rows.nnz
        needed = _distinct(rows.indices % n, n)
        if model.residual or model.jump in ("cat", "max"):
            needed = np.union1d(needed, wanted)
        # X W₁ of all nodes where the next training step uses it too, or where most of
        # a dense X is read: a second one would not save what it holds.
        most = 2 * len(needed) > n and not isinstance(x, CSR)
        whole = i == 0 and (not model.input_dropout or most)
        if whole:
            needed = np.arange(n)
        else:
            parts = [needed + n * j for j in range(model.directions)]
            rows = rows[:, np.concatenate(parts)]
        own = _position(wanted, needed, nodes) if model.residual else None
        layers.insert(0, Layer(CSR.from_scipy(rows).to(nodes.device), own))
        at.insert(0, _position(asked, wanted, nodes))
        answered, wanted = wanted, needed
    if entries > WORTH * adj.nnz * len(model.weights):
        return None
    first = torch.from_numpy(answered).to(nodes.device)
    if model.directions == 1 and not model.residual and model.input_dropout:
        known = _propagated(matrix[answered], x, wanted)
        if known is not None:
            layers[0] = Layer(Identity())
            return _apart(known.to(nodes.device), layers, at, x, graph, first)
    if whole:
        return Field(x, layers, at, _some_rows(graph, first))
    own_x = rows_of(x, torch.from_numpy(wanted).to(nodes.device))
    return _apart(own_x, layers, at, x, graph, first)


def _propagated(rows: Any, x: Features, read: NDArray[np.int64]) -> Features | None:
    """Â[N₁] X, or None where that would not be cheaper than what it replaces.

    Args:
        rows: Â[N₁], |N₁|×n, of scipy.
        x: X, n×d.
        read: N₀, or all nodes where X W₁ is computed for all.
    """
    if not isinstance(x, CSR):
        entries = rows.shape[0] * x.size(1)
        if entries > HELD or rows.shape[0] > FEWER * len(read):
            return None
        return CSR.from_scipy(rows).to(x.device) @ x
    words = x.to_scipy()
    replaced = words[read].nnz + rows.nnz
    # The most it can have; were it far more, it would only be thrown away.
    if np.diff(words.indptr)[rows.indices].sum() > 4 * replaced:
        return None
    product = rows @ words
    size = product.shape[0] * product.shape[1]
    # Neighbours' words together may no longer be sparse.
    dense = product.nnz > SPARSE_DENSITY * size and size <= HELD
    if (SPARSE_DENSITY * size if dense else product.nnz) >= replaced:
        return None
    return torch.from_numpy(product.toarray()) if dense else CSR.from_scipy(product)


def _distinct(nodes: NDArray[Any], n: int) -> NDArray[np.int64]:
    """The nodes without repetitions, ascending: O(n), a tenth of ``np.unique``."""
    found = np.zeros(n, dtype=bool)
    found[nodes] = True
    return np.flatnonzero(found)


def _position(
    some: NDArray[np.int64], among: NDArray[np.int64], like: Tensor
) -> Tensor:
    """Where the one are in the other, both ascending, on the device of ``like``."""
    return torch.from_numpy(np.searchsorted(among, some)).to(like.device)


def _mixed_field(
    model: Shape, x: Features, adj: CSR, graph: LowRankGraph | None, nodes: Tensor
) -> Field:
    """Of a network that propagates in its first layer only, by several orders."""
    mixed = MixedOrder(adj, model.order)
    at = [torch.arange(nodes.numel(), device=nodes.device)] * len(model.weights)
    stored = x.nnz if isinstance(x, CSR) else x.numel()
    dense = nodes.numel() * x.shape[1]
    if not model.residual and dense < model.order * adj.nnz + stored:
        # (Π X)[V] W₁ costs less than the steps of Π, in every epoch.
        known = _mixed_rows(mixed, x, nodes)
        return _apart(known, [Layer(Identity())], at, x, graph, nodes)
    layers = [Layer(_Picked(mixed, nodes), nodes)]
    return Field(x, layers, at, _some_rows(graph, nodes))


def _mixed_rows(mixed: MixedOrder, x: Features, nodes: Tensor) -> Tensor:
    """(Π X)[V], dense."""
    if not isinstance(x, CSR) and x.size(1) <= nodes.numel():
        return mixed.multiply(mixed.adj, x)[nodes]
    # Π[V] X, for some nodes at a time: n×BLOCK entries are held, as in training.
    parts = []
    for chosen in torch.split(nodes, BLOCK):
        one_hot = torch.zeros(mixed.adj.shape[0], chosen.numel(), device=nodes.device)
        one_hot[chosen, torch.arange(chosen.numel(), device=nodes.device)] = 1.0
        parts.append(_turned(x, mixed.multiply(mixed.adj.T, one_hot)))
    return torch.cat(parts)


def _apart(
    own: Features,
    layers: Sequence[Layer],
    at: Sequence[Tensor],
    x: Features,
    graph: LowRankGraph | None,
    first: Tensor,
) -> Field:
    """A field whose features are not those of all nodes: S* gets Rᵀ X of its own."""
    if graph is None:
        return Field(own, layers, at)
    return Field(own, layers, at, graph.left[first], _turned(x, graph.right))


def _some_rows(graph: LowRankGraph | None, rows: Tensor) -> LowRankGraph | None:
    return None if graph is None else LowRankGraph(graph.left[rows], graph.right)


def _turned(x: Features, z: Tensor) -> Tensor:
    """Zᵀ X as a dense matrix."""
    return (x.T @ z).T.contiguous() if isinstance(x, CSR) else z.T @ x
