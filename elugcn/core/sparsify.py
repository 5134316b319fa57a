"""Explicit ELU graphs, for those who ask for edges: k per row, or the paper's 10 %.

The paper keeps the 10 % largest of all n² absolute entries: 0.7 M on Cora, 39 M on
Pubmed. Rows are computed in blocks, never n×n at once, and the memory the result
needs is checked before anything starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import psutil
import torch
from torch import Tensor

from elugcn.core.operators import (
    _BLOCK_ENTRIES,
    ELUGraph,
    ExplicitGraph,
    LowRankGraph,
)
from elugcn.core.sparse import CSR
from elugcn.errors import InputError

# Bytes a kept entry costs at the peak, measured: value and column of the blocks and of
# their join, and the positions from which repeated rows are gathered.
_BYTES_PER_ENTRY = 48
# The same for k entries a row, which need no positions.
_BYTES_PER_TOPK = 20
_MOST = 2**31 - 1  # entries, of which 32-bit pointers tell


def topk_graph(graph: ELUGraph, k: int) -> ExplicitGraph:
    """The k entries of largest |value| in each row; exact zeros are not stored.

    O(g·n·c) for g distinct rows of the left factor, O(n·k) memory.
    """
    n, m = graph.shape
    if k < 1:
        raise InputError(f"topk must be at least 1; got {k}")
    k = min(k, m)
    check_topk_memory(n, k)
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
    return ExplicitGraph(_drop_zeros(crow, column.reshape(-1), value.reshape(-1), m))


def paper_graph(graph: ELUGraph, keep: float = 0.1) -> ExplicitGraph:
    """The ``keep`` share of all n² entries that is largest in absolute value.

    Entries equal to the threshold are kept, as the paper's "|S_ij| < threshold is set
    to zero" says. O(n²·c) time in row blocks, O(keep·n²) memory: checked first.
    """
    if not 0.0 < keep <= 1.0:
        raise InputError(f"keep must be in (0, 1]; got {keep}")
    n, m = graph.shape
    check_memory(n, keep)
    threshold = exact_quantile(graph, 1.0 - keep) if keep < 1.0 else 0.0
    columns, values, counts = [], [], []
    group = _group(graph)
    for rows in _distinct_blocks(graph):
        chosen = (rows.abs() >= threshold) & (rows != 0)
        counts.append(chosen.sum(dim=1))
        columns.append(chosen.nonzero()[:, 1].to(torch.int32))
        values.append(rows[chosen])
    count = torch.cat(counts)
    crow = torch.zeros(count.numel() + 1, dtype=torch.long)
    crow[1:] = count.cumsum(0)
    column, value = torch.cat(columns), torch.cat(values)
    if group is not None:
        crow, column, value = _repeat_rows(crow, column, value, group)
    return ExplicitGraph(CSR(_index(crow), column, value, m), mode="paper")


def check_mode(n: int, mode: str, topk: int, keep: float) -> None:
    """Refuse a mode whose graph of n nodes can't fit."""
    if mode == "paper":
        check_memory(n, keep)
    elif mode == "topk":
        check_topk_memory(n, min(topk, n))


def check_memory(n: int, keep: float) -> None:
    """Refuse the paper's explicit graph where it can't fit, before it starts."""
    _check_room("'paper'", n, keep * n * n * _BYTES_PER_ENTRY, "or 'topk'")


def check_topk_memory(n: int, k: int) -> None:
    """The same for k entries a row, which also have to be few enough to count."""
    if n * k > _MOST:
        raise InputError(f"{n * k:,} entries are too many for an explicit graph")
    _check_room(f"'topk' with k = {k:,}", n, n * k * _BYTES_PER_TOPK, "or a smaller k")


def _check_room(mode: str, n: int, needed: float, instead: str) -> None:
    needed += 6 * 4 * _BLOCK_ENTRIES
    available = psutil.virtual_memory().available
    if needed > 0.9 * available:
        raise InputError(
            f"graph mode {mode} would need about {needed / 2**30:.1f} GB for {n:,} "
            f"nodes and {available / 2**30:.1f} GB are free: use 'implicit' (the exact "
            f"graph in factors) {instead}"
        )


def exact_quantile(graph: ELUGraph, q: float) -> float:
    """The entry of rank ⌈q·n²⌉ of the sorted |S|, by two passes over row blocks.

    The bits of a non-negative float order as the float does, so a histogram of the
    upper 16 bits finds the bucket and one of the lower 16 bits the value: exact,
    with 2¹⁶ counters instead of n² entries.
    """
    if not 0.0 <= q <= 1.0:
        raise InputError(f"the quantile must be in [0, 1]; got {q}")
    n, m = graph.shape
    weight = _group_sizes(graph)
    # 1-based rank; the slack makes 0.9 of 100 the 90th entry in spite of rounding.
    target = max(1, math.ceil(q * n * m - 1e-6))
    high = torch.zeros(1 << 16, dtype=torch.float64)
    for bits, w in _bit_blocks(graph, weight):
        high += torch.bincount(bits >> 16, weights=w, minlength=1 << 16)
    before = high.cumsum(0)
    bucket = int(torch.searchsorted(before, float(target)))
    target -= int(before[bucket - 1]) if bucket else 0
    low = torch.zeros(1 << 16, dtype=torch.float64)
    for bits, w in _bit_blocks(graph, weight):
        inside = (bits >> 16) == bucket
        part = bits[inside] & 0xFFFF
        low += torch.bincount(part, weights=w[inside], minlength=1 << 16)
    lower = int(torch.searchsorted(low.cumsum(0), float(target)))
    value = np.array([(bucket << 16) | lower], dtype=np.int32).view(np.float32)
    return float(value[0])


def estimated_quantile(
    graph: ELUGraph, q: float, seed: int = 0, samples: int = 1_000_000
) -> float:
    """The quantile of |S| from a random sample of entries: O(samples·c), any n."""
    n, m = graph.shape
    generator = torch.Generator().manual_seed(seed)
    if isinstance(graph, LowRankGraph):
        i = torch.randint(n, (samples,), generator=generator)
        j = torch.randint(m, (samples,), generator=generator)
        entries = (graph.left[i] * graph.right[j]).sum(dim=1).abs()
    else:
        i = torch.randint(n, (max(1, samples // m),), generator=generator)
        entries = graph.rows(i).reshape(-1).abs()
    return float(np.quantile(entries.numpy(force=True), q))


def _group(graph: ELUGraph) -> Tensor | None:
    """The group of each row, or None where every row stands for itself."""
    if not isinstance(graph, LowRankGraph) or graph.groups is None:
        return None
    return graph.groups[1].cpu()


def _group_sizes(graph: ELUGraph) -> Tensor:
    group = _group(graph)
    if group is None:
        return torch.ones(graph.shape[0], dtype=torch.float64)
    return torch.bincount(group).double()


def _distinct_blocks(graph: ELUGraph) -> Iterator[Tensor]:
    """Dense blocks of the distinct rows, on the CPU."""
    if isinstance(graph, LowRankGraph) and graph.groups is not None:
        graph = LowRankGraph(graph.groups[0], graph.right)
    for _, rows in graph.blocks():
        yield rows.float().cpu()


def _bit_blocks(graph: ELUGraph, weight: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    start = 0
    for rows in _distinct_blocks(graph):
        w = weight[start : start + rows.size(0)]
        start += rows.size(0)
        bits = rows.abs().contiguous().view(torch.int32).reshape(-1)
        yield bits, w.repeat_interleave(rows.size(1))


def _drop_zeros(crow: Tensor, column: Tensor, value: Tensor, m: int) -> CSR:
    kept = value != 0
    if not bool(kept.all()):
        total = torch.zeros(kept.numel() + 1, dtype=torch.long)
        total[1:] = kept.long().cumsum(0)
        crow, column, value = total[crow], column[kept], value[kept]
    return CSR(_index(crow), column, value, m)


def _repeat_rows(
    crow: Tensor, column: Tensor, value: Tensor, group: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of a CSR gathered by ``group``."""
    count = (crow[1:] - crow[:-1])[group]
    out = torch.zeros(group.numel() + 1, dtype=torch.long)
    out[1:] = count.cumsum(0)
    offset = torch.arange(int(out[-1])) - out[:-1].repeat_interleave(count)
    source = crow[group].repeat_interleave(count) + offset
    return out, column[source], value[source]


def _index(crow: Tensor) -> Tensor:
    if int(crow[-1]) > _MOST:
        raise InputError(
            f"{int(crow[-1]):,} entries are too many for an explicit graph"
        )
    return crow.to(torch.int32)
