"""Ridge regression on propagated features, stopped early: a linear graph model.

    F = [X, A X, … Aᴷ X],    min_W ‖F W − Y‖² + λ ‖W‖²

Conjugate gradients solve it in as many steps as an epoch takes (``models/linear.py``).
Validation chooses the step. A softmax with a fitted temperature makes probabilities of
the scores. With ``pseudo_weight`` ELU nodes (Definition 1) become further targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.baselines.search import choices, graph_choices
from elugcn.data.scaling import FeatureScaler
from elugcn.elu.label_propagation import one_hot_rows, propagate_labels
from elugcn.elu.self_training import pseudo_label_weights
from elugcn.elu.utilization import definition_one
from elugcn.engine import CSR, Features
from elugcn.methods.contract import FitContext, FitResult, Method, Model
from elugcn.methods.options import (
    Count,
    MethodConfig,
    NonNegative,
    Positive,
    Probability,
    Steps,
    make_config,
)
from elugcn.methods.problem import GraphTraits, GraphView, Problem
from elugcn.models.linear import Block, LinearFeatures, conjugate_gradients

TEMPERATURES = torch.logspace(-0.5, 2.0, 26)


class LinearConfig(MethodConfig):
    """Options of the linear model."""

    self_loops: bool = False
    norm: Literal["sym", "row"] = "sym"  # A: D^-½ A D^-½, or the neighbours' mean
    form: Literal["power", "concat", "pagerank"] = "concat"  # Aᴷ X, [X … Aᴷ X], PPR
    order: Steps = 2  # K
    own: bool = True  # with "concat": F has X itself
    alpha: Probability = 0.1  # restart probability of "pagerank"
    features: Literal["x", "edges", "both"] = "x"  # "edges": rows of A instead of X
    iterations: Count = 40  # at most; validation chooses
    ridge: Positive = 1e-3  # λ as a share of the first Rayleigh quotient
    pseudo_weight: NonNegative = 0.0  # total weight of ELU targets; labels: 1
    rounds: Count = 1  # of ELU targets

    @property
    def adjacency_norm(self) -> str:
        """How A is normalised."""
        return self.norm

    def operator(self, x: Features, adj: CSR) -> LinearFeatures:
        """F for a graph."""
        powers = (self.order,)
        if self.form == "concat":
            powers = tuple(range(0 if self.own else min(1, self.order), self.order + 1))
        alpha = self.alpha if self.form == "pagerank" else 0.0
        of_x = Block(x, adj, powers, alpha)
        # Row i of A² A is a node's neighbourhood in three steps: A has one step already.
        of_edges = Block(adj, adj, tuple(range(max(1, self.order))))
        blocks = {"x": [of_x], "edges": [of_edges], "both": [of_edges, of_x]}
        return LinearFeatures(blocks[self.features])


@dataclass(frozen=True)
class Solution:
    """The iterate that validation prefers.

    Attributes:
        W: Weights.
        logits: Of every node, n×c.
        temperature: What scores were multiplied by.
        val_loss: Log-loss of the validation nodes.
        history: One record per iteration.
        best: Which iteration it is, from 0.
    """

    W: Tensor
    logits: Tensor
    temperature: float
    val_loss: float
    history: list[dict[str, float]]
    best: int


@dataclass
class LinearModel(Model):
    """W, with the scaling of features.

    Attributes:
        config: The options.
        W: Weights.
        prior: Mean of the targets, (c,).
        temperature: What scores are multiplied by.
        scales: Of each part of F.
        scaler: How features are scaled.
    """

    config: LinearConfig
    W: Tensor
    prior: Tensor
    temperature: float
    scales: tuple[float, ...]
    scaler: FeatureScaler

    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features."""
        inputs = GraphView.of(self.config).inputs(data, self.scaler)
        assert isinstance(inputs.adj, CSR)
        (block,) = self.config.operator(inputs.x, inputs.adj).blocks
        scores = Block(block.x, block.adj, block.powers, block.alpha, self.scales) @ self.W
        return self.temperature * (scores + self.prior)

    def tensors(self) -> dict[str, Tensor]:
        """Weights, and the scaling if it has numbers."""
        return self.scaler.state()[0] | {"W": self.W, "prior": self.prior}

    def description(self) -> dict[str, Any]:
        """What rebuilds the model."""
        return {
            "method": Linear.name,
            "config": self.config.model_dump(mode="json"),
            "temperature": self.temperature,
            "scales": list(self.scales),
            "scaler": self.scaler.state()[1],
        }


class Linear(Method[LinearConfig]):
    """Linear graph model."""

    name = "linear"
    summary = "ridge regression on propagated features, in closed form"
    Config = LinearConfig

    def fit(
        self, problem: Problem, config: LinearConfig, context: FitContext
    ) -> FitResult:
        """Solve; with ``pseudo_weight`` solve again with ELU nodes as targets."""
        with context.stage("train"), torch.no_grad():
            operator = config.operator(problem.x, problem.adj).balanced()
            labels = one_hot_rows(problem.train_labels, problem.num_classes)
            prior = labels.sum(dim=0) / max(1, problem.train_index.numel())
            weight = problem.train_mask.float() / max(1, problem.train_index.numel())
            solution = solve(operator, problem, config, labels, prior, weight)
            utilization = None
            if config.pseudo_weight:
                lpa = propagate_labels(
                    problem.label_adj, problem.train_labels, problem.num_classes
                )
                for _ in range(config.rounds):
                    utilization = definition_one(lpa, solution.logits)
                    pseudo = pseudo_label_weights(
                        utilization, problem.train_mask, config.pseudo_weight
                    )
                    if pseudo is None:
                        break
                    targets = one_hot_rows(utilization.gcn, problem.num_classes)
                    targets = torch.where(problem.train_mask[:, None], labels, targets)
                    solution = solve(
                        operator, problem, config, targets, prior, weight + pseudo
                    )
        model = None
        if config.features == "x":
            scales = operator.blocks[0].scales
            model = LinearModel(
                config, solution.W, prior, solution.temperature, scales, problem.scaler
            )
        return FitResult(
            logits=solution.logits,
            epochs=len(solution.history),
            history=solution.history,
            seconds=context.seconds,
            model=model,
            label_utilization=utilization,
            metadata={
                "best_epoch": solution.best,
                "temperature": solution.temperature,
            },
        )

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> LinearModel:
        """Rebuild a saved model."""
        return LinearModel(
            make_config(LinearConfig, description["config"], "method linear"),
            tensors["W"],
            tensors["prior"],
            float(description["temperature"]),
            tuple(float(s) for s in description["scales"]),
            FeatureScaler.restore(dict(tensors), dict(description["scaler"])),
        )

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Scaling, propagation and ELU targets."""
        options = graph_choices(trial, traits) | choices(
            trial,
            form=("power", "concat", "pagerank"),
            norm=("sym", "row"),
            self_loops=(False, True),
            pseudo_weight=(0.0, 1.0, 4.0),
        )
        orders = {"power": (0, 1, 2, 4), "concat": (1, 2), "pagerank": (10,)}
        name = f"order of {options['form']}"
        options["order"] = trial.suggest_categorical(name, orders[options["form"]])
        return options


def solve(
    operator: LinearFeatures,
    problem: Problem,
    config: LinearConfig,
    targets: Tensor,
    prior: Tensor,
    weight: Tensor,
) -> Solution:
    """Iterate; keep what validation likes best: accuracy, then squared error.

    Without validation nodes the last iterate is kept.
    """
    val = problem.val_index
    truth = problem.y[val]
    wanted = one_hot_rows(truth, problem.num_classes)
    best: tuple[float, float] | None = None
    history: list[dict[str, float]] = []
    kept = (torch.empty(0), torch.empty(0), 0)
    iterates = conjugate_gradients(
        operator, targets - prior, weight, config.iterations, config.ridge
    )
    for i, (W, scores) in enumerate(iterates):
        seen = scores[val] + prior
        error = float((seen - wanted).square().sum(dim=1).mean())
        accuracy = float((seen.argmax(dim=1) == truth).double().mean())
        history.append({"epoch": i, "val_accuracy": accuracy, "val_loss": error})
        if best is None or not len(val) or (accuracy, -error) > best:
            best, kept = (accuracy, -error), (W, scores, i)
    W, scores, at = kept
    logits = scores + prior
    temperature, loss = calibrate(logits[val], truth)
    return Solution(W, temperature * logits, temperature, loss, history, at)


def calibrate(scores: Tensor, truth: Tensor) -> tuple[float, float]:
    """The factor under which softmax(scores) has the least log-loss, and that loss."""
    if not truth.numel():
        return 10.0, float("nan")
    losses = torch.stack([F.cross_entropy(t * scores, truth) for t in TEMPERATURES])
    at = int(losses.argmin())
    return float(TEMPERATURES[at]), float(losses[at])
