"""What the tests of the baselines share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method

CPU = torch.device("cpu")
Draw = Callable[..., CheckedGraph]


def fit(graph: CheckedGraph, method: str, seed: int = 0, **options: Any) -> FitResult:
    """Fit a method with some options."""
    config = config_for(method, options)
    problem = Problem.of(graph.data, config, CPU)
    return get_method(method).fit(problem, config, FitContext(seed))


def objective(
    graph: CheckedGraph, method: str, **options: Any
) -> tuple[Any, Any, Problem]:
    """The objective and the network of a method before its training, and the graph."""
    config = config_for(method, options)
    problem = Problem.of(graph.data, config, CPU)
    kind: Any = get_method(method)
    torch.manual_seed(0)
    network = kind.build(config, problem.shapes)
    return kind.objective(network, problem, config, FitContext()), network, problem


def accuracy(result: FitResult, graph: CheckedGraph) -> float:
    """Share of the test nodes that get their class."""
    mask = graph.data.test_mask
    return float((result.logits.argmax(dim=1) == graph.data.y)[mask].float().mean())


def gradient(value: Tensor, of: Tensor) -> Tensor:
    """Of a weighted sum of the entries, which no symmetry hides."""
    weight = torch.linspace(-1.0, 2.0, value.numel()).view_as(value)
    (out,) = torch.autograd.grad((value * weight).sum(), of, retain_graph=True)
    return out
