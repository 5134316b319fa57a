"""Random propagation for a sample of nodes: GRAND's objective at the price of a batch.

In an epoch the features of all nodes would have to be propagated for the term in which
draws agree, before the MLP drops and normalises them: O(K·nnz(Â)·d). Here that term is
the mean over nodes drawn afresh in every epoch, and a row of Π drop(X) is a bag of the
k rows of X that weigh most in it (which leaves out a part of its weight, while
validation has all of it; scaling the bags up was tried and does not help):

    x̄_i = Σ_{j ∈ top k} π_ij m_j x_j / (1 − δ),     m_j = 0 with probability δ
    L = (1/S) Σ_s CE(z⁽ˢ⁾, Y) + λ_cons · consistency on the sample
        + ω-weighted CE of the sampled nodes that have a pseudo-label

An epoch costs O(S·(m·k·d + n)) for m nodes, those of the sample and the training nodes;
n is for the choice of dropped nodes. Validation and prediction use the whole Π.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.mixed_rows import largest_mixed
from elugcn.core.propagation import MixedOrder
from elugcn.core.random import keep_mask
from elugcn.core.sparse import CSR
from elugcn.errors import InputError
from elugcn.methods.base import Problem, Run
from elugcn.methods.network_config import RandomPropagationConfig
from elugcn.methods.neural import widths
from elugcn.nn.losses import consistency_loss, weighted_cross_entropy
from elugcn.nn.propagated_mlp import PropagatedMLP
from elugcn.training.loop import Trained, train

# Entries of X as a dense matrix, from which bags are taken: a gigabyte.
HELD = 2**28
# Columns of X̄ that are propagated at once for the validation nodes.
BLOCK = 64


def sampled_network(
    problem: Problem, config: RandomPropagationConfig, device: torch.device
) -> tuple[PropagatedMLP, dict[str, Any]]:
    """The network, and the arguments that rebuild it."""
    facts = widths(problem, config) | {
        "input_dropout": config.input_dropout,
        "norm": config.norm,
        "order": config.order,
    }
    return PropagatedMLP(**facts).to(device), facts


class Bags:
    """Rows of Π drop(X) for any nodes.

    Args:
        problem: The graph.
        order: K of Π.
        k: Rows of X in a bag.
        drop_node: δ.
    """

    def __init__(self, problem: Problem, order: int, k: int, drop_node: float) -> None:
        x = problem.x
        if x.shape[0] * x.shape[1] > HELD:
            raise InputError(
                f"sample: bags are taken from the features as a dense matrix, and "
                f"{x.shape[0]:,} × {x.shape[1]:,} numbers are too many; use sample=0"
            )
        self.x = x.to_dense() if isinstance(x, CSR) else x
        self.column, self.value = largest_mixed(problem.adj, order, k)
        self.drop_node = drop_node

    def draw(self, nodes: Tensor) -> Tensor:
        """Rows of the nodes, m×d, with a new choice of dropped nodes."""
        column, value = self.column[nodes], self.value[nodes]
        if self.drop_node:
            kept = keep_mask((self.x.size(0),), self.drop_node, self.x)
            value = value * kept[column]
        return F.embedding_bag(column, self.x, per_sample_weights=value, mode="sum")


def propagated_rows(problem: Problem, order: int, nodes: Tensor) -> Tensor:
    """Rows of X̄ = Π X, m×d, by blocks of columns: never n×d."""
    x, mixed = problem.x, MixedOrder(problem.adj, order)
    out = torch.empty(nodes.numel(), x.shape[1], device=problem.y.device)
    for start in range(0, x.shape[1], BLOCK):
        columns = slice(start, min(start + BLOCK, x.shape[1]))
        out[:, columns] = (mixed @ _columns(x, columns))[nodes]
    return out


def _columns(x: CSR | Tensor, columns: slice) -> Tensor:
    if isinstance(x, Tensor):
        return x[:, columns]
    width = columns.stop - columns.start
    one = torch.zeros(x.n_cols, width, device=x.value.device)
    one[columns] = torch.eye(width, device=x.value.device)
    return x @ one


class SampledObjective:
    """What is minimised, with everything that stays the same gathered once.

    Args:
        problem: The graph.
        config: Weights and sizes.
        model: The network.
        pseudo: Weight and class of every node's pseudo-label, each (n,), or None.
        ramp: How much of λ_cons counts in an epoch.
    """

    def __init__(
        self,
        problem: Problem,
        config: RandomPropagationConfig,
        model: PropagatedMLP,
        pseudo: tuple[Tensor, Tensor] | None = None,
        ramp: Callable[[int], float] = lambda epoch: 1.0,
    ) -> None:
        self.problem = problem
        self.config = config
        self.model = model
        self.pseudo = pseudo
        self.ramp = ramp
        self.bags = Bags(problem, config.order, config.neighbours, config.drop_node)
        self.train_index = problem.train_index
        self.target = problem.y[self.train_index]

    def loss(self, epoch: int) -> Tensor:
        """The objective of one epoch."""
        config, known = self.config, self.train_index.numel()
        n, device = self.problem.num_nodes, self.target.device
        drawn = torch.randint(n, (config.sample,), device=device)
        nodes = torch.cat([self.train_index, drawn])
        outputs = [self.model.rows(self.bags.draw(nodes)) for _ in range(config.draws)]
        if self.pseudo is not None:
            weight, target = (of_all[drawn] for of_all in self.pseudo)
            # A sample of m of n nodes: the sum over all is n/m times as large.
            weight = weight * (n / config.sample)
        total = torch.zeros((), device=device)
        for z in outputs:
            total = total + F.cross_entropy(z[:known], self.target)
            if self.pseudo is not None:
                total = total + weighted_cross_entropy(z[known:], target, weight)
        total = total / len(outputs)
        weight_cons = config.lambda_cons * self.ramp(epoch)
        if weight_cons:
            sampled = [z[known:] for z in outputs]
            total = total + weight_cons * consistency_loss(sampled, config.sharpening)
        return total

    def logits(self) -> Tensor:
        """The output of all nodes, in evaluation mode."""
        out: Tensor = self.model(self.problem.x, self.problem.adj)
        return out

    def train(self, run: Run, stage: str) -> Trained:
        """Minimise it; validation selects."""
        mask = self.problem.val_mask
        decide = propagated_rows(
            self.problem, self.config.order, mask.nonzero().squeeze(1)
        )
        return train(
            self.model,
            self.loss,
            self.logits,
            self.problem.y,
            mask,
            self.config.fit(),
            validate=lambda: self.model.rows(decide),
            progress=run.progress,
            stage=stage,
        )
