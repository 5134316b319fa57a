"""What stage 2 minimises: labels, ELU targets, contrast, entropy and consistency.

Beyond the paper, stage 2 can train on pseudo-labels of ELU nodes: nodes on which label
propagation and the GCN agree are right more often than the GCN alone.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.elu.low_rank_graph import ELUGraph
from elugcn.elu.options import ELUConfig
from elugcn.elu.utilization import LabelUtilization
from elugcn.engine import (
    GraphInputs,
    LossTargets,
    contrastive_loss,
    entropy_loss,
    two_view_loss,
)
from elugcn.methods.backbone import AnyGCN
from elugcn.methods.network import Supervised
from elugcn.methods.problem import Problem
from elugcn.models.losses import consistency_loss, weighted_cross_entropy


class TwoViewObjective(Supervised):
    """CE + ω·CE(ELU targets) + λ·(contrast + entropy) + λ_cons·consistency.

    ``pseudo`` holds the weight of each node's pseudo-label, (n,); they sum to ω.
    """

    def __init__(
        self,
        network: AnyGCN,
        problem: Problem,
        config: ELUConfig,
        graph: ELUGraph,
        utilization: LabelUtilization,
        pseudo: Tensor | None = None,
    ) -> None:
        elu_graph = graph.operator if config.uses_elu_view else None
        super().__init__(network, problem, problem.inputs.with_elu_graph(elu_graph))
        self.gcn = network
        self.config = config
        self.targets = loss_targets(problem, utilization, pseudo)
        self.index = self.targets.weight.nonzero().squeeze(1)
        self.head: nn.Linear | None = None
        if config.uses_contrast:
            c = problem.num_classes
            self.head = nn.Linear(c, c).to(problem.y.device)
            self.extra = (self.head,)

    def loss(self, epoch: int) -> Tensor:
        """The objective of one epoch; eq. 13 unless there are several draws."""
        config, head = self.config, self.head
        ramp = config.ramp(epoch)
        views = self.gcn.views(self.inputs, config.draws)
        if head is None or config.draws > 1:
            return self._term_by_term(views.tensors(), ramp)
        return two_view_loss(
            views,
            head.weight,
            head.bias,
            self.targets,
            tau=config.tau,
            eta=config.eta,
            contrast_weight=ramp * config.lambda_con * config.contrast_weight,
            entropy_weight=ramp * config.lambda_con * config.entropy_weight,
            contrast=config.contrast,
        )

    def output(self, inputs: GraphInputs) -> Tensor:
        """(1−η)H̄ + ηH̃ of the nodes that the inputs answer for."""
        return mixed(self.gcn.views(inputs), self.config.eta)

    def _term_by_term(self, views: list[Tensor], ramp: float) -> Tensor:
        """The objective for several draws of the original view, or for one view."""
        config, targets = self.config, self.targets
        outputs = views
        if self.inputs.elu_graph is not None:
            outputs = [mixed([z, views[-1]], config.eta) for z in views[:-1]]
        target, weight = targets.target[self.index], targets.weight[self.index]
        labels = [
            weighted_cross_entropy(z.index_select(0, self.index), target, weight)
            for z in outputs
        ]
        total = torch.stack(labels).mean()
        scale = ramp * config.lambda_con
        if scale and config.entropy_weight:
            entropy = torch.stack([entropy_loss(z) for z in outputs]).mean()
            total = total + scale * config.entropy_weight * entropy
        if scale and self.head is not None:
            P_bar, P_tilde = (
                F.normalize(F.elu(self.head(z)), dim=1) for z in (views[0], views[-1])
            )
            contrast = contrastive_loss(
                P_bar, P_tilde, targets.elu, targets.nelu, config.tau, config.contrast
            )
            total = total + scale * config.contrast_weight * contrast
        if ramp * config.lambda_cons and len(outputs) > 1:
            consistency = consistency_loss(outputs, config.sharpening)
            total = total + ramp * config.lambda_cons * consistency
        return total


def mixed(views: list[Tensor], eta: float) -> Tensor:
    """(1−η)H̄ + ηH̃, or the only view there is, n×c."""
    return views[0] if len(views) == 1 else torch.lerp(views[0], views[-1], eta)


def loss_targets(
    problem: Problem, utilization: LabelUtilization, pseudo: Tensor | None
) -> LossTargets:
    """Labels and pseudo-labels as one class and one weight per node.

    Training nodes weigh 1/m each, so that their sum is the mean cross-entropy; with
    class weights, their own shares.
    """
    target = torch.where(problem.train_mask, problem.y, 0)
    weight = problem.train_mask.float() / max(1, problem.train_index.numel())
    if problem.train_weight is not None:
        weight[problem.train_index] *= problem.train_weight
    if pseudo is not None:
        used = pseudo > 0
        target = torch.where(used, utilization.gcn, target)
        weight = torch.where(used, pseudo, weight)
    return LossTargets(target, weight, utilization.elu, utilization.nelu)


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
