"""How many calls of PyTorch an epoch is, and which of its lines take longest.

    python benchmarks/step_calls.py > benchmarks/step_calls.md

An epoch of the two-view model with its validation, as ``elugcn bench step`` has it. It
is clocked untouched; then every call is intercepted, counted and clocked on its own,
and the times of the calls are added up by the line of this package that made them.
Medians of processor time. The last column leaves out the products, which are the floor.
"""

from __future__ import annotations

import linecache
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import elugcn
from elugcn.bench.base import MEMBER, load, two_views
from elugcn.methods.base import Run, make_problem
from elugcn.methods.elu_gcn import fit_elu_gcn
from elugcn.training.progress import Advance, Progress
from elugcn.training.threads import threads

DATASETS = ("cora", "citeseer", "pubmed", "photo", "computers")
EPOCHS = 40
PACKAGE = Path(elugcn.__file__).parent
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

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Advance]:
        """Every epoch is between two reports of progress."""
        if name != MEMBER:
            yield lambda record: None
            return
        start, mode = time.process_time_ns(), Calls()

        def advance(record: dict[str, float]) -> None:
            nonlocal start, mode
            self.ms.append((time.process_time_ns() - start) / 1e6)
            if self.intercept:
                mode.__exit__(None, None, None)
                self.calls.append(mode)
                mode = Calls()
                mode.__enter__()
            start = time.process_time_ns()

        if self.intercept:
            mode.__enter__()
        yield advance
        if self.intercept:
            mode.__exit__(None, None, None)


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
    return any(word in text for word in ("mm(", "mm_(", "embedding_bag(", " @ "))


def main() -> None:
    """A row a graph."""
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print("| dataset | epoch ms | calls | random bits ms | longest other line |")
        print("|---|---|---|---|---|")
        for name in DATASETS:
            ms, calls, by_line = measure(name)
            bits = sum(v for k, v in by_line.items() if k.startswith("core/random"))
            others = Lines({k: v for k, v in by_line.items() if not is_product(k)})
            line, longest = others.most_common(1)[0]
            print(
                f"| {name} | {ms:.2f} | {calls:.0f} | {bits:.2f} "
                f"| {line}, {longest / ms:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
