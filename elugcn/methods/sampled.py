"""Random propagation for a sample of nodes: GRAND's objective at the price of a batch.

The draws have to agree on nodes that are drawn afresh in every epoch, and a row of
Π drop(X) is a bag of the k rows of X that weigh most in it:

    x̄_i = Σ_{j ∈ top k} π_ij m_j x_j / (1 − δ),     m_j = 0 with probability δ
    L = (1/S) Σ_s CE(z⁽ˢ⁾, Y) + λ_cons · consistency on the sample
        + weighted CE of the sampled nodes that have a pseudo-label

An epoch costs O(S·(m·k·d + n)) for m nodes, those of the sample and the training nodes.
Validation and prediction use the whole Π.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.engine import CSR, MeanPropagation, dropout
from elugcn.errors import InputError
from elugcn.methods.backbone import RandomPropagationConfig
from elugcn.methods.problem import Problem
from elugcn.models.losses import consistency_loss, weighted_cross_entropy
from elugcn.models.random_propagation import (
    SampledPropagation,
    propagated_rows,
    topk_propagation,
)
from elugcn.training.loop import Objective

MAX_DENSE_ENTRIES = 2**28  # of X, from which bags are taken: a gigabyte


class Bags:
    """Rows of Π drop(X) for any nodes: K is ``order`` and δ is ``drop_node``."""

    def __init__(self, problem: Problem, order: int, k: int, drop_node: float) -> None:
        x = problem.x
        if x.shape[0] * x.shape[1] > MAX_DENSE_ENTRIES:
            raise InputError(
                f"sample: bags are taken from the features as a dense matrix, and "
                f"{x.shape[0]:,} × {x.shape[1]:,} numbers are too many; use sample=0"
            )
        self.x = x.to_dense() if isinstance(x, CSR) else x
        self.column, self.value = topk_propagation(problem.adj, order, k)
        self.drop_node = drop_node

    def draw(self, nodes: Tensor) -> Tensor:
        """Rows of the nodes, m×d, with a new choice of dropped nodes."""
        column, value = self.column[nodes], self.value[nodes]
        if self.drop_node:
            kept = dropout(self.x.new_ones(self.x.size(0), 1), self.drop_node)
            assert isinstance(kept, Tensor)
            value = value * kept[:, 0][column]
        return F.embedding_bag(column, self.x, per_sample_weights=value, mode="sum")


class SampledObjective(Objective):
    """What is minimised; every node may have a pseudo-label with a weight, (n,) each.

    The consistency counts fully after ``warmup`` epochs.
    """

    def __init__(
        self,
        network: SampledPropagation,
        problem: Problem,
        config: RandomPropagationConfig,
        pseudo_weight: Tensor | None = None,
        pseudo_class: Tensor | None = None,
        warmup: int = 0,
    ) -> None:
        self.network = self.sampled = network
        self.config, self.warmup = config, warmup
        self.inputs, self.num_nodes = problem.inputs, problem.num_nodes
        self.pseudo_weight, self.pseudo_class = pseudo_weight, pseudo_class
        self.bags = Bags(problem, config.order, config.neighbours, config.drop_node)
        self.train_index = problem.train_index
        self.train_loss = problem.cross_entropy
        mean = MeanPropagation(problem.adj, config.order)
        self.val_rows = propagated_rows(problem.x, mean, problem.val_index)

    def loss(self, epoch: int) -> Tensor:
        """The objective of one epoch."""
        config, known = self.config, self.train_index.numel()
        n, device = self.num_nodes, self.train_index.device
        drawn = torch.randint(n, (config.sample,), device=device)
        nodes = torch.cat([self.train_index, drawn])
        draws = [self.sampled.rows(self.bags.draw(nodes)) for _ in range(config.draws)]
        terms = [self.train_loss(z[:known]) for z in draws]
        if self.pseudo_weight is not None and self.pseudo_class is not None:
            # A sample of m of n nodes: the sum over all is n/m times as large.
            weight = self.pseudo_weight[drawn] * (n / config.sample)
            target = self.pseudo_class[drawn].clamp(min=0)
            terms += [weighted_cross_entropy(z[known:], target, weight) for z in draws]
        total = torch.stack(terms).sum() / len(draws)
        ramp = min(1.0, epoch / self.warmup) if self.warmup else 1.0
        if ramp * config.lambda_cons:
            sampled = [z[known:] for z in draws]
            consistency = consistency_loss(sampled, config.sharpening)
            total = total + ramp * config.lambda_cons * consistency
        return total

    def logits(self) -> Tensor:
        """The output of all nodes."""
        out: Tensor = self.sampled(self.inputs)
        return out

    def val_logits(self) -> Tensor:
        """The output of the validation nodes."""
        return self.sampled.rows(self.val_rows)
