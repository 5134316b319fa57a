"""CoGSL: two views of the graph, compressed to what the labels need, and fused.

Liu et al., "Compact Graph Structure Learning via Mutual Information Compression", WWW
2022; the networks are in ``elugcn.nn.cogsl`` and ``elugcn.nn.mutual``. The views are
the graph and its personalised PageRank. Three sets of weights take turns:

    (a) the estimators of the views:      min L_cls − w L_mi
    (b) the classifiers:                  min L_cls = 0.3 CE(V*) + 0.35 Σ_i CE(V_i)
    (c) the estimators of information:    min L_mi = 0.3 l(V₁, V₂) + 0.35 Σ_i l(V*, V_i)

with ``view_steps``, ``classifier_steps`` and ``mi_steps`` steps in each round t and w =
clip(ln(1 + growth · t), 0.05, 0.1). l is InfoNCE, a loss: taking it away in (a) makes
the views say less of each other. An epoch is one step of (b).

This is a sparse variant, which makes graphs possible on which the published dense code
runs out of memory. V₂ holds the ``k`` largest PageRank entries of each row where the
paper keeps all; the pairs that an estimator re-weights are those that its view holds,
where the paper also offers pairs two hops apart; InfoNCE looks at ``anchors`` sampled
nodes; views are fixed, without dropout, while classifiers learn, and these drop
entries of X too (``input_dropout=0`` does not, as the published code).

The defaults follow what is in public use for Cora, with a smaller learning rate of the
estimators and fewer steps of (a) and (c), for time: 5, 1 and 10 there. Training ends
after 100 rounds, or 100 steps of (b) without a better validation, where the authors'
code has 200 rounds; dropout is on nodes, not on pairs.

A round costs O(nnz(X)·h + E·h) for each step, E the entries of both views, and the
PageRank 10 products of n columns, once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.errors import InputError
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.network_config import NetworkConfig, check_least, check_probability
from elugcn.methods.neural import NetworkPredictor, as_prediction, widths
from elugcn.nn.cogsl import CoGSL
from elugcn.nn.mutual import Anchors, MutualInformation, gathered_features
from elugcn.nn.weighted import Propagation
from elugcn.training.loop import train


@dataclass(frozen=True, kw_only=True)
class CoGSLConfig(NetworkConfig):
    """The views, their fusion, and the turns of the three sets of weights.

    ``lr``, ``weight_decay``, ``hidden_channels`` and ``dropout`` are the classifiers'.
    """

    restart: float = 0.15
    k: int = 40
    mu1: float = 1.0
    mu2: float = 0.5
    lam: float = 0.9
    power: float = 0.1
    tau: float = 0.5
    estimator_channels: int = 32
    estimator_dropout: float = 0.8
    estimator_lr: float = 0.01
    mi_channels: int = 32
    mi_lr: float = 0.01
    anchors: int = 512
    view_steps: int = 2
    classifier_steps: int = 5
    mi_steps: int = 4
    growth: float = 1e-3
    dropout: float = 0.5
    input_dropout: float | None = None  # None: as dropout

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "k", "estimator_channels", "mi_channels", "anchors")
        check_least(self, 1, "classifier_steps")
        check_least(self, 0, "mu1", "mu2", "power", "view_steps", "mi_steps", "growth")
        check_probability(self, "estimator_dropout")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        for option in ("estimator_lr", "mi_lr", "tau"):
            if not getattr(self, option) > 0:
                value = getattr(self, option)
                raise InputError(f"{option} must be positive; got {value}")
        if not 0.0 < self.restart <= 1.0:
            raise InputError(
                f"restart must be above 0 and at most 1; got {self.restart}"
            )
        if not 0.0 <= self.lam <= 1.0:
            raise InputError(f"lam must be between 0 and 1; got {self.lam}")

    def compression(self, turn: int) -> float:
        """The weight w of L_mi in a round."""
        return min(0.1, max(0.05, math.log1p(self.growth * turn)))


class Turns:
    """The three sets of weights and the steps of each.

    Attributes:
        views: V₁'' and V₂'' as they are, without gradients and without dropout.
    """

    def __init__(self, problem: Problem, config: CoGSLConfig, model: CoGSL) -> None:
        self.problem = problem
        self.config = config
        self.model = model
        self.nodes = problem.train_index
        self.target = problem.y[self.nodes]
        self.mutual = MutualInformation(
            problem.in_channels, config.mi_channels, config.tau
        ).to(problem.y.device)
        self.of_views = torch.optim.Adam(
            model.estimators.parameters(), config.estimator_lr, fused=True
        )
        self.of_mi = torch.optim.Adam(
            self.mutual.parameters(), config.mi_lr, fused=True
        )
        self.decay = torch.optim.lr_scheduler.ExponentialLR(self.of_views, 0.99)
        self.views = self.fixed_views()

    def loss(self, epoch: int) -> Tensor:
        """L_cls for the classifiers; every few epochs the others have their turn."""
        turn, step = divmod(epoch, self.config.classifier_steps)
        if step == 0:
            if turn:
                self.learn_information()
            self.learn_views(turn)
        return self.classification(self.model.classify(self.problem.x, self.views)[0])

    def classification(self, logits: list[Tensor]) -> Tensor:
        """L_cls."""
        one, two, fused = (F.cross_entropy(z[self.nodes], self.target) for z in logits)
        return 0.3 * fused + 0.35 * (one + two)

    def logits(self) -> Tensor:
        """Of V*, n×c."""
        return self.model.classify(self.problem.x, self.views)[0][-1]

    def learn_views(self, turn: int) -> None:
        """Turn (a)."""
        x, adj = self.problem.x, self.problem.adj
        parameters = list(self.model.estimators.parameters())
        anchors = self.sample()
        hidden = self.mutual.hidden(x)
        weight = self.config.compression(turn)
        for _ in range(self.config.view_steps):
            views = self.model.views(x, adj)
            logits, fused = self.model.classify(x, views)
            told = self.mutual.of_graphs(hidden, views, fused.beta, anchors)
            loss = self.classification(logits) - weight * told
            self.of_views.zero_grad()
            loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
            self.of_views.step()
        if self.config.view_steps:
            self.decay.step()
        # Classifiers must not see gradients of this turn, nor the estimators decay.
        self.of_views.zero_grad(set_to_none=True)
        self.views = self.fixed_views()

    def learn_information(self) -> None:
        """Turn (c)."""
        if not self.config.mi_steps:
            return
        x = self.problem.x
        with torch.no_grad():
            _, fused = self.model.classify(x, self.views)
        gathered = gathered_features(x, self.views, fused.beta, self.sample())
        for _ in range(self.config.mi_steps):
            loss = self.mutual.of_features(gathered)
            self.of_mi.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.of_mi.step()

    def sample(self) -> tuple[Anchors, Anchors]:
        """The nodes that InfoNCE looks at in this turn, in each view."""
        n = self.problem.num_nodes
        nodes = torch.randperm(n)[: self.config.anchors].to(self.nodes.device)
        one, two = (Anchors.of(v, nodes) for v in self.views)
        return one, two

    @torch.no_grad()
    def fixed_views(self) -> tuple[Propagation, Propagation]:
        """V₁'' and V₂'' as evaluation sees them."""
        mode = self.model.training
        self.model.eval()
        views = self.model.views(self.problem.x, self.problem.adj)
        self.model.train(mode)
        return views


class CoGSLPredictor(NetworkPredictor):
    """Trained estimators and classifiers with the scaling of their features."""

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"CoGSL": CoGSL}


def fit_cogsl(problem: Problem, config: CoGSLConfig, run: Run) -> Prediction:
    """Train estimators, classifiers and information in turns."""
    facts = widths(problem, config) | {
        "estimator_channels": config.estimator_channels,
        "estimator_dropout": config.estimator_dropout,
        "mu": [config.mu1, config.mu2],
        "restart": config.restart,
        "k": config.k,
        "lam": config.lam,
        "power": config.power,
        "self_loops": config.self_loops,
        "input_dropout": config.input_dropout,
    }
    run.reseed()
    with run.clock("train"):
        model = CoGSL(**facts).to(run.device)
        turns = Turns(problem, config, model)
        trained = train(
            model,
            turns.loss,
            turns.logits,
            problem.y,
            problem.val_mask,
            config.fit(),
            progress=run.progress,
            stage="CoGSL",
        )
    predictor = CoGSLPredictor(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)
