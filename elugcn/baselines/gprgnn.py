"""GPR-GNN: how far to propagate, and with which sign, is learned.

Chien et al., "Adaptive Universal Generalized PageRank Graph Neural Network", ICLR 2021:

    H = MLP(X),    Z = Σ_{k=0..K} γ_k Âᵏ H

γ starts as the weights of personalised PageRank, that is, as APPNP. It may become
negative: a high-pass filter, where neighbours are unlike. The defaults are the authors'
for Cora and Citeseer; γ is not decayed. The authors select the epoch of the lowest
validation loss (here ``select="loss"``); here accuracy selects first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from elugcn.baselines.common import Baseline, Starts, suggest
from elugcn.baselines.polynomial import FilterConfig, FilteredMLP
from elugcn.methods.options import Share, Steps
from elugcn.methods.problem import GraphTraits, Shapes
from elugcn.training.loop import TrainSettings


class GPRGNNConfig(FilterConfig):
    """Options of GPR-GNN."""

    steps: Steps = 10  # K
    alpha: Share = 0.1  # Restart probability of the PageRank that γ starts as


def pagerank_weights(steps: int, alpha: float) -> Tensor:
    """γ_k = α (1 − α)ᵏ for k < K and γ_K = (1 − α)ᴷ; they sum to 1, shape (K+1,)."""
    # In double precision 0⁰ is 1, so α = 1 gives the identity.
    power = (1.0 - alpha) ** torch.arange(steps + 1, dtype=torch.float64)
    power[:-1] *= alpha
    return power.float()


class GPRGNNNetwork(FilteredMLP):
    """An MLP, then a learned polynomial of Â."""

    def __init__(self, config: GPRGNNConfig, shapes: Shapes) -> None:
        super().__init__(config, shapes)
        self.gamma = nn.Parameter(pagerank_weights(config.steps, config.alpha))

    def coefficients(self) -> Tensor:
        """Those that are learned: γ."""
        return self.gamma


class GPRGNN(Baseline[GPRGNNConfig]):
    """Generalised PageRank with learned weights."""

    name = "gprgnn"
    summary = "an MLP spread by learned powers"
    Config = GPRGNNConfig
    Network = GPRGNNNetwork

    def training(self, config: GPRGNNConfig) -> TrainSettings:
        """γ is not decayed: a filter need not be small."""
        groups = {"gamma": {"weight_decay": 0.0}}
        return replace(config.training(), param_groups=groups)

    def metadata(self, network: nn.Module) -> dict[str, Any]:
        """γ says whether neighbours were alike."""
        assert isinstance(network, GPRGNNNetwork)
        return {"gamma": network.gamma.tolist()}

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """The first filter, dropout and training."""
        values: dict[str, Any] = {
            "alpha": (0.1, 0.2, 0.5, 0.9),
            "dropout": (0.3, 0.5, 0.7, 0.8),
            "propagation_dropout": (0.0, 0.5, 0.7),
            "lr": (0.002, 0.01, 0.05),
            "weight_decay": (0.0, 5e-4, 5e-3),
            "hidden_channels": (64, 128),
        }
        if traits.neighbours_unlike:
            values["alpha"] = (0.0, 0.5, 1.0)
        if traits.keeps_features:
            values["input_dropout"] = (0.0, 0.5)
        return suggest(trial, traits, **values)

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings for graphs of this kind."""
        if traits.neighbours_unlike:  # Chameleon, Squirrel
            wiki = {"lr": 0.05, "weight_decay": 0.0, "propagation_dropout": 0.7}
            return [wiki | {"alpha": 1.0}, wiki | {"alpha": 0.0}]
        if traits.keeps_features:
            kept = {"feature_norm": "none", "input_dropout": 0.0}
            return [{}, kept | {"weight_decay": 5e-3}]
        if traits.is_dense:  # Photo, Computers
            photo = {"alpha": 0.5, "weight_decay": 0.0}
            return [photo, photo | {"lr": 0.05}]
        return [{}, {"lr": 0.05, "alpha": 0.2}]  # Cora and Citeseer; Pubmed
