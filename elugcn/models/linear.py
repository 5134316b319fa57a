"""Linear graph models in closed form, by conjugate gradients.

    Ŷ = F W,    min_W Σᵢ dᵢ ‖(F W)ᵢ − yᵢ‖² + λ ‖W‖²

F = [s₀ P₀ X, s₁ P₁ X, …, 1], where every Pₖ is a power of A or its personalised
PageRank, and the column of ones is the intercept. F is not formed: an iteration
multiplies by A, X and their transposes, which costs O(nnz(X)·c + K·nnz(A)·c), as much
as an epoch of a linear GCN. The iterates go from smooth solutions to exact ones, so
stopping early regularises. Only where X is dense and labels are few, the rows of F for
the labelled nodes cost less (``Rows``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from elugcn.engine import CSR, Features

PROBES = 16  # random vectors that estimate the norm of a part
TINY = 1e-30  # smallest divisor, for columns of Y that are solved exactly


@dataclass(frozen=True, eq=False)
class Block:
    """[s₀ Aᵏ⁰ X, s₁ Aᵏ¹ X, …] for some powers, or the PageRank of X."""

    x: Features  # X, n×d
    adj: CSR  # A, n×n; not read where no power is above 0
    powers: tuple[int, ...] = (0,)  # k₀ < k₁ < …; with alpha one number, the steps
    alpha: float = 0.0  # above 0: (1−α)ᴷAᴷX + Σₖ α(1−α)ᵏAᵏX, k < K
    scales: tuple[float, ...] = ()  # s₀, s₁, …; empty: 1

    @property
    def width(self) -> int:
        """Columns."""
        return self.x.shape[1] * len(self.powers)

    def __matmul__(self, W: Tensor) -> Tensor:
        """F W by Horner's scheme, n×c."""
        parts = W.chunk(len(self.powers))
        if self.scales:
            parts = tuple(s * w for s, w in zip(self.scales, parts, strict=True))
        products = (self.x @ torch.cat(parts, dim=1)).chunk(len(parts), dim=1)
        terms = dict(zip(self.powers, products, strict=True))
        total = last = terms[self.powers[-1]]
        for k in reversed(range(self.powers[-1])):
            total = self._step(self.adj, total, last)
            if k in terms:
                total = total + terms[k]
        return total

    def transposed(self, R: Tensor) -> Tensor:
        """Fᵀ R, width×c."""
        walked = R
        parts: list[Tensor] = []
        for k in range(self.powers[-1] + 1):
            if k:
                walked = self._step(self.adj.T, walked, R)
            if k in self.powers:
                scale = self.scales[len(parts)] if self.scales else 1.0
                parts.append(scale * walked)
        gathered: Tensor = self.x.T @ torch.cat(parts, dim=1)
        return torch.cat(gathered.chunk(len(parts), dim=1))

    def rows(self, nodes: Tensor) -> Tensor:
        """Some rows of F as a dense matrix, m×width; X is dense."""
        assert isinstance(self.x, Tensor)
        walked, parts = self.x, list[Tensor]()
        for k in range(self.powers[-1] + 1):
            if k:
                walked = self._step(self.adj, walked, self.x)
            if k in self.powers:
                scale = self.scales[len(parts)] if self.scales else 1.0
                parts.append(scale * walked[nodes])
        return torch.cat(parts, dim=1)

    def balanced(self, generator: torch.Generator) -> Block:
        """The block with parts of equal norm √n; random probes estimate the norms."""
        n, d = self.x.shape
        signs = 2.0 * torch.randint(2, (d, PROBES), generator=generator) - 1
        walked = start = self.x @ signs.to(self.adj.value.device)
        scales = []
        for k in range(self.powers[-1] + 1):
            if k:
                walked = self._step(self.adj, walked, start)
            if k in self.powers:
                norm = float(walked.norm()) / PROBES**0.5
                scales.append(n**0.5 / norm if norm > 0 else 0.0)
        return replace(self, scales=tuple(scales))

    def _step(self, adj: CSR, z: Tensor, start: Tensor) -> Tensor:
        z = adj @ z.contiguous()
        return torch.lerp(z, start, self.alpha) if self.alpha else z


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """F = [F₁, F₂, …, 1] as an operator; the column of ones is the intercept.

    Without it, a node without features and edges would always get the mean label.
    """

    blocks: Sequence[Block]
    intercept: bool = True

    def __matmul__(self, W: Tensor) -> Tensor:
        """F W, n×c."""
        widths = [block.width for block in self.blocks]
        parts = torch.split(W, [*widths, 1] if self.intercept else widths)
        pairs = zip(self.blocks, parts, strict=False)
        scores = torch.stack([block @ part for block, part in pairs]).sum(dim=0)
        return scores + parts[-1] if self.intercept else scores

    def transposed(self, R: Tensor) -> Tensor:
        """Fᵀ R, width×c."""
        parts = [block.transposed(R) for block in self.blocks]
        parts += [R.sum(dim=0, keepdim=True)] * self.intercept
        return torch.cat(parts)

    def rows(self, nodes: Tensor, columns: int, iterations: int) -> Rows | None:
        """Some rows of F, if so many iterations are cheaper with them; else None.

        Only nodes that have a weight or are judged take part in an iteration. X must
        be dense: rows of F are.
        """
        once = repeated = 0.0
        for block in self.blocks:
            x, (n, d) = block.x, block.x.shape
            if not isinstance(x, Tensor):
                return None
            steps = block.powers[-1] * block.adj.nnz
            each = n * d * len(block.powers)
            once += steps * d + iterations * columns * each * nodes.numel() / n
            repeated += iterations * columns * (steps + each)
        if once > repeated:
            return None
        parts = [block.rows(nodes) for block in self.blocks]
        parts += [torch.ones_like(parts[0][:, :1])] * self.intercept
        return Rows(torch.cat(parts, dim=1))

    def balanced(self) -> LinearFeatures:
        """The same with parts of equal norm."""
        generator = torch.Generator().manual_seed(0)
        blocks = [block.balanced(generator) for block in self.blocks]
        return LinearFeatures(blocks, self.intercept)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of F, as a matrix."""

    matrix: Tensor

    def __matmul__(self, W: Tensor) -> Tensor:
        """F W of these rows."""
        return self.matrix @ W

    def transposed(self, R: Tensor) -> Tensor:
        """Fᵀ R of these rows."""
        return self.matrix.T @ R


def conjugate_gradients(
    features: LinearFeatures | Rows, Y: Tensor, d: Tensor, iterations: int, ridge: float
) -> Iterator[tuple[Tensor, Tensor]]:
    """Solve (FᵀDF + λI) W = FᵀDY for all columns of Y at once.

    Args:
        features: F.
        Y: Targets, n×c.
        d: Weight of each node, (n,); nodes of weight 0 are not used.
        iterations: At most.
        ridge: λ as a share of the first Rayleigh quotient of FᵀDF.

    Yields:
        W and F W after each iteration.
    """
    d = d.unsqueeze(1)
    R = features.transposed(d * Y)
    W, P, scores = torch.zeros_like(R), R, torch.zeros_like(Y)
    size = R.square().sum(dim=0)
    penalty = None
    for _ in range(iterations):
        Q = features @ P
        curvature = (d * Q.square()).sum(dim=0)
        length = P.square().sum(dim=0)
        if penalty is None:
            penalty = ridge * float(curvature.sum() / length.sum().clamp_min(TINY))
        step = size / (curvature + penalty * length).clamp_min(TINY)
        W, scores = W + step * P, scores + step * Q
        yield W, scores
        R = R - step * (features.transposed(d * Q) + penalty * P)
        before, size = size, R.square().sum(dim=0)
        P = R + (size / before.clamp_min(TINY)) * P
