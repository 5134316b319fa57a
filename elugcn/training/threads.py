"""How many threads a graph deserves, and what of PyTorch a fit sets for itself.

On small graphs a product takes microseconds and waking a second thread takes longer:
two threads were measured 10 to 30 times slower than one when the cores were busy.
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
    """Cores this process may use.

    A container often has fewer than the machine, and whoever sets ``OMP_NUM_THREADS``
    shares the machine with others.
    """
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
def alone(device: torch.device) -> Iterator[None]:
    """Run the block as if PyTorch were its own, then restore what was set.

    Fits in several threads of a process wait for each other: they would draw from the
    same generator, and come out otherwise each time. Inside gradients are computed and
    new tensors are float32, whatever holds outside.

    Args:
        device: Its generator is restored, and the CPU's.
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
