"""Which labels would help most: by hand, by definition, on graphs with a gap."""

import numpy as np
import pytest
import torch
from torch import Tensor

from elugcn.elu.label_propagation import propagate_labels
from elugcn.engine import CSR, normalized_adjacency
from elugcn.errors import InputError
from elugcn.insight import DiagnosisContext, suggest_labels
from elugcn.insight import suggestion as module
from elugcn.insight.suggestion import (
    default_pool,
    joint_prediction,
    need,
    similarity,
    smoothed_directions,
)
from tests.insight.conftest import by_hand, mask, small


def islands(*labelled: int) -> DiagnosisContext:
    """Three rings of ten nodes with features of their own, labels in some."""
    source = torch.arange(30)
    ring = source // 10
    target = ring * 10 + (source + 1) % 10
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    data = small(ring.tolist(), train=labelled, directed=False)
    data.x, data.edge_index = torch.eye(3)[ring], edges
    labels = torch.where(data.train_mask, ring, -1)
    lpa = propagate_labels(normalized_adjacency(edges, 30), labels, 3)
    return DiagnosisContext(by_hand(data, lpa, 0.9 * data.x + 0.1 / 3))


def test_the_island_without_a_label_comes_first() -> None:
    first, second = suggest_labels(islands(0, 10), 2)
    assert first.index // 10 == 2
    assert first.node == str(first.index)
    assert (first.utilization, first.reason) == ("unreachable", "no label reaches it")
    # Ten nodes that need a label fully, and nothing like them is labelled.
    assert first.gain == pytest.approx(10.0, rel=1e-4)
    # After it, every node is like a labelled one.
    assert second.gain == pytest.approx(0.0, abs=1e-4)
    assert second.index != first.index


def test_gains_follow_from_the_definition(context: DiagnosisContext) -> None:
    """Every gain is F(S + j) − F(S), and no other node was worth more."""
    problem, data = context.problem, context.data
    a = problem.label_adj.to_dense().double().numpy()
    x = problem.x.to_dense() if isinstance(problem.x, CSR) else problem.x
    z = a @ a @ x.double().numpy()
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    kernel = np.clip(z @ z.T, 0, 1) ** 2
    weight = need(context).double().numpy()
    covered = kernel[:, data.train_mask.numpy()].max(axis=1)
    pool = default_pool(data).numpy()
    likely = joint_prediction(context).argmax(dim=1).numpy()
    count = np.bincount(data.y[data.train_mask], minlength=3).astype(float)
    chosen = suggest_labels(context, 5)
    for one in chosen:
        gains = (np.maximum(kernel - covered[:, None], 0) * weight[:, None]).sum(axis=0)
        worth = gains * (1 + count / count.mean())[likely] ** -0.5
        assert pool[one.index]
        assert one.gain == pytest.approx(gains[one.index], rel=1e-3)
        assert worth[one.index] == pytest.approx(worth[pool].max(), rel=1e-3)
        count[likely[one.index]] += 1
        covered = np.maximum(covered, kernel[:, one.index])
        pool[one.index] = False
        best = context.proba[one.index]
        assert one.gcn == str(int(best.argmax()))
        assert one.confidence == pytest.approx(float(best.max()))
    assert len({s.index for s in chosen}) == 5
    assert suggest_labels(context, 3) == chosen[:3]


def test_need_by_hand() -> None:
    lpa = torch.tensor([[1.0, 0], [1, 0], [0, 0], [0.5, 0.5]])
    gcn = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0.5, 0.5]])
    data = small([0] * 4)
    # Certain and agreed, torn (NELU), out of reach, undecided.
    found = need(DiagnosisContext(by_hand(data, lpa, gcn)))
    assert found.tolist() == pytest.approx([0.5, 1.0, 1.0, 1.0])
    gcn[0] = torch.tensor([0.8, 0.2])  # with label propagation: 0.9 and 0.1
    gcn[2] = torch.tensor([0.1, 0.9])  # decides where no label reaches
    context = DiagnosisContext(by_hand(data, lpa, gcn))
    joint = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.5, 0.5]])
    torch.testing.assert_close(joint_prediction(context), joint)
    entropy = -(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert float(need(context)[0]) == pytest.approx(0.5 + 0.5 * entropy)


@pytest.mark.parametrize(
    ("y", "test", "expected"),
    [
        ([0, 1, -1, 0, -1], (3,), [2, 4]),
        ([0, 1, 1, 0, -1], (), [4]),  # node 3 is known, though in no split
        ([0, 1, 1, 0, 1], (3,), [2, 4]),
        ([0, 1, 1, 0, 1], (2, 3, 4), [2, 3, 4]),
    ],
    ids=["unknown", "known", "outside the splits", "test nodes"],
)
def test_who_may_be_suggested(
    y: list[int], test: tuple[int, ...], expected: list[int]
) -> None:
    data = small(y, train=(0,), val=(1,), test=test)
    assert default_pool(data).nonzero().flatten().tolist() == expected


def test_the_pool_is_kept_to(context: DiagnosisContext) -> None:
    train = int(context.data.train_mask.nonzero()[0])
    pool = mask(150, 30, 31, 32, train)
    found = {s.index for s in suggest_labels(context, 9, pool)}
    assert found == {30, 31, 32} - {train}


def test_reasons() -> None:
    """Unlike nodes, so that each is suggested for itself."""
    gcn = torch.tensor([[0.9, 0.1], [0.55, 0.45], [0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    lpa = torch.tensor([[1.0, 0], [1, 0], [1, 0], [1, 0], [0, 0]])
    data = small([0, -1, -1, -1, -1], train=(0,), class_names=["a", "b"])
    data.node_ids = list("vwxyz")
    found = {s.node: s for s in suggest_labels(by_hand(data, lpa, gcn), 9)}
    assert {node: (s.utilization, s.gcn, s.reason) for node, s in found.items()} == {
        "w": ("elu", "a", "two classes are almost equally likely"),
        "x": ("elu", "a", "it represents many similar nodes"),
        "y": ("nelu", "b", "label propagation and the GCN disagree"),
        "z": ("unreachable", "b", "no label reaches it"),
    }
    assert found["y"].confidence == pytest.approx(0.8)


def test_large_graphs_are_sampled(
    context: DiagnosisContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few candidates and targets, the choice is nearly as good."""
    pool = ~context.data.train_mask & ~context.data.val_mask
    exact = suggest_labels(context, 5, pool)
    monkeypatch.setattr(module, "MAX_CANDIDATES", 30)
    monkeypatch.setattr(module, "MAX_TARGETS", 60)
    about = suggest_labels(context, 5, pool)
    assert suggest_labels(context, 5, pool) == about  # the same draw each time
    assert suggest_labels(context, 5, pool, seed=1) != about
    total = sum(s.gain for s in exact)
    assert sum(s.gain for s in about) == pytest.approx(total, rel=0.35)
    many = suggest_labels(context, 40, pool)
    assert len({s.index for s in many}) == 40
    assert bool(pool[[s.index for s in many]].all())
    # A class with few nodes in the pool does not make the suggestions fewer.
    narrow = pool & (context.use.gcn == 0)
    count = int(narrow.sum()) * 2 // 3
    assert len({s.index for s in suggest_labels(context, count, narrow)}) == count


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_wide_features_keep_their_angles(sparse: bool) -> None:
    """Of rank 20: 256 directions of 600 columns hold everything."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.rand(300, k, generator=generator) for k in (20, 600))
    x = left @ right[:20]
    edges = torch.randint(300, (2, 900), generator=generator)
    adj = normalized_adjacency(edges, 300)
    z = smoothed_directions(adj, CSR.from_tensor(x) if sparse else x)
    assert z.shape == (300, 256)
    expected = torch.nn.functional.normalize(adj.to_dense() @ (adj.to_dense() @ x))
    cosine = expected @ expected.T
    torch.testing.assert_close(z @ z.T, cosine, atol=5e-3, rtol=0)
    squared = cosine.clamp(0, 1) ** 2
    torch.testing.assert_close(similarity(z[:4], z), squared[:4], atol=5e-3, rtol=0)


def test_every_label_covers() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.nn.functional.normalize(torch.randn(640, 5, generator=generator))
    expected = (z[:40] @ z[40:].T).clamp(0, 1).max(dim=1).values ** 2
    torch.testing.assert_close(module.covered_by(z[:40], z[40:]), expected)


def test_labels_of_the_rarer_class_count_more() -> None:
    """Two islands alike but for their class: the one with fewer labels comes first."""
    lpa = torch.tensor([[1.0, 0], [1, 0], [0, 0], [0, 0]])
    gcn = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    data = small([0, 0, -1, -1], train=(0, 1), class_names=["a", "b"])
    found = suggest_labels(by_hand(data, lpa, gcn), 2)
    assert [(s.index, s.utilization) for s in found] == [
        (3, "unreachable"), (2, "unreachable"),
    ]  # fmt: skip


REFUSED = {
    "none": ((0,), "count must be at least 1; got 0"),
    "numbers": ((1, torch.ones(150)), r"pool must be a boolean mask of shape \(150,\)"),
    "short": ((1, mask(9)), r"pool must be a boolean mask of shape \(150,\)"),
    "empty": ((1, mask(150)), "there is no unlabelled node left"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(
    given: tuple[int, Tensor], message: str, context: DiagnosisContext
) -> None:
    with pytest.raises(InputError, match=message):
        suggest_labels(context, *given)
