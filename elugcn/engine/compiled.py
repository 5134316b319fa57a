"""The loops in C, which are optional.

They are for float32 on the CPU and use as many threads as PyTorch; results do not
depend on how many. They check dtypes, strides and sizes of what they get. Where they
could not be compiled, and with ``ELUGCN_ENGINE=reference``, plain PyTorch is used.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

import torch

ENGINE = os.environ.get("ELUGCN_ENGINE", "fast")
# Of the two-view loss.
MAX_CLASSES = 64
# A draw: its key, the level that random bytes have to be below, 256/level.
Draw = tuple[int, int, float]
NOTHING_DROPPED: Draw = (0, 256, 1.0)

loops: Any = None
if ENGINE != "reference":
    with suppress(ImportError):  # there was no compiler
        loops = import_module("elugcn.engine._compiled")
        # Loops for narrower registers than PyTorch's own would be slower than those.
        if loops.widest(16) == 4 and torch.backends.cpu.get_cpu_capability() not in (
            "DEFAULT",
            "NO AVX",
        ):
            loops = None
