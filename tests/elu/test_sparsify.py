"""Explicit graphs: which entries are kept, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import elugcn.elu.sparsify as module
from elugcn.elu.low_rank_graph import ExplicitGraph, LowRankGraph
from elugcn.elu.sparsify import (
    GraphMode,
    check_mode,
    largest_entries,
    quantile,
    topk_entries,
)
from elugcn.engine import CSR
from elugcn.errors import InputError


def random_graph(n: int = 40, c: int = 3, seed: int = 0, same: int = 1) -> LowRankGraph:
    """A graph whose left rows come in groups of about ``same`` equal ones."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(-(-n // same), c, generator=generator)
    left = (
        rows[torch.randint(len(rows), (n,), generator=generator)] if same > 1 else rows
    )
    return LowRankGraph(left, torch.randn(n, c, generator=generator))


def explicit(dense: Tensor) -> ExplicitGraph:
    """Any dense matrix as a graph: the path without groups."""
    return ExplicitGraph(CSR.from_tensor(dense))


def rank(q: float, count: int) -> int:
    """⌈q·count⌉, at least 1, for q with at most three digits."""
    return max(1, -(-round(q * 1000) * count // 1000))


# --- k per row --------------------------------------------------------------------------


@given(st.integers(1, 30), st.integers(1, 4), st.integers(1, 40), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_topk_keeps_the_largest_of_every_row(n: int, c: int, k: int, seed: int) -> None:
    graph = random_graph(n, c, seed, same=1 + seed % 3)
    s = graph.to_dense()
    top = topk_entries(graph, k)
    dense = top.to_dense()
    kept = dense != 0
    assert torch.equal(kept.sum(dim=1), torch.full((n,), min(k, n)))
    torch.testing.assert_close(dense[kept], s[kept])
    for i in range(n):
        if k < n:
            assert s[i][kept[i]].abs().min() >= s[i][~kept[i]].abs().max() * (1 - 1e-5)


@pytest.mark.parametrize("same", [1, 8])
def test_grouping_does_not_change_the_result(same: int) -> None:
    graph = random_graph(same=same)
    plain = explicit(graph.to_dense())
    torch.testing.assert_close(
        topk_entries(graph, 6).to_dense(), topk_entries(plain, 6).to_dense()
    )
    for keep in (0.1, 0.5, 1.0):
        grouped, one_by_one = largest_entries(graph, keep), largest_entries(plain, keep)
        torch.testing.assert_close(grouped.to_dense(), one_by_one.to_dense())
        assert grouped.nnz == one_by_one.nnz


def test_rows_of_a_group_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(n=60, same=60)
    asked = []
    rows = LowRankGraph.rows

    def counted(self: LowRankGraph, index: Tensor) -> Tensor:
        asked.append(len(index))
        return rows(self, index)

    monkeypatch.setattr(LowRankGraph, "rows", counted)
    topk_entries(graph, 3)
    assert sum(asked) == len(graph.left.unique(dim=0)) == 1


def test_topk_does_not_store_zeros() -> None:
    left = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    right = torch.tensor([[1.0, 0.0], [0.0, 3.0], [-4.0, 0.0]])
    graph = topk_entries(LowRankGraph(left, right), 2)
    assert graph.crow.tolist() == [0, 2, 2, 3]
    assert graph.col.tolist() == [0, 2, 1]
    assert graph.value.tolist() == [1, -4, 6]
    z = torch.tensor([[1.0], [1.0], [1.0]])
    assert (graph @ z).tolist() == [[-3], [0], [6]]


# --- the paper's share of all entries -----------------------------------------------------


def test_paper_keeps_every_tie_with_the_threshold() -> None:
    # |entries|: 2 six times, 1 three times. Half of nine: the threshold is 2.
    dense = torch.tensor([[2.0, -2, 1], [1, 2, -2], [-2, 2, -1]])
    kept = largest_entries(explicit(dense), 0.5).to_dense()
    assert torch.equal(kept, torch.where(dense.abs() == 2, dense, 0.0))


def test_paper_does_not_store_zeros() -> None:
    # Most entries are zero, so the threshold itself is zero.
    left = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    right = torch.tensor([[3.0], [0.0], [0.0], [-5.0]])
    graph = largest_entries(LowRankGraph(left, right), 0.5)
    assert graph.nnz == 2
    assert graph.crow.tolist() == [0, 2, 2, 2, 2]
    assert graph.value.tolist() == [3, -5]


# --- quantiles ----------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 10**6), st.integers(0, 1000))
@settings(max_examples=80, deadline=None)
def test_exact_quantile_is_the_sorted_entry(
    n: int, seed: int, thousandths: int
) -> None:
    q = thousandths / 1000
    dense = torch.randn(n, n, generator=torch.Generator().manual_seed(seed))
    # Wide range of exponents, so that the upper 16 bits differ and agree alike.
    dense *= 10.0 ** torch.randint(
        -6, 6, (n, n), generator=torch.Generator().manual_seed(seed)
    )
    ordered = np.sort(dense.abs().numpy().ravel())
    assert quantile(explicit(dense), q) == ordered[rank(q, n * n) - 1]


def test_exact_quantile_of_a_large_graph_has_the_right_rank() -> None:
    # 40,000 nodes, two distinct rows: one row holds 2, all others 1.
    n = 40_000
    left = torch.ones(n, 1)
    left[0] = 2
    graph = LowRankGraph(left, torch.ones(n, 1))
    ones = n * n - n
    assert quantile(graph, ones / (n * n)) == 1
    assert quantile(graph, (ones + 1) / (n * n)) == 2


# --- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "nodes", "k", "keep"),
    [
        ("topk", 50_000, 5_000, 0.1),
        ("paper", 50_000, 20, 0.1),
        ("paper", 20_000, 20, 1.0),
    ],
    ids=["topk", "paper", "all"],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    mode: GraphMode, nodes: int, k: int, keep: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SimpleNamespace(available=2 * 2**30)
    monkeypatch.setattr(module.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(module, "_blocks", lambda *_: pytest.fail("it started"))
    graph = LowRankGraph(torch.ones(nodes, 2), torch.ones(nodes, 2))
    with pytest.raises(InputError) as refused:
        graph.in_mode(mode, k, keep)
    message = str(refused.value)
    assert "\n" not in message
    for part in (f"'{mode}'", f"{nodes:,} nodes", "2.0 GB are free", "'implicit'"):
        assert part in message
    # Every entry costs at least 8 bytes.
    entries = nodes * k if mode == "topk" else keep * nodes**2
    needed = float(message.split("about ")[1].split(" GB")[0])
    assert needed > entries * 8 / 2**30
    for fits in ("implicit", "topk"):
        check_mode(nodes, fits, 20, keep)
    check_mode(3_000, "paper", 20, 0.1)
