"""What could be returned, and how validation chooses: one model, or a blend of some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.operators import ELUGraph
from elugcn.core.utilization import LabelUtilization
from elugcn.methods.base import Predictor, Problem
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.neural import NetworkPredictor
from elugcn.training.loop import Trained

# Less weight than this is not worth a second model.
NOTHING = 0.01


@dataclass
class Candidate:
    """A model that could be returned, with what validation says about it."""

    name: str
    val_accuracy: float
    eta: float
    trained: Trained
    logits: Tensor
    predictor: Predictor
    utilization: LabelUtilization
    graph: ELUGraph

    @property
    def diverged(self) -> bool:
        """Whether its training ended in NaN or infinity."""
        return not bool(self.logits.isfinite().all())


def choose(
    candidates: Sequence[Candidate], problem: Problem, ensemble: bool
) -> Candidate:
    """The candidate validation prefers, ties to the order of the listing.

    With ``ensemble`` it is a mean of the probabilities of all candidates, weighted by
    exp(−(Δ/s)²): Δ is how far the accuracy is below the best one's, p, and
    s = √(p(1−p)/m) the standard error of p on m validation nodes. To pick the best of
    near equals would be to pick by chance; their mean is better than most of them. A
    candidate that is clearly worse, or whose training diverged, weighs nothing.
    """
    candidates = [c for c in candidates if not c.diverged] or candidates
    m = int(problem.val_mask.sum())
    # Without validation nothing can be compared: the first member is the answer.
    if not m:
        return candidates[0]
    # max keeps the first of equals.
    best = max(candidates, key=lambda c: c.val_accuracy)
    weights = {id(c): _weight(best.val_accuracy, c.val_accuracy, m) for c in candidates}
    others = [c for c in candidates if c is not best and weights[id(c)] >= NOTHING]
    if not ensemble or not others:
        return best
    group = [best, *sorted(others, key=lambda c: -weights[id(c)])]
    shares = [weights[id(c)] for c in group]
    logits = mean_logits([c.logits for c in group], shares)
    nodes = problem.val_mask.nonzero().squeeze(1)
    right = int((logits[nodes].argmax(dim=1) == problem.y[nodes]).sum())
    return replace(
        best,
        name=" + ".join(c.name for c in group),
        val_accuracy=right / m,
        logits=logits,
        predictor=BlendPredictor([c.predictor for c in group], shares),
    )


def _weight(best: float, accuracy: float, m: int) -> float:
    """Weight of a candidate beside the best, both accuracies being of m nodes."""
    if accuracy == best:
        return 1.0
    variance = best * (1 - best) / m
    return math.exp(-((best - accuracy) ** 2) / variance) if variance > 0 else 0.0


def mean_logits(logits: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Log of the weighted mean of the softmax of each, n×c."""
    total = sum(weights)
    stacked = torch.stack(
        [
            F.log_softmax(z, dim=1) + math.log(w / total)
            for z, w in zip(logits, weights, strict=True)
        ]
    )
    return torch.logsumexp(stacked, dim=0)


class BlendPredictor(Predictor):
    """Several trained models whose probabilities are averaged."""

    kinds: ClassVar[dict[str, type[Predictor]]] = {
        "elu": ELUGCNPredictor,
        "network": NetworkPredictor,
    }

    def __init__(self, members: list[Predictor], weights: list[float]) -> None:
        self.members = members
        self.weights = weights

    def logits(self, data: Data) -> Tensor:
        """Scores n×c for a graph with the same features; no refit."""
        return mean_logits([m.logits(data) for m in self.members], self.weights)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The state of every member, under numbered names."""
        tensors: dict[str, Tensor] = {}
        members = []
        for i, member in enumerate(self.members):
            own, facts = member.state()
            tensors |= {f"{i}.{k}": v for k, v in own.items()}
            kind = "elu" if isinstance(member, ELUGCNPredictor) else "network"
            members.append({"kind": kind, "state": facts})
        return tensors, {"members": members, "weights": self.weights}

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> BlendPredictor:
        """The inverse of ``state``."""
        members: list[Predictor] = []
        for i, member in enumerate(facts["members"]):
            prefix = f"{i}."
            own = {
                k.removeprefix(prefix): v
                for k, v in tensors.items()
                if k.startswith(prefix)
            }
            members.append(cls.kinds[member["kind"]].restore(own, member["state"]))
        return cls(members, [float(w) for w in facts["weights"]])
