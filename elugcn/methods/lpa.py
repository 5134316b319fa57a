"""Label propagation as a method: no parameters, no features.

Zhu and Ghahramani, 2002, as the paper has it: Y ← α Â Y + (1 − α) Y with the training
rows put back after every step (``elugcn.core.propagation``). O(steps·nnz(Â)·c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch

from elugcn.core.direction import LabelGraph, label_operator
from elugcn.core.elu_graph import check_choice
from elugcn.core.propagation import propagate_labels
from elugcn.errors import InputError
from elugcn.methods.base import BaseConfig, Prediction, Problem, Run


@dataclass(frozen=True, kw_only=True)
class LPAConfig(BaseConfig):
    """Steps and share of the neighbours in each."""

    lpa_steps: int = 50
    lpa_alpha: float = 0.9
    lpa_graph: LabelGraph = "edges"  # edges | coupled (nodes with the same neighbours)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("lpa_graph", self.lpa_graph, get_args(LabelGraph))
        if self.lpa_steps < 1:
            raise InputError(f"lpa_steps must be at least 1; got {self.lpa_steps}")
        if not 0.0 <= self.lpa_alpha <= 1.0:
            raise InputError(f"lpa_alpha must be between 0 and 1; got {self.lpa_alpha}")


def fit_lpa(problem: Problem, config: LPAConfig, run: Run) -> Prediction:
    """Label propagation with exact clamping.

    A node that no label reaches gets the class frequencies of the training nodes:
    the honest answer when nothing is known about it.
    """
    with run.clock("train"):
        labels, c = problem.train_labels, problem.num_classes
        operator = label_operator(problem.spread, config.lpa_graph)
        share = propagate_labels(
            operator, labels, c, config.lpa_steps, config.lpa_alpha
        )
        unreached = share.sum(dim=1) == 0
        prior = torch.bincount(labels[labels >= 0], minlength=c).float()
        share[unreached] = prior / prior.sum()
    # Probabilities are reported through a softmax of logits: log(0) must stay finite.
    logits = share.clamp(min=1e-12).log()
    facts = {"unreached": int(unreached.sum())}
    return Prediction(logits=logits, seconds=run.seconds, facts=facts)
