"""Explicit ELU graphs: k entries per row, or the paper's 10 % of all entries.

Rows are computed in blocks, and memory is checked before the work starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import psutil
import scipy.sparse as sp
import torch
from torch import Tensor

from elugcn.engine import CSR
from elugcn.errors import InputError

if TYPE_CHECKING:
    from elugcn.elu.low_rank_graph import ELUGraph

GraphMode = Literal["implicit", "topk", "paper"]

BLOCK_ENTRIES = 1 << 24  # entries of S that are held at once: 64 MB
ENTRY_BYTES = 48  # per kept entry at the peak, measured


def topk_entries(graph: ELUGraph, k: int) -> CSR:
    """The k entries of largest |value| in each row; exact zeros are not stored.

    O(g·n·c) time for g distinct rows of the left factor, O(n·k) memory.
    """
    n, m = graph.shape
    if k < 1:
        raise InputError(f"topk must be at least 1; got {k}")
    k = min(k, m)
    check_mode(n, "topk", k, 0.0)

    def largest(rows: Tensor) -> Tensor:
        index = torch.topk(rows.abs(), k, dim=1, sorted=False).indices
        return torch.zeros_like(rows, dtype=torch.bool).scatter_(1, index, True)

    return _stored(graph, largest)


def largest_entries(graph: ELUGraph, keep: float = 0.1) -> CSR:
    """The share ``keep`` of all n² entries that is largest in absolute value.

    Entries equal to the threshold are kept: the paper sets entries *below* it to zero.
    O(n²·c) time in blocks of rows, O(keep·n²) memory, checked first.
    """
    if not 0.0 < keep <= 1.0:
        raise InputError(f"keep must be in (0, 1]; got {keep}")
    check_mode(graph.shape[0], "paper", 0, keep)
    threshold = quantile(graph, 1.0 - keep) if keep < 1.0 else 0.0
    return _stored(graph, lambda rows: rows.abs() >= threshold)


def check_mode(n: int, mode: GraphMode, topk: int, keep: float) -> None:
    """Refuse an explicit graph of n nodes that cannot fit in memory."""
    if mode == "implicit":
        return
    entries, what, instead = keep * n * n, "'paper'", "or 'topk'"
    if mode == "topk":
        k = min(topk, n)
        entries, what, instead = n * k, f"'topk' with k = {k:,}", "or a smaller k"
    needed = entries * ENTRY_BYTES + 6 * 4 * BLOCK_ENTRIES
    available = psutil.virtual_memory().available
    if needed > 0.9 * available:
        raise InputError(
            f"graph mode {what} would need about {needed / 2**30:.1f} GB for {n:,} "
            f"nodes and {available / 2**30:.1f} GB are free: use 'implicit' (the exact "
            f"graph in factors) {instead}"
        )


def quantile(graph: ELUGraph, q: float) -> float:
    """The entry of rank ⌈q·n²⌉ among the sorted |S_ij|, in two passes over the rows.

    The bits of a non-negative float are ordered as the float is. A histogram of the
    upper 16 bits finds the bucket, and one of the lower 16 bits the value: exact, with
    2¹⁶ counters instead of n² entries.
    """
    n, m = graph.shape
    distinct, group = graph.distinct()
    copies = torch.ones(n) if group is None else torch.bincount(group.cpu())
    # The rank counts from 1; the slack makes 0.9 of 100 the 90th despite rounding.
    rank, found = max(1, math.ceil(q * n * m - 1e-6)), 0
    for shift in (16, 0):
        count = torch.zeros(1 << 16, dtype=torch.float64)
        for index, rows in _blocks(distinct):
            bits = rows.abs().contiguous().view(torch.int32).reshape(-1)
            weight = copies[index].double().repeat_interleave(m)
            if not shift:
                inside = (bits >> 16) == found
                bits, weight = bits[inside], weight[inside]
            digit = (bits >> shift) & 0xFFFF
            count += torch.bincount(digit, weights=weight, minlength=1 << 16)
        before = count.cumsum(0)
        bucket = int(torch.searchsorted(before, float(rank)))
        rank -= int(before[bucket - 1]) if bucket else 0
        found = found << 16 | bucket
    return float(np.array([found], np.int32).view(np.float32)[0])


def _stored(graph: ELUGraph, choose: Callable[[Tensor], Tensor]) -> CSR:
    """The entries that ``choose`` marks in blocks of rows; equal rows are made once."""
    distinct, group = graph.distinct()
    columns, values, counts = [], [], [torch.zeros(1, dtype=torch.int64)]
    for _, rows in _blocks(distinct):
        chosen = choose(rows) & (rows != 0)
        counts.append(chosen.sum(dim=1))
        columns.append(chosen.nonzero()[:, 1].int())
        values.append(rows[chosen])
    crow = torch.cat(counts).cumsum(0)
    arrays = [a.numpy() for a in (torch.cat(values), torch.cat(columns), crow)]
    matrix = sp.csr_matrix(tuple(arrays), shape=(crow.numel() - 1, graph.shape[1]))
    return CSR.from_scipy(matrix if group is None else matrix[group.numpy(force=True)])


def _blocks(graph: ELUGraph) -> Iterator[tuple[Tensor, Tensor]]:
    """Dense blocks of rows on the CPU, and their numbers."""
    n, m = graph.shape
    size = max(1, BLOCK_ENTRIES // max(1, m))
    for index in torch.split(torch.arange(n), size):
        yield index, graph.rows(index).float().cpu()
