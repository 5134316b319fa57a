"""A layer's product X W in parts, side by side: one a direction of edges, one residual.

    [Z_in Z_out Z_own] ↦ [Â_in Â_out] [Z_in; Z_out] + Z_own

One product with the features serves them all. A plain layer has one part, Z ↦ Â Z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elugcn.nn.field import Layer, Operator


@dataclass(frozen=True)
class Parts:
    """What the columns of a product are for.

    Attributes:
        directions: 2 if Â is n×2n, in- and out-neighbours apart.
        residual: Whether the last part is added without propagation.
    """

    directions: int = 1
    residual: bool = False

    @property
    def count(self) -> int:
        """How many there are."""
        return self.directions + self.residual

    def propagate(self, layer: Layer, zs: Sequence[Tensor]) -> list[Tensor]:
        """Each n×(parts·b) product of features and weights to n×b, by one product."""
        if self.count == 1:
            return _side_by_side(layer.operator, zs)
        split = [z.chunk(self.count, dim=1) for z in zs]
        graph = [torch.cat(parts[: self.directions]) for parts in split]
        out = _side_by_side(layer.operator, graph)
        if not self.residual:
            return out
        return [o + layer.own(parts[-1]) for o, parts in zip(out, split, strict=True)]

    def for_graph(self, z: Tensor) -> Tensor:
        """What a graph without directions multiplies: the sum over the directions."""
        parts = z.chunk(self.count, dim=1)
        return torch.stack(parts[: self.directions]).sum(dim=0)

    def elu_view(
        self, elu_graph: Operator, source: Tensor, z: Tensor, layer: Layer
    ) -> Tensor:
        """S* times ``source``, and the residual part of ``z``."""
        if self.count == 1:
            return elu_graph @ source
        out = elu_graph @ self.for_graph(source)
        if self.residual:
            out = out + layer.own(z.chunk(self.count, dim=1)[-1])
        return out


def _side_by_side(operator: Operator, zs: Sequence[Tensor]) -> list[Tensor]:
    """The operator applied to several matrices by one product."""
    if len(zs) == 1:
        return [operator @ zs[0]]
    return list((operator @ torch.cat(list(zs), dim=1)).chunk(len(zs), dim=1))
