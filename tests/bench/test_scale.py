import pytest

from elugcn.bench import scale
from elugcn.bench.base import Settings, load
from elugcn.bench.children import ChildFailedError, Measured, measured
from elugcn.methods.elu_config import DEFAULT_VARIANTS


@pytest.mark.parametrize("case", list(scale.EPOCHS))
def test_a_fit_from_nothing(case: str) -> None:
    answer = measured(scale.prepare, case, 400, 1)
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
    def in_child(prepare: object, case: str, n: int, epochs: int, limit_mb: float) -> Measured:  # fmt: skip
        return Measured({"train": 1.0}, n**1.5 / 1e6, 1.0, 500 + n**0.5, 500.0)

    monkeypatch.setattr(scale, "in_child", in_child)
    outcome = scale.measure(Settings())
    assert [n for case, n in outcome.cases() if case == "sbm"] == [10**4, 10**5, 10**6]
    for case, epochs in scale.EPOCHS.items():
        assert outcome.value(case, 10**6, "exponent_time") == pytest.approx(1.5)
        assert outcome.value(case, 10**6, "exponent_memory") == pytest.approx(0.5)
        assert outcome.value(case, 10**6, "epochs") == epochs
        assert outcome.value(case, 10**6, "peak_rss_mb") == pytest.approx(1500)


def test_a_size_that_does_not_fit_ends_the_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_child(prepare: object, case: str, n: int, *rest: object, limit_mb: float) -> Measured:  # fmt: skip
        if n > 10**4:
            raise ChildFailedError("held more than 7 MB")
        return Measured({}, 1.0, 1.0, 2.0, 1.0)

    monkeypatch.setattr(scale, "in_child", in_child)
    outcome = scale.measure(Settings())
    assert {n for _, n in outcome.cases()} == {10**4}
    assert outcome.notes[0] == "sbm, 100,000 nodes: held more than 7 MB"
    assert all(r.unit != "exponent" for r in outcome.records)


def test_the_default_is_every_member() -> None:
    config = scale._config("sbm", 3)
    assert config.variants == DEFAULT_VARIANTS
    assert (config.epochs, config.patience, config.hidden_channels) == (3, 3, 64)
    assert len(scale._config("sbm:two-views", 3).members()) == 1
