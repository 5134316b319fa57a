"""How many calls of PyTorch an epoch is, and where its time goes.

    python benchmarks/step_calls.py > benchmarks/step_calls.md

An epoch of the two-view model with its validation, as ``elugcn bench step`` has it. It
is clocked untouched; then every call of PyTorch and of the compiled loops is
intercepted, counted and clocked on its own, and the times of PyTorch's calls are added
up by the line of this package that made them. Medians of processor time. What is left
of the epoch is Python's and autograd's; the last column leaves out products and loops.
"""

from __future__ import annotations

import linecache
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import elugcn
from elugcn import compiled
from elugcn.bench.base import MEMBER, load, two_views
from elugcn.methods.base import Run, make_problem
from elugcn.methods.elu_gcn import fit_elu_gcn
from elugcn.training.progress import Advance, Progress
from elugcn.training.threads import threads

DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
EPOCHS = 40
PACKAGE = Path(elugcn.__file__).parent
LOOPS = (
    "draw_words", "activated_product", "activated_backward", "keep", "ones",
    "two_views",
)  # fmt: skip
PRODUCTS = ("mm(", "mm_(", "embedding_bag(", " @ ", "_product(", "_linear_pointwise(")
Lines = Counter[str]


class Calls(TorchDispatchMode):
    """Counts and clocks every call, by the line that made it."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.ms = 0, Counter[str]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        start = time.process_time_ns()
        out = func(*args, **(kwargs or {}))
        self.ms[_line()] += (time.process_time_ns() - start) / 1e6
        self.count += 1
        return out


class Epochs(Progress):
    """Clocks the epochs of the two views, or intercepts their calls."""

    def __init__(self, intercept: bool) -> None:
        self.intercept = intercept
        self.ms: list[float] = []
        self.calls: list[Calls] = []
        self.now = Calls()

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """Every epoch is between two reports of progress."""
        if name != MEMBER:
            yield lambda record: None
            return
        start = time.process_time_ns()

        def advance(record: dict[str, float]) -> None:
            nonlocal start
            self.ms.append((time.process_time_ns() - start) / 1e6)
            if self.intercept:
                self.now.__exit__(None, None, None)
                self.calls.append(self.now)
                self.now = Calls()
                self.now.__enter__()
            start = time.process_time_ns()

        if self.intercept:
            self.now.__enter__()
        yield advance
        if self.intercept:
            self.now.__exit__(None, None, None)


@contextmanager
def intercepted_loops(epochs: Epochs) -> Iterator[None]:
    """Within it the compiled loops are counted and clocked, too."""
    loops, before = compiled._loops, {}

    def clocked(name: str, loop: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            start = time.process_time_ns()
            out = loop(*args)
            epochs.now.ms[f"loop {name}"] += (time.process_time_ns() - start) / 1e6
            epochs.now.count += 1
            return out

        return call

    for name in LOOPS if loops is not None else ():
        before[name] = getattr(loops, name)
        setattr(loops, name, clocked(name, before[name]))
    try:
        yield
    finally:
        for name, loop in before.items():
            setattr(loops, name, loop)


def _line() -> str:
    """The innermost line of the package, or of the optimiser, that is being run."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        path = frame.f_code.co_filename.replace("\\", "/")
        for place in ("/elugcn/", "/torch/optim/"):
            if place in path and not path.endswith(__file__):
                return f"{path.rpartition(place)[2]}:{frame.f_lineno}"
        frame = frame.f_back
    return "autograd"


def measure(name: str) -> tuple[float, float, Lines]:
    """Milliseconds of an epoch, its number of calls, and milliseconds by line."""
    data, seen = load(name), []
    for intercept in (False, True):
        torch.manual_seed(0)
        problem = make_problem(data, two_views(1), torch.device("cpu"))
        epochs = Epochs(intercept)
        if intercept:
            with intercepted_loops(epochs):
                fit_elu_gcn(problem, two_views(EPOCHS), Run(progress=epochs))
        else:
            fit_elu_gcn(problem, two_views(EPOCHS), Run(progress=epochs))
        seen.append(epochs)
    untouched, touched = seen
    calls = touched.calls[2:]  # the first have caches to fill
    lines = {line for one in calls for line in one.ms}
    by_line = Lines({x: median(one.ms[x] for one in calls) for x in lines})  # type: ignore[arg-type]
    return median(untouched.ms), median(one.count for one in calls), by_line


def is_product(line: str) -> bool:
    """Whether the line computes one of the products that the floor has."""
    path, _, number = line.rpartition(":")
    text = linecache.getline(f"{PACKAGE}/{path}", int(number)) if number else ""
    return any(word in text for word in PRODUCTS)


def main() -> None:
    """A row a graph."""
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print("| dataset | epoch ms | calls | products ms | loops ms | longest other |")
        print("|---|---|---|---|---|---|")
        for name in DATASETS:
            ms, calls, by_line = measure(name)
            loops = sum(v for k, v in by_line.items() if k.startswith("loop "))
            others = Lines(
                {
                    k: v
                    for k, v in by_line.items()
                    if not k.startswith("loop ") and not is_product(k)
                }
            )
            products = sum(by_line.values()) - loops - sum(others.values())
            line, longest = others.most_common(1)[0]
            print(
                f"| {name} | {ms:.2f} | {calls:.0f} | {products:.2f} | {loops:.2f} "
                f"| {line}, {longest / ms:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
