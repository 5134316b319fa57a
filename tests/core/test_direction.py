"""Edges with a direction, on a path small enough to write down."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elugcn.core.direction import (
    Coupled,
    directed_adjacency,
    label_operator,
    mirrored,
)
from elugcn.core.propagation import propagate_labels
from elugcn.core.sparse import normalized_adjacency

# 0 → 1 → 2, 3 → 1: pages 0 and 3 link to the same page.
EDGES = torch.tensor([[0, 1, 3], [1, 2, 1]])


def dense(direction: str, **options: object) -> torch.Tensor:
    return directed_adjacency(
        EDGES, 4, self_loops=False, direction=direction, **options
    ).to_dense()


def test_the_four_readings_by_hand() -> None:
    r = 0.5**0.5
    into = torch.tensor([[0, 0, 0, 0], [r, 0, 0, r], [0, 1.0, 0, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(dense("in"), into)
    torch.testing.assert_close(dense("given"), into)
    torch.testing.assert_close(dense("out"), into.T)
    torch.testing.assert_close(dense("apart"), torch.cat([into, into.T], dim=1))
    s = 1 / 3**0.5
    both = torch.zeros(4, 4)
    for i, j in ((0, 1), (1, 2), (1, 3)):
        both[i, j] = both[j, i] = s
    torch.testing.assert_close(dense("both"), both)


def test_weights_travel_with_their_edges() -> None:
    weight = torch.tensor([4.0, 9.0, 1.0])
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    mirror, larger = mirrored(edges, weight, 3)
    assert mirror.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert larger is not None
    assert larger.tolist() == [9.0, 9.0, 1.0, 1.0]
    out = directed_adjacency(edges, 3, weight, False, "out").to_dense()
    into = directed_adjacency(edges, 3, weight, False, "in").to_dense()
    torch.testing.assert_close(out, into.T)
    assert float(into[1, 0]) == pytest.approx(1.0)  # 4 / √(4·4)


@given(st.integers(0, 2**32 - 1))
def test_without_direction_all_readings_are_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = torch.from_numpy(rng.integers(0, 9, (2, 20)))
    edges = edges[:, edges[0] != edges[1]]
    undirected, _ = mirrored(edges, None, 9)
    plain = normalized_adjacency(undirected, 9).to_dense()
    for direction in ("given", "in", "out", "both"):
        got = directed_adjacency(undirected, 9, direction=direction).to_dense()
        torch.testing.assert_close(got, plain)
    apart = directed_adjacency(undirected, 9, direction="apart").to_dense()
    torch.testing.assert_close(apart, torch.cat([plain, plain], dim=1))


def test_coupled_nodes_share_what_they_point_to() -> None:
    adj = directed_adjacency(EDGES, 4, self_loops=False, direction="out")
    z = torch.randn(4, 3)
    a = adj.to_dense()
    torch.testing.assert_close(Coupled(adj) @ z, a @ a.T @ z)
    assert label_operator(adj, "edges") is adj
    labels = torch.tensor([2, -1, 0, -1])
    share = propagate_labels(label_operator(adj, "coupled"), labels, 3, 1, 1.0)
    # Page 3 links where page 0 links and takes its class; nothing reaches page 1.
    assert share[3].tolist() == [0.0, 0.0, 1.0]
    assert share[1].tolist() == [0.0, 0.0, 0.0]
