import pytest
import torch

from elugcn.bench import graph
from elugcn.bench.base import Settings
from elugcn.bench.children import ChildFailedError
from elugcn.core.operators import LowRankGraph
from elugcn.core.sparse import CSR


def test_both_ways_learn_the_same_graph() -> None:
    h, labels, lpa = graph.draw(80)
    assert int((labels >= 0).sum()) in range(8, 30)
    torch.testing.assert_close(h.sum(dim=1), torch.ones(80))
    ours, theirs = graph.factored(h, labels, lpa), graph.dense(h, labels, lpa)
    assert isinstance(ours, LowRankGraph)
    assert isinstance(theirs, CSR)
    kept, full = theirs.to_dense(), ours.to_dense()
    # Single-precision eq. 11 cancels large terms, so entries agree to a few digits.
    torch.testing.assert_close(kept[kept != 0], full[kept != 0], rtol=1e-2, atol=1e-4)
    assert theirs.nnz == pytest.approx(0.1 * 80**2, abs=1)


def test_a_size_is_measured_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "QUICK_SIZES", (1500,))
    outcome = graph.measure(Settings(quick=True))
    found = {r.metric: r.value for r in outcome.records}
    for kind, unit in (("time", "ms"), ("memory", "mb")):
        ratio = found[f"factored_{unit}"] / found[f"dense_{unit}"]
        assert found[f"ratio_{kind}"] == pytest.approx(ratio)
    # At least S and a copy of it: 2 · 4 · 1500² bytes.
    assert 17 < found["dense_mb"] < 60


def test_what_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "QUICK_SIZES", (100,))
    monkeypatch.setattr(graph, "free_mb", lambda: 0.01)
    outcome = graph.measure(Settings(quick=True))
    assert {r.metric for r in outcome.records} == {"factored_ms", "factored_mb"}
    assert outcome.notes == ["no dense way for 100 nodes: it does not fit"]


def test_a_dense_way_that_fails_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*drawn: object) -> object:
        raise MemoryError

    monkeypatch.setattr(graph, "QUICK_SIZES", (100,))
    monkeypatch.setitem(graph._WAYS, "dense", fail)
    outcome = graph.measure(Settings(quick=True))
    assert outcome.notes == ["100 nodes: the dense way ran out of memory"]
    monkeypatch.setitem(graph._WAYS, "factored", fail)
    with pytest.raises(ChildFailedError, match="ran out of memory"):
        graph.measure(Settings(quick=True))


@pytest.mark.parametrize("way", ["factored", "dense"])
def test_work_is_done_when_it_is_measured(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setitem(graph._WAYS, way, lambda h, *rest: seen.append(len(h)))
    work = graph.prepare(way, 321)
    assert seen == [100]
    work()
    assert seen == [100, 321]
