"""APPNP: an MLP's logits, spread by personalised PageRank.

Gasteiger, Bojchevski and Günnemann, "Predict then Propagate: Graph Neural Networks
meet Personalized PageRank", ICLR 2019; the equations are in ``elugcn.nn.appnp``. The
defaults are the paper's for its citation graphs: width 64, ten steps, α = 0.1, dropout
one half on features, hidden units and Â, and a decay of 5e-3 on the first layer only.
The layers here have biases, and training ends after 1000 epochs (10,000 in the paper),
or where (accuracy, then loss) has not improved on validation for ``patience`` epochs,
where the paper waited for either of them. An epoch costs O(nnz(X)·h + K·E·c) for K
steps and E edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, fit_model
from elugcn.nn.appnp import APPNP


@dataclass(frozen=True, kw_only=True)
class APPNPConfig(NetworkConfig):
    """Steps, restart probability and edge dropout."""

    steps: int = 10
    alpha: float = 0.1
    edge_dropout: float = 0.5
    dropout: float = 0.5
    weight_decay: float = 5e-3
    decay: str = "first"
    epochs: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 0, "steps")
        check_probability(self, "edge_dropout")
        if not 0.0 <= self.alpha <= 1.0:
            raise InputError(f"alpha must be between 0 and 1; got {self.alpha}")


class APPNPPredictor(NetworkPredictor):
    """A trained APPNP with the scaling of its features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"APPNP": APPNP}


def fit_appnp(problem: Problem, config: APPNPConfig, run: Run) -> Prediction:
    """Train the MLP through the propagation, with cross-entropy on training nodes."""
    return fit_model(
        problem,
        config,
        run,
        APPNP,
        APPNPPredictor,
        steps=config.steps,
        alpha=config.alpha,
        edge_dropout=config.edge_dropout,
    )
