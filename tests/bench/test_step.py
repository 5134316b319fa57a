import pytest

from elugcn.bench import step
from elugcn.bench.base import Settings, load
from elugcn.bench.measure import Times


def test_every_contestant_takes_its_steps() -> None:
    times = step.step_times(load("karate"), repeats=3, warmup=1)
    assert list(times) == [step.OURS, step.GCN, step.GAT, step.FLOOR, step.PLAIN]
    for one in times.values():
        assert len(one.cpu) == len(one.wall) == 3
        assert min(one.cpu) > 0
    # A part can't take longer than the whole.
    assert times[step.FLOOR].ms < times[step.OURS].ms


def test_ratios_are_ours_over_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        step.OURS: 0.003,
        step.GCN: 0.012,
        step.GAT: 0.03,
        step.FLOOR: 0.002,
        step.PLAIN: 0.0025,
    }
    monkeypatch.setattr(
        step, "step_times",
        lambda data, repeats: {k: Times([v] * repeats, [2 * v] * repeats)
                               for k, v in known.items()},
    )  # fmt: skip
    outcome = step.measure(Settings(datasets=("karate", "digits"), repeats=2))
    assert outcome.cases() == [("karate", 34), ("digits", 1797)]
    found = {r.metric: (r.value, r.unit) for r in outcome.records if r.n == 34}
    assert found == {
        "elu_gcn_ms": (pytest.approx(3), "ms"),
        "pyg_gcn_ms": (pytest.approx(12), "ms"),
        "pyg_gat_ms": (pytest.approx(30), "ms"),
        "floor_ms": (pytest.approx(2), "ms"),
        "ratio_gcn": (pytest.approx(0.25), "ratio"),
        "ratio_gat": (pytest.approx(0.1), "ratio"),
        "overhead": (pytest.approx(1.5), "ratio"),
    }
    assert outcome.notes[0].startswith("karate: 1.20 of the plain products, 2.5 ms; ")
    assert "2.00 times" in outcome.notes[0]


def test_default_and_quick_datasets() -> None:
    five = ("cora", "citeseer", "pubmed", "photo", "computers")
    assert step.SUITE.chosen(Settings()) == five
    assert step.SUITE.chosen(Settings(quick=True)) == ("digits",)
    assert step.SUITE.chosen(Settings(datasets=("sbm",))) == ("sbm",)
