"""A mean of several members' probabilities, chosen greedily on validation log-loss.

    p(k) ∝ exp(bₖ) Σᵢ wᵢ softmax(tᵢ zᵢ)ₖ

Greedy selection with replacement is that of Caruana et al. ("Ensemble Selection from
Libraries of Models", ICML 2004). Log-loss is a finer judge than accuracy where few
nodes judge many members.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.methods.contract import Model
from elugcn.methods.metrics import score
from elugcn.methods.network import under

STEPS = 30  # additions, with replacement
MIN_GAIN = 1e-5  # of log-loss, for a step that is worth taking


def greedy_weights(p_true: Tensor, node_weight: Tensor, steps: int = STEPS) -> Tensor:
    """Weights of the members, (M,), that sum to 1; O(steps·M·m).

    Only the probability of the true class counts for the log-loss of a mean.

    Args:
        p_true: Probability that each member gives to the true class, M×m.
        node_weight: How much each node counts, (m,).
        steps: Additions at most.
    """
    p_true, share = p_true.double(), (node_weight / node_weight.sum()).double()

    def losses(p: Tensor) -> Tensor:
        return -(p.clamp(min=1e-12).log() @ share)

    alone = losses(p_true)
    # Members that are level with the best begin together: nothing tells them apart.
    chosen = (alone <= alone.min() + MIN_GAIN).double()
    count, total = int(chosen.sum()), chosen @ p_true
    least = float(losses(total / count))
    for step in range(count + 1, count + steps):
        found = losses((total + p_true) / step)
        best = int(found.argmin())
        if float(found[best]) > least - MIN_GAIN:
            break
        least = float(found[best])
        chosen[best] += 1
        total += p_true[best]
    return chosen / chosen.sum()


def mean_logits(logits: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Log of the weighted mean of the members' probabilities, n×c."""
    total = sum(weights)
    mean: Tensor | None = None
    for z, w in zip(logits, weights, strict=True):
        shifted = F.log_softmax(z, dim=1) + math.log(w / total)
        mean = shifted if mean is None else torch.logaddexp(mean, shifted)
    assert mean is not None, "a mean needs a member"
    return mean


def class_bias(
    metric: str, logits: Tensor, y: Tensor, num_classes: int
) -> Tensor | None:
    """What is added to the logits for a metric in which every class counts alike.

    bₖ = −γ log πₖ for the share πₖ of class k among the judged nodes; γ has the best
    metric. None: the metric is another one, or nothing is better than no bias.
    """
    if metric not in ("balanced_accuracy", "f1_macro") or not y.numel():
        return None
    counts = torch.bincount(y, minlength=num_classes).double()
    log_share = torch.where(counts > 0, (counts / counts.sum()).log(), 0.0)
    tried = [-gamma * log_share for gamma in (0.0, 0.25, 0.5, 0.75, 1.0)]
    best = max(tried, key=lambda bias: score(metric, logits + bias, y, num_classes))
    return best.float() if bool(best.any()) else None


@dataclass
class Blend(Model):
    """Several trained models whose probabilities are averaged."""

    members: list[Model]
    weights: list[float]  # they need not sum to 1
    temperatures: list[float] = field(default_factory=list)  # empty: all 1
    bias: list[float] = field(default_factory=list)  # of each class; empty: all 0

    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features."""
        scales = self.temperatures or [1.0] * len(self.members)
        each = [t * m.logits(data) for t, m in zip(scales, self.members, strict=True)]
        mean = mean_logits(each, self.weights)
        return mean + torch.tensor(self.bias) if self.bias else mean

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of every member, under its number."""
        tensors: dict[str, Tensor] = {}
        for i, member in enumerate(self.members):
            tensors |= under(str(i), member.tensors())
        return tensors

    def description(self) -> dict[str, Any]:
        """The description of every member."""
        return {
            "method": "auto",
            "members": [member.description() for member in self.members],
            "weights": self.weights,
            "temperatures": self.temperatures,
            "bias": self.bias,
        }

    @classmethod
    def numbers(cls, description: Mapping[str, Any]) -> dict[str, list[float]]:
        """Weights, temperatures and bias of a description, as numbers."""
        names = ("weights", "temperatures", "bias")
        return {name: [float(x) for x in description.get(name, ())] for name in names}
