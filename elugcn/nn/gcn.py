"""A GCN that can look at several graphs with one set of weights.

    H̄ = Â σ(Â X W₁) W₂        the original view
    H̃ = Â σ(S* X W₁) W₂       the ELU view: S* in the first layer, Â after it

S* is already a high-order graph, hence only the first layer uses it. X W₁ is computed
once for all views, and the later layers of all views share one sparse product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.core.operators import LowRankGraph
from elugcn.core.places import NOWHERE, Places
from elugcn.core.propagation import MixedOrder
from elugcn.core.random import dropout, keep_mask
from elugcn.core.sparse import CSR
from elugcn.nn.activation import activated_product
from elugcn.nn.field import Field, Identity, Layer, Operator
from elugcn.nn.layers import Features, RowNorm, SharedProduct, drop_matmul
from elugcn.nn.parts import Parts
from elugcn.nn.propagate import Factored, both_views, propagate


class GCN(nn.Module):
    """GCN with shared weights over one or more first-layer graphs.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layers.
        out_channels: c.
        num_layers: Number of layers that propagate, at least 2.
        dropout: Probability, before every layer.
        norm: ``"none"``, ``"layer"`` or ``"batch"`` before each activation, ``"l2"``
            (rows of length one) after it.
        residual: Each layer adds a linear map of its own input.
        order: 0: every layer propagates by Â (Kipf). K ≥ 1: the first layer
            propagates by the mean of Â⁰ … Âᴷ and the later layers not at all.
        drop_node: Probability of dropping a node's whole row before propagation
            (training only).
        jump: ``"none"``: the last layer gives the classes (Kipf). Else every layer is
            hidden and a linear head reads the ``"last"``, the side by side (``"cat"``)
            or the entrywise ``"max"`` of all of them.
        directions: 2 if Â is n×2n, in- and out-neighbours apart.
        input_dropout: Of X, where it differs from ``dropout``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        norm: str = "none",
        residual: bool = False,
        order: int = 0,
        drop_node: float = 0.0,
        jump: str = "none",
        directions: int = 1,
        input_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.residual = residual
        self.order = order
        self.drop_node = drop_node
        self.jump = jump
        self.directions = directions
        hidden = num_layers if jump != "none" else num_layers - 1
        ends = [hidden_channels] * hidden + [out_channels] * (jump == "none")
        starts = [in_channels, *ends[:-1]]
        # Side by side in one weight: a part per direction, one for the residual.
        self._parts = Parts(directions, residual)
        parts = self._parts.count
        later = 1 if order else parts
        self.weights = nn.ParameterList(
            torch.empty(a, b * (parts if i == 0 else later))
            for i, (a, b) in enumerate(zip(starts, ends, strict=True))
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in ends)
        kinds: dict[str, type[nn.Module]] = {
            "none": nn.Identity,
            "l2": nn.Identity,
            "layer": nn.LayerNorm,
            "batch": nn.BatchNorm1d,
        }
        self.norms = nn.ModuleList(kinds[norm](hidden_channels) for _ in range(hidden))
        self.rows: nn.Module = RowNorm() if norm == "l2" else nn.Identity()
        self.head: nn.Linear | None = None
        if jump != "none":
            width = hidden_channels * (num_layers if jump == "cat" else 1)
            self.head = nn.Linear(width, out_channels)
        # Every layer is Â times one product: nothing is kept apart, added or repeated.
        self._plain = directions == 1 and not residual and not order
        # With nothing between bias, ReLU and dropout they are one operation.
        self._fused = norm == "none" and jump == "none"
        self._shared = SharedProduct()
        self._places = NOWHERE
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero biases; every part of a weight on its own."""
        with torch.no_grad():
            for weight, bias in zip(self.weights, self.biases, strict=True):
                for part in weight.split(bias.numel(), dim=1):
                    nn.init.xavier_uniform_(part)
                bias.zero_()

    @contextmanager
    def one_step_at_a_time(self) -> Iterator[None]:
        """Within it every ``forward`` of training takes the large arrays of the last.

        The last must be over by then, its backward pass too: as in a training loop.
        """
        self._places = Places()
        try:
            yield
        finally:
            self._places = NOWHERE
            self._shared.forget()

    def forward(
        self, x: Features, adj: CSR, elu_graph: Operator | None = None, draws: int = 1
    ) -> list[Tensor]:
        """Logits n×c of each view: the original, then the ELU view if there is one.

        Args:
            x: X, sparse or dense.
            adj: Â.
            elu_graph: S*, for the first layer of a second view.
            draws: Repeats of the original view with fresh dropout, in training; they
                come first in the list, the ELU view last.

        Cost:
            O(nnz(X)·h + v·nnz(Â)·h) for v views; S* in factors adds O(n·c·h).
        """
        return self._later_layers(*self._first_layer(x, adj, elu_graph, draws))

    def side_by_side(self, x: Features, adj: CSR, elu_graph: Operator) -> Tensor:
        """Both views of ``forward`` in one matrix, n×2c."""
        hidden, layers = self._first_layer(x, adj, elu_graph, 1)
        if self._plain and self._fused:
            return self._beside(hidden, layers)
        return torch.cat(self._later_layers(hidden, layers), dim=1)

    def _first_layer(
        self, x: Features, adj: CSR, elu_graph: Operator | None, draws: int
    ) -> tuple[Sequence[Tensor | Factored], Sequence[Layer]]:
        """The first layer of every view before its bias, and how all layers go."""
        draws = draws if self.training else 1
        together = self._plain and draws == 1 and not adj.value.requires_grad
        if not self.training:
            self._places.clear()  # room for what comes now
        zs = [self._first_product(x, together) for _ in range(draws)]
        if self.training:
            self._shared.forget()
        first: Operator = MixedOrder(adj, self.order) if self.order else adj
        layers = [Layer(first), *[Layer(adj)] * (len(self.weights) - 1)]
        if together:
            # In training the product was forgotten above: its memory is ours.
            ours, place = self.training, self._place("product 0", zs[0])
            if elu_graph is None:
                return [propagate(adj, zs[0], place, ours)], layers
            if isinstance(elu_graph, LowRankGraph):
                return both_views(adj, elu_graph, zs[0], place, ours), layers
        hidden = self._parts.propagate(layers[0], zs)
        if elu_graph is not None:
            hidden.append(self._parts.elu_view(elu_graph, zs[0], zs[0], layers[0]))
        return hidden, layers

    def evaluate(self, field: Field) -> list[Tensor]:
        """What ``forward`` gives in evaluation mode, for the nodes of a field only."""
        first, weight = field.layers[0], self.weights[0]
        hidden: list[Tensor | Factored]
        if isinstance(first.operator, Identity) and isinstance(field.x, Tensor):
            # X has been propagated: its product need not be whole at any time.
            hidden = [Factored(field.x, weight)]
            if field.elu_graph is not None:
                assert isinstance(field.elu_graph, Tensor)
                assert field.elu_x is not None
                hidden.append(Factored(field.elu_graph, field.elu_x @ weight))
            return self._later_layers(hidden, field.layers, field.at)
        z = self._first_product(field.x)
        hidden = [*self._parts.propagate(first, [z])]
        if field.elu_graph is not None:
            source = z if field.elu_x is None else field.elu_x @ weight
            hidden.append(self._parts.elu_view(field.elu_graph, source, z, first))
        return self._later_layers(hidden, field.layers, field.at)

    def _later_layers(
        self,
        hidden: Sequence[Tensor | Factored],
        layers: Sequence[Layer],
        at: Sequence[Tensor] | None = None,
    ) -> list[Tensor]:
        """The outputs of the views, given the first layer of each before its bias."""
        # The views are stacked as rows (v·n × h): one dropout, one dense product.
        views = len(hidden)
        if self._plain and self._fused:
            wide = self._beside(hidden, layers)
            return [wide] if views == 1 else list(wide.chunk(views, dim=1))
        kept: list[Tensor] = []
        last: list[Tensor] = []
        for i in range(len(self.norms)):
            h = self._to_next(hidden, i, kept)
            if i + 1 < len(self.weights):
                if self.order:
                    hidden = last = [h]
                else:
                    hidden = last = self._parts.propagate(layers[i + 1], h.chunk(views))
        if self.head is not None:
            if at is not None:
                kept = [
                    h.view(views, -1, h.size(1))[:, rows].flatten(0, 1)
                    for h, rows in zip(kept, at, strict=True)
                ]
            h = dropout(self._jumped(kept), self.dropout, self.training)
            return list(self.head(h).chunk(views))
        outputs = [z + self.biases[-1] for z in last]
        return list(outputs[0].chunk(views)) if self.order else outputs

    def _beside(
        self, hidden: Sequence[Tensor | Factored], layers: Sequence[Layer]
    ) -> Tensor:
        """``_later_layers`` where every next thing is one product with all views."""
        views, last = len(hidden), len(self.norms) - 1
        for i in range(last + 1):
            operator, h = layers[i + 1].operator, self._activated(hidden, i, True)
            bias = self.biases[-1] if i == last else None
            if isinstance(operator, CSR) and not operator.value.requires_grad:
                place = self._place(f"product {i + 1}", h)
                wide = propagate(operator, h, place, last_use=True, bias=bias)
            else:
                wide = operator @ h
                if bias is not None:
                    wide = wide.add_(bias.repeat(views))
            hidden = wide.chunk(views, dim=1)
        return wide

    def _space(self) -> Places:
        """Where large arrays of a training step are; those of others are new."""
        return self._places if self.training else NOWHERE

    def _place(self, name: str, like: Tensor) -> Tensor | None:
        return self._space().get(name, tuple(like.shape), like)

    def _to_next(
        self, hidden: Sequence[Tensor | Factored], i: int, kept: list[Tensor]
    ) -> Tensor:
        """Layer i activated, stacked, and times the next weight if there is one."""
        if self._fused:
            return self._activated(hidden, i)
        dense = [z.dense() if isinstance(z, Factored) else z for z in hidden]
        h = (dense[0] if len(dense) == 1 else torch.cat(dense)) + self.biases[i]
        kept.append(self.rows(F.relu(self.norms[i](h))))
        if i + 1 == len(self.weights):
            return kept[-1]  # only the head reads it
        return dropout(kept[-1], self.dropout, self.training).mm(self.weights[i + 1])

    def _activated(
        self, hidden: Sequence[Tensor | Factored], i: int, beside: bool = False
    ) -> Tensor:
        """``_to_next`` where nothing stands between bias, ReLU and dropout."""
        return activated_product(
            hidden, self.biases[i], self.weights[i + 1], self.dropout, self.training,
            beside, self._space(), f"activated {i}",
        )  # fmt: skip

    def source(self, x: Features) -> Tensor:
        """What S* multiplies in the first layer, without dropout: X W₁, n×h."""
        return self._parts.for_graph(x @ self.weights[0])

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN alone decays."""
        return [self.weights[0], self.biases[0]]

    def _first_product(self, x: Features, alone: bool = False) -> Tensor:
        """dropout(X) W₁; ``alone``: there is one in a step, and it may be kept."""
        weight, p = self.weights[0], self.input_dropout
        if p:
            places = self._space() if alone else NOWHERE
            z = drop_matmul(x, weight, p, self.training, places)
        else:
            z = self._shared(x, weight, self.training)
        if self.training and self.drop_node:
            z = z * keep_mask((z.size(0), 1), self.drop_node, z)
        return z

    def _jumped(self, kept: list[Tensor]) -> Tensor:
        if self.jump == "cat":
            return torch.cat(kept, dim=1)
        return torch.stack(kept).amax(dim=0) if self.jump == "max" else kept[-1]
