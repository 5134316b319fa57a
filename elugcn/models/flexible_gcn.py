"""A GCN with the options of a modern backbone, for one or two views.

    Z₁ = P₁ X W₁ (P₁ is Â; S* for the ELU view),    H_i = act(Z_i + b_i),
    Z_{i+1} = Â H_i W_{i+1}

act is a norm, ReLU and dropout. Options: depth, norms, a residual part of each layer,
weights of their own for in- and out-neighbours, jumping knowledge (Xu et al., ICML
2018), and propagation in the first layer only. With every option off it is
``TwoViewGCN``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import (
    Features,
    GraphInputs,
    Views,
    dropout,
    propagate_linear,
    relu_dropout_linear_,
    spmm,
)

NORMS: dict[str, type[nn.Module]] = {
    "none": nn.Identity,
    "l2": nn.Identity,
    "layer": nn.LayerNorm,
    "batch": nn.BatchNorm1d,
}


class FlexibleGCN(nn.Module):
    """GCN with shared weights for one or two views.

    Args:
        in_channels: d.
        hidden_channels: Width h of the hidden layers.
        out_channels: c.
        num_layers: Number of layers, at least 2.
        dropout: Probability of dropping an entry before each weight.
        input_dropout: The same for X, where it differs.
        norm: ``"none"``; ``"layer"`` or ``"batch"`` before each ReLU; ``"l2"`` scales
            rows to length 1 after it.
        residual: Each layer adds a linear map of its own input.
        directions: 2 if Â is n×2n: in- and out-neighbours have weights of their own.
        jump: ``"none"``: the last layer gives the classes. Otherwise every layer is
            hidden, and a linear head reads the ``"last"`` one, all of them side by
            side (``"cat"``) or their entrywise maximum (``"max"``).
        first_only: Only the first layer propagates, by a ``MeanPropagation``.
        drop_node: Probability of dropping a node's row of X W₁ in training.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        norm: str = "none",
        residual: bool = False,
        directions: int = 1,
        jump: str = "none",
        first_only: bool = False,
        drop_node: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.residual = residual
        self.directions = directions
        self.jump = jump
        self.first_only = first_only
        self.drop_node = drop_node
        self.l2 = norm == "l2"
        # Whether nothing but bias, ReLU and dropout stands between two weights.
        self.plain = norm == "none" and jump == "none"
        hidden = num_layers - (jump == "none")
        ends = [hidden_channels] * hidden + [out_channels] * (jump == "none")
        starts = [in_channels, *ends[:-1]]
        # Side by side in one weight: a part per direction, and one for the residual.
        later = 1 if first_only else directions + residual
        parts = [directions + residual, *[later] * (num_layers - 1)]
        self.weights = nn.ParameterList(
            torch.empty(a, b * k) for a, b, k in zip(starts, ends, parts, strict=True)
        )
        self.biases = nn.ParameterList(torch.zeros(b) for b in ends)
        self.norms = nn.ModuleList(NORMS[norm](hidden_channels) for _ in range(hidden))
        self.head: nn.Linear | None = None
        if jump != "none":
            width = hidden_channels * (num_layers if jump == "cat" else 1)
            self.head = nn.Linear(width, out_channels)
        with torch.no_grad():
            for weight, bias in zip(self.weights, self.biases, strict=True):
                for part in torch.split(weight, bias.numel(), dim=1):
                    nn.init.xavier_uniform_(part)

    @property
    def num_layers(self) -> int:
        """Layers of the graph's inputs that the network reads."""
        return len(self.weights)

    @property
    def keeps_own(self) -> bool:
        """Whether the network also reads the input rows of the nodes it answers for."""
        return self.residual or self.jump in ("cat", "max")

    def views(self, g: GraphInputs, draws: int = 1) -> Views:
        """The original view for each draw, then the ELU view if ``g`` has one.

        Cost:
            O(nnz(X)·h + v·nnz(Â)·h) per layer for v views; S* in factors adds O(n·c·h).
        """
        p = (self.input_dropout, self.drop_node) if self.training else (0.0, 0.0)
        first = propagate_linear(
            g, self.weights[0], p[0], residual=self.residual, drop_rows=p[1],
            draws=draws,
        )  # fmt: skip
        return self._after_first(g, first)

    def views_given(self, g: GraphInputs, elu_product: Tensor) -> Views:
        """Both views of nodes for which S* X W₁ is known, n×h; in evaluation mode."""
        first = propagate_linear(g, self.weights[0], 0.0, residual=self.residual)
        if self.residual:
            elu_product = elu_product + self._split(0, g.x @ self.weights[0])[-1]
        return self._after_first(g, Views([*first.tensors(), elu_product]))

    def _after_first(self, g: GraphInputs, views: Views) -> Views:
        """All that follows the propagation of the first layer."""
        p = self.dropout if self.training else 0.0
        kept: list[Tensor] = []
        for i, bias in enumerate(self.biases[: len(self.norms)]):
            weight = self.weights[i + 1] if i + 1 < len(self.weights) else None
            if self.plain and weight is not None:
                views = relu_dropout_linear_(views, bias, weight, p)
            else:
                h = self._activated(views, i)
                kept.append(h)
                if weight is not None:
                    views = Views(_rows(dropout(h, p) @ weight, len(views)))
            if weight is not None:
                views = self._propagated(g, i + 1, views)
        if self.head is None:
            return views
        h = dropout(self._jumped(g, kept, len(views)), p)
        return Views(_rows(self.head(h), len(views)))

    def forward(self, g: GraphInputs) -> Tensor:
        """The logits of the original view, n×c."""
        return self.views(g).tensors()[0]

    def first_layer(self) -> list[nn.Parameter]:
        """The parameters that Kipf's GCN decays."""
        return [self.weights[0], self.biases[0]]

    def first_product(self, x: Features) -> Tensor:
        """What S* multiplies in the first layer, without dropout: X W₁, n×h."""
        z = x @ self.weights[0]
        return torch.stack(self._split(0, z)[: self.directions]).sum(dim=0)

    def _split(self, i: int, z: Tensor) -> list[Tensor]:
        """The parts of layer i's product: one per direction, one for the residual."""
        return list(torch.split(z, self.biases[i].numel(), dim=1))

    def _activated(self, views: Views, i: int) -> Tensor:
        """Norm and ReLU of layer i, all views in one matrix, v·n rows."""
        z = torch.cat(views.tensors()) + self.biases[i]
        h = F.relu(self.norms[i](z))
        return F.normalize(h, dim=1) if self.l2 else h

    def _propagated(self, g: GraphInputs, i: int, views: Views) -> Views:
        """Layer i of the products with its weight; the last layer adds its bias."""
        last = i == len(self.norms)
        bias = self.biases[i] if last else None
        if self.first_only or (self.directions == 1 and not self.residual):
            return spmm(g.layer(i), views, bias)
        parts = [self._split(i, z) for z in views.tensors()]
        sources = [torch.cat(part[: self.directions]) for part in parts]
        out = spmm(g.layer(i), Views(sources), bias)
        if not self.residual:
            return out
        own = [g.own(i, part[-1]) for part in parts]
        return Views([z + r for z, r in zip(out.tensors(), own, strict=True)])

    def _jumped(self, g: GraphInputs, kept: list[Tensor], views: int) -> Tensor:
        """What the head reads: the last hidden layer, or all of them."""
        if self.jump == "last":
            return kept[-1]
        answers = [
            torch.cat([g.answers(i, part) for part in _rows(h, views)])
            for i, h in enumerate(kept)
        ]
        if self.jump == "cat":
            return torch.cat(answers, dim=1)
        return torch.stack(answers).amax(dim=0)


def _rows(stacked: Tensor, views: int) -> list[Tensor]:
    """The views that are stacked as rows."""
    return list(stacked.chunk(views))
