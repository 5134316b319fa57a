"""The search that ``configs/search.yaml`` describes, on graphs with some traits."""

from dataclasses import replace
from typing import Any

import pytest

from elugcn.methods.problem import GraphTraits
from elugcn.methods.registry import get_method

CITATION = GraphTraits(2_000, 8_000, 1_500, 7, 40_000, True, False, 0.8)
PEOPLE = replace(CITATION, num_edges=80_000, homophily=0.3)


class Recorder:
    """A trial that takes the first choice and the low end of every range."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        self.asked[name] = choices
        return choices[0]

    def suggest_float(self, name: str, **spec: Any) -> float:
        self.asked[name] = spec
        return float(spec["low"])


def asked(method: str, traits: GraphTraits) -> tuple[dict[str, Any], dict[str, Any]]:
    trial = Recorder()
    return get_method(method).space(trial, traits), trial.asked


def test_sections_replace_values_where_their_trait_holds() -> None:
    _, near = asked("nodeformer", CITATION)
    assert near["rb_order"] == [1, 2, 3]
    assert "feature_norm" not in near
    _, large = asked("nodeformer", replace(CITATION, num_nodes=20_000))
    assert large["rb_order"] == [1, 2]
    _, dense = asked("nodeformer", replace(PEOPLE, directed=True))
    assert dense["rb_order"] == [0, 1]
    assert dense["hidden_channels"] == [32, 64, 128]
    assert list(dense)[:2] == ["direction", "feature_norm"]


def test_ranges_are_asked_last_and_other_values_are_fixed() -> None:
    options, ranges = asked("sgc", CITATION)
    assert options == {"order": 1, "epochs": 500, "lr": 0.02, "weight_decay": 1e-7}
    assert list(ranges) == ["order", "lr", "weight_decay"]
    assert ranges["lr"] == {"low": 0.02, "high": 0.5, "log": True}


@pytest.mark.parametrize(("features", "sampled"), [(1_000, True), (1_001, False)])
def test_traits_joined_by_and(features: int, sampled: bool) -> None:
    large = replace(CITATION, num_nodes=20_000, num_features=features)
    assert ("sample" in asked("grand", large)[0]) == sampled
    assert ("sample" in get_method("grand").starting_points(large)[0]) == sampled


def test_the_first_starts_that_fit() -> None:
    starts = get_method("gprgnn").starting_points
    assert [one["alpha"] for one in starts(PEOPLE)] == [1.0, 0.0]
    assert starts(replace(PEOPLE, homophily=0.8))[1]["feature_norm"] == "none"
    assert starts(CITATION) == [{}, {"lr": 0.05, "alpha": 0.2}]
