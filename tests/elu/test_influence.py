"""Label influence against dense powers and label propagation; hops against SciPy."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from elugcn.elu.influence import hop_distance, influence_on
from elugcn.elu.label_propagation import Coupled, propagate_labels
from elugcn.engine import normalized_adjacency

STEPS, ALPHA = 6, 0.7


def random_graph(seed: int, n: int = 14, edges: int = 22, both: bool = True) -> Data:
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, size=(2, edges))
    pairs = pairs[:, pairs[0] != pairs[1]]
    if both:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
    pairs = np.unique(pairs, axis=1)
    y = torch.from_numpy(rng.integers(0, 3, n))
    train = torch.zeros(n, dtype=torch.bool)
    train[torch.from_numpy(rng.choice(n, 4, replace=False))] = True
    return Data(edge_index=torch.from_numpy(pairs), y=y, train_mask=train, num_nodes=n)


def dense_influence(a: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """T from its definition, with dense powers."""
    n = len(a)
    b = ALPHA * a + (1 - ALPHA) * np.eye(n)
    d_l, d_u = np.diag(labelled * 1.0), np.diag(~labelled * 1.0)
    step, total = np.eye(n), np.zeros((n, n))
    for _ in range(STEPS):
        total += step @ d_l
        step = step @ (d_u @ b)
    return total + step @ d_l


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("coupled", [True, False])
def test_rows_are_those_of_the_dense_operator(both: bool, coupled: bool) -> None:
    data = random_graph(3, both=both)
    adj = normalized_adjacency(data.edge_index, 14)
    dense = adj.to_dense().double().numpy()
    operator = Coupled(adj) if coupled else adj
    dense = dense @ dense.T if coupled else dense
    labelled = data.train_mask
    t = dense_influence(dense, labelled.numpy())
    rows = influence_on(operator, labelled, torch.tensor([5, 0, 9]), STEPS, ALPHA)
    expected = t[[5, 0, 9]][:, labelled.numpy()]
    total = expected.sum(axis=1, keepdims=True)
    expected = np.divide(expected, total, where=total > 0, out=0 * expected)
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-7)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), both=st.booleans())
def test_summed_by_class_it_is_label_propagation(seed: int, both: bool) -> None:
    """Proposition 1: the influence of a class is the share that LPA gives it."""
    data = random_graph(seed, both=both)
    adj = normalized_adjacency(data.edge_index, 14)
    labels = torch.where(data.train_mask, data.y, -1)
    lpa = propagate_labels(adj, labels, 3, STEPS, ALPHA)
    shares = influence_on(adj, data.train_mask, torch.arange(14), STEPS, ALPHA)
    one_hot = torch.nn.functional.one_hot(data.y[data.train_mask], 3).float()
    torch.testing.assert_close(shares @ one_hot, lpa, rtol=1e-4, atol=1e-6)


def test_influence_and_hops_by_hand() -> None:
    """A row of three, the ends labelled: the middle hears both alike; node 3 nobody."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    adj = normalized_adjacency(edges, 4)
    labelled = torch.tensor([True, False, True, False])
    shares = influence_on(adj, labelled, torch.tensor([1, 0, 3]), 1, 0.5)
    assert shares.tolist() == [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]
    assert hop_distance(adj, labelled).tolist() == [0, 1, 0, -1]
    assert hop_distance(adj, labelled & ~labelled).tolist() == [-1] * 4


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_hops_are_those_of_networkx(seed: int, both: bool) -> None:
    data = random_graph(seed, n=40, edges=45, both=both)
    adj = normalized_adjacency(data.edge_index, 40, self_loops=bool(seed % 2))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(40))
    graph.add_edges_from(data.edge_index.T.tolist())
    near = nx.multi_source_dijkstra_path_length(
        graph, set(data.train_mask.nonzero().flatten().tolist()), weight=None
    )
    assert hop_distance(adj, data.train_mask).tolist() == [
        near.get(i, -1) for i in range(40)
    ]
    assert -1 in hop_distance(adj, data.train_mask).tolist()
