"""What training steps share: random bits, large buffers, and a product used twice.

Random bits come from a counter. Whether entry (r, j) of a matrix is dropped depends on
the seed, the stage, the epoch, the number of the draw within the epoch, r and j, and on
nothing else: not on threads, nor on which rows are computed at once.
"""

from __future__ import annotations

import math
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import torch
from torch import Tensor

from elugcn.engine.private_torch import version
from elugcn.engine.sparse import CSR, Features

# glibc gives arrays above its largest M_MMAP_THRESHOLD back to the system at once, and
# the next step pays for their pages again.
LARGE_BYTES = 2**25

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_current: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


def mix(x: int) -> int:
    """A 64-bit number from which its neighbours' can't be guessed (splitmix64)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


@dataclass
class _Memo:
    """X W, with what it was computed from and how often that had been changed."""

    x: Features
    weight: Tensor
    product: Tensor
    versions: tuple[int, int] = (0, 0)


class Workspace:
    """Buffers and random bits of the training steps of one stage.

    A context manager: the operations that run inside use it. Tensors of a training
    step may be overwritten by the next step.

    Args:
        seed: Of the fit.
        stage: Of the fit; different stages draw different bits.
    """

    def __init__(self, seed: int, stage: int = 0) -> None:
        self._stage_key = mix(mix(seed & _MASK) + _GOLDEN * (stage + 1) & _MASK)
        self._tokens: list[Token[Workspace | None]] = []
        self._buffers: dict[tuple[tuple[int, ...], torch.dtype], list[Tensor]] = {}
        self._memo: _Memo | None = None
        self._wants_memo = False
        self.begin_step(0)

    def begin_step(self, epoch: int) -> None:
        """Start the training step of an epoch; the last step must be over."""
        self._step_key = mix(self._stage_key + _GOLDEN * (epoch + 1) & _MASK)
        self._draws = 0
        self._taken: dict[tuple[tuple[int, ...], torch.dtype], int] = {}

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.reset(self._tokens.pop())
        if not self._tokens:
            self._buffers.clear()
            self._memo = None

    def next_key(self) -> int:
        """The key of the next draw of this step, a 64-bit number."""
        self._draws += 1
        return mix(self._step_key + _GOLDEN * self._draws & _MASK)

    def buffer(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised tensor for this step; large ones are kept for the next."""
        if math.prod(shape) * like.element_size() <= LARGE_BYTES:
            return like.new_empty(shape)
        key = (shape, like.dtype)
        kept = self._buffers.setdefault(key, [])
        number = self._taken.get(key, 0)
        self._taken[key] = number + 1
        if number == len(kept):
            kept.append(like.new_empty(shape))
        # Another tensor of the same memory: its history must not stay here.
        return kept[number].detach()

    def known_product(self, x: Features, weight: Tensor) -> Tensor | None:
        """X W if it was computed before and none of the three has changed since.

        Validation computes the product of the weights that the next step starts from.
        """
        if torch.is_grad_enabled():
            self._wants_memo = True
        memo = self._memo
        if memo is None or memo.x is not x or memo.versions != _versions(memo):
            return None
        # A fused optimiser does not count its changes, so the weights are compared.
        return memo.product if torch.equal(memo.weight, weight) else None

    def remember_product(self, x: Features, weight: Tensor, product: Tensor) -> None:
        """Keep X W for the next step, if training steps ask for it."""
        if self._wants_memo:
            memo = _Memo(x, weight.detach().clone(), product.detach())
            memo.versions = _versions(memo)
            self._memo = memo

    def forget_product(self) -> None:
        """The remembered product may be overwritten from now on."""
        self._memo = None


def _versions(memo: _Memo) -> tuple[int, int]:
    x = memo.x.value if isinstance(memo.x, CSR) else memo.x
    return version(x), version(memo.product)


def current_workspace() -> Workspace | None:
    """The innermost workspace that was entered."""
    return _current.get()


def next_key() -> int:
    """The key of the next draw; outside any workspace from PyTorch's generator."""
    workspace = _current.get()
    if workspace is not None:
        return workspace.next_key()
    return int(torch.randint(2**63 - 1, ()))


def keep_level(p: float) -> int:
    """The number of 256 random bytes that keep an entry, at least one."""
    return max(1, round((1.0 - p) * 256))


def keep_mask(shape: tuple[int, int], p: float, key: int, like: Tensor) -> Tensor:
    """256/level where an entry is kept, else 0, for every entry of an n×m matrix."""
    n, m = shape
    column = torch.arange(m, device=like.device)
    drawn = _bytes(torch.arange(n, device=like.device)[:, None], column, key)
    level = keep_level(p)
    kept: Tensor = (drawn < level).to(like.dtype).mul_(256 / level)
    return kept


def keep_entries(a: CSR, p: float, key: int) -> Tensor:
    """The same for the stored entries of a matrix; j is the position in the row."""
    position = torch.arange(a.nnz, device=a.col.device) - a.crow.long()[a.row]
    level = keep_level(p)
    drawn = _bytes(a.row, position, key)
    kept: Tensor = (drawn < level).to(a.value.dtype).mul_(256 / level)
    return kept


def _bytes(row: Tensor, column: Tensor, key: int) -> Tensor:
    """The random byte of each entry, by broadcasting; the twin of loops/random.h.

    Columns come in blocks of 64 that share 16 words of 32 bits: column j has byte
    ⌊j/16⌋ mod 4 of word j mod 16. So a vector of words serves as many columns at once.
    """

    def shifted(x: Tensor, bits: int) -> Tensor:
        return (x >> bits) & (2 ** (64 - bits) - 1)  # zeros come in, not signs

    x = (row + 1) * _signed(_GOLDEN) + _signed(key)
    x = (x ^ shifted(x, 30)) * _signed(0xBF58476D1CE4E5B9)
    x = (x ^ shifted(x, 27)) * _signed(0x94D049BB133111EB)
    x = x ^ shifted(x, 31)
    low, high = x & 0xFFFFFFFF, shifted(x, 32)
    word = (column >> 6) * 16 + (column & 15)
    x = (word * 0x9E3779B9 + low) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    x = (((x ^ (x >> 15)) ^ high) * 0x846CA68B) & 0xFFFFFFFF
    x = x ^ (x >> 16)
    return (x >> (((column >> 4) & 3) * 8)) & 0xFF


def _signed(x: int) -> int:
    """The int64 with these 64 bits."""
    return x - 2**64 if x >= 2**63 else x
