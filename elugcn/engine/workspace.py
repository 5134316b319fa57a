"""What training steps share: random bits, large buffers, and a product used twice.

Random bits come from a counter. Whether entry (r, j) of a matrix is dropped depends on
the seed, the stage, the epoch, the number of the draw within the epoch, r and j, and on
nothing else: not on threads, nor on which rows are computed at once.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from elugcn.engine.compiled import NOTHING_DROPPED, Draw

if TYPE_CHECKING:
    from elugcn.engine.sparse import CSR, Features

# glibc gives arrays above its largest M_MMAP_THRESHOLD back to the system at once, and
# the next step pays for their pages again.
LARGE_BYTES = 2**25

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
# The innermost workspace that was entered.
current: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


def mix(x: int) -> int:
    """A 64-bit number from which its neighbours' can't be guessed (splitmix64)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class Workspace:
    """Buffers and random bits of the training steps of one stage.

    A context manager: the operations that run inside use it. Tensors of a training
    step may be overwritten by the next step.

    Different stages of a fit draw different bits.
    """

    def __init__(self, seed: int, stage: int = 0) -> None:
        self._stage_key = mix(mix(seed & _MASK) + _GOLDEN * (stage + 1) & _MASK)
        self._tokens: list[Token[Workspace | None]] = []
        self._buffers: dict[tuple[tuple[int, ...], torch.dtype], list[Tensor]] = {}
        # The X whose product with the weights a training step starts from.
        self.wanted: Features | None = None
        self._known: tuple[Tensor, Tensor, tuple[int, int]] | None = None
        self.begin_step(0)

    def begin_step(self, epoch: int) -> None:
        """Start the training step of an epoch; the last step must be over."""
        self._step_key = mix(self._stage_key + _GOLDEN * (epoch + 1) & _MASK)
        self._draws = 0
        self._taken: dict[tuple[tuple[int, ...], torch.dtype], int] = {}

    def __enter__(self) -> Self:
        self._tokens.append(current.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        current.reset(self._tokens.pop())
        if not self._tokens:
            self._buffers.clear()
            self._known = None

    def next_key(self) -> int:
        """The key of the next draw of this step, a 64-bit number."""
        self._draws += 1
        return mix(self._step_key + _GOLDEN * self._draws & _MASK)

    def buffer(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised tensor for this step that is kept for the next."""
        key = (shape, like.dtype)
        kept = self._buffers.setdefault(key, [])
        number = self._taken.get(key, 0)
        self._taken[key] = number + 1
        if number == len(kept):
            kept.append(like.new_empty(shape))
        elif not kept[number].is_inference():
            increment_version(kept[number])  # gradients of the last step are refused
        # Another tensor of the same memory: its history must not stay here.
        return kept[number].detach()

    def take_product(self, x: Features, weight: Tensor) -> Tensor | None:
        """X W for a training step, whose it is to overwrite; None if it is not known.

        Validation computes the product of the weights that the next step starts from.
        """
        known, self._known = self._known, None
        before, self.wanted = self.wanted, x
        if known is None or before is not x:
            return None
        of, product, versions = known
        # A fused optimiser does not count its changes, so the weights are compared.
        unchanged = versions == _versions(x, product) and torch.equal(of, weight)
        return product if unchanged else None

    def remember_product(self, x: Features, weight: Tensor, product: Tensor) -> None:
        """Keep X W of the wanted X for the next step."""
        product = product.detach()
        self._known = weight.detach().clone(), product, _versions(x, product)


def _versions(x: Features, product: Tensor) -> tuple[int, int]:
    """How often autograd saw each change; -1 for a tensor it does not watch."""
    stored = x if isinstance(x, Tensor) else x.value
    return getattr(stored, "_version", -1), getattr(product, "_version", -1)


def next_draws(p: float, count: int = 1) -> list[Draw]:
    """Draws that drop with probability p; their keys are the current workspace's.

    Outside any workspace they are from PyTorch's generator.
    """
    if p == 0.0:
        return [NOTHING_DROPPED] * count
    level = max(1, round((1.0 - p) * 256))
    workspace = current.get()
    next_key = _any_key if workspace is None else workspace.next_key
    return [(next_key(), level, 256 / level) for _ in range(count)]


def _any_key() -> int:
    return int(torch.randint(2**63 - 1, ()))


def keep_mask(shape: tuple[int, int], p: float, like: Tensor) -> Tensor:
    """1/(1−p) where an entry of an n×m matrix is kept, else 0."""
    row = torch.arange(shape[0], device=like.device)[:, None]
    return _kept(row, torch.arange(shape[1], device=like.device), p, like)


def keep_entries(a: CSR, p: float) -> Tensor:
    """The same for the stored entries of a matrix; j is the position in the row."""
    position = torch.arange(a.nnz, device=a.col.device) - a.crow.long()[a.row]
    return _kept(a.row, position, p, a.value)


def _kept(row: Tensor, column: Tensor, p: float, like: Tensor) -> Tensor:
    [(key, level, scale)] = next_draws(p)
    kept: Tensor = (_bytes(row, column, key) < level).to(like.dtype).mul_(scale)
    return kept


def _bytes(row: Tensor, column: Tensor, key: int) -> Tensor:
    """The random byte of each entry, by broadcasting; the twin of loops/random.h.

    Columns come in blocks of 64 that share 16 words of 32 bits: column j has byte
    ⌊j/16⌋ mod 4 of word j mod 16. So a vector of words serves as many columns at once.
    """

    def shifted(x: Tensor, bits: int) -> Tensor:
        out: Tensor = (x >> bits) & (2 ** (64 - bits) - 1)  # zeros come in, not signs
        return out

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
    byte: Tensor = (x >> (((column >> 4) & 3) * 8)) & 0xFF
    return byte


def _signed(x: int) -> int:
    """The int64 with these 64 bits."""
    return x - 2**64 if x >= 2**63 else x
