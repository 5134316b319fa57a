"""Personalised PageRank against the inverse that defines it."""

import pytest
import torch
from torch import Tensor

from elugcn.core.pagerank import topk_pagerank
from elugcn.core.sparse import CSR, normalized_adjacency


def adjacency(n: int = 30, directed: bool = True) -> CSR:
    torch.manual_seed(0)
    edges = torch.randint(0, n - 1, (2, 70))
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return normalized_adjacency(torch.unique(edges, dim=1), n)


def dense_pagerank(adj: CSR, alpha: float) -> Tensor:
    n = adj.shape[0]
    a = adj.to_dense().double()
    eye = torch.eye(n, dtype=torch.float64)
    return (alpha * torch.linalg.inv(eye - (1 - alpha) * a)).float()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("block", [1, 100, 2**21])
def test_all_entries(
    directed: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.core.pagerank.BLOCK", block)
    adj = adjacency(directed=directed)
    ours = topk_pagerank(adj, 0.2, 30, steps=100)
    torch.testing.assert_close(ours.to_dense(), dense_pagerank(adj, 0.2))
    # The last node is alone: it only walks to itself.
    assert ours.row[ours.col == 29].tolist() == [29]


@pytest.mark.parametrize("k", [1, 5])
def test_the_largest_of_each_row(k: int) -> None:
    adj = adjacency()
    ours = topk_pagerank(adj, 0.15, k, steps=100).to_dense()
    full = dense_pagerank(adj, 0.15)
    threshold = full.topk(k, dim=1).values[:, -1:]
    expected = torch.where(full >= threshold, full, 0.0)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-6)


def test_columns_ascend_and_few_steps_stay_near() -> None:
    adj = adjacency()
    ours = topk_pagerank(adj, 0.2, 7)
    for i in range(30):
        columns = ours.col[ours.crow[i] : ours.crow[i + 1]]
        assert bool((columns[1:] > columns[:-1]).all())
    ten = topk_pagerank(adj, 0.2, 30, steps=10).to_dense()
    error = (ten - dense_pagerank(adj, 0.2)).abs()
    assert float(error.max()) < 0.8**10
