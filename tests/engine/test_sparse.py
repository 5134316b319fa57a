"""CSR matrices against scipy, and the matrices made of a graph against PyG."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_undirected

from elugcn.engine import CSR, as_features, normalized_adjacency, rows_of
from tests.engine.conftest import assert_same, drawn, sparse


@given(
    st.integers(1, 40),
    st.integers(1, 30),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.1, 0.6]),
    st.integers(0, 99),
)
def test_products_equal_scipy(n: int, m: int, k: int, share: float, seed: int) -> None:
    a, z = sparse(n, m, share, seed), drawn(m, k)
    truth = a.to_scipy().astype(np.float64) @ z.double().numpy()
    for found in (a @ z, a @ z.double()):
        torch.testing.assert_close(
            found.double(), torch.from_numpy(truth), rtol=0, atol=1e-4
        )
    turned, back = a.T, a.T.T
    assert turned.shape == (m, n)
    torch.testing.assert_close(turned.to_dense(), a.to_dense().T)
    assert torch.equal(back.col, a.col)
    assert torch.equal(back.value, a.value)


@pytest.mark.parametrize("symmetric", [False, True])
def test_gradients_equal_dense_autograd(symmetric: bool) -> None:
    a = sparse(12, 12)
    if symmetric:
        a = CSR.from_scipy(a.to_scipy() + a.to_scipy().T, symmetric=True)
        assert a.T is a
    dense = a.to_dense()
    assert_same(lambda z: a @ z, lambda z: dense @ z, [drawn(12, 5)])
    assert_same(lambda z: a.T @ z, lambda z: dense.T @ z, [drawn(12, 5)])
    assert_same(
        lambda z, b: a.multiply(z, b),
        lambda z, b: dense @ z + b,
        [drawn(12, 5), drawn(5)],
    )
    wide = a.with_values(a.value.double().requires_grad_())
    assert torch.autograd.gradcheck(
        lambda v, z: a.with_values(v) @ z,
        (wide.value, drawn(12, 2).double().requires_grad_()),
    )


def test_an_operand_whose_rows_are_apart() -> None:
    a, wide = sparse(9, 8), drawn(8, 12)
    for z in (wide[:, 2:7], wide[:, ::3], drawn(5, 8).T):
        torch.testing.assert_close(a @ z, a.to_dense() @ z)


def test_what_cannot_be_multiplied_is_refused() -> None:
    a = sparse(9, 8)
    for z in (drawn(9, 3), drawn(8), drawn(8, 3, 2)):
        with pytest.raises(
            ValueError, match=r"CSR\(9×8, .* can't multiply a matrix of"
        ):
            a @ z


def test_duplicates_are_summed_and_the_input_is_left_alone() -> None:
    matrix = sp.coo_array(
        ([1.0, 2.0, 4.0], ([0, 0, 1], [2, 2, 0])), shape=(2, 3)
    ).tocsr()
    before = matrix.copy()
    a = CSR.from_scipy(matrix)
    assert a.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]]
    assert (matrix != before).nnz == 0


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
def test_from_tensor(layout: str) -> None:
    dense = sparse(7, 5).to_dense()
    given = {"strided": dense, "coo": dense.to_sparse(), "csr": dense.to_sparse_csr()}
    assert torch.equal(CSR.from_tensor(given[layout]).to_dense(), dense)


def test_values_may_be_replaced() -> None:
    a = sparse(7, 5)
    turned = a.T
    double = a.with_values(2 * a.value)
    assert torch.equal(double.to_dense(), 2 * a.to_dense())
    assert torch.equal(double.T.to_dense(), 2 * turned.to_dense())
    assert double.T.crow is turned.crow  # the indices are found once
    assert torch.equal(a.to("cpu").to_dense(), a.to_dense())


# --- Â -------------------------------------------------------------------------------


def graph(directed: bool = False) -> Tensor:
    """Node 9 is isolated."""
    edges = torch.randint(0, 9, (2, 14), generator=torch.Generator().manual_seed(2))
    return (
        edges
        if directed
        else to_undirected(edges[:, edges[0] != edges[1]], num_nodes=9)
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_adjacency_equals_gcn_norm_of_pyg(weighted: bool, loops: bool) -> None:
    edges = graph()
    weight = torch.where(edges[0] + edges[1] > 8, 2.0, 0.5) if weighted else None
    where, value = gcn_norm(edges, weight, 10, add_self_loops=loops)
    truth = torch.zeros(10, 10).index_put((where[1], where[0]), value, accumulate=True)
    found = normalized_adjacency(edges, 10, weight, self_loops=loops)
    assert found.symmetric
    torch.testing.assert_close(found.to_dense(), truth)


@pytest.mark.parametrize("norm", ["sym", "row"])
@pytest.mark.parametrize("loops", [False, True])
def test_adjacency_of_a_directed_graph(norm: str, loops: bool) -> None:
    edges = graph(directed=True)
    a = torch.zeros(10, 10).index_put(
        (edges[1], edges[0]), torch.ones(1), accumulate=True
    )
    a = a + torch.eye(10) if loops else a
    into, out_of = (a.sum(dim=i) for i in (1, 0))
    scale = {"sym": (into[:, None] * out_of).rsqrt(), "row": 1 / into[:, None]}[norm]
    truth = torch.where(a > 0, a * scale, 0.0)
    found = normalized_adjacency(edges, 10, self_loops=loops, norm=norm)
    torch.testing.assert_close(found.to_dense(), truth)
    assert found.to_dense().isfinite().all()


def test_adjacency_without_edges() -> None:
    nothing = torch.zeros(2, 0, dtype=torch.long)
    assert torch.equal(normalized_adjacency(nothing, 3).to_dense(), torch.eye(3))
    assert normalized_adjacency(nothing, 3, self_loops=False).nnz == 0


# --- X -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "is_sparse"), [(0, True), (24, True), (25, False), (100, False)]
)
def test_features_have_the_layout_of_their_density(
    stored: int, is_sparse: bool
) -> None:
    x = torch.zeros(100)
    x[:stored] = 1.5
    x = x.view(10, 10)
    found: Any = as_features(x)
    assert isinstance(found, CSR) == is_sparse
    assert torch.equal(found.to_dense() if is_sparse else found, x)
    index = torch.tensor([9, 0, 0])
    some: Any = rows_of(found, index)
    assert torch.equal(some.to_dense() if is_sparse else some, x[index])


def test_features_that_are_empty_sparse_or_not_contiguous() -> None:
    assert as_features(torch.zeros(0, 4)).shape == (0, 4)
    assert isinstance(as_features(torch.ones(3, 3).to_sparse()), CSR)
    turned = as_features(torch.ones(3, 4).T)
    assert isinstance(turned, Tensor)
    assert turned.is_contiguous()
