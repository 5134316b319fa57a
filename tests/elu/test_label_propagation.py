"""Label propagation against dense loops, and by hand."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from elugcn.elu.label_propagation import label_operator, propagate_labels
from elugcn.engine import normalized_adjacency


def both_ways(edges: list[tuple[int, int]]) -> Tensor:
    return torch.tensor([*edges, *[(b, a) for a, b in edges]]).T


def random_problem(seed: int, n: int = 25, c: int = 3) -> tuple[Tensor, Tensor]:
    """A random graph whose nodes 20.. are a component of their own, without labels."""
    rng = np.random.default_rng(seed)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 20, (30, 2)) if a != b]
    edges += [(20, 21), (21, 22), (23, 24)]
    labels = torch.full((n,), -1)
    labels[:6] = torch.tensor([0, 1, 2, 0, 1, 2])
    return both_ways(sorted(set(edges))), labels


def dense_lpa(
    a: np.ndarray, labels: np.ndarray, c: int, steps: int, alpha: float
) -> np.ndarray:
    """The definition, in float64, node by node."""
    n = len(labels)
    y = np.zeros((n, c))
    for i in range(n):
        if labels[i] >= 0:
            y[i, labels[i]] = 1
    for _ in range(steps):
        y = alpha * a @ y + (1 - alpha) * y
        for i in range(n):
            if labels[i] >= 0:
                y[i] = np.eye(c)[labels[i]]
    for i in range(n):
        if y[i].sum() > 0:
            y[i] /= y[i].sum()
    return y


@given(
    st.integers(0, 1000),
    st.integers(0, 12),
    st.floats(0.05, 1.0),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_equals_the_dense_loop(
    seed: int, steps: int, alpha: float, loops: bool
) -> None:
    edges, labels = random_problem(seed)
    adj = normalized_adjacency(edges, 25, self_loops=loops)
    before = labels.clone()
    got = propagate_labels(adj, labels, 3, steps, alpha)
    a = adj.to_dense().double().numpy()
    expected = dense_lpa(a, labels.numpy(), 3, steps, alpha)
    np.testing.assert_allclose(got.numpy(), expected, atol=2e-5)
    assert torch.equal(got[:6], torch.eye(3).repeat(2, 1))  # labels are exact
    assert not got[20:].any()  # no label reaches these
    assert torch.equal(labels, before)


def test_six_nodes_by_hand() -> None:
    """A triangle 0-1-2 with a tail 2-3, and a pair 4-5 that no label reaches.

    With self-loops the degrees are 3, 3, 4, 2, 2, 2. Node 0 is of class 0 and node 3
    of class 1; α = 1/2.

    Step 1: y1 = ½·(1/3)·(1, 0) = (1/6, 0)
            y2 = ½·(1/√12·(1, 0) + 1/√8·(0, 1)) = (1/(2√12), 1/(2√8))
    Step 2: y1 = ½·((1/3)(1, 0) + (1/3)(1/6, 0) + (1/√12)·y2) + ½·(1/6, 0)
               = (1/6 + 1/36 + 1/48 + 1/12, 1/(4√96)) = (43/144, 1/(16√6))
            y2 = ½·(1/√12·(1, 0) + 1/√12·(1/6, 0) + ¼·y2 + 1/√8·(0, 1)) + ½·y2
               = ((7/12 + 1/16 + 1/4)/√12, (1/16 + 1/2 + 1/4)/√8)
               = (43/48·1/√12, 13/16·1/√8)
    """
    edges = both_ways([(0, 1), (0, 2), (1, 2), (2, 3), (4, 5)])
    adj = normalized_adjacency(edges, 6)
    labels = torch.tensor([0, -1, -1, 1, -1, -1])

    one = propagate_labels(adj, labels, 2, steps=1, alpha=0.5)
    # 1/(2√12) : 1/(2√8) = √2 : √3
    share = 2**0.5 / (2**0.5 + 3**0.5)
    expected = [[1, 0], [1, 0], [share, 1 - share], [0, 1], [0, 0], [0, 0]]
    torch.testing.assert_close(one, torch.tensor(expected, dtype=torch.float32))

    two = propagate_labels(adj, labels, 2, steps=2, alpha=0.5)
    row1 = torch.tensor([43 / 144, 1 / (16 * 6**0.5)])
    row2 = torch.tensor([43 / 48 / 12**0.5, 13 / 16 / 8**0.5])
    torch.testing.assert_close(two[1], row1 / row1.sum())
    torch.testing.assert_close(two[2], row2 / row2.sum())
    # The same as decimals, so that a slip in the fractions would show.
    torch.testing.assert_close(two[1, 0], torch.tensor(0.921279), atol=2e-6, rtol=0)
    torch.testing.assert_close(two[2, 0], torch.tensor(0.473751), atol=2e-6, rtol=0)
    assert two[[0, 3]].tolist() == [[1, 0], [0, 1]]
    assert two[4:].tolist() == [[0, 0], [0, 0]]


def test_permuting_nodes_permutes_the_distribution() -> None:
    edges, labels = random_problem(3)
    order = torch.randperm(25, generator=torch.Generator().manual_seed(0))
    new_name = torch.argsort(order)
    y = propagate_labels(normalized_adjacency(edges, 25), labels, 3, steps=8)
    moved = normalized_adjacency(new_name[edges], 25)
    z = propagate_labels(moved, labels[order], 3, steps=8)
    torch.testing.assert_close(z, y[order])


def test_coupled_nodes_point_to_the_same_nodes() -> None:
    edges = torch.tensor([[2, 2, 3], [0, 1, 4]])  # 0 and 1 hear node 2
    adj = normalized_adjacency(edges, 5, self_loops=False)
    labels = torch.tensor([1, -1, -1, -1, -1])
    z, dense = torch.rand(5, 2), adj.to_dense()
    coupled = label_operator(adj, "coupled")
    torch.testing.assert_close(coupled @ z, dense @ dense.T @ z)
    torch.testing.assert_close(coupled.T @ z, coupled @ z)
    along = propagate_labels(label_operator(adj, "edges"), labels, 2, steps=9)
    shared = propagate_labels(coupled, labels, 2, steps=1)
    assert not along[1].any()
    assert shared[1].tolist() == [0, 1]
    assert not shared[2:].any()
