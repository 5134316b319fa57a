"""MLP: a two-layer perceptron on the features alone; it does not see the edges.

    Z = σ(X W₁) W₂

with dropout before both weights and biases. Training and validation read the rows of
their own nodes alone: an epoch costs O(nnz(X_train)·h).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from elugcn.baselines.common import Baseline
from elugcn.methods.backbone import MLPConfig, build_mlp
from elugcn.methods.network import SupervisedRows
from elugcn.methods.problem import Problem


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
