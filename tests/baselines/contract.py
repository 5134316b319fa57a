"""What every baseline must do, for the tests of each."""

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.problem import GraphTraits, Problem
from elugcn.methods.registry import config_for, get_method

CPU = torch.device("cpu")
Draw = Callable[..., CheckedGraph]

# Cora, Pubmed, Photo, a graph of people, Chameleon; nothing known of homophily.
GRAPHS = (
    GraphTraits(2708, 10556, 1433, 7, 49216, True, False, 0.8),
    GraphTraits(19717, 88648, 500, 3, 988031, True, False, 0.8),
    GraphTraits(7487, 238086, 745, 8, 1_900_000, False, False, 0.8),
    GraphTraits(769, 33312, 1400, 4, 4600, True, False, 0.55),
    GraphTraits(2277, 36101, 2325, 5, 500_000, True, True, 0.2),
    GraphTraits(100, 300, 10, 2, 1000, False, False, float("nan")),
)


def fit(graph: CheckedGraph, method: str, seed: int = 0, **options: Any) -> FitResult:
    """Fit a method with some options."""
    config = config_for(method, options)
    problem = Problem.of(graph.data, config, CPU)
    return get_method(method).fit(problem, config, FitContext(seed))


def accuracy(result: FitResult, graph: CheckedGraph) -> float:
    """Share of the test nodes that get their class."""
    mask = graph.data.test_mask
    return float((result.logits.argmax(dim=1) == graph.data.y)[mask].float().mean())


def check_learns_and_restores(
    draw: Draw, method: str, least: float = 0.75, **options: Any
) -> None:
    """Better than chance (a third); the same again from a seed, and after saving."""
    graph, other = draw(0, n=300, n_features=16), draw(1, n=90, n_features=16)
    result = fit(graph, method, **options)
    assert accuracy(result, graph) > least
    again = fit(graph, method, **options)
    assert torch.equal(again.logits, result.logits)
    different = fit(graph, method, seed=1, **options)
    assert not torch.equal(different.logits, result.logits)
    assert result.model is not None
    check_restores(method, result, graph, other)


def check_restores(
    method: str, result: FitResult, graph: CheckedGraph, other: CheckedGraph
) -> None:
    """A model that went through JSON and tensors predicts as before."""
    model = result.model
    assert model is not None
    if method != "cs":  # errors of the training graph are part of its logits only
        logits = model.logits(graph.data)
        torch.testing.assert_close(logits, result.logits, rtol=1e-4, atol=1e-5)
    description = json.loads(json.dumps(model.description()))
    tensors = {name: x.clone() for name, x in model.tensors().items()}
    restored = get_method(description["method"]).restore(description, tensors)
    assert torch.equal(restored.logits(other.data), model.logits(other.data))


class RandomTrial:
    """Suggests what an Optuna trial may suggest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[str] = []

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        self.names.append(name)
        return self.random.choice(choices)

    def suggest_float(self, name: str, low: float, high: float, log: bool) -> float:
        assert 0 < low < high
        assert log
        self.names.append(name)
        return self.random.uniform(low, high)


def check_space(method: str, searched: Mapping[str, int]) -> None:
    """Every suggestion is a configuration.

    ``searched`` maps options that depend on the graph to the number of the graphs of
    ``GRAPHS`` for which they are searched.
    """
    found = dict.fromkeys(searched, 0)
    for traits in GRAPHS:
        for seed in range(20):
            trial = RandomTrial(seed)
            options = get_method(method).space(trial, traits)
            assert len(set(trial.names)) == len(trial.names)
            assert set(trial.names) <= set(options)
            config_for(method, options)
        for name in searched:
            found[name] += name in options
        starts = get_method(method).starting_points(traits)
        assert starts
        for start in starts:
            config_for(method, start)
    assert found == dict(searched)


def gradient(value: Tensor, of: Tensor) -> Tensor:
    """Of a weighted sum of the entries, which no symmetry hides."""
    weight = torch.linspace(-1.0, 2.0, value.numel()).view_as(value)
    (out,) = torch.autograd.grad((value * weight).sum(), of, retain_graph=True)
    return out
