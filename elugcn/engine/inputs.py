"""What networks compute on: features, Â, S*, and several views of hidden layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from elugcn.engine.sparse import CSR, Features


@dataclass(frozen=True, eq=False)
class LowRank:
    """The n×m matrix L Rᵀ in factors: n·c + m·c numbers instead of n·m.

    Attributes:
        left: L, n×c.
        right: R, m×c.
    """

    left: Tensor
    right: Tensor

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
    """Π = (I + Â + … + Âᴷ) / (K + 1) as an operator: K products of O(nnz·k) each.

    Attributes:
        adj: Â, n×n.
        order: K.
    """

    adj: CSR
    order: int

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.adj.shape

    @property
    def T(self) -> MeanPropagation:
        """The transpose."""
        return MeanPropagation(self.adj.T, self.order)

    def __matmul__(self, z: Tensor) -> Tensor:
        """The product with an n×k matrix."""
        out: Tensor = _Mean.apply(z, self)  # type: ignore[no-untyped-call]
        return out

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
        return mean.T @ grad, None


@dataclass(frozen=True, eq=False)
class PickedRows:
    """Some rows of a product that can't be computed for them alone."""

    matrix: MeanPropagation
    rows: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, n)."""
        return self.rows.numel(), self.matrix.shape[1]

    def __matmul__(self, z: Tensor) -> Tensor:
        """The rows of the product with an n×k matrix."""
        return (self.matrix @ z).index_select(0, self.rows)


Matrix = CSR | LowRank | MeanPropagation | PickedRows


class Views:
    """Several n×k matrices that go through the same operations.

    A view may be lazy, a low-rank product that is not multiplied out: operations that
    need a block of its rows at a time never hold all of them.

    Args:
        parts: The views.
        wide: The views side by side, n×(v·k), where that is how they are stored.
    """

    def __init__(
        self, parts: Sequence[Tensor | LowRank], wide: Tensor | None = None
    ) -> None:
        self.parts = parts
        self._wide = wide

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Views:
        """Views from tensors of the same shape."""
        return cls(tensors)

    @classmethod
    def side_by_side(cls, wide: Tensor, count: int) -> Views:
        """Views from one n×(v·k) matrix."""
        return cls([wide] if count == 1 else wide.chunk(count, dim=1), wide)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def stored_wide(self) -> Tensor | None:
        """The views side by side, if that is how they are stored."""
        return self._wide

    def tensors(self) -> list[Tensor]:
        """Every view as a tensor, n×k."""
        return [p if isinstance(p, Tensor) else p.to_dense() for p in self.parts]

    def wide(self) -> Tensor:
        """The views side by side, n×(v·k)."""
        if self._wide is None:
            tensors = self.tensors()
            self._wide = tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim=1)
        return self._wide


@dataclass(frozen=True, eq=False)
class _Field:
    """The receptive field of some nodes: what each layer computes.

    Attributes:
        layers: The matrix of each layer; None: the layer does not propagate.
        own: Where the nodes that a layer answers for stand in its input; None: they
            are all of it.
        answers: Where the nodes asked for stand in a layer's output; None: the same.
        elu_x: Rᵀ X (c×d), where ``x`` has not the rows that S* multiplies.
        num_nodes: How many nodes were asked for.
    """

    layers: Sequence[Matrix | None]
    own: Sequence[Tensor | None]
    answers: Sequence[Tensor | None]
    elu_x: Tensor | None
    num_nodes: int


@dataclass(frozen=True, eq=False)
class GraphInputs:
    """Features and graphs of a network.

    Attributes:
        x: X, n×d.
        adj: Â, n×n; n×2n where in- and out-neighbours are kept apart.
        elu_graph: S*, n×n, for the second view of the first layer.
    """

    x: Features
    adj: CSR | MeanPropagation
    elu_graph: LowRank | CSR | None = None
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

    @property
    def elu_x(self) -> Tensor | None:
        """Rᵀ X for S* = L Rᵀ, where it is known and X has not all rows."""
        return None if self._field is None else self._field.elu_x

    def with_elu_graph(self, elu_graph: LowRank | CSR | None) -> GraphInputs:
        """The same inputs with another S*."""
        return replace(self, elu_graph=elu_graph)

    def with_x(self, x: Features) -> GraphInputs:
        """The same graphs with other features."""
        return replace(self, x=x)

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

        Args:
            nodes: Indices; the logits come in their order.
            layers: How many layers of the network propagate.
            keep_own: The network also reads a layer's own input rows (a residual
                connection) or the outputs of earlier layers (jumping knowledge).
            whole_x: Compute X W of all nodes. It pays where training drops nothing
                from X, because the next training step starts from the same product.
        """
        graph = self.elu_graph
        if isinstance(self.adj, MeanPropagation):
            picked = PickedRows(self.adj, nodes)
            own = [nodes, *[None] * layers]
            field = _Field(
                [picked, *[None] * layers], own, [None] * (layers + 1), None, len(nodes)
            )
            return GraphInputs(self.x, self.adj, _some_rows(graph, nodes), field)
        last = CSR.from_scipy(self.adj.to_scipy()[nodes.numpy(force=True)])
        matrices = [*[self.adj] * (layers - 1), last.to(nodes.device)]
        before = [None] * (layers - 1)
        rows = [*[nodes] * (layers - 1), None]
        if layers == 1:
            graph = _some_rows(graph, nodes)
        field = _Field(matrices, [*before, nodes], rows, None, nodes.numel())
        return GraphInputs(self.x, self.adj, graph, field)


def _some_rows(graph: LowRank | CSR | None, rows: Tensor) -> LowRank | CSR | None:
    if isinstance(graph, LowRank):
        return LowRank(graph.left[rows], graph.right)
    return (
        None
        if graph is None
        else CSR.from_scipy(graph.to_scipy()[rows.numpy(force=True)])
    )
