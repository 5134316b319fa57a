"""What the engine uses of PyTorch that is not part of its public interface.

Each is tried once, and has a public function to fall back to.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

# Rows, inner dimension and columns from which on oneDNN is ahead (measured).
_ROWS, _INNER, _COLUMNS = 256, 64, 16


def dense_product(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """``out`` = A B without gradients, by the faster of PyTorch's two libraries.

    ``torch.mm`` is MKL's, which on processors that are not Intel's leaves the widest
    vector instructions unused. oneDNN, which PyTorch brings too, uses them: on an AMD
    processor with AVX-512 it takes two fifths to half of the time.
    """
    if not _faster(a, b):
        return torch.mm(a, b, out=out)
    return out.copy_(_onednn(a, b.T))


def add_transposed_product(out: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``out`` + Bᵀ A in place, k×d; for a B of few columns it is faster than Aᵀ B."""
    if not _faster(a, b):
        return out.addmm_(b.T, a)
    return out.add_(_onednn(b.T, a.T))


def _onednn(a: Tensor, b: Tensor) -> Tensor:
    """A Bᵀ."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")
    return product


def _faster(a: Tensor, b: Tensor) -> bool:
    """Whether oneDNN is expected to be the faster one, for float32 on the CPU."""
    return (
        a.size(0) >= _ROWS
        and a.size(1) >= _INNER
        and b.size(1) >= _COLUMNS
        and has_onednn()
    )


@cache
def has_onednn() -> bool:
    """Whether ``mkldnn._linear_pointwise`` is there and multiplies as expected."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    try:
        a = torch.arange(6.0).view(2, 3)
        return torch.equal(_onednn(a, a), a @ a.T)
    except (AttributeError, RuntimeError, TypeError):
        return False
