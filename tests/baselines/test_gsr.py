"""GSR: held-out edges, the contrast and the refinement against all pairs at once."""

import math
from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch import Tensor

from elugcn.baselines.gsr import (
    LAST_LR,
    TAU,
    Encoders,
    GSRConfig,
    HeldOut,
    contrast,
    encode,
    follow,
    joint_embedding,
    learning_rate,
    pretrain,
    refine,
    undirected,
)
from elugcn.engine import CSR, GraphInputs, normalized_adjacency
from elugcn.methods.problem import GraphView
from elugcn.training.progress import SILENT
from tests.baselines.helpers import Draw, fit

FAST: dict[str, Any] = {"pretrain_steps": 5, "structure_dim": 4, "hidden_channels": 8}


def drawn(n: int = 20, directed: bool = False) -> tuple[CSR, Tensor]:
    """A pattern, and the same as a dense matrix."""
    torch.manual_seed(n)
    a = (torch.rand(n, n) < 0.2).float().fill_diagonal_(0.0)
    a = a if directed else torch.maximum(a, a.T)
    a[-1] = a[:, -1] = 0.0  # an isolated node
    return CSR.from_tensor(a), a


def test_undirected_joins_what_is_joined_in_either_direction() -> None:
    graph, a = drawn(directed=True)
    loops = CSR.from_tensor(3.0 * a + torch.eye(20))
    assert torch.equal(undirected(loops).to_dense(), torch.maximum(a, a.T))
    assert torch.equal(undirected(graph).to_dense(), torch.maximum(a, a.T))


# --- pre-training ------------------------------------------------------------------


def test_messages_do_not_pass_held_out_edges() -> None:
    graph, a = drawn()
    held = HeldOut(graph)
    entries = held.pairs[::3]
    a[graph.row[entries], graph.col[entries].long()] = 0.0
    a = torch.minimum(a, a.T)
    root = a.sum(dim=1).rsqrt().nan_to_num(posinf=0.0)
    expected = root[:, None] * a * root
    torch.testing.assert_close(held.without(entries).to_dense(), expected)
    # Either direction names the edge.
    other = held.without(held.mirrored[entries]).to_dense()
    torch.testing.assert_close(other, expected)
    coo = torch.stack([graph.col.long(), graph.row])
    whole = normalized_adjacency(coo, 20, self_loops=False)
    torch.testing.assert_close(held.whole().to_dense(), whole.to_dense())


def test_contrast_by_hand() -> None:
    """Query 0 looks for node 0 among 2 and 3; query 1 for node 1, which is no negative."""
    q = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    key = torch.tensor([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0], [0.8, 0.6]])
    ours = contrast(q, key, torch.tensor([0, 1]), torch.tensor([2, 3, 1]))
    others = math.exp(1 / TAU) + math.exp(0.8 / TAU) + math.exp(0.0)
    one = math.log1p(others / math.exp(0.6 / TAU))
    two = math.log1p((math.exp(0.0) + math.exp(0.6 / TAU)) / math.exp(1 / TAU))
    assert float(ours) == pytest.approx((one + two) / 2, rel=1e-5)


@pytest.mark.parametrize("intra", [0.0, 0.4, 1.0])
def test_loss_weighs_views_and_decoded_views(intra: float) -> None:
    torch.manual_seed(0)
    views, nodes = Encoders([6, 4], 8), (torch.randint(9, (5,)), torch.randint(9, (7,)))
    q = [torch.randn(5, 8) for _ in range(2)]
    k = [F.normalize(torch.randn(9, 8)) for _ in range(2)]
    within = (contrast(q[0], k[0], *nodes) + contrast(q[1], k[1], *nodes)) / 2
    decoded = views.decoders[0](q[0]), views.decoders[1](q[1])
    across = contrast(decoded[0], k[1], *nodes) + contrast(decoded[1], k[0], *nodes)
    ours = views.loss(q, k, nodes, intra)
    torch.testing.assert_close(ours, intra * within + (1 - intra) * across / 2)


def test_encoders_are_gcns() -> None:
    graph, _ = drawn()
    adj, x = HeldOut(graph).whole(), torch.randn(20, 6)
    views = Encoders([6], 8)
    (net,) = views.encoders
    a = adj.to_dense()
    expected = a @ F.relu(a @ x @ net.W1 + net.b1) @ net.W2 + net.b2
    (z,) = encode(views.encoders, [x], adj)
    torch.testing.assert_close(z, expected, rtol=1e-4, atol=1e-5)


def test_learning_rate_and_momentum() -> None:
    config = GSRConfig(pretrain_steps=100, pretrain_lr=1e-3)
    rates = [learning_rate(step, config) for step in (0, 50, 100)]
    assert rates == pytest.approx([1e-3, LAST_LR + 9e-4 / 4, LAST_LR])
    slow, fast = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    expected = 0.9 * slow.weight.detach() + 0.1 * fast.weight.detach()
    follow(slow, fast, 0.9)
    torch.testing.assert_close(slow.weight.detach(), expected)


def test_pretraining_learns_which_nodes_are_joined(checked: Draw) -> None:
    data = checked(0, feature_noise=1.0).data
    graph = undirected(GraphView(self_loops=False).adjacency(data))
    xs = (data.x, torch.randn(data.num_nodes, 4))
    i, j = torch.triu_indices(data.num_nodes, data.num_nodes, 1)
    linked = graph.to_dense()[i, j] > 0
    scores = []
    for steps in (0, 60):
        torch.manual_seed(0)
        options = {"pretrain_steps": steps, "momentum": 0.9, "pretrain_lr": 0.01}
        views = pretrain(xs, graph, GSRConfig(**FAST | options), SILENT)
        with torch.no_grad():
            z = F.normalize(encode(views.encoders, xs, HeldOut(graph).whole())[0])
        scores.append(roc_auc_score(linked, (z[i] * z[j]).sum(dim=1)))
    assert scores[1] > scores[0] + 0.02


def test_without_edges_nothing_is_trained() -> None:
    empty = CSR.from_tensor(torch.zeros(5, 5))
    views = pretrain((torch.randn(5, 3),) * 2, empty, GSRConfig(**FAST), SILENT)
    assert len(views.encoders) == 2


# --- refinement --------------------------------------------------------------------


def test_similarity_is_a_weighted_sum_of_scaled_cosines() -> None:
    torch.manual_seed(0)
    views, weights = (torch.randn(9, 4), torch.randn(9, 3)), (0.3, 0.7)
    expected = torch.zeros(9, 9)
    for z, w in zip(views, weights, strict=True):
        cosine = F.normalize(z) @ F.normalize(z).T
        expected += w * (cosine - cosine.min()) / (1 - cosine.min())
    z = joint_embedding(views, weights)
    difference = z @ z.T - expected
    torch.testing.assert_close(difference, difference.mean().expand(9, 9))
    assert torch.equal(joint_embedding(views, (0.0, 1.0)), F.normalize(views[1]))


@pytest.mark.parametrize(("add", "remove"), [(0.0, 0.0), (0.3, 0.2), (0.0, 1.0)])
@pytest.mark.parametrize("directed", [False, True])
def test_refinement_is_that_of_all_pairs(
    add: float, remove: float, directed: bool
) -> None:
    graph, a = drawn(directed=directed)
    z = F.normalize(torch.randn(20, 5))
    edges, added, removed = refine(graph, z, add, remove)
    joined = torch.maximum(a, a.T) > 0
    alike = {(i, j): float(z[i] @ z[j]) for i, j in combinations(range(20), 2)}
    old = sorted((s, p) for p, s in alike.items() if joined[p])
    new = sorted((-s, p) for p, s in alike.items() if not joined[p])
    gone = {p for _, p in old[: round(remove * len(old))]}
    come = {p for _, p in new[: round(add * len(old))]}
    assert {tuple(p) for p in removed.T.tolist()} == gone
    assert {tuple(p) for p in added.T.tolist()} == come
    kept = [
        (i, j) for i, j in a.nonzero().tolist() if (min(i, j), max(i, j)) not in gone
    ]
    # Row i of a holds sources: an entry (i, j) is the edge from j to i.
    expected = {(j, i) for i, j in kept} | come | {(j, i) for i, j in come}
    assert {tuple(e) for e in edges.T.tolist()} == expected
    assert edges.size(1) == len(expected)


# --- the method --------------------------------------------------------------------


def test_another_graph_keeps_its_own_edges(checked: Draw) -> None:
    """There the model is a GCN; at home it saw the refined edges."""
    graph, other = checked(0), checked(1)
    result = fit(graph, "gsr", epochs=3, add=0.5, remove=0.1, **FAST)
    joined = int(graph.data.edge_index.size(1)) // 2
    assert result.metadata["pairs_added"] == round(0.5 * joined)
    assert result.metadata["pairs_removed"] == round(0.1 * joined)
    model: Any = result.model
    adj = normalized_adjacency(other.data.edge_index, 150)
    inputs = GraphInputs(model.scaler(other.data.x), adj)
    with torch.no_grad():
        torch.testing.assert_close(model.logits(other.data), model.network(inputs))
    assert not torch.allclose(model.logits(graph.data), result.logits)


def test_without_changes_the_graph_is_the_given_one(checked: Draw) -> None:
    graph = checked(0)
    result = fit(graph, "gsr", epochs=3, add=0.0, **FAST)
    assert result.model is not None
    torch.testing.assert_close(result.model.logits(graph.data), result.logits)
