"""Small random problems for the closed form, and fits without the API."""

from typing import Any

import pytest
import torch
from torch import Tensor

from elugcn.data.validation import CheckedGraph
from elugcn.elu.options import ELUConfig
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method

CPU = torch.device("cpu")


def fit(graph: CheckedGraph, method: str, seed: int = 0, **options: Any) -> FitResult:
    """Fit a method with some options."""
    config = config_for(method, options)
    problem = Problem.of(graph.data, config, CPU)
    return get_method(method).fit(problem, config, FitContext(seed))


def problem_of(graph: CheckedGraph, **options: Any) -> tuple[Problem, ELUConfig]:
    """The problem and the configuration of the stages."""
    config = ELUConfig(**options)
    return Problem.of(graph.data, config, CPU), config


@pytest.fixture
def example() -> tuple[Tensor, Tensor, Tensor]:
    """H of 30 nodes, labels of 9, and a label distribution with four empty rows."""
    generator = torch.Generator().manual_seed(4)
    H = torch.randn(30, 3, generator=generator, dtype=torch.float64).softmax(dim=1)
    labels = torch.full((30,), -1)
    labels[:9] = torch.arange(9) % 3
    lpa = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    lpa = lpa / lpa.sum(dim=1, keepdim=True)
    lpa[-4:] = 0
    return H, labels, lpa
