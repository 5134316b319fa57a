"""Feature scaling, fitted once and applied alike to every later graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil
import torch
from torch import Tensor

from elugcn.data.features import sparse_rows
from elugcn.errors import InputError

KINDS = ("auto", "row", "standard", "none")

# Entries that are taken to double precision at once.
_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class FeatureScaler:
    """How X is scaled before any method sees it.

    ``row``: rows divided by their absolute sum (bags of words). ``standard``: columns
    to mean 0 and variance 1 (numeric columns of different units). ``none``: as given.
    ``auto`` takes ``row`` where most values are zero and none is negative, or the
    matrix is stored as a sparse one, ``none`` where all values lie in [0, 1] already,
    ``standard`` otherwise. To centre columns makes a sparse matrix dense: that is only
    done where it fits.
    """

    kind: str
    mean: Tensor | None = None
    std: Tensor | None = None

    @classmethod
    def fit(cls, x: Tensor, kind: str = "auto") -> FeatureScaler:
        """Choose and measure the scaling on the features of the training graph."""
        kind = kind_for(x, kind)
        if kind != "standard":
            return cls(kind)
        _check_room(x)
        std, mean = _std_mean(x if x.layout == torch.strided else x.to_dense())
        # What rounding leaves of a constant column grows with its value.
        varies = std > 1e-12 * (1 + mean.abs())
        std = torch.where(varies, std, torch.ones_like(std))
        return cls(kind, mean.float(), std.float())

    def __call__(self, x: Tensor) -> Tensor:
        """The scaled features, in the layout they came in (standard: dense)."""
        if self.kind == "row":
            return _row_normalize(x)
        if self.kind == "standard":
            assert self.mean is not None
            assert self.std is not None
            _check_room(x)
            dense = x if x.layout == torch.strided else x.to_dense()
            return (dense - self.mean).div_(self.std)
        return x

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and facts to rebuild it."""
        if self.mean is None or self.std is None:
            return {}, {"kind": self.kind}
        tensors = {"scaler.mean": self.mean, "scaler.std": self.std}
        return tensors, {"kind": self.kind}

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> FeatureScaler:
        """The inverse of ``state``."""
        mean, std = tensors.get("scaler.mean"), tensors.get("scaler.std")
        if (facts["kind"] == "standard") != (mean is not None and std is not None):
            raise ValueError("the scaling of the features is not whole")
        return cls(facts["kind"], mean, std)


def kind_for(x: Tensor, kind: str) -> str:
    """What ``auto`` means for these features; any other kind is itself."""
    if kind not in KINDS:
        raise InputError(f"feature_norm must be one of {', '.join(KINDS)}; got {kind!r}")
    return _choose(x) if kind == "auto" else kind


def _std_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    """Of each column, in double precision, which no more than a block is taken to."""
    n, d = x.shape
    size = max(1, _BLOCK_ENTRIES // d)
    if n <= size:
        std, mean = torch.std_mean(x.double(), dim=0, correction=0)
        return std, mean
    blocks = [x[i : i + size] for i in range(0, n, size)]
    mean = sum((b.sum(dim=0, dtype=torch.float64) for b in blocks), x.new_zeros(())) / n
    around = torch.zeros_like(mean)
    for block in blocks:
        around += (block.double() - mean).square_().sum(dim=0)
    return (around / n).sqrt(), mean


def _values(x: Tensor) -> Tensor:
    return x if x.layout == torch.strided else x.values()


def _choose(x: Tensor) -> str:
    values = _values(x)
    if values.numel() == 0:
        return "none"
    stored = int(torch.count_nonzero(values))
    density = stored / max(1, x.size(0) * x.size(1))
    sparse = x.layout != torch.strided or float(values.min()) >= 0.0
    if sparse and density < 0.25:
        return "row"
    inside = float(values.min()) >= 0.0 and float(values.max()) <= 1.0
    return "none" if inside else "standard"


def _check_room(x: Tensor) -> None:
    """Refuse to centre a sparse matrix that would not fit as a dense one."""
    if x.layout == torch.strided:
        return
    n, d = x.shape
    needed, free = 8.0 * n * d, psutil.virtual_memory().available  # X, and X scaled
    if needed > 0.9 * free:
        raise InputError(
            f"feature_norm 'standard' makes {n:,}×{d:,} sparse features dense: it "
            f"would need about {needed / 2**30:.1f} GB and {free / 2**30:.1f} GB are "
            "free: use 'row' or 'none'"
        )


def _row_normalize(x: Tensor) -> Tensor:
    if x.layout == torch.strided:
        total = x.abs().sum(dim=1, keepdim=True)
        return x / torch.where(total > 0, total, torch.ones_like(total))
    counts = x.crow_indices().diff()
    row = torch.repeat_interleave(torch.arange(x.size(0)), counts)
    total = torch.zeros(x.size(0)).index_add_(0, row, x.values().abs())
    total = torch.where(total > 0, total, torch.ones_like(total))
    scaled = x.values() / total[row]
    return sparse_rows(x.crow_indices(), x.col_indices(), scaled, x.size(1))
