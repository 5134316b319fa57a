"""Linear: ridge regression on propagated features, stopped early.

    F = [X, A X, … Aᴷ X, 1],    min_W ‖F W − Y‖² + λ ‖W‖²

Conjugate gradients solve it, and an iteration costs as much as an epoch of a linear GCN
(``models/linear.py``). Validation chooses the iterate. A softmax with a temperature
that is fitted on validation makes probabilities of the scores. With ``pseudo_weight``
ELU nodes (Definition 1) are further targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import geometric_mean
from typing import Any, Literal, Self

import torch
from pydantic import model_validator
from torch import Tensor
from torch_geometric.data import Data

from elugcn.baselines.common import choices
from elugcn.data.scaling import FeatureScaler
from elugcn.elu.label_propagation import one_hot_rows, propagate_labels
from elugcn.elu.objective import pseudo_label_weights
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.engine import CSR, Features
from elugcn.methods.calibration import UNCALIBRATED, calibrate
from elugcn.methods.contract import (
    AtOnce,
    FitContext,
    FitResult,
    Known,
    Method,
    Model,
    Training,
)
from elugcn.methods.metrics import score
from elugcn.methods.options import (
    Count,
    Direction,
    MethodConfig,
    NonNegative,
    Positive,
    Probability,
    Steps,
    make_config,
)
from elugcn.methods.problem import GraphTraits, GraphView, Problem
from elugcn.models.linear import Block, LinearFeatures, Rows, conjugate_gradients

USUAL = 5  # iterations until the best, on many graphs


class LinearConfig(MethodConfig):
    """Options of the linear model."""

    # "apart": the rows of A in both directions; for inputs="edges" with order=1.
    direction: Direction | Literal["apart"] = "given"  # type: ignore[assignment]
    self_loops: bool = False
    norm: Literal["sym", "row"] = "sym"  # A: D^-½ A D^-½, or the neighbours' mean
    form: Literal["power", "concat", "pagerank"] = "concat"  # Aᴷ X, [X … Aᴷ X], PPR
    order: Steps = 2  # K
    own: bool = True  # with form="concat": F contains X itself
    alpha: Probability = 0.1  # restart probability of form="pagerank"
    inputs: Literal["features", "edges", "both"] = "features"  # "edges": rows of A
    intercept: bool = True  # whether F contains a column of ones
    iterations: Count = 40  # at most; validation chooses
    patience: Steps = 10  # iterations without improvement after which it stops
    select: Literal["accuracy", "loss"] = "accuracy"  # what validation compares first
    ridge: Positive = 1e-3  # λ as a share of the first Rayleigh quotient
    pseudo_weight: NonNegative = 0.0  # total weight of ELU targets; that of labels is 1
    rounds: Count = 1  # of ELU targets
    temperature: Positive | None = None  # of the softmax; None: fitted on validation

    @model_validator(mode="after")
    def _check_direction(self) -> Self:
        if self.direction == "apart" and (self.inputs != "edges" or self.order > 1):
            raise ValueError("direction='apart' needs inputs='edges' and order=1")
        return self

    @property
    def adjacency_norm(self) -> str:
        """How A is normalised."""
        return self.norm

    @property
    def usual_iterations(self) -> int:
        """Iterations of most fits."""
        return min(self.iterations, self.patience + USUAL)

    def products(self, traits: GraphTraits) -> float:
        """Those of F and Fᵀ, in as many iterations as are usual."""
        entries = self.order * traits.num_edges
        if self.inputs != "features":
            entries += max(1, self.order) * traits.num_edges
        if self.inputs != "edges":
            entries += len(self.powers) * traits.feature_entries
        repeated = 2 * self.usual_iterations * traits.num_classes * entries
        if traits.sparse_features or self.inputs != "features" or self.pseudo_weight:
            return float(repeated)
        # Rows of F are computed once, for the labelled nodes.
        once = (self.order + 1) * traits.num_edges * traits.num_features
        return float(min(repeated, once))

    def of_length(self, length: int, found: Sequence[Mapping[str, Any]]) -> Self:
        """So many iterations, and the mean temperature."""
        temperature = geometric_mean(record["temperature"] for record in found)
        return self.model_copy(
            update={"iterations": length, "patience": 0, "temperature": temperature}
        )

    @property
    def powers(self) -> tuple[int, ...]:
        """Which powers of A are in F."""
        if self.form != "concat":
            return (self.order,)
        return tuple(range(0 if self.own else min(1, self.order), self.order + 1))

    def operator(self, x: Features, adj: CSR) -> LinearFeatures:
        """F of a graph."""
        alpha = self.alpha if self.form == "pagerank" else 0.0
        blocks = []
        if self.inputs != "features":
            # A row of A is itself a propagation, so powers begin one step later.
            blocks.append(Block(adj, adj, tuple(range(max(1, self.order)))))
        if self.inputs != "edges":
            blocks.append(Block(x, adj, self.powers, alpha))
        return LinearFeatures(blocks, self.intercept)


@dataclass(frozen=True)
class Targets:
    """What the scores of each node should be, n×c, and how much a node counts."""

    scores: Tensor
    weight: Tensor  # (n,)
    prior: Tensor  # mean of the labels, (c,), which W does not have to explain

    @classmethod
    def of(cls, problem: Problem) -> Targets:
        """The training labels; their weights sum to 1, by class if classes weigh."""
        labels = one_hot_rows(problem.train_labels, problem.num_classes)
        weight = problem.train_mask.float() / max(1, problem.train_index.numel())
        if problem.train_weight is not None:
            weight[problem.train_index] *= problem.train_weight
        return cls(labels, weight, weight @ labels)

    def with_elu_nodes(
        self, problem: Problem, utilization: LabelUtilization, total_weight: float
    ) -> Targets:
        """The same with the pseudo-labels of ELU nodes (Definition 1)."""
        pseudo = pseudo_label_weights(utilization, problem.train_mask, total_weight)
        if pseudo is None:
            return self
        expanded = one_hot_rows(utilization.gcn, problem.num_classes)
        scores = torch.where(problem.train_mask[:, None], self.scores, expanded)
        return Targets(scores, self.weight + pseudo, self.prior)


@dataclass
class LinearModel(Model):
    """W, with the scaling of features."""

    config: LinearConfig
    W: Tensor
    prior: Tensor
    temperature: float  # what scores are multiplied by
    scales: tuple[float, ...]  # of each part of F
    scaler: FeatureScaler

    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features."""
        inputs = GraphView.of(self.config).inputs(data, self.scaler)
        assert isinstance(inputs.adj, CSR)
        operator = self.config.operator(inputs.x, inputs.adj)
        (block,) = operator.blocks
        scaled = replace(operator, blocks=[replace(block, scales=self.scales)])
        return self.temperature * (scaled @ self.W + self.prior)

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
        self,
        problem: Problem,
        config: LinearConfig,
        context: FitContext,
        known: Known | None = None,
    ) -> FitResult:
        """Solve; with ``pseudo_weight`` solve again with ELU nodes as targets.

        ``known`` tells the ELU nodes of the first round.
        """
        labels = Targets.of(problem)
        if not config.pseudo_weight:
            return solve(problem, config, context, labels)
        if known is None:
            with context.clock("utilization"):
                train, c = problem.train_labels, problem.num_classes
                lpa = propagate_labels(problem.label_adj, train, c)
            known = Known(lpa, solve(problem, config, context, labels))
        result = known.fitted
        for _ in range(config.rounds):
            utilization = definition_one(known.lpa, result.logits)
            weight = config.pseudo_weight
            targets = labels.with_elu_nodes(problem, utilization, weight)
            result = solve(problem, config, context, targets)
            result.label_utilization = utilization
        return result

    def start(
        self,
        problem: Problem,
        config: LinearConfig,
        context: FitContext,
        known: Known | None = None,
        *,
        stage: int = 0,
        title: str | None = None,
    ) -> Training:
        """Nothing is drawn at random, and nothing pauses."""
        fit = partial(self.fit, problem, config, context, known)
        return AtOnce(fit, title or self.name)

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
        values: dict[str, Any] = {
            "feature_norm": ("auto", "column", "tfidf", "none"),
            "form": ("power", "concat", "pagerank"),
            "norm": ("sym", "row"),
            "self_loops": (False, True),
            "order": (1, 2, 4, 8),
            "inputs": ("features", "edges", "both"),
            "pseudo_weight": (0.0, 1.0, 4.0),
        }
        if traits.directed:
            values["direction"] = ("out", "both")
        return choices(trial, values)

    def starting_points(self, traits: GraphTraits) -> list[dict[str, Any]]:
        """Three neighbourhoods of X, and the edges themselves."""
        return [
            {"feature_norm": "tfidf"},
            {"inputs": "edges"},
            {"feature_norm": "column", "norm": "row"},
        ]


@torch.no_grad()
def solve(
    problem: Problem, config: LinearConfig, context: FitContext, targets: Targets
) -> FitResult:
    """Iterate; keep the iterate that validation likes best.

    The metric comes first, then the log-loss of the calibrated scores; or the other way
    round. Without validation nodes the last iterate is kept.
    """
    val, truth, c = problem.val_index, problem.val_target, problem.num_classes
    prior = targets.prior
    history: list[dict[str, float]] = []
    best: tuple[float, float] | None = None
    W, at = torch.empty(0), 0
    temperature = chosen = UNCALIBRATED
    val_logits: list[Tensor] = []
    with context.clock("train"):
        operator = config.operator(problem.x, problem.adj).balanced()
        centred, weight = targets.scores - prior, targets.weight
        used = (weight > 0).index_fill(0, val, True).nonzero()[:, 0]
        rows = operator.rows(used, c, 2 * config.usual_iterations)
        features: LinearFeatures | Rows = operator
        if rows is not None:
            features, centred, weight = rows, centred[used], weight[used]
            val = torch.searchsorted(used, val)
        scores = torch.zeros_like(centred)
        for i, (now, found) in enumerate(
            conjugate_gradients(
                features, centred, weight, config.iterations, config.ridge
            )
        ):
            seen = found[val] + prior
            metric = score(problem.metric, seen, truth, c)
            temperature, loss = calibrate(
                seen, truth, problem.class_weight, temperature
            )
            if context.keep_val_logits:
                val_logits.append(UNCALIBRATED * seen)
            error = float(weight @ (found - centred).square().sum(dim=1))
            history.append(
                {"epoch": i, "loss": error, "val_accuracy": metric, "val_loss": loss}
            )
            worth = (metric, -loss) if config.select == "accuracy" else (-loss, metric)
            if best is None or not len(val) or worth > best:
                best, W, scores, at, chosen = worth, now, found, i, temperature
            elif config.patience and i - at >= config.patience:
                break
            if context.is_over:
                break
        if rows is not None:
            scores = operator @ W
        if context.keep_val_logits:
            chosen = UNCALIBRATED  # whoever chooses among the splits calibrates
        chosen = config.temperature or chosen
    model = None
    if config.inputs == "features":
        scales = operator.blocks[0].scales
        model = LinearModel(
            config, W.cpu(), prior.cpu(), chosen, scales, problem.scaler
        )
    return FitResult(
        logits=chosen * (scores + prior),
        epochs=len(history),
        history=history,
        seconds=context.seconds,
        model=model,
        metadata={"best_epoch": at, "temperature": chosen},
        val_logits=val_logits,
    )
