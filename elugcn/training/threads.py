"""How many threads a fit uses, and PyTorch's global state during a fit.

On small graphs a product takes microseconds and waking a second thread takes longer.
Two threads were measured to be 10 to 30 times slower than one on busy cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Multiplications in one sparse product below which one thread is the fastest.
SMALL = 1_000_000_000


def usable_cores() -> int:
    """Cores this process may use, at most ``OMP_NUM_THREADS``."""
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit)) if limit.isdigit() else cores)


def choose_threads(stored: int, width: int, requested: int | None = None) -> int:
    """Threads for products of ``stored`` entries with ``width`` columns."""
    if requested is not None:
        return requested
    return 1 if stored * width < SMALL else usable_cores()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run the block with ``count`` threads, then restore what was set."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Generators, threads and the default dtype belong to the process.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def isolated_torch_state(device: torch.device) -> Iterator[None]:
    """Run the block with PyTorch's default state, then restore the caller's.

    Inside the block gradients are computed and new tensors are float32. Fits in several
    threads of a process wait for each other, because they share one random generator.

    Args:
        device: Its generator and the CPU's are restored.
    """
    cuda = [device] if device.type == "cuda" else []
    with _ONE_AT_A_TIME:
        dtype = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            with (
                torch.random.fork_rng(devices=cuda),
                torch.inference_mode(False),
                torch.enable_grad(),
            ):
                yield
        finally:
            torch.set_default_dtype(dtype)
