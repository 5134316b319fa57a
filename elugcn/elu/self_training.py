"""ELU nodes as training targets: their pseudo-labels, weighted and balanced.

Nodes on which label propagation and the GCN agree are right more often than the GCN
alone. Beyond the paper, stage 2 can train on them, and stages 1 and 2 can be repeated
on their own output.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elugcn.elu.utilization import LabelUtilization


def pseudo_label_weights(
    utilization: LabelUtilization, train_mask: Tensor, total_weight: float
) -> Tensor | None:
    """The weight of each node's pseudo-label, (n,), or None if none is used, O(n·c).

    Only ELU nodes outside the training set count. Within a class the weight is
    proportional to the confidence. Every class has the same total weight, so that a
    class that the model favours cannot grow.
    """
    usable = utilization.elu & ~train_mask
    proba = utilization.gcn_proba
    if not total_weight or not bool(usable.any()) or proba is None:
        return None
    target = utilization.gcn.clamp(min=0)  # −1 where the prediction says nothing
    confidence = proba.amax(dim=1) * usable
    per_class = torch.zeros(proba.size(1), device=proba.device)
    per_class.index_add_(0, target, confidence)
    weight = confidence / per_class[target].clamp(min=1e-12)
    return weight * (total_weight / weight.sum())
