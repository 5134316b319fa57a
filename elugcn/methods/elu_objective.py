"""What stage 2 minimises: labels, ELU targets, contrast, entropy, consistency."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.operators import ELUGraph
from elugcn.core.utilization import LabelUtilization
from elugcn.methods.base import Problem
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.nn import GCN, ProjectionHead
from elugcn.nn.losses import (
    consistency_loss,
    contrastive_loss,
    entropy_loss,
    weighted_cross_entropy,
)
from elugcn.nn.two_view_loss import Terms, two_view_loss
from elugcn.training.loop import Trained, train
from elugcn.training.progress import SILENT, Progress


class Objective:
    """CE + ω·CE(ELU targets) + λ (contrast + entropy) + λ_cons·consistency.

    Everything that does not change between epochs (indices, targets, weights) is
    gathered here once.
    """

    def __init__(
        self,
        problem: Problem,
        config: ELUGCNConfig,
        model: GCN,
        graph: ELUGraph | None,
        utilization: LabelUtilization,
        weights: Tensor | None,
    ) -> None:
        self.problem = problem
        self.config = config
        self.model = model
        self.graph = graph
        self.train_index = problem.train_index
        self.target = problem.y[self.train_index]
        self.elu = utilization.elu.nonzero().squeeze(1)
        self.nelu = utilization.nelu.nonzero().squeeze(1)
        if weights is not None:
            self.pseudo_index = weights.nonzero().squeeze(1)
            self.pseudo_target = utilization.gcn[self.pseudo_index]
            self.pseudo_weight = weights[self.pseudo_index]
        self.has_pseudo = weights is not None
        contrast = config.lambda_con > 0 and config.contrast_weight > 0
        self.head: ProjectionHead | None = None
        if contrast and graph is not None:
            self.head = ProjectionHead(problem.num_classes).to(problem.y.device)
        # The published objective has a faster way than term by term.
        self.terms: Terms | None = None
        usual = config.draws == 1 and config.contrast == "similarity"
        if self.head is not None and usual and self.elu.numel() and self.nelu.numel():
            self.terms = self._terms()

    def loss(self, epoch: int) -> Tensor:
        """The objective of one epoch."""
        config = self.config
        ramp = config.ramp(epoch)
        if ramp and self.terms is not None:
            return self._published(self.terms, ramp * config.lambda_con)
        views = self.model(self.problem.x, self.problem.adj, self.graph, config.draws)
        outputs = self.mixed(views)
        total = self._supervised(outputs)
        if ramp and config.lambda_con:
            extra = self._contrast(views)
            if config.entropy_weight:
                entropy = sum(entropy_loss(z) for z in outputs) / len(outputs)
                extra = extra + config.entropy_weight * entropy
            total = total + ramp * config.lambda_con * extra
        if ramp and config.lambda_cons and len(outputs) > 1:
            consistency = consistency_loss(outputs, config.sharpening)
            total = total + ramp * config.lambda_cons * consistency
        return total

    def _published(self, terms: Terms, scale: float) -> Tensor:
        """Eq. 12 in one pass."""
        assert self.graph is not None
        assert self.head is not None
        wide = self.model.side_by_side(self.problem.x, self.problem.adj, self.graph)
        contrast, entropy = self.config.contrast_weight, self.config.entropy_weight
        return two_view_loss(
            wide, self.head, terms, scale * contrast, scale * entropy, last_use=True
        )

    def train(
        self,
        validate: Callable[[], Tensor] | None = None,
        progress: Progress = SILENT,
        stage: str = "train",
    ) -> Trained:
        """Minimise it; arguments as those of ``training.loop.train``."""
        with self.model.one_step_at_a_time():
            return train(
                self.model,
                self.loss,
                self.logits,
                self.problem.y,
                self.problem.val_mask,
                self.config.fit(),
                validate=validate,
                extra=self.head,
                progress=progress,
                stage=stage,
            )

    def logits(self) -> Tensor:
        """The output of all nodes, in evaluation mode."""
        views = self.model(self.problem.x, self.problem.adj, self.graph)
        return self.mix(views, self.config.eta)

    def mix(self, views: list[Tensor], eta: float) -> Tensor:
        """(1−η) H̄ + η H̃, or the one view there is."""
        if self.graph is None:
            return views[0]
        return torch.lerp(views[0], views[-1], eta)

    def mixed(self, views: list[Tensor]) -> list[Tensor]:
        """The output of every draw."""
        if self.graph is None:
            return views
        return [torch.lerp(z, views[-1], self.config.eta) for z in views[:-1]]

    def _supervised(self, outputs: list[Tensor]) -> Tensor:
        total = outputs[0].new_zeros(())
        for z in outputs:
            total = total + F.cross_entropy(z[self.train_index], self.target)
            if self.has_pseudo:
                total = total + weighted_cross_entropy(
                    z[self.pseudo_index], self.pseudo_target, self.pseudo_weight
                )
        return total / len(outputs)

    def _contrast(self, views: list[Tensor]) -> Tensor:
        if self.head is None:
            return views[0].new_zeros(())
        p, q = self.head(torch.cat([views[0], views[-1]])).chunk(2)
        config = self.config
        loss = contrastive_loss(p, q, self.elu, self.nelu, config.tau, config.contrast)
        return config.contrast_weight * loss

    def _terms(self) -> Terms:
        """Labels and pseudo-labels as one target and weight a node."""
        target = torch.zeros_like(self.problem.y)
        target[self.train_index] = self.target
        weight = torch.zeros(target.shape, device=target.device)
        weight[self.train_index] = 1 / max(1, self.train_index.numel())
        if self.has_pseudo:
            target[self.pseudo_index] = self.pseudo_target
            weight[self.pseudo_index] = self.pseudo_weight
        config = self.config
        return Terms(target, weight, self.elu, self.nelu, config.tau, config.eta)


def pseudo_label_weights(
    problem: Problem,
    config: ELUGCNConfig,
    utilization: LabelUtilization,
    logits: Tensor,
) -> Tensor | None:
    """Weight of each node's pseudo-label, or None if none is used, O(n·c).

    Only ELU nodes outside the training set count. Within a class the weight follows
    the confidence; every class weighs the same in total, so that a class the model
    likes too much can't grow; all weights sum to ``pseudo_weight``.
    """
    if not config.pseudo_weight:
        return None
    usable = utilization.elu & ~problem.train_mask
    target = utilization.gcn.clamp(min=0)  # −1 where the model says nothing
    if not bool(usable.any()):
        return None
    confidence = F.softmax(logits, dim=1).amax(dim=1) * usable
    total = torch.zeros(problem.num_classes, device=logits.device)
    total.index_add_(0, target, confidence)
    weight = confidence / total[target].clamp(min=1e-12)
    return weight * (config.pseudo_weight / weight.sum())
