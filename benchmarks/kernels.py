"""What each compiled loop, and oneDNN, takes beside what it replaces.

    python benchmarks/kernels.py > benchmarks/kernels.md

On the shapes of Cora (the hidden layer of one view, the loss, the random words of a
step) and of Photo (X W₁ and its gradient), one thread, alternately; medians of the
clock's microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch

from elugcn import compiled
from elugcn.core import dense
from elugcn.core.dense import add_transposed_product, dense_product
from elugcn.core.random import draw_bytes
from elugcn.nn import ProjectionHead
from elugcn.nn.activation import activated_product
from elugcn.nn.two_view_loss import Terms, two_view_loss

N, H, C, BITS = 2708, 64, 7, 392_000
ROWS, WORDS = 7487, 745
REPEATS = 100
Call = Callable[[], object]


def hidden() -> tuple[Call, Call]:
    """dropout(ReLU(Z + b)) W, and its gradients."""
    z, bias = torch.randn(N, H), torch.zeros(H, requires_grad=True)
    weight, scores = torch.randn(H, C), torch.randn(N, C)

    def forward() -> torch.Tensor:
        return activated_product([z], bias, weight, 0.5, True)

    def both() -> None:
        forward().backward(scores)
        bias.grad = None

    return forward, both


def loss() -> Call:
    """Eq. 12 with its gradient."""
    nodes = torch.randperm(N)
    elu, nelu = nodes[: 2 * N // 3], nodes[2 * N // 3 :]
    terms = Terms(torch.randint(0, C, (N,)), torch.rand(N) / N, elu, nelu, 0.5, 0.5)
    wide, head = torch.randn(N, 2 * C), ProjectionHead(C)
    return lambda: two_view_loss(wide, head, terms, 1.0, 0.1)


def timed(call: Call, switch: Callable[[bool], None]) -> tuple[float, float]:
    """Without and with what is switched, in microseconds."""
    times: dict[bool, list[float]] = {False: [], True: []}
    for i in range(REPEATS):
        for on, taken in times.items():
            switch(on)
            start = time.perf_counter()
            call()
            if i >= 5:
                taken.append((time.perf_counter() - start) * 1e6)
    switch(True)
    return median(times[False]), median(times[True])


def main() -> None:
    """A row a kernel."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loops, wide = compiled._loops, dense._wide_vectors()
    assert loops is not None, "elugcn was installed without its compiled loops"

    def with_loops(on: bool) -> None:
        compiled._loops = loops if on else None

    def with_onednn(on: bool) -> None:
        dense._wide_vectors = lambda: on and wide  # type: ignore[assignment]

    x, w, g = torch.rand(ROWS, WORDS), torch.randn(WORDS, H), torch.randn(ROWS, H)
    out = torch.zeros(H, WORDS)
    forward, both = hidden()
    rows: list[tuple[str, Call, Callable[[bool], None]]] = [
        ("random bytes", lambda: draw_bytes((BITS,), 0.5), with_loops),
        ("hidden layer", forward, with_loops),
        ("hidden layer and gradients", both, with_loops),
        ("loss", loss(), with_loops),
        ("dense X W₁", lambda: dense_product(x, w), with_onednn),
        ("its gradient", lambda: add_transposed_product(out, x, g), with_onednn),
    ]
    print("| what | before, µs | now, µs | ratio |\n|---|---|---|---|")
    for name, call, switch in rows:
        before, now = timed(call, switch)
        print(f"| {name} | {before:.0f} | {now:.0f} | {now / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
