"""Feature scaling, fitted on one graph and applied alike to every later graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil
import torch
from torch import Tensor

from elugcn.data.features import blocks, sparse_rows
from elugcn.errors import InputError

KINDS = ("auto", "row", "standard", "column", "tfidf", "none")

# Bags of words have fewer non-zero values than this.
_SPARSE = 0.25


@dataclass(frozen=True)
class FeatureScaler:
    """How X is scaled before a method sees it.

    - ``row``: rows are divided by their absolute sum (bags of words).
    - ``standard``: columns get mean 0 and variance 1 (numbers of different units).
      This makes a sparse matrix dense and is refused if it would not fit.
    - ``mixed``: as ``standard``, but 0/1 columns are kept.
    - ``column``: columns are divided by their standard deviation; zeros stay zeros.
    - ``tfidf``: columns are multiplied by their inverse document frequency
      log((1+n)/(1+count)) + 1 (rare words count more); then rows get length 1.
    - ``none``: as given.

    ``auto`` decides by column. It takes ``row`` for sparse matrices and for mostly
    zero, non-negative ones, unless a few dense columns of large numbers would outweigh
    all others in the row sums. It takes ``none`` if all values lie in [0, 1]. Otherwise
    it takes ``standard``, or ``mixed`` if some columns are 0/1.
    """

    kind: str
    mean: Tensor | None = None  # of each column, for standard and mixed
    std: Tensor | None = None  # what columns are divided by

    @classmethod
    def fit(cls, x: Tensor, kind: str = "auto") -> FeatureScaler:
        """Choose and measure the scaling on the training graph's X; O(n·d)."""
        if kind not in KINDS:
            raise InputError(f"feature_norm={kind!r}: expected {', '.join(KINDS)}")
        if kind == "auto":
            kind = _choose(x)
        if kind in ("row", "none"):
            return cls(kind)
        if kind == "tfidf":
            return cls(kind, std=_inverse_idf(x))
        if kind == "column":
            return cls(kind, std=_column_std(x))
        dense = _dense(x)
        std, mean = _std_mean(dense)
        # The rounding error of a constant column grows with its value.
        std[std <= 1e-12 * (1 + mean.abs())] = 1
        if kind == "mixed":
            kept = _binary(dense)
            mean[kept], std[kept] = 0, 1
        return cls(kind, mean.float(), std.float())

    def __call__(self, x: Tensor) -> Tensor:
        """The scaled features; sparse rows stay sparse, other results are dense."""
        if self.kind == "row":
            return _divide_rows(x, 1)
        if self.std is None:
            return x
        if self.mean is not None:
            return (_dense(x) - self.mean).div_(self.std)
        x = _divide_columns(x, self.std)
        return _divide_rows(x, 2) if self.kind == "tfidf" else x

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON values to rebuild it from."""
        measured = {"scaler.mean": self.mean, "scaler.std": self.std}
        tensors = {name: value for name, value in measured.items() if value is not None}
        return tensors, {"kind": self.kind}

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> FeatureScaler:
        """The inverse of ``state``."""
        kind = facts["kind"]
        mean, std = tensors.get("scaler.mean"), tensors.get("scaler.std")
        kinds = {
            (False, False): ("row", "none"),
            (False, True): ("column", "tfidf"),
            (True, True): ("standard", "mixed"),
        }
        if kind not in kinds.get((mean is not None, std is not None), ()):
            raise ValueError("the saved feature scaling is incomplete")
        return cls(kind, mean, std)


def _choose(x: Tensor) -> str:
    """What ``auto`` means for these features."""
    dense = x.layout == torch.strided
    values = x if dense else x.values()
    if values.numel() == 0:
        return "none"
    density = int(torch.count_nonzero(values)) / (x.size(0) * x.size(1))
    low, high = float(values.min()), float(values.max())
    if density < _SPARSE and (not dense or (low >= 0 and not _outweighed(x))):
        return "row"
    if low >= 0 and high <= 1:
        return "none"
    return "mixed" if dense and bool(_binary(x).any()) else "standard"


def _outweighed(x: Tensor) -> bool:
    """Whether dense columns of large numbers make up most of the row sums."""
    dense = (torch.count_nonzero(x, dim=0) >= x.size(0) / 2) & (x.amax(dim=0) > 1)
    totals = x.sum(dim=0, dtype=torch.float64)
    return bool(totals[dense].sum() > totals[~dense].sum())


def _binary(x: Tensor) -> Tensor:
    """Columns that hold nothing but zeros and ones, bool [d]."""
    return torch.stack([((b == 0) | (b == 1)).all(0) for b in blocks(x)]).all(0)


def _std_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    """Per column, in double precision, one block of rows at a time."""
    parts, n = blocks(x), x.size(0)
    mean = torch.stack([b.sum(0, dtype=torch.float64) for b in parts]).sum(0) / n
    around = torch.zeros_like(mean)
    for block in parts:
        around += (block.double() - mean).square_().sum(dim=0)
    return (around / n).sqrt(), mean


def _dense(x: Tensor) -> Tensor:
    """The dense matrix; one that would not fit is refused."""
    if x.layout == torch.strided:
        return x
    n, d = x.shape
    needed, free = 8.0 * n * d, psutil.virtual_memory().available  # X, and X scaled
    if needed > 0.9 * free:
        raise InputError(
            f"feature_norm='standard' makes {n:,}×{d:,} sparse features dense; this "
            f"needs {needed / 2**30:.1f} GB but only {free / 2**30:.1f} GB are free: "
            "use 'row' or 'none'"
        )
    return x.to_dense()


def _column_std(x: Tensor) -> Tensor:
    """Standard deviation of each column, 1 for constant ones; sparse rows stay so."""
    if x.layout == torch.strided:
        std, mean = _std_mean(x)
    else:
        n, d = x.shape
        value = x.values().double()
        sums = torch.zeros(2, d, dtype=torch.float64)
        sums.index_add_(1, x.col_indices(), torch.stack([value, value.square()]))
        mean, square = sums / n
        std = (square - mean.square()).clamp(min=0).sqrt()
    return torch.where(std <= 1e-6 * mean.abs() + 1e-12, 1, std).float()


def _inverse_idf(x: Tensor) -> Tensor:
    """1 / (log((1+n)/(1+count)) + 1) of each column; count: its non-zero values."""
    n, d = x.shape
    if x.layout == torch.strided:
        count = torch.count_nonzero(x, dim=0)
    else:
        count = torch.bincount(x.col_indices()[x.values() != 0], minlength=d)
    return 1 / (torch.log((1 + n) / (1 + count)) + 1)


def _divide_columns(x: Tensor, divisor: Tensor) -> Tensor:
    if x.layout == torch.strided:
        return x / divisor
    value = x.values() / divisor[x.col_indices()]
    return sparse_rows(x.crow_indices(), x.col_indices(), value, x.size(1))


def _divide_rows(x: Tensor, p: int) -> Tensor:
    """Rows divided by their p-norm; zero rows stay."""
    if x.layout == torch.strided:
        norm = torch.linalg.vector_norm(x, p, dim=1, keepdim=True)
        return x / torch.where(norm > 0, norm, 1)
    counts = x.crow_indices().diff()
    row = torch.repeat_interleave(torch.arange(x.size(0)), counts)
    norm = torch.zeros(x.size(0)).index_add_(0, row, x.values().abs() ** p) ** (1 / p)
    scaled = x.values() / torch.where(norm > 0, norm, 1)[row]
    return sparse_rows(x.crow_indices(), x.col_indices(), scaled, x.size(1))
