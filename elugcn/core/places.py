"""Large arrays that are kept from one epoch to the next.

Above 32 MB the C library gives an array back to the system as soon as it is free, and
the next epoch pays for its pages again: with a million nodes, where every hidden layer
is that large, up to half of the time of a step. Below that the library keeps what is
freed, and a place of our own would gain nothing.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# glibc's largest M_MMAP_THRESHOLD.
LARGE = 2**25


def is_large(shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Whether an array is given back to the system as soon as it is free."""
    return math.prod(shape) * dtype.itemsize > LARGE


class Places:
    """Arrays by name; whoever asks again for a name gets the same memory.

    Args:
        keep: Else there are none, and every array is a new one.
    """

    def __init__(self, keep: bool = True) -> None:
        self.keep = keep
        self._kept: dict[str, Tensor] = {}

    def get(
        self, name: str, shape: tuple[int, ...], like: Tensor | torch.dtype
    ) -> Tensor | None:
        """Memory that may be overwritten, or None where a new array is as good.

        Args:
            name: What it is for, within one training step.
            shape: Of the array.
            like: Its type, and its device (by itself a type is for the CPU).
        """
        device = like.device if isinstance(like, Tensor) else torch.device("cpu")
        dtype = like.dtype if isinstance(like, Tensor) else like
        if not (self.keep and is_large(shape, dtype) and device.type == "cpu"):
            return None
        kept = self._kept.get(name)
        if kept is None or kept.shape != shape or kept.dtype != dtype:
            kept = self._kept[name] = torch.empty(shape, dtype=dtype)
        # Another tensor of the same memory: what becomes of it must not stay with us.
        return kept.detach()

    def new(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """``get``, or a new array."""
        place = self.get(name, shape, like)
        return like.new_empty(shape) if place is None else place

    def clear(self) -> None:
        """Give all of it back."""
        self._kept.clear()


# For what is not part of a training loop.
NOWHERE = Places(keep=False)
