"""What networks compute on: features, Â, S*, and several views of hidden layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elugcn.engine.sparse import CSR, Features, rows_of

# Share of the nodes above which a layer reads all: a choice would save too little. It
# is lower for a dense X, of which the choice is a copy.
_MOST, _MOST_DENSE = 0.75, 0.5


@dataclass(frozen=True, eq=False)
class LowRank:
    """The n×m matrix L Rᵀ in factors: n·c + m·c numbers instead of n·m."""

    left: Tensor  # L, n×c
    right: Tensor  # R, m×c

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.left.size(0), self.right.size(0)

    @property
    def T(self) -> LowRank:
        """The transpose."""
        return LowRank(self.right, self.left)

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an m×k matrix, O((n + m)·c·k)."""
        return self.left @ (self.right.T @ z)

    def to(self, device: torch.device | str) -> LowRank:
        """The factors on another device."""
        return LowRank(self.left.to(device), self.right.to(device))

    def to_dense(self) -> Tensor:
        """All n·m entries."""
        return self.left @ self.right.T


@dataclass(frozen=True, eq=False)
class MeanPropagation:
    """Π = (I + Â + … + Âᴷ) / (K + 1) as an operator: K products of O(nnz·k) each."""

    adj: CSR  # Â, n×n
    order: int  # K
    rows: Tensor | None = None  # only these rows of Π; None: all

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n), or (rows, n)."""
        n = self.adj.shape[0]
        return n if self.rows is None else self.rows.numel(), n

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an n×k matrix."""
        out: Tensor = _Mean.apply(z, self)  # type: ignore[no-untyped-call]
        return out if self.rows is None else out.index_select(0, self.rows)

    def to(self, device: torch.device | str) -> MeanPropagation:
        """The operator on another device."""
        return MeanPropagation(self.adj.to(device), self.order)


class _Mean(torch.autograd.Function):
    """z ↦ Π z by Horner's scheme, t ← Â t + z; the gradient is Πᵀ g."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, mean: MeanPropagation) -> Tensor:
        ctx.mean = mean
        total = z
        for _ in range(mean.order):
            total = (mean.adj @ total).add_(z)
        return total / (mean.order + 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        mean: MeanPropagation = ctx.mean
        return MeanPropagation(mean.adj.T, mean.order) @ grad, None


Matrix = CSR | LowRank | MeanPropagation


class Views(list[Any]):
    """Several n×k matrices that go through the same operations.

    A view is a tensor. Only in the first layer it may be a ``LowRank`` product that is
    not multiplied out: operations that need some rows at a time never hold all of them.
    ``wide`` is the views side by side, n×(v·k), where that is how they are stored.
    """

    def __init__(
        self, views: Iterable[Tensor | LowRank], wide: Tensor | None = None
    ) -> None:
        super().__init__(views)
        self._wide = wide

    @classmethod
    def side_by_side(cls, wide: Tensor, count: int) -> Views:
        """Views from one n×(v·k) matrix."""
        return cls([wide] if count == 1 else wide.chunk(count, dim=1), wide)

    def tensors(self) -> list[Tensor]:
        """Every view as a tensor, n×k."""
        return [x.to_dense() if isinstance(x, LowRank) else x for x in self]

    def joined(self) -> Tensor:
        """The views side by side, n×(v·k)."""
        return torch.cat(self.tensors(), dim=1) if self._wide is None else self._wide


@dataclass(frozen=True, eq=False)
class _Field:
    """What some nodes read: the matrix of each layer, between fewer and fewer nodes."""

    num_nodes: int  # nodes that were asked for
    layers: Sequence[Matrix | None]  # None: the layer does not propagate
    # Where the nodes that a layer answers for stand in its input, and the nodes asked
    # for in its output; None: they are all of it.
    own: Sequence[Tensor | None]
    answers: Sequence[Tensor | None]
    elu_x: Tensor | None = None  # Rᵀ X (c×d), where x lacks rows that S* multiplies


@dataclass(frozen=True, eq=False)
class GraphInputs:
    """Features and graphs of a network."""

    x: Features  # X, n×d
    adj: CSR | MeanPropagation  # Â, n×n; n×2n: in- and out-neighbours are kept apart
    elu_graph: LowRank | CSR | None = None  # S*, n×n, for the second view
    _field: _Field | None = None

    def layer(self, i: int) -> Matrix | None:
        """The matrix that layer i multiplies by; None: it does not propagate.

        With ``MeanPropagation`` only layer 0 propagates.
        """
        if self._field is not None:
            return self._field.layers[i]
        return None if i and isinstance(self.adj, MeanPropagation) else self.adj

    @cached_property
    def directions(self) -> int:
        """2 where in- and out-neighbours are kept apart, else 1."""
        return 2 if self.adj.shape[1] == 2 * self.adj.shape[0] else 1

    @property
    def num_nodes(self) -> int:
        """Nodes whose logits a network computes."""
        return self.x.shape[0] if self._field is None else self._field.num_nodes

    @cached_property
    def elu_x(self) -> Tensor | None:
        """Rᵀ X for S* = L Rᵀ, where it is known and X has not all rows."""
        return None if self._field is None else self._field.elu_x

    def with_elu_graph(self, elu_graph: LowRank | CSR | None) -> GraphInputs:
        """The same inputs with another S*."""
        return replace(self, elu_graph=elu_graph)

    def to(self, device: torch.device | str) -> GraphInputs:
        """The inputs on another device."""
        graph = None if self.elu_graph is None else self.elu_graph.to(device)
        return GraphInputs(self.x.to(device), self.adj.to(device), graph)

    def own(self, i: int, h: Tensor) -> Tensor:
        """The rows of the input h of layer i whose nodes layer i answers for."""
        rows = None if self._field is None else self._field.own[i]
        return h if rows is None else h[rows]

    def answers(self, i: int, h: Tensor) -> Tensor:
        """The rows of the output of layer i that belong to the nodes asked for."""
        rows = None if self._field is None else self._field.answers[i]
        return h if rows is None else h[rows]

    def restrict(
        self,
        nodes: Tensor,
        layers: int,
        keep_own: bool = False,
        whole_x: bool = False,
    ) -> GraphInputs:
        """Inputs from which a network computes the logits of some nodes only.

        The last layer reads the nodes' neighbours, the layer before it theirs, and so
        on: H̄[V] = Â[V, N₁] σ(Â[N₁, N₀] X[N₀] W₁) W₂.

        Args:
            nodes: Indices; the logits come in their order.
            layers: How many layers of the network propagate.
            keep_own: The network also reads a layer's own input rows (a residual
                connection) or the outputs of earlier layers (jumping knowledge).
            whole_x: Compute X W of all nodes. It pays where training drops nothing
                from X, because the next training step starts from the same product.
        """
        graph, x, elu_x = self.elu_graph, self.x, None
        if isinstance(self.adj, MeanPropagation):
            others = [None] * (layers - 1)
            matrices: list[Matrix | None] = [replace(self.adj, rows=nodes), *others]
            field = _Field(nodes.numel(), matrices, [nodes, *others], [None] * layers)
            return GraphInputs(x, self.adj, _some_rows(graph, nodes), field)
        adj, n, device = self.adj.to_scipy(), self.adj.shape[0], nodes.device
        matrices = []
        own: list[Tensor | None] = []
        answers: list[Tensor | None] = [None]
        asked = inputs = nodes.numpy(force=True)
        for i in reversed(range(layers)):
            outputs, rows = inputs, adj[inputs]
            read = np.zeros(n, dtype=bool)
            read[rows.indices % n] = True
            if keep_own:
                read[outputs] = True
            if i == 0:
                graph = _some_rows(graph, torch.from_numpy(outputs).to(device))
                if isinstance(graph, CSR):
                    read[graph.col.numpy(force=True)] = True
            most = _MOST_DENSE if i == 0 and isinstance(x, Tensor) else _MOST
            if (i == 0 and whole_x) or read.sum() > most * n:
                read[:] = True
            inputs, position = np.flatnonzero(read), np.cumsum(read) - 1
            columns = np.concatenate([inputs + n * j for j in range(self.directions)])
            matrices.insert(0, CSR.from_scipy(rows[:, columns]).to(device))
            own.insert(0, torch.from_numpy(position[outputs]).to(device))
            answers.insert(0, torch.from_numpy(position[asked]).to(device))
        if len(inputs) < n:
            x = rows_of(x, torch.from_numpy(inputs).to(device))
            if isinstance(graph, LowRank):
                elu_x = _transposed_product(graph.right, self.x)
            elif graph is not None:
                graph = CSR.from_scipy(graph.to_scipy()[:, inputs]).to(device)
        field = _Field(nodes.numel(), matrices, own, answers[1:], elu_x)
        return GraphInputs(x, self.adj, graph, field)


def _some_rows(graph: LowRank | CSR | None, rows: Tensor) -> LowRank | CSR | None:
    if isinstance(graph, CSR):
        return rows_of(graph, rows)
    return None if graph is None else LowRank(graph.left[rows], graph.right)


def _transposed_product(right: Tensor, x: Features) -> Tensor:
    """Rᵀ X, c×d, without a transposed copy of X."""
    if isinstance(x, Tensor):
        return right.T @ x
    product = x.to_scipy().T @ right.numpy(force=True)
    return torch.from_numpy(product.T.copy()).to(right.device)
