"""The loops in C, for tensors that were checked: float32, on the CPU, of right shapes.

They are optional. Where they could not be compiled, for other devices and dtypes, and
with ``ELUGCN_ENGINE=reference``, the engine uses plain PyTorch. They use as many
threads as PyTorch; results do not depend on how many.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

if TYPE_CHECKING:
    from elugcn.engine.sparse import CSR

ENGINE = os.environ.get("ELUGCN_ENGINE", "fast")
# Of the two-view loss.
MAX_CLASSES = 64

_loops: ModuleType | None = None
if ENGINE != "reference":
    with suppress(ImportError):  # there was no compiler
        _loops = import_module("elugcn.engine._loops")
        # Loops for narrower registers than PyTorch's own would be slower than those.
        if _loops.widest(16) == 4 and torch.backends.cpu.get_cpu_capability() not in (
            "DEFAULT",
            "NO AVX",
        ):
            _loops = None

# A draw: its key, the level that random bytes have to be below, 256/level.
Draw = tuple[int, int, float]
NOTHING_DROPPED: Draw = (0, 256, 1.0)


def available() -> bool:
    """Whether the loops were compiled and may be used."""
    return _loops is not None


def use_lanes(lanes: int) -> int:
    """Take the loops for registers of at most so many floats: 4, 8 or 16.

    The widest that the processor has are taken without being asked for.

    Returns:
        How many floats the registers have that are used now.
    """
    return 0 if _loops is None else int(_loops.widest(lanes))


def fits(*tensors: Tensor) -> bool:
    """Whether the loops are for tensors like these."""
    return _loops is not None and all(
        x.dtype == torch.float32 and x.device.type == "cpu" for x in tensors
    )


def can_multiply(a: CSR, z: Tensor) -> bool:
    """Whether ``product`` can compute A Z."""
    return fits(a.value, z) and a.crow.dtype == torch.int32


def mask(x: Tensor, out: Tensor, draw: Draw, first: int = 0) -> Tensor:
    """``out`` = drop(X), n×m, where row 0 is row ``first`` of the whole matrix."""
    assert _loops is not None
    if x.shape != out.shape or x.dim() != 2:
        raise ValueError(f"{tuple(x.shape)} beside {tuple(out.shape)}")
    x_at, out_at = _at(torch.float32, x, out)
    n, m = x.shape
    _loops.mask(x_at, out_at, n, m, first, *draw, torch.get_num_threads())
    _changed(out)
    return out


def product(
    a: CSR,
    z: Tensor,
    out: Tensor,
    bias: Tensor | None = None,
    draw: Draw = NOTHING_DROPPED,
    transposed: bool = False,
) -> Tensor:
    """``out`` = drop(A) Z + b, or ``out`` + drop(A)ᵀ Z without the transposed indices.

    Args:
        a: A, n×m.
        z: Z, m×k (n×k).
        out: n×k (m×k).
        bias: b, (k,), for every row; not for the transpose.
        draw: Which entries of A are dropped.
        transposed: Multiply by the transpose.
    """
    assert _loops is not None
    n, k = a.crow.numel() - 1, z.size(1)
    shapes = ((n, k), (a.n_cols, k)) if transposed else ((a.n_cols, k), (n, k))
    wrong = bias is not None and (transposed or bias.numel() != k)
    if (z.shape, out.shape) != shapes or wrong or a.col.numel() != a.value.numel():
        raise ValueError(f"{a} times {tuple(z.shape)}")
    z = z.contiguous()
    crow_at, col_at = _at(torch.int32, a.crow, a.col)
    others = _at(torch.float32, a.value, z, bias, out)
    threads = torch.get_num_threads()
    _loops.product(crow_at, col_at, *others, n, k, transposed, *draw, threads)
    _changed(out)
    return out


def hidden(
    z: Tensor, left: Tensor | None, bias: Tensor, w: Tensor, out: Tensor, draw: Draw
) -> None:
    """``out`` = drop(ReLU(Z + b)) W; rows of Z and of ``out`` may be apart.

    Args:
        z: Z, n×h; where ``left`` is given R, r×h, for Z = L R.
        left: L, n×r, or None.
        bias: b, (h,).
        w: W, h×k.
        out: n×k.
        draw: What is dropped.
    """
    assert _loops is not None
    (rows, k), h = out.shape, bias.numel()
    z_at, right_at, left_at, rank = _view_at(z, left, rows, h)
    if tuple(w.shape) != (h, k):
        raise ValueError(f"{tuple(z.shape)} times {tuple(w.shape)}")
    bias_at, w_at = _at(torch.float32, bias, w)
    _loops.hidden(
        z_at, z.stride(0), left_at, right_at, rank, bias_at, w_at, _rows_at(out),
        out.stride(0), rows, h, k, *draw, torch.get_num_threads(),
    )  # fmt: skip
    _changed(out)


def hidden_back(
    grad: Tensor,
    z: Tensor,
    left: Tensor | None,
    grad_z: Tensor | None,
    bias: Tensor,
    w: Tensor,
    sums: Tensor,
    draw: Draw,
) -> None:
    """The gradients of ``hidden``, given that of its output.

    Args:
        grad: n×k; its rows may be apart.
        z: Z, n×h, or R, r×h.
        left: L, n×r, or None.
        grad_z: For the gradient of Z, with the strides of Z; may be Z. None where it
            is not needed.
        bias: b, (h,).
        w: W, h×k.
        sums: (k + 1 + r)×h, to which the gradients of Wᵀ, b and R are added.
        draw: What is dropped.
    """
    assert _loops is not None
    (rows, k), h = grad.shape, bias.numel()
    z_at, right_at, left_at, rank = _view_at(z, left, rows, h)
    if tuple(w.shape) != (h, k) or tuple(sums.shape) != (k + 1 + rank, h):
        raise ValueError(f"{tuple(grad.shape)} for {tuple(w.shape)}")
    grad_z_at = 0
    if grad_z is not None:
        if left is not None or grad_z.shape != z.shape or grad_z.stride() != z.stride():
            raise ValueError(f"{tuple(grad_z.shape)} beside {tuple(z.shape)}")
        grad_z_at = _rows_at(grad_z)
        _changed(grad_z)
    bias_at, w_at, sums_at = _at(torch.float32, bias, w, sums)
    _loops.hidden_back(
        _rows_at(grad), grad.stride(0), z_at, grad_z_at, z.stride(0), left_at,
        right_at, rank, bias_at, w_at, sums_at, rows, h, k, *draw,
        torch.get_num_threads(),
    )  # fmt: skip
    _changed(sums)


def two_views(
    wide: Tensor,
    grad: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    each: Tensor,
    kind: Tensor,
    *numbers: float,
) -> tuple[float, Tensor, Tensor]:
    """Eq. 12 and its gradients to W and b; that of the views goes to ``grad``.

    Args:
        wide: [H̄ H̃], n×2c.
        grad: n×2c.
        weight: W, c×c, for at most ``MAX_CLASSES`` classes.
        bias: b, (c,).
        target: Class of each node, int64, all within 0 … c−1.
        each: Weight of each node's cross-entropy.
        kind: 1 for ELU nodes, 2 for NELU nodes, 0 for others, int8.
        *numbers: τ, η, the weight of the contrast, and that of each node's entropy.
    """
    assert _loops is not None
    n, c = wide.size(0), weight.size(0)
    shapes = (wide.shape, grad.shape, weight.shape, bias.numel())
    nodes = (target.numel(), each.numel(), kind.numel())
    right = shapes == ((n, 2 * c), (n, 2 * c), (c, c), c) and nodes == (n, n, n)
    if not right or c > MAX_CLASSES:
        raise ValueError(f"views of {tuple(wide.shape)} for {c} classes")
    wide_at, grad_at, weight_at, bias_at, each_at = _at(
        torch.float32, wide, grad, weight, bias, each
    )
    sums = torch.zeros(c + 1, c, dtype=torch.float64)
    loss: float = _loops.two_views(
        wide_at, grad_at, weight_at, bias_at, *_at(torch.float64, sums),
        *_at(torch.int64, target), each_at, *_at(torch.int8, kind), n, c, *numbers,
        torch.get_num_threads(),
    )  # fmt: skip
    _changed(grad)
    sums = sums.float()
    return loss, sums[:c], sums[c]


def _view_at(
    z: Tensor, left: Tensor | None, rows: int, width: int
) -> tuple[int, int, int, int]:
    """Addresses of Z, of R and of L, 0 for what there is not; and the rank."""
    if z.size(1) != width or (z if left is None else left).size(0) != rows:
        raise ValueError(f"{tuple(z.shape)} for {rows} rows of {width}")
    if left is None:
        return _rows_at(z), 0, 0, 0
    if left.size(1) != z.size(0):
        raise ValueError(f"{tuple(left.shape)} times {tuple(z.shape)}")
    left_at, right_at = _at(torch.float32, left, z)
    return 0, right_at, left_at, z.size(0)


def _at(dtype: torch.dtype, *tensors: Tensor | None) -> list[int]:
    """The addresses of contiguous tensors (0 for None); others must not reach C."""
    out = []
    for x in tensors:
        if x is not None and not (
            x.dtype == dtype and x.device.type == "cpu" and x.is_contiguous()
        ):
            raise ValueError(f"expected a contiguous {dtype} on the CPU, got {x.dtype}")
        out.append(0 if x is None else x.data_ptr())
    return out


def _rows_at(x: Tensor) -> int:
    """The address of a float matrix whose rows may be apart."""
    right = x.dtype == torch.float32 and x.device.type == "cpu"
    whole = x.stride(1) == 1 or x.size(1) == 1
    if not right or not whole or (x.stride(0) < x.size(1) and x.size(0) > 1):
        raise ValueError(f"expected float32 rows on the CPU, strides {x.stride()}")
    return x.data_ptr()


def _changed(x: Tensor) -> None:
    """Tell autograd, which refuses gradients of what was overwritten since."""
    if not x.is_inference():
        increment_version(x)
