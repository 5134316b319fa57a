"""Block sums from factors and stored entries against the dense matrix."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from elugcn.core.blocks import (
    class_blocks,
    group_means,
    group_sizes,
    group_sums,
    inside_share,
    sampled_inside_shares,
)
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR

N, CLASSES = 120, 3


@pytest.fixture
def labels() -> Tensor:
    y = torch.randint(0, CLASSES, (N,))
    y[::10] = -1
    return y


def graphs() -> dict[str, LowRankGraph]:
    factored = LowRankGraph(torch.randn(N, 4), torch.randn(N, 4))
    return {
        "factors": factored,
        "edges": factored.topk(7),
        "csr": CSR.from_tensor((torch.rand(N, N) < 0.1) * torch.rand(N, N)),
    }


def sums(dense: Tensor, group: Tensor, count: int) -> Tensor:
    entries = dense.double()
    return torch.tensor(
        [
            [float(entries[group == a][:, group == b].sum()) for b in range(count)]
            for a in range(count)
        ],
        dtype=torch.float64,
    )


@pytest.mark.parametrize("kind", ["factors", "edges", "csr"])
def test_sums_and_means_are_the_dense_ones(kind: str, labels: Tensor) -> None:
    graph = graphs()[kind]
    expected = sums(graph.to_dense(), labels, CLASSES)
    got = group_sums(graph, labels, CLASSES)
    assert torch.allclose(got, expected, rtol=1e-5, atol=1e-4)
    size = torch.tensor([float((labels == c).sum()) for c in range(CLASSES)])
    assert group_sizes(labels, CLASSES).tolist() == size.tolist()
    means = group_means(graph, labels, CLASSES)
    assert torch.allclose(
        means, expected / torch.outer(size, size).double(), rtol=1e-5, atol=1e-6
    )
    diagonal = float(expected.diagonal().sum() / expected.sum())
    assert inside_share(got) == pytest.approx(diagonal, rel=1e-3)


def test_no_weight_has_no_share() -> None:
    assert math.isnan(inside_share(torch.zeros(2, 2)))
    empty = LowRankGraph(torch.zeros(3, 1), torch.ones(3, 1))
    shares = sampled_inside_shares(empty, torch.tensor([0, 0, 1]))
    assert all(map(math.isnan, shares))


@pytest.mark.parametrize("blocks", [1, 5, 60, 1000])
def test_blocks_of_classes(labels: Tensor, blocks: int) -> None:
    block, of_class = class_blocks(labels, blocks)
    assert bool(((block < 0) == (labels < 0)).all())
    assert torch.equal(of_class[block[labels >= 0]], labels[labels >= 0])
    assert of_class.tolist() == sorted(of_class.tolist())
    known = int((labels >= 0).sum())
    for c in range(CLASSES):
        mine = [int((block == b).sum()) for b in (of_class == c).nonzero().flatten()]
        assert min(mine) >= 1
        assert max(mine) - min(mine) <= 1
        wanted = min(sum(mine), max(1, round(blocks * sum(mine) / known)))
        assert len(mine) == wanted
        # Nodes of a class keep their order.
        inside = block[labels == c]
        assert bool((inside[1:] >= inside[:-1]).all())


def test_shares_of_mixed_signs(labels: Tensor) -> None:
    graph = graphs()["factors"]
    known = (labels >= 0).numpy()
    dense = graph.to_dense().double().numpy()[known][:, known]
    y = labels.numpy()[known]
    same = y[:, None] == y[None, :]

    def share(weight: np.ndarray, rows: np.ndarray) -> float:
        return float((weight * same)[rows].sum() / weight[rows].sum())

    everything = np.arange(len(y))
    ordered = np.argsort(y, kind="stable")
    some = ordered[np.arange(10) * len(y) // 10]
    for sample, rows in ((1024, everything), (len(y), everything), (10, some)):
        positive, absolute = sampled_inside_shares(graph, labels, sample)
        assert positive == pytest.approx(share(dense.clip(min=0), rows), rel=1e-5)
        assert absolute == pytest.approx(share(abs(dense), rows), rel=1e-5)
