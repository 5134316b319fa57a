"""Explicit ELU graphs: k entries per row, or the paper's 10 % of all entries.

The paper keeps the 10 % largest of all n² absolute entries: 0.7 M on Cora, 39 M on
Pubmed. Rows are computed in blocks, and memory is checked before the work starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import psutil
import torch
from torch import Tensor

from elugcn.elu.low_rank_graph import (
    BLOCK_ENTRIES,
    ELUGraph,
    ExplicitGraph,
    GraphMode,
    LowRankGraph,
)
from elugcn.engine import CSR
from elugcn.errors import InputError

# Bytes per kept entry at the peak, measured: value and column of the blocks and of
# their join, and the positions from which repeated rows are gathered.
_PAPER_BYTES = 48
# The same for k entries per row, which need no positions.
_TOPK_BYTES = 20
MAX_ENTRIES = 2**31 - 1  # 32-bit row pointers count no further


def topk_graph(graph: ELUGraph, k: int) -> ExplicitGraph:
    """The k entries of largest |value| in each row; exact zeros are not stored.

    O(g·n·c) time for g distinct rows of the left factor, O(n·k) memory.
    """
    n, m = graph.shape
    if k < 1:
        raise InputError(f"topk must be at least 1; got {k}")
    k = min(k, m)
    check_mode(n, "topk", k, 0.0)
    columns, values = [], []
    for rows in _distinct_blocks(graph):
        index = torch.topk(rows.abs(), k, dim=1, sorted=False).indices
        index = index.sort(dim=1).values
        columns.append(index.to(torch.int32))
        values.append(rows.gather(1, index))
    column, value = torch.cat(columns), torch.cat(values)
    group = _group(graph)
    if group is not None:
        column, value = column[group], value[group]
    crow = torch.arange(0, n * k + 1, k)
    kept = value.reshape(-1) != 0
    crow = torch.cat([crow.new_zeros(1), kept.long().cumsum(0)])[crow]
    column, value = column.reshape(-1)[kept], value.reshape(-1)[kept]
    return ExplicitGraph(_csr(crow, column, value, m), mode="topk")


def paper_graph(graph: ELUGraph, keep: float = 0.1) -> ExplicitGraph:
    """The share ``keep`` of all n² entries that is largest in absolute value.

    Entries equal to the threshold are kept: the paper sets entries *below* it to zero.
    O(n²·c) time in blocks of rows, O(keep·n²) memory, checked first.
    """
    if not 0.0 < keep <= 1.0:
        raise InputError(f"keep must be in (0, 1]; got {keep}")
    n, m = graph.shape
    check_mode(n, "paper", 0, keep)
    threshold = quantile(graph, 1.0 - keep) if keep < 1.0 else 0.0
    columns, values, counts = [], [], []
    for rows in _distinct_blocks(graph):
        chosen = (rows.abs() >= threshold) & (rows != 0)
        counts.append(chosen.sum(dim=1))
        columns.append(chosen.nonzero()[:, 1].to(torch.int32))
        values.append(rows[chosen])
    crow = _pointers(torch.cat(counts))
    column, value = torch.cat(columns), torch.cat(values)
    group = _group(graph)
    if group is not None:
        # Row i of the result is row group[i] of the distinct ones.
        count = crow.diff()[group]
        start, crow = crow[group], _pointers(count)
        at = torch.arange(int(crow[-1])) + (start - crow[:-1]).repeat_interleave(count)
        column, value = column[at], value[at]
    return ExplicitGraph(_csr(crow, column, value, m), mode="paper")


def check_mode(n: int, mode: GraphMode, topk: int, keep: float) -> None:
    """Refuse an explicit graph of n nodes that cannot fit in memory."""
    if mode == "implicit":
        return
    if mode == "paper":
        what, needed, instead = "'paper'", keep * n * n * _PAPER_BYTES, "or 'topk'"
    else:
        k = min(topk, n)
        if n * k > MAX_ENTRIES:
            raise InputError(f"{n * k:,} entries are too many for an explicit graph")
        what, instead = f"'topk' with k = {k:,}", "or a smaller k"
        needed = n * k * _TOPK_BYTES
    needed += 6 * 4 * BLOCK_ENTRIES
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
    if not 0.0 <= q <= 1.0:
        raise InputError(f"the quantile must be in [0, 1]; got {q}")
    n, m = graph.shape
    # The rank counts from 1; the slack makes 0.9 of 100 the 90th despite rounding.
    target = max(1, math.ceil(q * n * m - 1e-6))
    high = torch.zeros(1 << 16, dtype=torch.float64)
    for bits, weight in _bit_blocks(graph):
        high += torch.bincount(bits >> 16, weights=weight, minlength=1 << 16)
    before = high.cumsum(0)
    bucket = int(torch.searchsorted(before, float(target)))
    target -= int(before[bucket - 1]) if bucket else 0
    low = torch.zeros(1 << 16, dtype=torch.float64)
    for bits, weight in _bit_blocks(graph):
        inside = (bits >> 16) == bucket
        low += torch.bincount(
            bits[inside] & 0xFFFF, weights=weight[inside], minlength=1 << 16
        )
    lower = int(torch.searchsorted(low.cumsum(0), float(target)))
    return float(np.array([(bucket << 16) | lower], np.int32).view(np.float32)[0])


def _group(graph: ELUGraph) -> Tensor | None:
    """The group of each row; None if every row stands for itself."""
    if not isinstance(graph, LowRankGraph) or graph.groups is None:
        return None
    return graph.groups[1].cpu()


def _distinct_blocks(graph: ELUGraph) -> Iterator[Tensor]:
    """Dense blocks of the distinct rows, on the CPU."""
    if isinstance(graph, LowRankGraph) and graph.groups is not None:
        graph = LowRankGraph(graph.groups[0], graph.right)
    for _, rows in graph.blocks():
        yield rows.float().cpu()


def _bit_blocks(graph: ELUGraph) -> Iterator[tuple[Tensor, Tensor]]:
    """The bits of |S_ij| of distinct rows, and how often each occurs."""
    n, group = graph.shape[0], _group(graph)
    size = torch.ones(n) if group is None else torch.bincount(group)
    start = 0
    for rows in _distinct_blocks(graph):
        weight = size[start : start + rows.size(0)].double()
        start += rows.size(0)
        bits = rows.abs().contiguous().view(torch.int32).reshape(-1)
        yield bits, weight.repeat_interleave(rows.size(1))


def _pointers(count: Tensor) -> Tensor:
    """Row pointers of rows with so many entries."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def _csr(crow: Tensor, column: Tensor, value: Tensor, m: int) -> CSR:
    if int(crow[-1]) > MAX_ENTRIES:
        entries = int(crow[-1])
        raise InputError(f"{entries:,} entries are too many for an explicit graph")
    return CSR(crow.to(torch.int32), column, value, m)
