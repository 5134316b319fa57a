"""SGC: logistic regression on features that were smoothed once.

Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019:

    Ŷ = softmax(Âᴷ X W + b)

Âᴷ X has no parameter and is computed before training, O(K·E·d). An epoch reads the rows
of training and validation nodes alone. The defaults are the paper's; it tuned the decay
per dataset, here it is the first value in its code.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from elugcn.baselines.common import Baseline, Starts, adjacency, suggest
from elugcn.engine import CSR, SPARSE_DENSITY, Features, GraphInputs
from elugcn.methods.network import SupervisedRows
from elugcn.methods.options import Count, NonNegative, Positive, Steps, TrainConfig
from elugcn.methods.problem import GraphTraits, Problem, Shapes


class SGCConfig(TrainConfig):
    """Options of SGC."""

    order: Steps = 2  # K; 0 is plain logistic regression
    lr: Positive = 0.2
    weight_decay: NonNegative = 5e-6
    decay: Literal["all"] = "all"
    epochs: Count = 100


def smooth_features(x: Features, adj: CSR, order: int) -> Features:
    """Âᴷ X, O(K·E·d) at most; sparse features stay so until they fill up."""
    for _ in range(order):
        if isinstance(x, Tensor):
            x = adj @ x
            continue
        x = CSR.from_scipy(adj.to_scipy() @ x.to_scipy()).to(x.value.device)
        if x.nnz > SPARSE_DENSITY * x.shape[0] * x.shape[1]:
            x = x.to_dense()
    return x


class SGCNetwork(nn.Module):
    """One linear map of smoothed features."""

    def __init__(self, config: SGCConfig, shapes: Shapes) -> None:
        super().__init__()
        self.order = config.order
        self.weight = nn.Parameter(torch.empty(shapes.in_channels, shapes.out_channels))
        self.bias = nn.Parameter(torch.zeros(shapes.out_channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Logits n×c from features as they are."""
        return self.rows(smooth_features(inputs.x, adjacency(inputs), self.order))

    def rows(self, smoothed: Features) -> Tensor:
        """Logits m×c of m rows of Âᴷ X."""
        if isinstance(smoothed, CSR):
            return smoothed @ self.weight + self.bias
        # Products with as few columns as there are classes are slow, and their
        # gradients slower. The transposed product is not.
        return (self.weight.T @ smoothed.T).T + self.bias


class SmoothedRows(SupervisedRows):
    """Cross-entropy on the rows of Âᴷ X, which is computed here."""

    def __init__(
        self, network: SGCNetwork, problem: Problem, config: SGCConfig
    ) -> None:
        smoothed = smooth_features(problem.x, problem.adj, config.order)
        super().__init__(network, problem, smoothed)


class SGC(Baseline[SGCConfig]):
    """Simplified graph convolution."""

    name = "sgc"
    summary = "regression on smoothed features"
    Config = SGCConfig
    Network = SGCNetwork
    Objective = SmoothedRows

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Order, learning rate and decay."""
        out = suggest(trial, traits, order=(1, 2, 3, 4)) | {"epochs": 500}
        out["lr"] = trial.suggest_float("lr", 0.02, 0.5, log=True)
        decay = trial.suggest_float("weight_decay", 1e-7, 1e-3, log=True)
        return out | {"weight_decay": decay}

    def starting_points(self, traits: GraphTraits) -> Starts:
        """The authors' settings, with more epochs."""
        kept = [{"epochs": 500, "feature_norm": "none"}]
        return [{"epochs": 500}, *(kept if traits.keeps_features else [])]
