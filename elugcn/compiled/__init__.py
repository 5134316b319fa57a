"""Loops of a training step in C, each of which PyTorch can run only as many small ones.

They are optional. Everything here has a twin beside its caller that does the same with
PyTorch, for machines where they could not be compiled, for other devices and dtypes,
and, but for sparse products, for more than one thread, of which PyTorch's own loops
make use. The environment variable ``ELUGCN_COMPILED=0`` leaves them out.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.graph import increment_version

_loops: ModuleType | None = None
if os.environ.get("ELUGCN_COMPILED") != "0":
    with suppress(ImportError):  # there was no compiler
        _loops = import_module("elugcn.compiled._loops")
        # Loops for narrower registers than PyTorch's own would be slower than those.
        narrow = _loops.use(512) == 128
        if narrow and torch.backends.cpu.get_cpu_capability() != "DEFAULT":
            _loops = None

# Of the loops with a weight of c columns: their sums have to fit a cache.
MAX_CLASSES = 32
# Of a sparse product.
LEAST_COLUMNS = 4
# What the width of a hidden layer has to be a multiple of.
WIDTHS = 4
# Numbers that the loss may keep between its two passes: two megabytes.
_ROOM = 2**19
# Bytes of a state of PyTorch's CPU generator. One of another size is not understood.
_STATE_BYTES = 5056


def available() -> bool:
    """Whether the loops were compiled and may be used."""
    return _loops is not None


def use(bits: int) -> int:
    """Take the loops for registers of at most so many bits, 128, 256 or 512.

    The widest that the processor has are taken without being asked for.

    Returns:
        How many bits those have that were taken.
    """
    if _loops is None:
        return 0
    taken: int = _loops.use(bits)
    return taken


def usable(like: Tensor) -> bool:
    """Whether the loops are for tensors like this one, now."""
    return (
        _loops is not None
        and like.dtype == torch.float32
        and like.device.type == "cpu"
        and torch.get_num_threads() == 1
    )


def draw_words(out: Tensor) -> None:
    """``out.random_(-2**63, None)``: the same words, from the same generator."""
    generator = torch.default_generator
    state = generator.get_state() if _loops is not None else None
    if _loops is None or state is None or state.numel() != _STATE_BYTES:
        out.random_(-(2**63), None)
        return
    _loops.draw_words(state.data_ptr(), _at(out, torch.int64), out.numel())
    _changed(out)
    generator.set_state(state)


def sparse_product(
    crow: Tensor, col: Tensor, value: Tensor, z: Tensor, out: Tensor
) -> None:
    """A Z for a matrix A in compressed rows, O(nnz·k), by as many threads as PyTorch.

    Args:
        crow: Row pointers, (n+1,), int32, from 0 on.
        col: Columns of the entries, int32, all below the rows of Z.
        value: The entries.
        z: Z, m×k, of at least ``LEAST_COLUMNS``.
        out: n×k, not ``z``.
    """
    assert _loops is not None
    rows, width = out.shape
    _same(col, value)
    if crow.numel() != rows + 1 or z.size(1) != width or width < LEAST_COLUMNS:
        raise ValueError(f"{crow.numel() - 1} rows times {tuple(z.shape)}")
    loop, rest = _loops.sparse_product, (_at(col, torch.int32), _at(value), _at(z))
    crow_at, out_at = _at(crow, torch.int32), _at(out)

    def some(first: int, last: int, *held: Tensor) -> None:
        # What is held outlives an interrupt of the thread that waits for this one.
        to = out_at + 4 * width * first
        loop(crow_at + 4 * first, *rest, to, last - first, width)

    # Parts of as many entries, not rows.
    count = torch.get_num_threads()
    wanted = torch.linspace(0, col.numel(), count + 1, dtype=torch.float64)
    ends = torch.searchsorted(crow, wanted[1:-1].to(torch.int32)).clamp(max=rows)
    first, *others = pairwise([0, *ends.tolist(), rows])
    tensors = crow, col, value, z, out
    started = [threading.Thread(target=some, args=(*p, *tensors)) for p in others]
    for part in started:
        part.start()
    some(*first)
    for part in started:
        part.join()
    _changed(out)


def activated_product(
    z: Tensor,
    bias: Tensor,
    drawn: Tensor | None,
    level: int,
    h: Tensor,
    weight: Tensor,
    out: Tensor,
) -> None:
    """H = ReLU(Z + b), zero where a byte is not below the level, and H W, in one pass.

    Args:
        z: Z, n×h.
        bias: b, (h,).
        drawn: Bytes, n×h; None: nothing is zeroed.
        level: What a byte has to be below.
        h: n×h, for H; may be ``z``.
        weight: W as ``filled`` gives it.
        out: n×c, for H W; its rows may be apart.
    """
    assert _loops is not None
    (rows, width), c = z.shape, out.size(1)
    _same(z, h, *([] if drawn is None else [drawn]))
    right = out.size(0) == rows and bias.numel() == width and c <= MAX_CLASSES
    if not right or tuple(weight.shape) != (width, _whole_eights(c)):
        raise ValueError(f"{tuple(z.shape)} times {tuple(weight.shape)}")
    _loops.activated_product(
        _at(z), _at(bias), 0 if drawn is None else _at(drawn, torch.uint8), level,
        _at(h), _at(weight), _rows_at(out), rows, width, out.stride(0), c,
    )  # fmt: skip
    _changed(h, out)


def activated_backward(
    grad: Tensor, weight: Tensor, h: Tensor, out: Tensor, sums: Tensor, bias: Tensor
) -> None:
    """The gradients of ``activated_product``, given that of H W.

    Args:
        grad: n×c; its rows may be apart.
        weight: Wᵀ, c×h.
        h: H, n×h.
        out: n×h, for the gradient of Z; may be ``h``.
        sums: c×h, to which the gradient of Wᵀ is added.
        bias: (h,), to which that of b is added.
    """
    assert _loops is not None
    rows, width = h.shape
    _same(h, out)
    _same(weight, sums)
    if tuple(weight.shape) != (grad.size(1), bias.numel()) or bias.numel() != width:
        raise ValueError(f"{tuple(grad.shape)} times {tuple(weight.shape)}")
    if grad.size(0) != rows or width % WIDTHS:
        raise ValueError(f"{tuple(grad.shape)} beside {tuple(h.shape)}")
    _loops.activated_backward(
        _rows_at(grad), _at(weight), _at(h), _at(out), _at(sums), _at(bias),
        rows, width, grad.stride(0), grad.size(1),
    )  # fmt: skip
    _changed(out, sums, bias)


def filled(weight: Tensor) -> Tensor:
    """W with its columns filled up with zeros to a multiple of eight."""
    c = weight.size(1)
    return F.pad(weight, (0, _whole_eights(c) - c)).contiguous()


def _whole_eights(c: int) -> int:
    return -(-c // 8) * 8


def keep(x: Tensor, drawn: Tensor, level: int, out: Tensor) -> None:
    """The entries of X whose byte is below the level, zero elsewhere."""
    assert _loops is not None
    _same(x, drawn, out)
    _loops.keep(_at(x), _at(drawn, torch.uint8), level, _at(out), x.numel())
    _changed(out)


def ones(drawn: Tensor, never: Tensor, level: int, out: Tensor) -> None:
    """``keep`` for an X of zeros and ones; ``never`` is 255 where X is zero, else 0."""
    assert _loops is not None
    _same(drawn, never, out)
    drawn_at, never_at = _at(drawn, torch.uint8), _at(never, torch.uint8)
    _loops.ones(drawn_at, never_at, level, _at(out), out.numel())
    _changed(out)


def two_views(
    wide: Tensor,
    grad: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    each: Tensor,
    kind: Tensor,
    tau: float,
    eta: float,
    contrast: float,
    entropy: float,
) -> tuple[float, Tensor, Tensor]:
    """Eq. 12 and its gradients to W and b; that of the views goes to ``grad``.

    Args:
        wide: [H̄ H̃], n×2c.
        grad: n×2c, may be ``wide``.
        weight: W, c×c, for at most ``MAX_CLASSES`` classes.
        bias: b, (c,).
        target: Class of each node, int64, all within 0 … c−1.
        each: Weight of each node's cross-entropy.
        kind: 1 for ELU nodes, 2 for NELU nodes, 0 for others, int8.
        tau: τ.
        eta: η.
        contrast: Weight of the contrast.
        entropy: Weight of each node's entropy.
    """
    assert _loops is not None
    n, c = wide.size(0), weight.size(0)
    _same(wide, grad)
    _same(target, each, kind)
    if c > MAX_CLASSES or wide.size(1) != 2 * c or target.numel() != n:
        raise ValueError(f"views of {tuple(wide.shape)} for {c} classes")
    sums, d = torch.zeros(c + 1, c, dtype=torch.float64), torch.empty(n)
    # What is computed twice otherwise, as long as that is a cache's worth.
    size = -(-n // 16) * 16 * (2 * c + 3)
    room = torch.empty(size) if size <= _ROOM else None
    if room is not None and room.data_ptr() % 64:
        room = None  # vectors are read whole
    loss: float = _loops.two_views(
        _at(wide), _at(grad), _at(weight), _at(bias), _at(sums, torch.float64),
        _at(target, torch.int64), _at(each), _at(kind, torch.int8), _at(d),
        n, c, tau, eta, contrast, entropy, 0 if room is None else room.data_ptr(),
    )  # fmt: skip
    _changed(grad)
    sums = sums.float()
    return loss, sums[:c], sums[c]


def _at(x: Tensor, dtype: torch.dtype = torch.float32) -> int:
    """Where a tensor is. What C is told must be so."""
    if x.dtype != dtype or x.device.type != "cpu" or not x.is_contiguous():
        raise ValueError(f"expected a contiguous {dtype} on the CPU, got {x.dtype}")
    return x.data_ptr()


def _rows_at(x: Tensor) -> int:
    """Where a float matrix is whose rows may be apart."""
    right = x.dtype == torch.float32 and x.device.type == "cpu" and x.stride(1) == 1
    if not right or x.stride(0) < x.size(1):
        raise ValueError(f"rows that are not whole: strides {x.stride()}")
    return x.data_ptr()


def _changed(*tensors: Tensor) -> None:
    """Tell autograd, which refuses gradients of what was overwritten since."""
    for x in tensors:
        if not x.is_inference():
            increment_version(x)


def _same(first: Tensor, *others: Tensor) -> None:
    for other in others:
        if other.shape != first.shape:
            raise ValueError(f"{tuple(other.shape)} beside {tuple(first.shape)}")
