"""How validation chooses among trained models, by hand."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.data.datasets import load_dataset
from elugcn.fitting import fit_graph
from elugcn.methods.base import Problem
from elugcn.methods.elu_candidates import (
    BlendPredictor,
    Candidate,
    choose,
    mean_logits,
)
from elugcn.methods.elu_config import AFFORDABLE, DEFAULT_VARIANTS, ELUGCNConfig
from elugcn.storage import load_fitted, save_fitted

# Four validation nodes of two classes.
TARGET = torch.tensor([0, 0, 1, 1])


def problem(n_val: int = 4) -> Problem:
    mask = torch.arange(4) < n_val
    return cast(Problem, SimpleNamespace(val_mask=mask, y=TARGET))


def candidate(name: str, right: list[float], problem: Problem) -> Candidate:
    """A model that gives the true class of each node this probability."""
    p = torch.tensor(right)
    rows = torch.stack([p, 1 - p], dim=1)
    rows = torch.where((TARGET == 1).unsqueeze(1), rows.flip(1), rows)
    mask = problem.val_mask
    accuracy = (
        float((p > 0.5)[mask].float().mean()) if bool(mask.any()) else float("nan")
    )
    nothing = cast(Any, None)
    return Candidate(
        name, accuracy, 0.0, nothing, rows.log(), nothing, nothing, nothing
    )


def test_the_best_alone_and_ties_to_the_first() -> None:
    p = problem()
    a = candidate("a", [0.6, 0.6, 0.4, 0.4], p)
    b = candidate("b", [0.9, 0.9, 0.9, 0.4], p)
    c = candidate("c", [0.6, 0.6, 0.6, 0.4], p)
    assert choose([a, c, b], p, ensemble=False) is c


def test_equals_are_averaged() -> None:
    p = problem()
    a = candidate("a", [0.9, 0.9, 0.9, 0.3], p)
    b = candidate("b", [0.2, 0.9, 0.9, 0.9], p)
    both = choose([a, b], p, ensemble=True)
    assert both.name == "a + b"
    assert both.val_accuracy == 1.0
    expected = torch.tensor([0.55, 0.9, 0.9, 0.6])
    got = both.logits.exp()[torch.arange(4), TARGET]
    torch.testing.assert_close(got, expected)
    assert isinstance(both.predictor, BlendPredictor)
    assert both.predictor.weights == [1.0, 1.0]
    assert choose([b, a], p, ensemble=True).name == "b + a"
    assert choose([b, a], p, ensemble=False) is b


def test_weights_fall_with_the_distance_in_standard_errors() -> None:
    """With 3 of 4 right a standard error is √(3/16 / 4) = 0.2165."""
    p = problem()
    best = candidate("best", [0.9, 0.9, 0.9, 0.4], p)
    near, far = (candidate(name, [0.6] * 4, p) for name in ("near", "far"))
    near.val_accuracy, far.val_accuracy = 0.75 - 0.2165, 0.75 - 3 * 0.2165
    blend = choose([far, near, best], p, ensemble=True)
    assert blend.name == "best + near"
    assert isinstance(blend.predictor, BlendPredictor)
    assert blend.predictor.weights == pytest.approx([1.0, 0.3679], abs=1e-3)
    expected = (0.9 + 0.3679 * 0.6) / 1.3679
    assert float(blend.logits[0, 0].exp()) == pytest.approx(expected, abs=1e-3)
    # All right: nothing that is not can be as good.
    perfect = candidate("perfect", [0.9] * 4, p)
    assert choose([best, perfect], p, ensemble=True) is perfect


def test_without_validation_the_first_is_the_answer() -> None:
    p = problem(0)
    a, b = candidate("a", [0.1] * 4, p), candidate("b", [0.9] * 4, p)
    assert choose([a, b], p, ensemble=True) is a


def test_the_mean_is_of_probabilities() -> None:
    z = [torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 3)]
    p = [F.softmax(one, dim=1) for one in z]
    mean = (p[0] + 2 * p[1] + 5 * p[2]) / 8
    torch.testing.assert_close(mean_logits(z, [1, 2, 5]).exp(), mean)


def test_a_blend_is_saved_and_predicts_alike(tmp_path: Any) -> None:
    graph = check_data(load_dataset("karate"))
    config = resolve_config("elu-gcn", None, None, {"epochs": 20})
    fitted = fit_graph(graph, "elu-gcn", config, seed=0)
    one = fitted.prediction.predictor
    plain = fit_graph(graph, "gcn", resolve_config("gcn", None, None, {"epochs": 5}))
    assert one is not None
    assert plain.prediction.predictor is not None
    parts = one.members if isinstance(one, BlendPredictor) else [one]
    weights = [1.0, 0.5, 0.25, 2.0][: len(parts) + 1]
    blend = BlendPredictor([*parts, plain.prediction.predictor], weights)
    fitted.prediction.predictor = blend
    save_fitted(fitted, tmp_path)
    loaded = load_fitted(tmp_path).prediction.predictor
    assert isinstance(loaded, BlendPredictor)
    each = [m.logits(graph.data) for m in blend.members]
    expected: Tensor = mean_logits(each, weights)
    torch.testing.assert_close(loaded.logits(graph.data), expected)
    assert pytest.approx(1.0, abs=1e-5) == float(expected.exp().sum(dim=1).mean())


def test_a_large_graph_leaves_out_the_slow_member_of_the_default() -> None:
    config = ELUGCNConfig()
    names = [name for name, _ in config.members()]
    limit = int(AFFORDABLE / (8 * 2 * 64))  # order, draws, width of the first member
    kept, left_out = config.affordable(limit)
    assert [name for name, _ in kept] == names
    assert left_out == []
    kept, left_out = config.affordable(limit + 1)
    assert [name for name, _ in kept] == ["two views"]
    assert left_out == ["random propagation"]
    # What someone lists is trained, whatever it costs.
    named = ELUGCNConfig(variants=DEFAULT_VARIANTS[:1])
    assert named.affordable(10**9) == (named.members(), [])
    # An order outside is every member's: the cheapest of them is left.
    kept, left_out = ELUGCNConfig(order=2).affordable(10**9)
    assert [name for name, _ in kept] == ["two views"]
    assert left_out == ["random propagation"]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elugcn.methods.elu_config.AFFORDABLE", 1.0)
    graph = check_data(load_dataset("karate"))
    config = ELUGCNConfig(epochs=2)
    facts = fit_graph(graph, "elu-gcn", config).prediction.facts
    assert facts["left_out"] == ["random propagation"]
    assert set(facts["candidates"]) == {"two views", "gcn"}


def test_a_blend_predicts_what_it_was_judged_by() -> None:
    p = problem()
    best = candidate("best", [0.9, 0.9, 0.9, 0.4], p)
    near = candidate("near", [0.6, 0.2, 0.7, 0.3], p)
    near.val_accuracy = 0.75 - 0.2165
    for c in (best, near):
        c.predictor = cast(Any, SimpleNamespace(logits=lambda data, c=c: c.logits))
    blend = choose([near, best], p, ensemble=True)
    assert isinstance(blend.predictor, BlendPredictor)
    torch.testing.assert_close(blend.predictor.logits(Data()), blend.logits)
