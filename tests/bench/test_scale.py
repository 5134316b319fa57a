import pytest

from elugcn.bench import scale
from elugcn.bench.base import Settings, load
from elugcn.bench.children import ChildFailedError, Measured, measured
from elugcn.methods.elu_config import ELUGCNConfig


def test_a_fit_from_nothing() -> None:
    answer = measured(scale.prepare, 400, 1)
    stages = answer["result"]
    assert set(stages) == {"prepare", "utilization", "graph", "train"}  # no MLP
    assert min(stages.values()) > 0
    assert sum(stages.values()) == pytest.approx(answer["cpu"], rel=0.3)


def test_the_graph_is_the_one_that_is_promised() -> None:
    data = load("sbm", n=2000, **scale.GRAPH)
    assert data.x.shape == (2000, 64)
    assert int(data.y.max()) == 9
    assert data.edge_index.size(1) / 2000 == pytest.approx(10)


def test_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_child(prepare: object, n: int, epochs: int, limit_mb: float) -> Measured:  # fmt: skip
        return Measured({"train": 1.0}, n**1.5 / 1e6, 1.0, 500 + n**0.5, 500.0)

    monkeypatch.setattr(scale, "in_child", in_child)
    outcome = scale.measure(Settings())
    assert [n for case, n in outcome.cases() if case == "sbm"] == [10**4, 10**5, 10**6]
    assert outcome.value("sbm", 10**6, "exponent_time") == pytest.approx(1.5)
    assert outcome.value("sbm", 10**6, "exponent_memory") == pytest.approx(0.5)
    assert outcome.value("sbm", 10**6, "epochs") == scale.EPOCHS
    assert outcome.value("sbm", 10**6, "peak_rss_mb") == pytest.approx(1500)


def test_a_size_that_does_not_fit_ends_the_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_child(prepare: object, n: int, *rest: object, limit_mb: float) -> Measured:  # fmt: skip
        if n > 10**4:
            raise ChildFailedError("held more than 7 MB")
        return Measured({}, 1.0, 1.0, 2.0, 1.0)

    monkeypatch.setattr(scale, "in_child", in_child)
    outcome = scale.measure(Settings())
    assert {n for _, n in outcome.cases()} == {10**4}
    assert outcome.notes[0] == "100,000 nodes: held more than 7 MB"
    assert all(r.unit != "exponent" for r in outcome.records)


def test_every_size_has_the_members_of_the_largest() -> None:
    config = scale.config_for_all(3)
    assert (config.epochs, config.patience, config.hidden_channels) == (3, 3, 64)
    million = 11 * 10**6
    affordable, dear = ELUGCNConfig().affordable(million)
    assert dear  # or there would be nothing to leave out
    assert [n for n, _ in config.members()] == [n for n, _ in affordable]
    assert config.affordable(million)[1] == []
    assert config.keep_gcn
