"""The largest entries of the mixed-order propagation against its dense twin."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elugcn.core.mixed_rows import largest_mixed
from elugcn.core.sparse import CSR, normalized_adjacency


def adjacency(n: int = 40, directed: bool = False, seed: int = 0) -> CSR:
    torch.manual_seed(seed)
    edges = torch.randint(0, n - 1, (2, 3 * n))
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return normalized_adjacency(torch.unique(edges, dim=1), n)


def dense(adj: CSR, order: int) -> Tensor:
    a = adj.to_dense().double()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    return torch.stack(powers).mean(dim=0).float()


def spread(column: Tensor, value: Tensor) -> Tensor:
    """Columns and values as the n×n matrix they stand for."""
    n = column.size(0)
    return torch.zeros(n, n).scatter_add_(1, column, value)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("block", [1, 7, 1024])
def test_all_entries(
    directed: bool, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.core.mixed_rows.BLOCK", block)
    adj = adjacency(directed=directed)
    found = largest_mixed(adj, 4, 40, negligible=0.0)
    torch.testing.assert_close(spread(*found), dense(adj, 4))


@given(order=st.integers(1, 5), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_largest_of_each_row(order: int, k: int, seed: int) -> None:
    adj = adjacency(n=25, seed=seed)
    column, value = largest_mixed(adj, order, k, negligible=0.0)
    full = dense(adj, order)
    torch.testing.assert_close(value, full.topk(k, dim=1).values)
    stored = value > 0
    torch.testing.assert_close(full.gather(1, column)[stored], value[stored])
    # No column twice: what is filled up has no weight.
    assert (spread(column, stored.float()) <= 1).all()


def test_what_is_let_go_is_small() -> None:
    adj = adjacency(n=300)
    k, order = 16, 5
    _, exact = largest_mixed(adj, order, k, negligible=0.0)
    _, pruned = largest_mixed(adj, order, k)
    assert (pruned <= exact + 1e-6).all()  # weight is lost, never made
    assert float((exact - pruned).max()) < 0.02
    assert float(pruned.sum() / exact.sum()) > 0.97
    _, rough = largest_mixed(adj, order, k, negligible=5.0)
    assert float(rough.sum()) < float(pruned.sum())


def test_fewer_nodes_than_entries_asked_for() -> None:
    adj = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 3)
    column, value = largest_mixed(adj, 2, 32)
    assert column.shape == value.shape == (3, 3)
    torch.testing.assert_close(spread(column, value), dense(adj, 2))
    # The last node is alone.
    assert value[2].tolist() == pytest.approx([1.0, 0.0, 0.0])
