"""Correct and Smooth: the errors and the predictions of a simple model, propagated.

Huang et al., "Combining Label Propagation and Simple Models Out-performs Graph Neural
Networks", ICLR 2021. Z are the probabilities of a base model, S = D^-½ A D^-½ (no
self-loops), and every propagation keeps a share of its start:

    correct   E⁰ = Y − Z on training nodes, else 0;    E ← α₁ S E + (1 − α₁) E⁰
              Z' = Z + s E
    smooth    G⁰ = Y on training nodes, Z' elsewhere;  G ← α₂ S G + (1 − α₂) G⁰

Both are PyG's ``CorrectAndSmooth``. With ``autoscale`` s_i makes row i as large as the
mean error of a training node; otherwise s is ``scale``. Only training labels are read.
The paper tunes α₁, α₂ and s per dataset, and finds base models sufficient that know
nothing of the graph. Cost after the base model: O((L₁ + L₂)·E·c) for L₁ and L₂ steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import CorrectAndSmooth

from elugcn.baselines.common import Starts, suggest
from elugcn.data.features import sparse_rows
from elugcn.methods.contract import AnyMethod, FitContext, FitResult, Method, Model
from elugcn.methods.options import (
    MethodConfig,
    NetworkConfig,
    NonNegative,
    Probability,
    Share,
    Steps,
)
from elugcn.methods.problem import GraphTraits, GraphView, Problem
from elugcn.methods.registry import get_method


class CorrectSmoothConfig(NetworkConfig):
    """Options of Correct and Smooth; those of a network are the base model's."""

    # The base model: an MLP, logistic regression or a GCN
    base: Literal["mlp", "linear", "gcn"] = "mlp"
    dropout: Probability = 0.5
    correction_steps: Steps = 50  # L₁
    correction_alpha: Share = 0.9  # α₁
    smoothing_steps: Steps = 50  # L₂
    smoothing_alpha: Share = 0.8  # α₂
    autoscale: bool = True  # Scale each row of E, and keep E within ±1
    scale: NonNegative = 1.0  # s, without ``autoscale``

    def base_model(self) -> tuple[AnyMethod, MethodConfig]:
        """The method of the base model and its options."""
        # Logistic regression is SGC that looks at no neighbour.
        linear = self.base == "linear"
        own: dict[str, Any] = {"order": 0, "decay": "all"} if linear else {}
        method = get_method("sgc" if linear else self.base)
        options = self.shared_with(method.Config) | own
        return method, method.Config.model_validate(options)


@torch.no_grad()
def correct_and_smooth(
    logits: Tensor, labels: Tensor, data: Data, config: CorrectSmoothConfig
) -> Tensor:
    """Logarithms of the final scores, n×c, of the base model's logits.

    ``labels`` are the classes of the nodes whose label may be used, −1 elsewhere.
    """
    s = GraphView(self_loops=False, direction=config.direction).adjacency(data)
    adj = sparse_rows(s.crow, s.col, s.value, s.n_cols).to(logits.device)
    correction = config.correction_steps, config.correction_alpha
    smoothing = config.smoothing_steps, config.smoothing_alpha
    steps = CorrectAndSmooth(*correction, *smoothing, config.autoscale, config.scale)
    z, known = F.softmax(logits, dim=1), labels >= 0
    # Without weights beside it, PyG would normalise the matrix again.
    graph = (labels[known], known, adj, adj.values())
    if bool(known.any()):
        corrected = steps.correct(z, *graph)
        # 0/0 where the base model makes no error.
        z = torch.where(corrected.isfinite(), corrected, z)
    # A softmax of these scales the scores to sum 1; log(0) must stay finite.
    scores: Tensor = steps.smooth(z, *graph)
    return scores.clamp(min=1e-12).log()


@dataclass
class CorrectSmoothModel(Model):
    """The base model, and the smoothing of its predictions on any graph.

    The errors that ``correct`` propagates are those of the training graph. Labels of
    another graph are not read: there the base model's predictions are smoothed only.
    """

    base: Model
    config: CorrectSmoothConfig

    def logits(self, data: Data) -> Tensor:
        """Scores n×c of a graph with the same features, without any label of it."""
        logits = self.base.logits(data)
        unknown = torch.full((logits.size(0),), -1)
        return correct_and_smooth(logits, unknown, data, self.config)

    def tensors(self) -> dict[str, Tensor]:
        """Those of the base model."""
        return self.base.tensors()

    def description(self) -> dict[str, Any]:
        """The options, and what the base model describes."""
        return {
            "method": CorrectSmooth.name,
            "config": self.config.model_dump(mode="json"),
            "base": self.base.description(),
        }


class CorrectSmooth(Method[CorrectSmoothConfig]):
    """Correct and Smooth."""

    name = "cs"
    summary = "Correct and Smooth"
    Config = CorrectSmoothConfig

    def fit(
        self, problem: Problem, config: CorrectSmoothConfig, context: FitContext
    ) -> FitResult:
        """Train the base model, then correct and smooth its probabilities."""
        method, options = config.base_model()
        fitted = method.fit(problem, options, context)
        assert fitted.model is not None
        with context.clock("train"):
            logits = correct_and_smooth(
                fitted.logits, problem.train_labels, problem.data, config
            )
        model = CorrectSmoothModel(fitted.model, config)
        return replace(fitted, logits=logits, model=model)

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> CorrectSmoothModel:
        """Rebuild the base model, too."""
        config = self.Config.model_validate(description["config"])
        method, _ = config.base_model()
        return CorrectSmoothModel(method.restore(description["base"], tensors), config)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """The base model, its training, and both propagations."""
        kept = traits.keeps_features
        alphas = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
        return suggest(
            trial,
            traits,
            base=("mlp", "linear", "gcn"),
            dropout=(0.0, 0.3, 0.5) if kept else (0.3, 0.5, 0.7),
            lr=(0.005, 0.01, 0.02),
            weight_decay=(5e-4, 5e-3),
            correction_alpha=alphas,
            smoothing_alpha=alphas,
            autoscale=(True, False),
        )

    def starting_points(self, traits: GraphTraits) -> Starts:
        """One for each base; the linear one is trained as SGC is."""
        mlp: dict[str, Any] = {}
        if traits.keeps_features:
            mlp = {"feature_norm": "none", "dropout": 0.0, "weight_decay": 5e-3}
        linear = {"base": "linear", "lr": 0.2, "weight_decay": 5e-6}
        starts = [mlp, {"base": "gcn"}, linear]
        return [s | {"direction": "out"} if traits.directed else s for s in starts]
