"""LPA: label propagation, without features and without weights.

Zhu and Ghahramani, 2002, in the paper's form: Y ← α Â Y + (1 − α) Y, with the training
rows put back after every step. O(steps·nnz(Â)·c).
"""

from __future__ import annotations

from typing import Any

import torch

from elugcn.baselines.common import Starts, choices
from elugcn.elu.label_propagation import LabelGraph, label_operator, propagate_labels
from elugcn.methods.contract import FitContext, FitResult, Method
from elugcn.methods.options import Count, MethodConfig, Share
from elugcn.methods.problem import GraphTraits, Problem


class LPAConfig(MethodConfig):
    """Options of label propagation."""

    lpa_steps: Count = 50  # How many hops labels travel
    lpa_alpha: Share = 0.9  # Share of the neighbours in each step
    # What labels travel by: ``"edges"``, or ``"coupled"``: nodes with the same
    # neighbours
    lpa_graph: LabelGraph = "edges"


class LPA(Method[LPAConfig]):
    """Label propagation with exact training labels."""

    name = "lpa"
    summary = "labels along edges, no features"
    weighs_classes = False
    Config = LPAConfig

    def fit(
        self, problem: Problem, config: LPAConfig, context: FitContext
    ) -> FitResult:
        """Propagate; a node that no label reaches gets the class frequencies."""
        with context.clock("train"):
            labels, c = problem.train_labels, problem.num_classes
            operator = label_operator(problem.label_adj, config.lpa_graph)
            steps, alpha = config.lpa_steps, config.lpa_alpha
            share = propagate_labels(operator, labels, c, steps, alpha)
            unreached = share.sum(dim=1) == 0
            prior = torch.bincount(labels[labels >= 0], minlength=c).float()
            share[unreached] = prior / prior.sum()
        # Probabilities are a softmax of the logits: log(0) has to stay finite.
        logits = share.clamp(min=1e-12).log()
        metadata = {"unreached": int(unreached.sum())}
        return FitResult(logits=logits, seconds=context.seconds, metadata=metadata)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Steps, share of the neighbours, and what labels travel by."""
        values: dict[str, Any] = {
            "lpa_steps": (1, 3, 10, 50),
            "lpa_alpha": (0.5, 0.8, 0.9, 1.0),
            "lpa_graph": ("edges", "coupled"),
        }
        if traits.directed:
            values["direction"] = ("out", "both")
        return choices(trial, values)

    def starting_points(self, traits: GraphTraits) -> Starts:
        """Far, near, and by shared neighbours where edges have a direction."""
        coupled = {"lpa_graph": "coupled", "lpa_steps": 1, "lpa_alpha": 1.0}
        starts: Starts = [{}, {"lpa_steps": 3}]
        return [*starts, coupled | {"direction": "out"}] if traits.directed else starts
