"""A few nodes that represent all: smoothed features and a greedy choice.

A linear GCN that is trained on a label at node j changes its output at node i by
⟨z_i, z_j⟩ with Z = ÂʰX. This is how far the label carries, over edges and features.
A set S of nodes covers the graph by

    F(S) = Σ_i w_i · max_{j∈S} k_ij,    k_ij = max(cos(z_i, z_j), 0)².

F is monotone and submodular: always taking the largest gain is within 1 − 1/e of the
best choice, and of two similar nodes only the first gains much.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.engine import CSR, Features

HOPS = 2  # h; chosen, like the square, on random graphs outside the benchmarks
MAX_COLUMNS = 256  # more features are projected onto their leading directions


def smoothed_directions(adj: CSR, x: Features) -> Tensor:
    """Unit rows in the direction of ÂʰX, n×min(d, 256); zero rows stay zero."""
    z = _narrow(x)
    for _ in range(HOPS):
        z = adj @ z
    return F.normalize(z, dim=1)


def similarity(rows: Tensor, columns: Tensor) -> Tensor:
    """k_ij of unit rows with unit columns, m×t in [0, 1]."""
    return (rows @ columns.T).clamp(0.0, 1.0) ** 2


def greedy_cover(
    kernel: Tensor,  # k of each candidate with each node to cover, m×t
    weight: Tensor,  # w of each node to cover, (t,)
    covered: Tensor,  # max k over the nodes that are labelled already, (t,)
    count: int,  # at most m
    factor: Callable[[list[int]], Tensor],  # of each gain, given the rows picked, (m,)
) -> tuple[list[int], list[float]]:
    """Pick rows one by one, each time the one that adds the most to F.

    Gains only shrink as more rows are picked, so old gains are upper bounds and few
    rows are evaluated again: O(m·t) for the first pick, far less for the next. Rows are
    returned in the order they were picked, with the gain of each without its factor.
    """
    bound = _gains(kernel, weight, covered)
    fresh = torch.zeros(len(kernel), dtype=torch.long)
    picked: list[int] = []
    gains: list[float] = []
    while len(picked) < count:
        scale = factor(picked)
        best = int((bound * scale).argmax())
        while int(fresh[best]) < len(picked):
            bound[best] = float(_gains(kernel[best : best + 1], weight, covered))
            fresh[best] = len(picked)
            best = int((bound * scale).argmax())
        picked.append(best)
        gains.append(float(bound[best]))
        covered = torch.maximum(covered, kernel[best])
        bound[best] = -torch.inf
    return picked, gains


def _gains(kernel: Tensor, weight: Tensor, covered: Tensor) -> Tensor:
    """What each row would add, (m,); blocks of rows bound the memory."""
    blocks = torch.split(kernel, 256)
    return torch.cat([(b - covered).clamp(min=0.0) @ weight for b in blocks])


def _narrow(x: Features) -> Tensor:
    """X itself, or U Σ of its leading singular vectors if it is wide."""
    width = min(MAX_COLUMNS, x.shape[0])
    if x.shape[1] <= width:
        return x.to_dense() if isinstance(x, CSR) else x.float()
    from sklearn.utils.extmath import randomized_svd  # takes a second to import

    matrix = x.to_scipy() if isinstance(x, CSR) else x.numpy(force=True)
    u, s, _ = randomized_svd(matrix, width, n_iter=2, random_state=0)
    return torch.from_numpy(np.ascontiguousarray((u * s).astype(np.float32)))
