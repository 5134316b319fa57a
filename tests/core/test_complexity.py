"""The quantities of Theorem 1 against scikit-learn, NumPy and hand-worked graphs."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.metrics import davies_bouldin_score
from torch import Tensor

from elugcn.core.complexity import (
    davies_bouldin,
    label_distance,
    label_distribution,
    own_class_weight,
)
from elugcn.core.sparse import CSR


def draw(n: int = 90, d: int = 300, k: int = 4) -> tuple[Tensor, Tensor]:
    """Sparse features in clusters, more columns than a block holds."""
    labels = torch.arange(n) % k
    x = torch.randn(k, d)[labels] + torch.randn(n, d)
    return x * (torch.rand(n, d) < 0.2), labels


def papers(x: np.ndarray, labels: np.ndarray) -> float:
    """The appendix' formula with p = 2, term by term."""
    classes = np.unique(labels)
    mu = [x[labels == a].mean(axis=0) for a in classes]
    s = [
        np.sqrt(np.mean(np.linalg.norm(x[labels == a] - m, axis=1) ** 2))
        for a, m in zip(classes, mu, strict=True)
    ]
    k = range(len(classes))
    return float(
        np.mean(
            [
                max((s[a] + s[b]) / np.linalg.norm(mu[a] - mu[b]) for b in k if b != a)
                for a in k
            ]
        )
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_the_index_is_the_papers_and_sklearns(sparse: bool) -> None:
    x, labels = draw()
    given = CSR.from_tensor(x) if sparse else x
    dense, y = x.double().numpy(), labels.numpy()
    assert davies_bouldin(given, labels, power=1.0) == pytest.approx(
        davies_bouldin_score(dense, y), rel=1e-6
    )
    assert davies_bouldin(given, labels) == pytest.approx(papers(dense, y), rel=1e-6)
    # The two differ, so that neither test passes for the other.
    assert abs(papers(dense, y) - davies_bouldin_score(dense, y)) > 1e-3


def test_the_index_of_propagated_features() -> None:
    x, labels = draw()
    a = torch.rand(90, 90)
    index = davies_bouldin(CSR.from_tensor(x), labels, lambda z: a @ (a @ z), 1.0)
    dense = (a.double() @ a.double() @ x.double()).numpy()
    assert index == pytest.approx(davies_bouldin_score(dense, labels.numpy()), rel=1e-4)


def test_nodes_and_classes_that_are_left_out() -> None:
    x, labels = draw()
    labels = labels * 3  # classes 0, 3, 6, 9
    labels[::2] = -1  # classes 0 and 6 lose every node
    kept = labels >= 0
    expected = davies_bouldin_score(x[kept].numpy(), labels[kept].numpy())
    assert davies_bouldin(x, labels, power=1.0) == pytest.approx(expected, rel=1e-5)


def test_the_index_by_hand() -> None:
    # Centroids 1 and 6, spreads 1 and 2: (1 + 2) / 5.
    x = torch.tensor([[0.0], [2.0], [4.0], [8.0]])
    assert davies_bouldin(x, torch.tensor([0, 0, 1, 1])) == pytest.approx(0.6)


def test_classes_that_can_not_be_told_apart() -> None:
    same = torch.tensor([[-1.0], [1.0], [-2.0], [2.0]])
    labels = torch.tensor([0, 0, 1, 1])
    assert davies_bouldin(same, labels) == math.inf
    assert davies_bouldin(torch.ones(4, 2), labels) == math.inf
    assert math.isnan(davies_bouldin(same, torch.tensor([0, 0, -1, 0])))


GRAPH = torch.tensor(
    [
        [0.0, 2.0, 1.0, 0.0],
        [3.0, 0.0, -1.0, 0.0],
        [0.0, 0.0, -2.0, 0.0],
        [1.0, 1.0, 1.0, 1.0],
    ]
)


def test_spread_labels_by_hand() -> None:
    # Labels of nodes 0 (class 0), 1 and 2 (class 1) are known.
    labels = torch.tensor([0, 1, 1, -1])
    expected = [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1 / 3, 2 / 3]]
    assert torch.allclose(label_distribution(GRAPH, labels, 2), torch.tensor(expected))
    csr = CSR.from_scipy(sp.csr_matrix(GRAPH.numpy()))
    assert torch.allclose(label_distribution(csr, labels, 2), torch.tensor(expected))


def test_the_distance_by_hand() -> None:
    given = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1 / 3, 2 / 3]])
    truth = torch.tensor([1, 1, 0, -1])
    # Right: 0. Wrong: 2. Zeros: 1. The last does not count.
    assert label_distance(given, truth) == pytest.approx(1.0)
    assert label_distance(given[:1], truth[:1]) == 0.0
    assert label_distance(given[1:2], truth[1:2]) == pytest.approx(math.sqrt(2))
    last = torch.tensor([-1, -1, -1, 0])
    assert label_distance(given, last) == pytest.approx(math.sqrt(8 / 9))
    assert own_class_weight(given, truth) == pytest.approx(1 / 3)
    assert own_class_weight(given, last) == pytest.approx(1 / 3)
    nothing = torch.full((4,), -1)
    assert math.isnan(label_distance(given, nothing))
    assert math.isnan(own_class_weight(given, nothing))
