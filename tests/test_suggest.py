"""Which labels are asked for: by hand, by definition, and on graphs with a gap."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn import suggest
from elugcn.core.coverage import smoothed_directions
from elugcn.core.utilization import definition_one
from elugcn.data.checks import CheckedGraph
from elugcn.diagnosis.fitted import Reading
from elugcn.errors import InputError
from elugcn.fitting import Fitted
from elugcn.suggest import default_pool, need, suggest_labels
from tests.diagnosis.conftest import fit


@pytest.fixture(scope="module")
def fitted(checked: Callable[..., CheckedGraph]) -> Fitted:
    return fit(checked())


@pytest.fixture(scope="module")
def reading(fitted: Fitted) -> Reading:
    return Reading.of(fitted)


def islands(labelled: list[int]) -> CheckedGraph:
    """Three islands of ten nodes with features of their own; one label in some."""
    source = torch.arange(30)
    target = source // 10 * 10 + (source + 1) % 10
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    x = torch.nn.functional.one_hot(source // 10, 3).float()
    train = torch.zeros(30, dtype=torch.bool)
    train[labelled] = True
    none = torch.zeros(30, dtype=torch.bool)
    data = Data(
        x=x, edge_index=edges, y=source // 10, train_mask=train, val_mask=none,
        test_mask=none, class_names=["a", "b", "c"], directed=False,
    )  # fmt: skip
    return CheckedGraph(data, ())


def test_the_island_without_a_label_is_asked_for_first() -> None:
    fitted = fit(islands([0, 10]), epochs=3)
    first, second = suggest_labels(fitted, 2)
    assert first.index // 10 == 2
    assert (first.utilization, first.reason) == ("unreachable", "no label reaches it")
    # Ten nodes of full need that nothing like them covers yet.
    assert first.gain == pytest.approx(10.0, rel=1e-4)
    # After it everything is covered: nothing is left to gain.
    assert second.gain == pytest.approx(0.0, abs=1e-4)
    assert second.index != first.index


def test_gains_follow_from_the_definition(reading: Reading) -> None:
    """Every gain is F(S + j) − F(S), and no other node was worth more."""
    problem, data = reading.problem, reading.data
    z = smoothed_directions(problem.spread, problem.x, suggest.HOPS).double().numpy()
    kernel = np.clip(z @ z.T, 0, 1) ** suggest.POWER
    w = need(reading).double().numpy()
    chosen = suggest_labels(reading, 6)
    covered = kernel[:, data.train_mask.numpy()].max(axis=1)
    pool = default_pool(data).numpy()
    assert not reading.use.unreachable.any()
    likely = (reading.proba + reading.lpa).argmax(dim=1).numpy()
    count = np.bincount(data.y[data.train_mask], minlength=3).astype(float)
    for one in chosen:
        favour = (1 + count / count.mean()) ** -0.5
        gains = (np.maximum(kernel - covered[:, None], 0) * w[:, None]).sum(axis=0)
        assert pool[one.index]
        assert one.gain == pytest.approx(gains[one.index], rel=1e-3)
        worth = gains * favour[likely]
        assert worth[one.index] == pytest.approx(worth[pool].max(), rel=1e-3)
        count[likely[one.index]] += 1
        covered = np.maximum(covered, kernel[:, one.index])
        pool[one.index] = False
        assert one.gcn == str(int(reading.proba[one.index].argmax()))
        assert one.confidence == pytest.approx(float(reading.proba[one.index].max()))
    assert len({s.index for s in chosen}) == 6
    assert suggest_labels(reading, 3) == chosen[:3]


def test_need_by_hand(reading: Reading) -> None:
    lpa = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.5, 0.5]])
    proba = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    made = replace(reading, lpa=lpa, proba=proba, use=definition_one(lpa, proba))
    # Agreed, torn apart (NELU), out of reach, undecided.
    assert need(made).tolist() == pytest.approx([0.5, 1.0, 1.0, 1.0])
    third = proba.clone()
    third[0] = torch.tensor([0.8, 0.2])  # with LPA: 0.9 and 0.1
    made = replace(made, proba=third)
    entropy = -(0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert float(need(made)[0]) == pytest.approx(0.5 + 0.5 * entropy)


def test_who_may_be_asked_for() -> None:
    def pool(y: list[int], train: int, val: int, test: list[int]) -> list[bool]:
        masks = [torch.zeros(5, dtype=torch.bool) for _ in range(3)]
        masks[0][train], masks[1][val], masks[2][test] = True, True, True
        names = ("train_mask", "val_mask", "test_mask")
        data = Data(y=torch.tensor(y), **dict(zip(names, masks, strict=True)))
        return default_pool(data).tolist()

    unknown = pool([0, 1, -1, 0, -1], 0, 1, [3])
    assert unknown == [False, False, True, False, True]
    assert pool([0, 1, 1, 0, 1], 0, 1, [3]) == [False, False, True, False, True]
    # Nobody is outside the splits: the test nodes.
    assert pool([0, 1, 1, 0, 1], 0, 1, [2, 3, 4]) == [False, False, True, True, True]


def test_the_pool_is_kept_to(reading: Reading) -> None:
    pool = torch.zeros(150, dtype=torch.bool)
    pool[[30, 31, 32]] = True
    train = int(reading.data.train_mask.nonzero()[0])
    pool[train] = True
    assert {s.index for s in suggest_labels(reading, 9, pool)} == {30, 31, 32} - {train}


def test_large_graphs_are_represented(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a few candidates and targets only, the choice is nearly as good."""
    exact = suggest_labels(reading, 5)
    monkeypatch.setattr(suggest, "CANDIDATES", 30)
    monkeypatch.setattr(suggest, "TARGETS", 60)
    about = suggest_labels(reading, 5)
    assert suggest_labels(reading, 5) == about  # the same draw each time
    assert suggest_labels(reading, 5, seed=1) != about
    assert sum(s.gain for s in about) == pytest.approx(
        sum(s.gain for s in exact), rel=0.35
    )
    pool = default_pool(reading.data)
    generator = torch.Generator().manual_seed(0)
    z = smoothed_directions(reading.problem.spread, reading.problem.x)
    few = suggest._candidates(reading, z, need(reading), pool, 30, generator)
    assert 30 <= few.numel() <= 36
    assert pool[few].all()
    assert few.unique().numel() == few.numel()
    assert set(reading.use.gcn[few].tolist()) == set(reading.use.gcn[pool].tolist())


def test_reasons(reading: Reading) -> None:
    said = {s.index: s for s in suggest_labels(reading, 40)}
    margin = reading.proba.topk(2).values
    margin = margin[:, 0] - margin[:, 1]
    seen = set()
    for i, one in said.items():
        status = reading.use.names()[i]
        assert one.utilization == status
        if status == "elu":
            close = float(margin[i]) < 0.2
            expected = "two classes contest it" if close else "speaks for its region"
        else:
            expected = {"nelu": "labels and GCN disagree"}[status]
        assert one.reason == expected
        seen.add(expected)
    assert len(seen) == 3
    assert said[next(iter(said))].plain()["node"] == str(next(iter(said)))


def test_refusals(reading: Reading) -> None:
    with pytest.raises(InputError, match="suggest must be at least 1; got 0"):
        suggest_labels(reading, 0)
    with pytest.raises(InputError, match="pool must be a mask of 150 booleans"):
        suggest_labels(reading, 1, torch.ones(150))
    with pytest.raises(InputError, match="no node without a label is left"):
        suggest_labels(reading, 1, torch.zeros(150, dtype=torch.bool))


def test_every_label_covers() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(640, 5))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    targets, labelled = z[:40], z[40:]
    expected = (np.clip(targets @ labelled.T, 0, 1) ** 2).max(axis=1)
    got = suggest._covered(*(torch.from_numpy(t).float() for t in (targets, labelled)))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4)


def test_the_most_central_of_a_class_is_a_candidate(reading: Reading) -> None:
    pool = suggest.default_pool(reading.data)
    z = smoothed_directions(reading.problem.spread, reading.problem.x)
    w = need(reading)
    few = suggest._candidates(reading, z, w, pool, 12, torch.Generator().manual_seed(0))
    gcn, zs = reading.use.gcn.numpy(), z.double().numpy()
    for c in range(3):
        centre = (zs[gcn == c] * w.double().numpy()[gcn == c, None]).sum(axis=0)
        members = np.flatnonzero(pool.numpy() & (gcn == c))
        assert int(members[(zs[members] @ centre).argmax()]) in few.tolist()


def test_as_many_as_asked_for(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "CANDIDATES", 5)
    assert len({s.index for s in suggest_labels(reading, 40)}) == 40


def test_the_gcn_speaks_where_no_label_reaches() -> None:
    lpa = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    proba = torch.tensor([[0.5, 0.5], [0.1, 0.9]])
    made = cast(
        Reading, SimpleNamespace(lpa=lpa, proba=proba, use=definition_one(lpa, proba))
    )
    torch.testing.assert_close(
        suggest._both(made), torch.tensor([[0.75, 0.25], [0.1, 0.9]])
    )


def test_a_small_class_does_not_make_fewer_suggestions(
    checked: Callable[..., CheckedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places go by the need of all nodes; a pool may have few of a class."""
    reading = Reading.of(fit(checked()))
    pool = default_pool(reading.data) & (reading.use.gcn == 0)
    monkeypatch.setattr(suggest, "CANDIDATES", 6)
    asked = int(pool.sum()) * 2 // 3
    assert asked > 12
    found = suggest_labels(reading, asked, pool=pool)
    assert len({one.index for one in found}) == asked
