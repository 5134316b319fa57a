import pytest

from elugcn.bench import fit
from elugcn.bench.base import Settings, load
from elugcn.bench.children import ChildFailedError, Measured, measured
from elugcn.bench.records import Outcome

KARATE = Settings(datasets=("karate",), repeats=1, epochs=3)


def values(outcome: Outcome) -> dict[str, float]:
    return {r.metric: r.value for r in outcome.records}


def test_epochs_of_the_explicit_graph() -> None:
    assert fit.dense_epochs(2708, 200) == 200
    assert fit.dense_epochs(19_717, 200) == 4  # 150 M / 38.9 M entries
    assert fit.dense_epochs(10**6, 200) == 1


@pytest.mark.parametrize("way", ["ours", "gcn", "dense"])
def test_a_fit_of_each_way(way: str) -> None:
    answer = measured(fit.prepare, way, "karate", None, 3)
    assert 0 < answer["cpu"] <= answer["wall"] + 0.05
    stages = answer["result"]
    if way == "gcn":
        assert stages == {}
        return
    assert set(stages) == {"utilization", "pretrain", "graph", "train"}
    assert min(stages.values()) > 0
    # What is left is making Â and choosing.
    assert 0.3 * answer["cpu"] < sum(stages.values()) <= answer["cpu"]


def test_the_gcn_is_trained_for_all_its_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs: list[int] = []
    monkeypatch.setattr(fit, "pyg_epochs", lambda *given: lambda: epochs.append(1))
    fit._gcn(load("karate"), 7)
    assert len(epochs) == 7


def answers(
    monkeypatch: pytest.MonkeyPatch, **seconds: float | Exception
) -> list[tuple[str, int]]:
    """Children that return at once; what they were asked for."""
    asked = []

    def in_child(prepare: object, way: str, name: str, where: str | None, epochs: int) -> Measured:  # fmt: skip
        asked.append((way, epochs))
        cpu = seconds[way]
        if isinstance(cpu, Exception):
            raise cpu
        return Measured({}, cpu * epochs, cpu, 100 + 10 * cpu, 100)

    monkeypatch.setattr(fit, "in_child", in_child)
    return asked


def test_ours_is_repeated_where_the_dense_way_gets_fewer_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = answers(monkeypatch, ours=1.0, gcn=4.0, dense=20.0)
    monkeypatch.setattr(fit, "DENSE_BUDGET", 232)  # 2 epochs of 0.1·34² entries
    found = values(fit.measure(KARATE))
    assert asked == [("ours", 3), ("gcn", 3), ("ours", 2), ("dense", 2)]
    assert found["dense_epochs"] == 2
    assert found["ratio_gcn"] == pytest.approx(0.25)
    assert found["ratio_time"] == pytest.approx(0.05)
    assert found["ratio_memory"] == pytest.approx(0.05)
    assert (found["elu_gcn_ms"], found["dense_ms"]) == (3000, 40_000)
    assert (found["elu_gcn_mb"], found["pyg_gcn_mb"]) == (10, 40)


def test_what_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, ours=1.0, gcn=4.0)
    monkeypatch.setattr(fit, "free_mb", lambda: 0.001)
    outcome = fit.measure(KARATE)
    assert asked == [("ours", 3), ("gcn", 3)]
    assert "ratio_time" not in values(outcome)
    assert outcome.notes == ["karate: no dense way, 34 nodes do not fit"]


def test_a_dense_way_that_fails_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, ours=1.0, gcn=4.0, dense=ChildFailedError("ran out"))
    outcome = fit.measure(KARATE)
    assert "dense_ms" not in values(outcome)
    assert outcome.notes == ["karate: the dense way ran out"]


def test_a_failure_of_ours_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, ours=ChildFailedError("a bug"), gcn=4.0)
    with pytest.raises(ChildFailedError, match="a bug"):
        fit.measure(KARATE)
