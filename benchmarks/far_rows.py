"""What it saves to ask early for rows that no cache holds.

    python benchmarks/far_rows.py > benchmarks/far_rows.md

A product with Â of a drawn graph of a million nodes and degree 10, by PyTorch's kernel
and by the compiled loop, alternately, into memory that is there, as in training.
Medians of the clock's milliseconds.
"""

from __future__ import annotations

import time
from statistics import median

import torch

from elugcn import compiled
from elugcn.core.products import multiply
from elugcn.core.sparse import normalized_adjacency
from elugcn.data.datasets import load_dataset

NODES, COLUMNS, REPEATS = 1_000_000, (10, 20, 40, 64), 9


def main() -> None:
    """A row for every number of columns."""
    loops = compiled._loops
    assert loops is not None, "elugcn was installed without its compiled loops"
    torch.manual_seed(0)
    data = load_dataset("sbm", n=NODES, n_classes=10, mean_degree=10.0, n_features=4)
    a = normalized_adjacency(data.edge_index, NODES)
    print("| columns | threads | PyTorch ms | compiled ms | ratio |")
    print("|---|---|---|---|---|")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for k in COLUMNS:
            z, out = torch.randn(NODES, k), torch.empty(NODES, k)
            times: list[list[float]] = [[], []]
            for _ in range(REPEATS):
                for used, taken in zip((None, loops), times, strict=True):
                    compiled._loops = used
                    start = time.perf_counter()
                    multiply(a.crow, a.col, a.value, NODES, z, out)
                    taken.append((time.perf_counter() - start) * 1e3)
            theirs, ours = (median(taken) for taken in times)
            ratio = ours / theirs
            row = f"| {k} | {threads} | {theirs:.0f} | {ours:.0f} | {ratio:.2f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()
