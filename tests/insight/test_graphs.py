"""Homophily, complexity and blocks, against dense matrices and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import davies_bouldin_score

from elugcn.api import Fitted, fit
from elugcn.engine import CSR
from elugcn.insight import DiagnosisContext, diagnose
from elugcn.insight.graphs import (
    block_means,
    block_sums,
    class_blocks,
    davies_bouldin,
    label_distribution,
    own_class_weight,
)
from tests.insight.conftest import small


def from_definition(x: np.ndarray, y: np.ndarray) -> float:
    """The index of Theorem 1, class by class."""
    classes = np.unique(y)
    means = np.array([x[y == c].mean(axis=0) for c in classes])
    spread = np.array(
        [
            np.sqrt((np.linalg.norm(x[y == c] - m, axis=1) ** 2).mean())
            for c, m in zip(classes, means, strict=True)
        ]
    )
    between = np.linalg.norm(means[:, None] - means, axis=2)
    np.fill_diagonal(between, np.inf)
    return float(((spread[:, None] + spread) / between).max(axis=1).mean())


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_index_of_wide_features(sparse: bool) -> None:
    """300 columns, in two parts: as they are, propagated, and for some nodes."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 3
    x = torch.randn(60, 300, generator=generator)
    x = torch.where(x < 0.5, 0.0, x) + labels.unsqueeze(1)
    given = CSR.from_tensor(x) if sparse else x
    # For pairs, scikit-learn's mean of two equal distances is ours, squared or not.
    pairs = CSR.from_tensor(x[:6]) if sparse else x[:6]
    expected = davies_bouldin_score(x[:6].numpy(), labels[:6].numpy())
    assert davies_bouldin(pairs, labels[:6]) == pytest.approx(expected)
    a = torch.rand(60, 60, generator=generator)
    labels[::7] = -1
    kept = labels >= 0
    expected = from_definition((a @ x)[kept].double().numpy(), labels[kept].numpy())
    found = davies_bouldin(given, labels, lambda z: a @ z)
    assert found == pytest.approx(expected, rel=1e-4)


def test_the_index_by_hand() -> None:
    """Means 0.5 and 5.5, spreads 0.5 each: (0.5 + 0.5) / 5."""
    x = torch.tensor([[0.0], [1], [5], [6]])
    labels = torch.tensor([0, 0, 1, 1])
    assert davies_bouldin(x, labels) == pytest.approx(0.2)
    assert davies_bouldin(torch.tensor([[0.0], [2], [0], [2]]), labels) == math.inf
    assert davies_bouldin(torch.ones(4, 2), labels) == math.inf
    assert math.isnan(davies_bouldin(x, torch.tensor([0, 0, -1, 0])))


def test_label_distributions_by_hand() -> None:
    a = torch.tensor([[1.0, 2, 1], [-1, 0, 3], [0, 0, 0]])
    found = label_distribution(a, torch.tensor([0, 1, -1]), 2)
    torch.testing.assert_close(found, torch.tensor([[1 / 3, 2 / 3], [0, 0], [0, 0]]))
    assert own_class_weight(found, torch.tensor([1, 0, -1])) == pytest.approx(1 / 3)
    assert math.isnan(own_class_weight(found, torch.tensor([-1, -1, -1])))


def test_both_graphs_are_the_dense_ones(
    fitted: Fitted, context: DiagnosisContext
) -> None:
    data, graph = fitted.data, context.graph
    assert graph is not None
    said = diagnose(context)["graphs"]
    y, train = data.y.numpy(), data.train_mask.numpy()
    source, target = data.edge_index.numpy()
    a = np.zeros((150, 150))
    a[target, source] = 1
    dense = graph.to_dense().double().numpy()
    adj = context.problem.label_adj.to_dense().double().numpy()
    x = context.problem.x
    x = (x.to_dense() if isinstance(x, CSR) else x).double().numpy()
    kept = (y >= 0) & ~train
    for key, edges, smooth in (("original", a, adj), ("elu", dense, dense)):
        sums = np.stack([edges[:, y == c].sum(axis=1) for c in range(3)], axis=1)
        sums = sums.clip(min=0)
        heard = kept & (sums.sum(axis=1) > 0)
        shares = sums[heard, y[heard]] / sums[heard].sum(axis=1)
        assert said[key]["homophily"] == pytest.approx(shares.mean(), rel=1e-4)
        index = from_definition((smooth @ x)[kept], y[kept])
        assert said[key]["complexity"] == pytest.approx(index, rel=1e-4)


def test_weights_of_edges_count() -> None:
    """Node 0 hears 1, 2 and 3 with weights 1, 5 and 1; of its class is 2 alone."""
    data = small([1, 0, 1, 0], ([1, 2, 3], [0, 0, 0]), (1, 2), (3,), (0,))
    data.edge_weight = torch.tensor([1.0, 5.0, 1.0])
    said = diagnose(fit(data, "gcn", {"epochs": 1}))["graphs"]["original"]
    # Node 3 hears node 0 alone, of the other class.
    assert said["homophily"] == pytest.approx((5 / 7 + 0) / 2)


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=80), st.integers(1, 30))
def test_blocks_are_of_one_class_and_of_equal_size(
    classes: list[int], count: int
) -> None:
    labels = torch.tensor(classes)
    block, block_class = class_blocks(labels, count)
    known = labels >= 0
    assert bool((block[~known] == -1).all())
    assert torch.equal(block_class[block[known]], labels[known])
    assert block_class.tolist() == sorted(block_class.tolist())
    for c in set(classes) - {-1}:
        sizes = torch.bincount(block[labels == c])
        sizes = sizes[sizes > 0]
        assert len(sizes) == int((block_class == c).sum()) >= 1
        assert int(sizes.max() - sizes.min()) <= 1


def test_block_sums_and_means_are_the_dense_ones() -> None:
    a = torch.rand(9, 9, generator=torch.Generator().manual_seed(0))
    block = torch.tensor([0, 0, 1, 1, 1, -1, 2, 2, -1])
    parts = [
        [a[block == i][:, block == j].double() for j in range(3)] for i in range(3)
    ]
    for function, dense in ((block_sums, torch.sum), (block_means, torch.mean)):
        expected = torch.tensor([[dense(p) for p in row] for row in parts]).double()
        for operator in (a, CSR.from_tensor(a)):
            torch.testing.assert_close(function(operator, block, 3), expected)
