"""How a graph is read: directions of edges by hand, scaling, facts."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.validation import CheckedGraph, check_data
from elugcn.engine import CSR, MeanPropagation, normalized_adjacency
from elugcn.methods.backbone import GCNConfig
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import GraphView, Problem, balanced_weight, mirrored

CPU = torch.device("cpu")
# 0 → 1 → 2, 3 → 1: pages 0 and 3 link to the same page.
EDGES = torch.tensor([[0, 1, 3], [1, 2, 1]])


def dense(direction: str, edges: Tensor = EDGES, n: int = 4, **options: Any) -> Tensor:
    data = Data(edge_index=edges, num_nodes=n, **options)
    return GraphView(False, direction).adjacency(data).to_dense()


def test_the_five_readings_by_hand() -> None:
    r = 0.5**0.5
    into = torch.tensor([[0, 0, 0, 0], [r, 0, 0, r], [0, 1.0, 0, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(dense("in"), into)
    torch.testing.assert_close(dense("given"), into)
    torch.testing.assert_close(dense("out"), into.T)
    torch.testing.assert_close(dense("apart"), torch.cat([into, into.T], dim=1))
    both = torch.zeros(4, 4)
    for i, j in ((0, 1), (1, 2), (1, 3)):
        both[i, j] = both[j, i] = 1 / 3**0.5
    torch.testing.assert_close(dense("both"), both)


def test_weights_travel_with_their_edges() -> None:
    weight = torch.tensor([4.0, 9.0, 1.0])
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    mirror, larger = mirrored(edges, weight, 3)
    assert mirror.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert larger is not None
    assert larger.tolist() == [9.0, 9.0, 1.0, 1.0]
    out = dense("out", edges, 3, edge_weight=weight)
    into = dense("in", edges, 3, edge_weight=weight)
    torch.testing.assert_close(out, into.T)
    assert float(into[1, 0]) == pytest.approx(1.0)  # 4 / √(4·4)


@given(st.integers(0, 2**32 - 1))
def test_without_direction_all_readings_are_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = torch.from_numpy(rng.integers(0, 9, (2, 20)))
    undirected, _ = mirrored(edges[:, edges[0] != edges[1]], None, 9)
    plain = normalized_adjacency(undirected, 9, self_loops=False).to_dense()
    for direction in ("given", "in", "out", "both"):
        torch.testing.assert_close(dense(direction, undirected, 9), plain)
    apart = dense("apart", undirected, 9)
    torch.testing.assert_close(apart, torch.cat([plain, plain], dim=1))


def small(**options: Any) -> CheckedGraph:
    data = Data(
        x=torch.tensor([[2.0, 0], [0, 4], [1, 1], [5, 5]]),
        edge_index=EDGES,
        y=torch.tensor([0, 1, 1, 0]),
        train_mask=torch.tensor([True, True, False, True]),
        val_mask=torch.tensor([False, False, True, False]),
    )
    return check_data(data, directed=True)


def test_a_problem_by_hand() -> None:
    config = GCNConfig(feature_norm="row", self_loops=False, order=2)
    problem = Problem.of(small().data, config, CPU)
    assert problem.train_index.tolist() == [0, 1, 3]
    assert problem.val_index.tolist() == [2]
    assert problem.train_labels.tolist() == [0, 1, -1, 0]
    assert (problem.shapes.in_channels, problem.shapes.out_channels) == (2, 2)
    x = problem.x.to_dense()
    torch.testing.assert_close(
        x, torch.tensor([[1.0, 0], [0, 1], [0.5, 0.5], [0.5, 0.5]])
    )
    adj = dense("given")
    torch.testing.assert_close(problem.adj.to_dense(), adj)
    assert isinstance(problem.inputs.adj, MeanPropagation)
    mean = (torch.eye(4) + adj + adj @ adj) / 3
    torch.testing.assert_close(problem.inputs.adj @ torch.eye(4), mean)
    assert problem.val_score(torch.tensor([[0.0, 1]] * 4)) == 1.0
    traits = problem.traits
    assert (traits.num_nodes, traits.num_edges, traits.num_features) == (4, 3, 2)
    assert traits.directed
    # Of the edges between training nodes, 0 → 1 and 3 → 1, none joins equal classes.
    assert traits.homophily == 0.0


def test_weights_of_classes_by_hand() -> None:
    """Training nodes 0, 1 and 3 have the classes 0, 1 and 0."""
    problem = Problem.of(small().data, MethodConfig(), CPU)
    z = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    assert problem.train_weight is None
    assert problem.cross_entropy(z) == F.cross_entropy(z, torch.tensor([0, 1, 0]))
    weight = balanced_weight(problem.train_target, 3)
    torch.testing.assert_close(weight[:2], torch.tensor([3 / 4, 3 / 2]))
    weighted = replace(problem, class_weight=weight[:2], metric="f1_macro")
    each = F.cross_entropy(z, torch.tensor([0, 1, 0]), reduction="none")
    of_nodes = torch.tensor([0.75, 1.5, 0.75])
    assert weighted.train_weight is not None
    torch.testing.assert_close(weighted.train_weight, of_nodes)
    torch.testing.assert_close(weighted.cross_entropy(z), (each * of_nodes).mean())
    other = weighted.seen_with(MethodConfig(feature_norm="none"))
    assert (other.metric, other.class_weight) == ("f1_macro", weighted.class_weight)


def test_without_validation_nothing_is_said_of_it() -> None:
    data = small().data.clone()
    data.val_mask[:] = False
    problem = Problem.of(data, MethodConfig(), CPU)
    assert math.isnan(problem.val_score(torch.ones(4, 2)))
    data.train_mask[:] = torch.tensor([True, False, False, False])
    assert math.isnan(Problem.of(data, MethodConfig(), CPU).traits.homophily)


def test_published_directions_of_a_symmetric_graph() -> None:
    """``links`` hold them; only readings that ask for a direction use them."""
    symmetric = torch.cat([EDGES, EDGES.flip(0)], dim=1)
    data = Data(edge_index=symmetric, num_nodes=4, links=EDGES)
    for direction in ("in", "out", "apart"):
        found = GraphView(False, direction).adjacency(data).to_dense()
        torch.testing.assert_close(found, dense(direction))
    for direction in ("given", "both"):
        found = GraphView(False, direction).adjacency(data).to_dense()
        torch.testing.assert_close(found, dense("both"))


def test_labels_travel_both_ways_where_directions_are_apart() -> None:
    problem = Problem.of(small().data, GCNConfig(direction="apart"), CPU)
    both = Problem.of(small().data, GCNConfig(direction="both"), CPU)
    assert problem.adj.shape == (4, 8)
    assert torch.equal(problem.label_adj.to_dense(), both.adj.to_dense())


@pytest.mark.parametrize(
    "options",
    [
        {"feature_norm": "none"},
        {"self_loops": False},
        {"direction": "out"},
        {"order": 3},
        {"order": 3, "direction": "both"},
        {},
    ],
    ids=["features", "loops", "direction", "order", "both", "same"],
)
def test_another_view_of_a_problem_is_a_problem_of_its_own(
    options: dict[str, Any],
) -> None:
    data = small().data
    first = Problem.of(data, GCNConfig(), CPU)
    seen = first.seen_with(GCNConfig(**options))
    fresh = Problem.of(data, GCNConfig(**options), CPU)
    assert seen.view == fresh.view
    assert torch.equal(seen.x.to_dense(), fresh.x.to_dense())
    assert torch.equal(seen.inputs.adj @ torch.eye(4), fresh.inputs.adj @ torch.eye(4))
    assert (seen is first) == (not options)
    back = seen.seen_with(GCNConfig())
    assert torch.equal(back.inputs.adj @ torch.eye(4), first.inputs.adj @ torch.eye(4))


def test_tables_are_not_scaled_twice(checked: Callable[..., CheckedGraph]) -> None:
    data = checked(0).data.clone()
    auto = Problem.of(data, MethodConfig(), CPU)
    data.features_scaled = True
    scaled = Problem.of(data, MethodConfig(), CPU)
    asked = Problem.of(data, MethodConfig(feature_norm="standard"), CPU)
    assert (auto.scaler.kind, scaled.scaler.kind) == ("standard", "none")
    assert asked.scaler.kind == "standard"
    assert torch.equal(
        scaled.x.to_dense() if isinstance(scaled.x, CSR) else scaled.x, data.x
    )
