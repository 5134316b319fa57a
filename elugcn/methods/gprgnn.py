"""GPR-GNN: how far to listen, and with which sign, is learned.

Chien et al., "Adaptive Universal Generalized PageRank Graph Neural Network", ICLR 2021;
the equations are in ``elugcn.nn.gprgnn``. The defaults are the authors' for Cora and
Citeseer: width 64, K = 10, γ starting at PageRank with α = 0.1, dropout one half on X,
on hidden units and on H, and no decay of γ. The authors choose the epoch of the lowest
validation loss (here ``select=loss``) and stop when it rises above the mean of the last
200; here, as for every method, accuracy chooses first and 200 epochs without a better
one end it. An epoch costs O(nnz(X)·h + K·E·c) for E edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, fit_model
from elugcn.nn.gprgnn import GPRGNN
from elugcn.training.loop import Fit


@dataclass(frozen=True, kw_only=True)
class GPRGNNConfig(NetworkConfig):
    """Steps, the PageRank that γ starts as, and dropout on what is propagated."""

    steps: int = 10
    alpha: float = 0.1
    dropout: float = 0.5
    input_dropout: float | None = None  # None: as dropout
    propagation_dropout: float = 0.5
    epochs: int = 1000
    patience: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 0, "steps")
        check_probability(self, "propagation_dropout")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        if not 0.0 <= self.alpha <= 1.0:
            raise InputError(f"alpha must be between 0 and 1; got {self.alpha}")

    def fit(self) -> Fit:
        """γ is not decayed: a filter has no reason to be small."""
        return replace(super().fit(), apart={"gamma": {"weight_decay": 0.0}})


class GPRGNNPredictor(NetworkPredictor):
    """A trained GPR-GNN with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"GPRGNN": GPRGNN}


def fit_gprgnn(problem: Problem, config: GPRGNNConfig, run: Run) -> Prediction:
    """Train the MLP and γ together, with cross-entropy on the training nodes."""
    prediction = fit_model(
        problem,
        config,
        run,
        GPRGNN,
        GPRGNNPredictor,
        input_dropout=config.input_dropout,
        propagation_dropout=config.propagation_dropout,
        steps=config.steps,
        alpha=config.alpha,
    )
    predictor = prediction.predictor
    assert isinstance(predictor, GPRGNNPredictor)
    assert isinstance(predictor.model, GPRGNN)
    # The filter that was learned says whether neighbours were alike.
    prediction.facts["gamma"] = predictor.model.gamma.tolist()
    return prediction
