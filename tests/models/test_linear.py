"""Linear models against dense matrices and a direct solution."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elugcn.engine import CSR, normalized_adjacency
from elugcn.models.linear import Block, LinearFeatures, conjugate_gradients

N, D, C = 12, 5, 3


@pytest.fixture
def graph() -> tuple[CSR, Tensor]:
    """A directed graph and its dense adjacency matrix."""
    draw = torch.Generator().manual_seed(1)
    edges = (torch.rand(N, N, generator=draw) < 0.25).nonzero().T
    adj = normalized_adjacency(edges, N, self_loops=False, norm="row")
    return adj, adj.to_dense()


@pytest.fixture
def x() -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(2))


def dense_block(x: Tensor, A: Tensor, block: Block) -> Tensor:
    """F of a block with every entry."""
    if block.alpha:
        z = x
        for _ in range(block.powers[-1]):
            z = (1 - block.alpha) * A @ z + block.alpha * x
        parts = [z]
    else:
        parts = [torch.linalg.matrix_power(A, k) @ x for k in block.powers]
    scales = block.scales or (1.0,) * len(parts)
    return torch.cat([s * part for s, part in zip(scales, parts, strict=True)], dim=1)


SHAPES: dict[str, dict[str, Any]] = {
    "features": {"powers": (0,)},
    "square": {"powers": (2,)},
    "concatenated": {"powers": (0, 1, 2)},
    "without itself": {"powers": (1, 3), "scales": (2.0, 0.5)},
    "pagerank": {"powers": (4,), "alpha": 0.2},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_products_are_those_of_the_dense_matrix(
    graph: tuple[CSR, Tensor], x: Tensor, shape: dict[str, Any], sparse: bool
) -> None:
    adj, A = graph
    block = Block(CSR.from_tensor(x) if sparse else x, adj, **shape)
    F = dense_block(x, A, block)
    W, R = torch.randn(F.size(1), C), torch.randn(N, C)
    assert block.width == F.size(1)
    torch.testing.assert_close(block @ W, F @ W, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(block.transposed(R), F.T @ R, atol=1e-5, rtol=1e-5)


def test_parts_are_scaled_to_the_same_norm(
    graph: tuple[CSR, Tensor], x: Tensor
) -> None:
    adj, A = graph
    wide = torch.randn(N, 400, generator=torch.Generator().manual_seed(3))
    blocks = [Block(wide, adj, (0, 2)), Block(100 * wide, adj, (1,))]
    balanced = LinearFeatures(blocks).balanced()
    for block, source in zip(balanced.blocks, (wide, 100 * wide), strict=True):
        for part in dense_block(source, A, block).split(400, dim=1):
            assert float(part.norm()) == pytest.approx(N**0.5, rel=0.1)


def test_iterations_end_at_the_ridge_solution(
    graph: tuple[CSR, Tensor], x: Tensor
) -> None:
    adj, A = graph
    blocks = [Block(x, adj, (0, 1)), Block(adj, adj)]
    features = LinearFeatures(blocks)
    F = torch.cat([dense_block(x, A, blocks[0]), A, torch.ones(N, 1)], dim=1).double()
    Y = torch.randn(N, C, generator=torch.Generator().manual_seed(4))
    d = torch.tensor([1.0, 2.0, 0.0] * 4)
    ridge = 0.05

    # λ is a share of the first Rayleigh quotient of FᵀDF.
    D = torch.diag(d).double()
    b = F.T @ D @ Y.double()
    penalty = ridge * float((b * (F.T @ D @ F @ b)).sum() / b.square().sum())
    exact = torch.linalg.solve(F.T @ D @ F + penalty * torch.eye(F.size(1)), b)

    *_, (W, scores) = conjugate_gradients(features, Y, d, 60, ridge)
    torch.testing.assert_close(W, exact.float(), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(scores, (F @ exact).float(), atol=1e-3, rtol=1e-3)


def test_each_iterate_fits_better_than_the_last(
    graph: tuple[CSR, Tensor], x: Tensor
) -> None:
    adj, _ = graph
    Y, d = torch.eye(C)[torch.arange(N) % C], torch.ones(N)
    features = LinearFeatures([Block(x, adj, (0, 1))])
    errors = [
        float((scores - Y).square().sum())
        for _, scores in conjugate_gradients(features, Y, d, 6, 1e-6)
    ]
    assert np.all(np.diff(errors) < 0)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_rows_of_the_labelled_nodes_give_the_same_solution(
    graph: tuple[CSR, Tensor], x: Tensor, shape: dict[str, Any]
) -> None:
    adj, A = graph
    features = LinearFeatures([Block(x, adj, **shape)])
    labelled = torch.tensor([0, 3, 4, 7, 11])
    rows = features.rows(labelled, C, 100)
    assert rows is not None
    F = torch.cat([dense_block(x, A, features.blocks[0]), torch.ones(N, 1)], dim=1)
    torch.testing.assert_close(rows.matrix, F[labelled], atol=1e-5, rtol=1e-5)
    Y = torch.randn(N, C, generator=torch.Generator().manual_seed(5))
    d = torch.zeros(N).index_fill(0, labelled, 1.0)
    few = conjugate_gradients(rows, Y[labelled], d[labelled], 4, 0.1)
    every = conjugate_gradients(features, Y, d, 4, 0.1)
    for (W, scores), (expected, all_scores) in zip(few, every, strict=True):
        torch.testing.assert_close(W, expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(scores, all_scores[labelled], atol=1e-4, rtol=1e-4)


def test_rows_are_left_to_the_operator_where_they_cost_more(
    graph: tuple[CSR, Tensor], x: Tensor
) -> None:
    adj, _ = graph
    everything = torch.arange(N)
    # Many columns, many steps and few iterations; and sparse features.
    wide = LinearFeatures([Block(torch.randn(N, 1000), adj, (10,))])
    assert wide.rows(everything, C, 2) is None
    sparse = LinearFeatures([Block(CSR.from_tensor(x), adj, (1,))])
    assert sparse.rows(everything[:1], C, 100) is None
