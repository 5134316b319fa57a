"""SGC: logistic regression on features that were smoothed once.

Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019:

    Ŷ = softmax(Âᴷ X W + b)

Without activations between its layers a GCN is this. Âᴷ X has no parameter and is
computed before training: O(K·E·d) once, then O(nnz(ÂᴷX)·c) an epoch, without the
graph, over the rows of training and validation nodes alone. The defaults are the
paper's: K = 2, learning rate 0.2, 100 epochs, no dropout; its decay was tuned for each
dataset, here it is its code's initial 5e-6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from elugcn.core.sparse import CSR, SPARSE_DENSITY
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import TrainConfig, check_least
from elugcn.methods.neural import NetworkPredictor, as_prediction, train_network
from elugcn.nn.layers import Features
from elugcn.training.loop import Trained


@dataclass(frozen=True, kw_only=True)
class SGCConfig(TrainConfig):
    """How far the features travel, and the training of the regression."""

    order: int = 2
    lr: float = 0.2
    weight_decay: float = 5e-6
    epochs: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 0, "order")


def smooth_features(x: Features, adj: CSR, order: int) -> Features:
    """Âᴷ X, O(K·E·d) at most.

    Sparse features are multiplied as such while they are sparse: each step fills them,
    and past ``SPARSE_DENSITY`` a dense matrix is the smaller and faster one.
    """
    for _ in range(order):
        if isinstance(x, CSR):
            device = x.value.device
            x = CSR.from_scipy(adj.to_scipy() @ x.to_scipy()).to(device)
            if x.nnz > SPARSE_DENSITY * x.shape[0] * x.shape[1]:
                x = x.to_dense()
        else:
            x = adj @ x
    return x


class SGC(nn.Module):
    """One linear map of smoothed features; order 0 is plain logistic regression.

    Args:
        in_channels: d.
        out_channels: c.
        order: K.
    """

    def __init__(self, in_channels: int, out_channels: int, order: int = 2) -> None:
        super().__init__()
        self.order = order
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Features, adj: CSR) -> Tensor:
        """Logits n×c from features as they are."""
        return self.regress(smooth_features(x, adj, self.order))

    def regress(self, smoothed: Features) -> Tensor:
        """Logits n×c from Âᴷ X."""
        if isinstance(smoothed, CSR):
            return smoothed @ self.weight + self.bias
        # As its transpose: a product with few columns, as classes are, is slow, and its
        # gradient is slower still.
        return (self.weight.T @ smoothed.T).T + self.bias

    def first_layer(self) -> list[nn.Parameter]:
        """There is no other."""
        return [self.weight, self.bias]


class SGCPredictor(NetworkPredictor):
    """A trained SGC with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"SGC": SGC}


def fit_regression(
    problem: Problem, config: SGCConfig, run: Run, stage: str
) -> tuple[Trained, SGCPredictor]:
    """Smooth the features once, then train the regression on them."""
    facts: dict[str, Any] = {
        "in_channels": problem.in_channels,
        "out_channels": problem.num_classes,
        "order": config.order,
    }
    with run.clock("train"):
        model = SGC(**facts).to(run.device)
        smoothed = smooth_features(problem.x, problem.adj, config.order)
        trained = train_network(
            problem, config, run, model, stage, by_row=(model.regress, smoothed)
        )
    return trained, SGCPredictor(model, problem.scaler, config.view, facts)


def fit_sgc(problem: Problem, config: SGCConfig, run: Run) -> Prediction:
    """Train a simplified GCN."""
    run.reseed()
    trained, predictor = fit_regression(problem, config, run, "SGC")
    return as_prediction(trained, predictor, run)
