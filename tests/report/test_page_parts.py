"""The numbers behind the page, each against a truth of its own."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from elugcn.core.operators import ExplicitGraph, LowRankGraph
from elugcn.core.sparse import CSR
from elugcn.fitting import Fitted
from elugcn.report.page import heat
from elugcn.report.page import nodes as nodes_module
from elugcn.report.page.calibration import Bin, reliability
from elugcn.report.page.embedding import class_corners, node_map
from elugcn.report.page.heat import blocks_of
from elugcn.report.page.nodes import embedded, select_nodes
from elugcn.report.page.scores import clearly_differs, judged_nodes, scores
from elugcn.report.page.usage import class_rows, status_rows


def random_proba(n: int, c: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(3 * torch.randn(n, c, generator=generator), dim=1)


# --- the map ---------------------------------------------------------------------


def test_three_classes_are_a_triangle_and_nodes_lie_between_its_corners() -> None:
    proba = torch.tensor([[1.0, 0, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    points, corners = node_map(proba, spread=0.0)
    high = math.sqrt(3) / 2
    expected = [[0.0, -1.0], [high, 0.5], [-high, 0.5]]
    np.testing.assert_allclose(corners, expected, atol=1e-12)
    # A sure node at its corner, a torn one half way, an ignorant one in the middle.
    np.testing.assert_allclose(points, [[0, -1], [0, 0.5], [0, 0]], atol=1e-7)


def test_two_classes_lie_side_by_side() -> None:
    points, corners = node_map(torch.tensor([[1.0, 0], [0, 1.0]]))
    np.testing.assert_allclose(corners, [[-1, 0], [1, 0]], atol=1e-12)
    # The surest node of a class is in the centre of its disc.
    np.testing.assert_allclose(points, corners, atol=1e-12)


def test_sure_nodes_fan_out_without_leaving_their_disc() -> None:
    proba = torch.zeros(300, 5)
    proba[torch.arange(300), torch.arange(300) % 5] = 1.0
    points, corners = node_map(proba)
    away = (points - corners[torch.arange(300) % 5]).norm(dim=1)
    # Discs of different corners do not touch.
    assert 2 * float(away.max()) < float(torch.pdist(corners).min())
    gaps = torch.cdist(points, points) + 9 * torch.eye(300)
    assert float(gaps.min()) > 0.02  # 60 nodes in a disc: none hides another


def test_confused_classes_are_neighbours() -> None:
    # 0-3, 3-1, 1-4, 4-2 and 2-0 are mixed up: a ring in an order that is not 0 to 4.
    ring = [0, 3, 1, 4, 2]
    rows = []
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        row = torch.zeros(5)
        row[[a, b]] = 0.5
        rows.append(row)
    corners = class_corners(torch.stack(rows))
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        assert float((corners[a] - corners[b]).norm()) == pytest.approx(
            2 * math.sin(math.pi / 5)
        )


@given(st.integers(1, 12), st.integers(1, 40))
def test_the_map_of_anything_is_finite_and_the_same_each_time(c: int, n: int) -> None:
    proba = random_proba(n, c, seed=n)
    first, corners = node_map(proba)
    again, _ = node_map(proba)
    assert torch.equal(first, again)
    assert bool(first.isfinite().all())
    np.testing.assert_allclose(corners.norm(dim=1), np.ones(c), atol=1e-12)


# --- calibration -----------------------------------------------------------------


def test_reliability_by_hand() -> None:
    proba = torch.tensor([[0.95, 0.05], [0.91, 0.09], [0.4, 0.6], [0.5, 0.5]])
    y = torch.tensor([0, 1, 1, -1])
    found = reliability(proba, y, torch.ones(4, dtype=torch.bool))
    assert found is not None
    assert [b.nodes for b in found.bins] == [1, 2]
    assert found.bins[1] == Bin(2, pytest.approx(0.93), 0.5)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.error == pytest.approx((1 * 0.4 + 2 * 0.43) / 3)
    assert reliability(proba, y, torch.tensor([0, 0, 0, 1]).bool()) is None


def test_reliability_is_sklearns() -> None:
    proba, y = random_proba(500, 4), torch.arange(500) % 4
    found = reliability(proba, y, torch.ones(500, dtype=torch.bool))
    assert found is not None
    confidence, best = proba.max(dim=1)
    share, mean = calibration_curve(best == y, confidence, n_bins=10)
    np.testing.assert_allclose([b.accuracy for b in found.bins], share)
    np.testing.assert_allclose([b.confidence for b in found.bins], mean, rtol=1e-6)
    assert sum(b.nodes for b in found.bins) == 500


# --- what the labels do ----------------------------------------------------------


def test_kinds_of_nodes_by_hand(six: Fitted) -> None:
    elu, nelu, never = status_rows(six, judged_nodes(six))
    assert [(r.status, r.nodes) for r in (elu, nelu, never)] == [
        ("ELU", 4), ("NELU", 1), ("unreachable", 1),
    ]  # fmt: skip
    # Node 3 is ELU, a test node, and the model says "left" where "right" is true.
    assert (elu.judged, elu.model, elu.gcn, elu.lpa) == (1, 0.0, 1.0, 1.0)
    # Node 2 is NELU: the model and label propagation are right, the GCN is not.
    assert (nelu.judged, nelu.model, nelu.gcn, nelu.lpa) == (1, 1.0, 0.0, 1.0)
    assert (never.judged, never.model) == (0, None)
    six.prediction.utilization = None
    assert status_rows(six, judged_nodes(six)) == []


def test_classes_by_hand(six: Fitted) -> None:
    left, right = class_rows(six, judged_nodes(six), ["left", "right"])
    assert (left.nodes, left.labels, left.judged, left.right) == (5, 1, 2, 0.5)
    assert left.shares == (0.6, 0.2, 0.2)
    assert (right.nodes, right.labels, right.judged, right.right) == (1, 1, 0, None)
    assert class_rows(six, None, ["left", "right"])[0].judged == 0


def test_scores_by_hand(six: Fitted) -> None:
    known: dict[str, dict[str, float | None]] = {
        "gcn": {"test_accuracy": 0.5, "val_accuracy": 1.0},
        "mlp": {"test_accuracy": 0.25, "val_accuracy": None},
    }
    own, gcn, mlp = scores(six, judged_nodes(six), known)
    assert (own.method, own.accuracy, own.val_accuracy) == ("elu-gcn", 0.5, 1.0)
    assert (gcn.accuracy, gcn.clear, mlp.accuracy, mlp.clear) == (
        0.5,
        False,
        0.25,
        None,
    )
    six.data.test_mask = torch.zeros(6, dtype=torch.bool)
    judged = judged_nodes(six)
    assert judged is not None
    assert (judged.name, judged.nodes) == ("validation", 1)
    assert [s.accuracy for s in scores(six, judged, known)] == [1.0, 1.0, None]
    six.data.val_mask = torch.zeros(6, dtype=torch.bool)
    assert judged_nodes(six) is None
    assert scores(six, None, known) == []


@pytest.mark.parametrize(("ours", "theirs", "clear"), [(9, 2, True), (8, 2, False)])
def test_a_difference_is_clear_beyond_two_deviations(
    six: Fitted, ours: int, theirs: int, clear: bool
) -> None:
    """|9 − 2| = 7 > 2√11 = 6.6, |8 − 2| = 6 < 2√10 = 6.3; shared errors do not count."""
    n = ours + theirs + 30
    six.data.y = torch.zeros(n, dtype=torch.long)
    wrong = torch.zeros(n, dtype=torch.long)
    wrong[:theirs] = 1
    six.prediction.logits = torch.eye(2)[wrong]
    other = torch.zeros(n, dtype=torch.long)
    other[theirs : theirs + ours] = 1
    assert clearly_differs(six, other, torch.ones(n, dtype=torch.bool)) is clear


# --- blocks ----------------------------------------------------------------------


def test_the_share_inside_classes_is_exact_for_some_thousand_nodes() -> None:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(1500, 3, generator=generator) for _ in range(2))
    labels = torch.randint(3, (1500,), generator=generator)
    dense = (left @ right.T).clamp(min=0)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    expected = float(dense[same].sum() / dense.sum())
    found = heat._inside_positive(LowRankGraph(left, right), labels, 3)
    assert found == pytest.approx(expected, rel=1e-5)


def test_block_means_are_those_of_the_dense_graphs(six: Fitted) -> None:
    left, right = torch.rand(6, 2) + 0.1, torch.rand(6, 2) - 0.4
    six.prediction.graph = LowRankGraph(left, right)
    found = blocks_of(six)
    assert found is not None
    original, elu = found.maps
    # Five labelled nodes of 48 blocks: a block each, in the order of the classes.
    assert found.block_class == (0, 0, 0, 1, 1)
    a = torch.zeros(6, 6)
    a[six.data.edge_index[0], six.data.edge_index[1]] = 1.0
    degree = a.sum(dim=1)
    a = a / torch.outer(degree, degree).sqrt()
    dense = left @ right.T
    np.testing.assert_allclose(original.means, a[:5, :5], atol=1e-6)
    np.testing.assert_allclose(elu.means, dense[:5, :5], atol=1e-6)
    same = torch.tensor([0, 0, 0, 1, 1])
    same = same.unsqueeze(0) == same.unsqueeze(1)
    assert original.inside == pytest.approx(
        float(a[:5, :5][same].sum() / a[:5, :5].sum())
    )
    positive = dense[:5, :5].clamp(min=0)
    assert elu.inside == pytest.approx(float(positive[same].sum() / positive.sum()))
    assert found.chance == pytest.approx((9 + 4) / 25)
    assert found.dense
    assert not found.by_prediction


def test_blocks_of_stored_entries_and_of_few_labels(six: Fitted) -> None:
    six.data.y = torch.tensor([0, -1, -1, -1, 1, -1])
    dense = torch.zeros(6, 6)
    dense[0, 1], dense[0, 4], dense[4, 4] = 2.0, 1.0, -5.0
    six.prediction.graph = ExplicitGraph(CSR.from_tensor(dense))
    del six.data.edge_index
    found = blocks_of(six)
    assert found is not None
    (elu,) = found.maps
    assert found.by_prediction
    assert found.block_class == (0, 0, 0, 0, 0, 1)
    # Nodes 0 and 1 are of one class, 0 and 4 of two; the negative entry is left out.
    assert elu.inside == pytest.approx(2 / 3)
    assert not found.dense
    six.prediction.graph = None
    assert blocks_of(six) is None


# --- nodes -----------------------------------------------------------------------


def test_columns_by_hand(six: Fitted) -> None:
    six.data.node_ids = list("abcdef")
    found = select_nodes(six)
    assert found.columns["id"] == list("abcdef")
    assert found.columns["label"] == [0, 0, 0, 1, 1, -1]
    assert found.columns["prediction"] == [0, 0, 0, 0, 1, 0]
    assert found.columns["confidence"] == [900, 800, 700, 600, 900, 550]
    assert found.columns["utilization"] == [1, 1, 0, 1, 1, -1]
    assert found.columns["split"] == [0, 1, 2, 2, 0, 3]
    assert found.table == found.mapped == [0, 1, 2, 3, 4, 5]
    assert found.low == 61  # the second of six has 60 %, and is below it
    xs = found.columns["x"]
    assert xs is not None
    # Left to right as the model is more sure of "right".
    assert xs[4] == max(xs)
    assert xs[0] == min(xs)


def test_ids_that_do_not_fit_leave_a_draw_of_all_classes(
    six: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    six.data.node_ids = [name * 10 for name in "abcdef"]  # 12 bytes each with quotes
    monkeypatch.setattr(nodes_module, "_ID_BUDGET", 36)
    found = select_nodes(six)
    ids = found.columns["id"]
    assert ids is not None
    drawn = [ids[i][0] for i in found.mapped]
    assert len(drawn) == 3
    assert drawn == sorted(drawn)
    assert drawn != ["a", "b", "c"]  # the first ones are no draw


@pytest.mark.parametrize(
    ("confidence", "low"),
    [([0.5] * 5, 51), ([0.512, 0.6, 0.7, 0.8], 52), ([1.0] * 5, 100)],
)
def test_low_confidence_is_what_it_says(confidence: list[float], low: int) -> None:
    values = torch.tensor(confidence)
    assert nodes_module._low(values) == low
    if low < 100:  # else nothing is to be doubted
        assert int((values < low / 100).sum()) >= len(confidence) / 4


def test_many_nodes_are_sampled(six: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "TABLE_LIMIT", 3)
    monkeypatch.setattr(nodes_module, "MAP_LIMIT", 2)
    found = select_nodes(six)
    ids = found.columns["id"]
    assert ids is not None
    # The unreachable and the NELU node, then the least sure of the others.
    assert [ids[i] for i in found.table] == ["2", "3", "5"]
    assert len(found.mapped) == 2
    assert found.total == 6
    xs = found.columns["x"]
    assert xs is not None
    assert [i for i, x in enumerate(xs) if x >= 0] == found.mapped
    six.prediction.utilization = None
    assert select_nodes(six).columns["utilization"] is None


def test_long_ids_cost_rows_not_megabytes(six: Fitted) -> None:
    six.data.node_ids = [f"{i}" + "<" * 40_000 for i in range(6)]
    found = select_nodes(six)
    # An escaped "<" is six bytes: two such ids are all that fits.
    assert len(found.table) == len(found.mapped) == 2
    assert found.total == 6


@given(st.lists(st.text('<>&/"\\\u2028\u2029\x00é😀a')))
def test_embedded_json_is_the_same_and_closes_no_script(words: list[str]) -> None:
    out = embedded(words)
    assert json.loads(out) == words
    assert not set(out) & set("<>&\u2028\u2029")


def test_half_characters_are_replaced() -> None:
    assert json.loads(embedded("a\ud800b")) == "a?b"


def test_a_perfect_model_still_has_a_map(six: Fitted) -> None:
    one = torch.zeros(6, 1)
    six.prediction = replace(six.prediction, logits=one)
    found = select_nodes(six)
    assert found.columns["confidence"] == [1000] * 6
    assert len(found.corners) == 1
