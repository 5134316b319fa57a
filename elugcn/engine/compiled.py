"""The loops in C, where they could be compiled."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from elugcn.engine.sparse import CSR

# "reference" leaves out everything but plain PyTorch.
ENGINE = os.environ.get("ELUGCN_ENGINE", "fast")


def can_multiply(a: CSR, z: Tensor) -> bool:
    """Whether ``product`` can compute A Z."""
    return False


def product(a: CSR, z: Tensor, out: Tensor) -> Tensor:
    """A Z."""
    raise NotImplementedError
