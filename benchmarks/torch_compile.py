"""Whether ``torch.compile`` makes the loss of two views faster (it needs a compiler).

    python benchmarks/torch_compile.py > benchmarks/torch_compile.md

On a small graph the loss with its gradient is many small operations on n×c matrices,
which a compiler could join; the package has a loop in C for it. PyTorch's operations as
they are, compiled, and the loop alternate; medians of processor time. The time to
compile is the clock's, with an empty cache.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from elugcn import compiled as loops
from elugcn.nn.two_view_loss import Terms, _Loss

CASES = (("cora", 2708, 7), ("pubmed", 19717, 3), ("computers", 13381, 10))
REPEATS = 200
Inputs = tuple[Tensor, Tensor, Tensor]


class _Context:
    """Stands in for autograd's: keeps what would be saved."""

    def save_for_backward(self, *tensors: Tensor) -> None:
        self.saved = tensors


def make(n: int, c: int) -> tuple[Callable[..., tuple[Tensor, ...]], Inputs]:
    """The loss and its gradients as a function of the views and the head, and those."""
    nodes = torch.randperm(n)
    elu, nelu = nodes[: 3 * n // 4], nodes[3 * n // 4 :]
    terms = Terms(torch.randint(0, c, (n,)), torch.rand(n) / n, elu, nelu, 0.5, 0.5)

    def value_and_gradients(
        wide: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, ...]:
        context = _Context()
        loss = _Loss.forward(context, wide, weight, bias, terms, 1.0, 0.1, False)
        return loss, *context.saved

    return value_and_gradients, (
        torch.randn(n, 2 * c),
        torch.randn(c, c),
        torch.zeros(c),
    )


def measure(n: int, c: int) -> tuple[list[float], float]:
    """Milliseconds of an eager call, a compiled one, the loop; seconds to compile."""
    call, inputs = make(n, c)
    in_c = loops._loops
    assert in_c is not None, "elugcn was installed without its compiled loops"
    optimized = torch.compile(call, dynamic=False)
    loops._loops = None
    start = time.perf_counter()
    truth = call(*inputs)
    for theirs, ours in zip(optimized(*inputs), truth, strict=True):
        torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-6)
    seconds = time.perf_counter() - start
    contestants = [(call, None), (optimized, None), (call, in_c)]
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(REPEATS):
        for (contestant, use), taken in zip(contestants, times, strict=True):
            loops._loops = use
            begin = time.process_time_ns()
            contestant(*inputs)
            taken.append((time.process_time_ns() - begin) / 1e6)
    loops._loops = in_c
    return [median(taken) for taken in times], seconds


def main() -> None:
    """One row a graph."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("| shape of | PyTorch ms | torch.compile ms | to compile, s | loop in C ms |")
    print("|---|---|---|---|---|")
    for name, n, c in CASES:
        with tempfile.TemporaryDirectory() as cache, torch.no_grad():
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
            torch._dynamo.reset()
            (eager, optimized, loop), seconds = measure(n, c)
        print(
            f"| {name} | {eager:.2f} | {optimized:.2f} | {seconds:.0f} | {loop:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
