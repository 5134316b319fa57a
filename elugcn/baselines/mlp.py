"""MLP: a two-layer perceptron on the features alone; it does not see the edges.

    Z = σ(X W₁) W₂

with dropout before both weights and biases. Training and validation read the rows of
their own nodes alone: an epoch costs O(nnz(X_train)·h).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from elugcn.baselines.common import Baseline, Starts, choices
from elugcn.methods.backbone import MLPConfig, build_mlp
from elugcn.methods.network import SupervisedRows
from elugcn.methods.problem import GraphTraits, Problem


class MLP(Baseline[MLPConfig]):
    """Two-layer perceptron."""

    name = "mlp"
    summary = "features alone, no edges"
    Config = MLPConfig
    Network = staticmethod(build_mlp)

    def objective(
        self, network: nn.Module, problem: Problem, *_: Any
    ) -> SupervisedRows:
        """Cross-entropy on the rows of the training nodes."""
        return SupervisedRows(network, problem)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Width, dropout, training and scaling of features."""
        values: dict[str, Any] = {
            "hidden_channels": (64, 256),
            "lr": (0.005, 0.01, 0.02),
            "weight_decay": (0.0, 5e-4, 2e-3, 1e-2),
        }
        if traits.keeps_features:
            values["feature_norm"] = ("row", "none")
        out = choices(trial, values)
        return out | {"dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1)}

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The defaults; features left as they are where that may be better."""
        plain = {"feature_norm": "none", "dropout": 0.0, "weight_decay": 1e-2}
        return [{}, plain] if traits.keeps_features else [{}]
