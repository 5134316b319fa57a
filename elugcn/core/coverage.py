"""Which few nodes stand for all: smoothed features, and a greedy choice that covers.

A linear GCN that is trained on a label at node j changes its answer at node i by
⟨z_i, z_j⟩ with Z = ÂʰX: that inner product is how far the label carries, over edges and
over features. Nodes S, labelled or to be labelled, cover the graph by

    F(S) = Σ_i w_i · max_{j∈S} k_ij,    k_ij = max(cos(z_i, z_j), 0)^p,

which is monotone and submodular: picking the largest gain each time is within 1 − 1/e
of the best choice, and two nodes that say the same never both pay off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from elugcn.core.sparse import CSR

# Features beyond this many columns are rotated into so many first.
WIDTH = 256


def smoothed_directions(adj: CSR, x: CSR | Tensor, hops: int = 2) -> Tensor:
    """Unit rows in the direction of ÂʰX, n×min(d, 256); zero rows stay zero.

    More than 256 features are replaced by their leading singular directions, which
    keep inner products as well as so many columns can: O(nnz(X)·256 + h·nnz·256).

    Args:
        adj: Â, n×n.
        x: Features, n×d.
        hops: h.
    """
    z = _narrow(x)
    for _ in range(hops):
        z = adj @ z
    length = z.norm(dim=1, keepdim=True)
    return z / torch.where(length > 0, length, torch.ones_like(length))


def similarity(rows: Tensor, columns: Tensor, power: float = 1.0) -> Tensor:
    """k_ij of unit rows with unit columns, m×t in [0, 1]."""
    return (rows @ columns.T).clamp(0.0, 1.0) ** power


def greedy_cover(
    kernel: Tensor,
    weight: Tensor,
    covered: Tensor,
    count: int,
    favour: Callable[[list[int]], Tensor] | None = None,
) -> tuple[list[int], list[float]]:
    """Pick rows one by one, each the one that adds the most to F.

    Gains only shrink as more is picked, so those of earlier rounds are upper bounds and
    few rows are looked at again: O(m·t) for the first pick, far less for the next.

    Args:
        kernel: k of each candidate with each node that is to be covered, m×t.
        weight: w of each of those nodes, (t,).
        covered: max k over what is labelled already, (t,).
        count: How many to pick, at most m.
        favour: A factor for each candidate from those picked so far, (m,); None: 1.

    Returns:
        The rows in the order they were picked, and the gain of each, its factor left
        out.
    """
    covered = covered.clone()
    bound = _gains(kernel, weight, covered)
    fresh = torch.zeros(len(kernel), dtype=torch.long)
    picked: list[int] = []
    gains: list[float] = []
    while len(picked) < count:
        factor = torch.ones_like(bound) if favour is None else favour(picked)
        while True:
            best = int((bound * factor).argmax())
            if int(fresh[best]) == len(picked):
                break
            bound[best] = float(_gains(kernel[best : best + 1], weight, covered))
            fresh[best] = len(picked)
        picked.append(best)
        gains.append(float(bound[best]))
        covered = torch.maximum(covered, kernel[best])
        # Below every gain, and no product with a factor brings it back.
        bound[best] = -torch.inf
    return picked, gains


def _gains(kernel: Tensor, weight: Tensor, covered: Tensor) -> Tensor:
    """What each row would add, (m,); blocks of rows bound the memory."""
    blocks = torch.split(kernel, 256)
    return torch.cat([(b - covered).clamp(min=0.0) @ weight for b in blocks])


def _narrow(x: CSR | Tensor) -> Tensor:
    """X itself, or U Σ of its leading singular vectors where it is wide."""
    n, d = x.shape
    width = min(WIDTH, n)
    if d <= width:
        return x.to_dense() if isinstance(x, CSR) else x.float()
    # Takes a second, which only suggestions need.
    from sklearn.utils.extmath import randomized_svd

    matrix = x.to_scipy() if isinstance(x, CSR) else x.numpy(force=True)
    u, s, _ = randomized_svd(matrix, width, n_iter=2, random_state=0)
    return torch.from_numpy(np.ascontiguousarray((u * s).astype(np.float32)))
