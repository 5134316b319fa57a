"""GRAND: an MLP on randomly propagated features that must agree with itself.

Feng et al., "Graph Random Neural Networks for Semi-Supervised Learning on Graphs",
NeurIPS 2020. In every epoch, S times:

    X̃ = drop nodes: each row of X is zero with probability δ, else divided by 1 − δ
    X̄ = (1/(K+1)) Σ_{k=0..K} Âᵏ X̃,    P⁽ˢ⁾ = softmax MLP(X̄)

    L = (1/S) Σ_s CE(P⁽ˢ⁾, Y) + λ (1/S) Σ_s mean_i ‖p̄'_i − p_i⁽ˢ⁾‖²

p̄ is the mean of the draws and p̄' ∝ p̄^(1/T) its sharpened form, without gradient.
Prediction drops nothing. The network multiplies by its first weight before it
propagates, which gives the same for less; only input dropout differs: here it drops
entries of X, in the paper entries of X̄.

With ``sample`` = m > 0 the order is the paper's: the draws have to agree on m nodes,
drawn anew in every epoch, and a row of X̄ is made of the ``neighbours`` largest entries
of its row of the propagation (GRAND+, WWW 2022). Only there ``norm="batch"`` is the
authors', of X̄ and of the hidden layer; elsewhere it is of the hidden layer alone.

The defaults are the paper's for Cora. Accuracy selects the epoch, among fewer than the
authors' code allows. An epoch costs O(S·nnz(X)·h + S·K·E·h).
"""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from elugcn.baselines.common import Baseline, BaselineObjective, Starts, suggest
from elugcn.methods.backbone import (
    GCNConfig,
    RandomPropagationConfig,
    build_gcn,
    build_sampled,
)
from elugcn.methods.contract import FitContext
from elugcn.methods.options import Count, NonNegative, Probability, Steps
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.methods.sampled import SampledObjective
from elugcn.models.flexible_gcn import FlexibleGCN
from elugcn.models.losses import consistency_loss
from elugcn.models.random_propagation import RandomPropagation, SampledPropagation
from elugcn.training.loop import Objective

# Features of a graph up to which a sample is searched.
FEW_FEATURES = 1_000


class GRANDConfig(RandomPropagationConfig):
    """Options of GRAND; T is ``sharpening``."""

    norm: Literal["none", "layer", "batch"] = "none"
    order: Count = 8  # K
    drop_node: Probability = 0.5  # δ
    draws: Count = 4  # S
    lambda_cons: NonNegative = 1.0  # λ
    hidden_channels: Count = 32
    dropout: Probability = 0.5
    epochs: Count = 1000
    patience: Steps = 200


class Agreement(BaselineObjective[RandomPropagation | FlexibleGCN, GRANDConfig]):
    """L, with draws of all nodes."""

    def loss(self, epoch: int) -> Tensor:
        """L of an epoch."""
        config = self.config
        outputs = self.model.views(self.inputs, draws=config.draws).tensors()
        labelled = [self.cross_entropy(z) for z in outputs]
        total = sum(labelled[1:], labelled[0]) / len(labelled)
        if config.lambda_cons:
            # A single draw is still compared with its own sharpened form.
            consistency = consistency_loss(outputs, config.sharpening)
            total = total + config.lambda_cons * consistency
        return total


class GRAND(Baseline[GRANDConfig]):
    """Graph random neural network."""

    name = "grand"
    summary = "random propagation, consistency"
    Config = GRANDConfig

    def build(self, config: GRANDConfig, shapes: Shapes) -> nn.Module:
        """An MLP behind a mean of powers of Â."""
        if config.sample:
            return build_sampled(config, shapes)
        options = config.shared_with(GCNConfig)
        return build_gcn(GCNConfig.model_validate(options), shapes)

    def objective(
        self, network: Any, problem: Problem, config: GRANDConfig, context: FitContext
    ) -> Objective:
        """Cross-entropy and consistency of the draws."""
        if isinstance(network, SampledPropagation):
            return SampledObjective(network, problem, config)
        return Agreement(network, problem, config)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Propagation, dropout, consistency and training."""
        values: dict[str, Any] = {
            "order": (2, 4, 8),
            "drop_node": (0.3, 0.5),
            "dropout": (0.2, 0.5, 0.7),
            "input_dropout": (0.0, 0.5),
            "hidden_channels": (32, 64),
            "sharpening": (0.2, 0.3, 0.5),
            "lambda_cons": (0.5, 0.7, 1.0),
            "lr": (0.005, 0.01, 0.02),
        }
        if wants_sample(traits):
            # Dropout and norms of X̄, as the authors have it, need a sample.
            values |= {"sample": (500,), "norm": ("none", "batch"), "order": (5, 8)}
            values |= {"input_dropout": (0.3, 0.6), "dropout": (0.5, 0.8)}
            values |= {"lr": (0.01, 0.05, 0.2)}
        if traits.keeps_features:
            values["weight_decay"] = (5e-4, 5e-3)
        return {"draws": 2} | suggest(trial, traits, **values)

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings with two draws, which take half the time of four."""
        if wants_sample(traits):
            pubmed = {"sample": 500, "order": 5, "sharpening": 0.2, "norm": "batch"}
            pubmed |= {"lr": 0.2, "input_dropout": 0.6, "dropout": 0.8}
            calm = {"norm": "none", "lr": 0.02, "dropout": 0.5}
            return [{"draws": 2} | pubmed, {"draws": 2} | pubmed | calm]
        citeseer = {"order": 2, "sharpening": 0.3, "lambda_cons": 0.7}
        citeseer |= {"input_dropout": 0.0, "dropout": 0.2}
        starts: Starts = [{"draws": 2}, {"draws": 2} | citeseer]
        if traits.keeps_features:
            kept = {"order": 2, "input_dropout": 0.0, "feature_norm": "none"}
            starts.append({"draws": 2, "weight_decay": 5e-3} | kept)
        return starts


def wants_sample(traits: GraphTraits) -> bool:
    """Whether a sample pays: many nodes, and X fits as a dense matrix."""
    return traits.is_large and traits.num_features <= FEW_FEATURES
