"""Random propagation against dense powers of Â, for all nodes and for some."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from elugcn.engine import CSR, GraphInputs, MeanPropagation, normalized_adjacency
from elugcn.models.random_propagation import (
    RandomPropagation,
    SampledPropagation,
    propagated_rows,
    topk_propagation,
)
from tests.models.conftest import HID, C, D, Small, close


def adjacency(n: int = 40, directed: bool = False, seed: int = 0) -> CSR:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, n - 1, (2, 3 * n), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return normalized_adjacency(torch.unique(edges, dim=1), n)


def dense_pi(adj: CSR, order: int) -> Tensor:
    a = adj.to_dense().double()
    powers = [torch.linalg.matrix_power(a, k) for k in range(order + 1)]
    return torch.stack(powers).mean(dim=0).float()


def matrix(column: Tensor, value: Tensor) -> Tensor:
    """Columns and values as the n×n matrix they stand for."""
    n = column.size(0)
    return torch.zeros(n, n).scatter_add_(1, column, value)


def test_both_views_written_out(small: Small) -> None:
    model = RandomPropagation(D, HID, C).eval()
    nn.init.normal_(model.b1)
    nn.init.normal_(model.b2)
    g = GraphInputs(small.x, MeanPropagation(small.adj, 3), small.graph)
    pi = dense_pi(small.adj, 3)
    for p, view in zip(
        (pi, small.graph.to_dense()), model.views(g).tensors(), strict=True
    ):
        close(view, (p @ small.x @ model.W1 + model.b1).relu() @ model.W2 + model.b2)
    nodes = torch.tensor([5, 0])
    close(model(g.restrict(nodes, model.num_layers)), model(g)[nodes])


def test_draws_drop_whole_nodes_before_propagation(small: Small) -> None:
    """The mean over draws is the output of the linear network without chance."""
    model = RandomPropagation(D, HID, C, dropout=0.0, drop_node=0.5)
    g = GraphInputs(small.x, MeanPropagation(small.adj, 2))
    with torch.no_grad():
        model.W1.abs_()
        model.W2.abs_()
        expected = model.eval()(g)
        draws = torch.stack(model.train().views(g, draws=2000).tensors())
    error = (draws.mean(dim=0) - expected) / (draws.std(dim=0) / 2000**0.5 + 1e-9)
    assert draws.std(dim=0).max() > 0.05
    assert float(error.abs().max()) < 5


# --- a sample of nodes --------------------------------------------------------------


def sampled(norm: str) -> SampledPropagation:
    """With statistics and parameters that are not the ones it starts with."""
    torch.manual_seed(1)
    model = SampledPropagation(D, HID, C, 0.5, 0.3, norm)
    for batch_norm in model.norms:
        assert isinstance(batch_norm, nn.BatchNorm1d)
        for tensor in (batch_norm.weight, batch_norm.bias, batch_norm.running_mean):
            assert tensor is not None
            nn.init.normal_(tensor)
        assert batch_norm.running_var is not None
        nn.init.uniform_(batch_norm.running_var, 0.1, 2.0)
    return model.eval()


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_whole_graph_is_all_its_rows(small: Small, norm: str, sparse: bool) -> None:
    model = sampled(norm)
    x = CSR.from_tensor(small.x) if sparse else small.x
    whole = model(GraphInputs(x, MeanPropagation(small.adj, 3)))
    close(whole, model.rows(dense_pi(small.adj, 3) @ small.x))


@pytest.mark.parametrize("sparse", [True, False])
def test_some_rows_of_the_propagated_features(sparse: bool) -> None:
    adj, x = adjacency(), torch.rand(40, 150)  # more columns than a block
    nodes = torch.tensor([1, 30, 7])
    given = CSR.from_tensor(x) if sparse else x
    rows = propagated_rows(given, MeanPropagation(adj, 4), nodes)
    close(rows, (dense_pi(adj, 4) @ x)[nodes])


# --- the largest entries of Π -------------------------------------------------------


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("n", [40, 1100])  # one block of rows, and two
def test_all_entries(directed: bool, n: int) -> None:
    adj = adjacency(n, directed)
    found = topk_propagation(adj, 2, n, negligible=0.0)
    torch.testing.assert_close(matrix(*found), dense_pi(adj, 2))


@given(order=st.integers(1, 5), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_the_largest_of_each_row(order: int, k: int, seed: int) -> None:
    adj = adjacency(n=25, seed=seed)
    column, value = topk_propagation(adj, order, k, negligible=0.0)
    full = dense_pi(adj, order)
    torch.testing.assert_close(value, full.topk(k, dim=1).values)
    stored = value > 0
    torch.testing.assert_close(full.gather(1, column)[stored], value[stored])
    # No column twice: what is filled up has no weight.
    assert (matrix(column, stored.float()) <= 1).all()


def test_what_is_let_go_is_small() -> None:
    adj = adjacency(n=300)
    _, exact = topk_propagation(adj, 5, 16, negligible=0.0)
    _, pruned = topk_propagation(adj, 5, 16)
    assert (pruned <= exact + 1e-6).all()  # weight is lost, never made
    assert float((exact - pruned).max()) < 0.02
    assert float(pruned.sum() / exact.sum()) > 0.97


def test_fewer_nodes_than_entries_asked_for() -> None:
    adj = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 3)
    column, value = topk_propagation(adj, 2, 32)
    assert column.shape == value.shape == (3, 3)
    torch.testing.assert_close(matrix(column, value), dense_pi(adj, 2))
