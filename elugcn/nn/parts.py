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

# Entries up to which one product of several matrices beats a product each: it saves
# calls. Beyond it the rows that a sparse product gathers no longer fit the fast cache.
_SIDE_BY_SIDE = 2**19


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
        """Each n×(parts·b) product of features and weights to n×b."""
        if self.count == 1:
            return _apply(layer.operator, zs)
        split = [z.chunk(self.count, dim=1) for z in zs]
        graph = [
            torch.cat(parts[: self.directions]) if self.directions > 1 else parts[0]
            for parts in split
        ]
        out = _apply(layer.operator, graph)
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


def _apply(operator: Operator, zs: Sequence[Tensor]) -> list[Tensor]:
    """The operator applied to several matrices, side by side where they are small."""
    if len(zs) == 1 or sum(z.numel() for z in zs) > _SIDE_BY_SIDE:
        return [operator @ z for z in zs]
    return list((operator @ torch.cat(list(zs), dim=1)).chunk(len(zs), dim=1))
