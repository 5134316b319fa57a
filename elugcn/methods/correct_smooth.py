"""Correct and Smooth: a simple model, whose errors and predictions are spread.

Huang et al., "Combining Label Propagation and Simple Models Out-performs Graph Neural
Networks", ICLR 2021. Z are the probabilities of a base model, S = D^-½ A D^-½ (no
self-loops), and every propagation keeps a share of its start:

    correct   E⁰ = Y − Z on training nodes, else 0;    E ← α₁ S E + (1 − α₁) E⁰
              Z' = Z + s E
    smooth    G⁰ = Y on training nodes, Z' elsewhere;  G ← α₂ S G + (1 − α₂) G⁰

With ``autoscale`` E is kept within ±1 and s_i makes the size of row i that of a
training node's mean error; otherwise the rows of training nodes stay E⁰ and s is
``scale``. G is kept within [0, 1]. Only training labels are read; validation labels
choose the epoch of the base model. Cost after the base model: O((L₁ + L₂)·E·c).

The paper tunes α₁, α₂ and s for each dataset. It finds base models that know nothing
of the graph sufficient, hence an MLP by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.elu_graph import check_choice
from elugcn.core.propagation import one_hot_rows
from elugcn.core.sparse import CSR
from elugcn.errors import InputError
from elugcn.methods.base import GraphView, Prediction, Predictor, Problem, Run
from elugcn.methods.network_config import (
    GCNConfig,
    MLPConfig,
    NetworkConfig,
    TrainConfig,
    check_least,
)
from elugcn.methods.neural import NetworkPredictor, as_prediction, fit_network
from elugcn.methods.sgc import SGCConfig, SGCPredictor, fit_regression
from elugcn.training.loop import Trained


@dataclass(frozen=True, kw_only=True)
class CorrectSmoothConfig(NetworkConfig):
    """The base model (the network's options are its own) and both propagations."""

    base: str = "mlp"  # mlp | linear | gcn
    dropout: float = 0.5
    correction_steps: int = 50
    correction_alpha: float = 0.9
    smoothing_steps: int = 50
    smoothing_alpha: float = 0.8
    autoscale: bool = True
    scale: float = 1.0  # without autoscale

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("base", self.base, ("mlp", "linear", "gcn"))
        check_least(self, 0, "correction_steps", "smoothing_steps", "scale")
        for name in ("correction_alpha", "smoothing_alpha"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise InputError(f"{name} must be between 0 and 1; got {value}")


def spread(
    s: CSR, start: Tensor, steps: int, alpha: float, keep: Callable[[Tensor], Tensor]
) -> Tensor:
    """Z ← keep(α S Z + (1 − α) Z⁰), ``steps`` times, O(steps·E·c)."""
    z = start
    for _ in range(steps):
        z = keep(torch.lerp(start, s @ z, alpha))
    return z


def correct(z: Tensor, labels: Tensor, s: CSR, config: CorrectSmoothConfig) -> Tensor:
    """Z': the errors on training nodes, spread and added, n×c."""
    known = labels >= 0
    error = (one_hot_rows(labels, z.size(1)) - z) * known.unsqueeze(1)
    steps, alpha = config.correction_steps, config.correction_alpha
    if not config.autoscale:
        mask = known.unsqueeze(1)
        fixed = spread(s, error, steps, alpha, lambda e: torch.where(mask, error, e))
        return z + config.scale * fixed
    reached = spread(s, error, steps, alpha, lambda e: e.clamp_(-1.0, 1.0))
    mean = error.abs().sum() / known.sum().clamp(min=1)
    scale = mean / reached.abs().sum(dim=1, keepdim=True)
    # Rows that (almost) no error has reached would be blown up to nonsense.
    scale = torch.where(scale <= 1000, scale, torch.ones_like(scale))
    return z + scale * reached


def smooth(z: Tensor, labels: Tensor, s: CSR, config: CorrectSmoothConfig) -> Tensor:
    """G: corrected predictions and training labels, spread, n×c."""
    start = torch.where((labels >= 0).unsqueeze(1), one_hot_rows(labels, z.size(1)), z)
    steps, alpha = config.smoothing_steps, config.smoothing_alpha
    return spread(s, start, steps, alpha, lambda g: g.clamp_(0.0, 1.0))


@torch.no_grad()
def correct_and_smooth(
    logits: Tensor, labels: Tensor, s: CSR, config: CorrectSmoothConfig
) -> Tensor:
    """Log of the final scores n×c.

    Args:
        logits: The base model's.
        labels: Class of the nodes whose label may be used, −1 elsewhere.
        s: S, n×n.
        config: The propagations.
    """
    z = correct(F.softmax(logits, dim=1), labels, s, config)
    # The softmax of these is the scores scaled to sum 1; log(0) must stay finite.
    return smooth(z, labels, s, config).clamp(min=1e-12).log()


def graph_of(data: Data, direction: str, device: torch.device) -> CSR:
    """S of a graph: Â without self-loops."""
    return GraphView(self_loops=False, direction=direction).adjacency(data).to(device)


class CorrectSmoothPredictor(Predictor):
    """The base model and the smoothing of its predictions on any graph.

    The errors that ``correct`` spreads are those of the training graph's nodes. Another
    graph has none that are known, and labels it may carry are not read: there the base
    model's predictions are smoothed alone.
    """

    def __init__(self, base: NetworkPredictor, config: CorrectSmoothConfig) -> None:
        self.base = base
        self.config = config

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Scores n×c for a graph with the same features, without any label of it."""
        logits = self.base.logits(data)
        unknown = torch.full((logits.size(0),), -1)
        return correct_and_smooth(
            logits,
            unknown,
            graph_of(data, self.config.direction, logits.device),
            self.config,
        )

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The base model's weights, and the configuration."""
        tensors, base = self.base.state()
        return tensors, {"base": base, "config": asdict(self.config)}

    @classmethod
    def restore(
        cls, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> CorrectSmoothPredictor:
        """The inverse of ``state``."""
        config = CorrectSmoothConfig(**facts["config"])
        kind = SGCPredictor if config.base == "linear" else NetworkPredictor
        return cls(kind.restore(tensors, facts["base"]), config)


def fit_base(
    problem: Problem, config: CorrectSmoothConfig, run: Run
) -> tuple[Trained, NetworkPredictor]:
    """Train the base model with the options that are its own."""

    def own(kind: type[TrainConfig]) -> dict[str, Any]:
        return {f.name: getattr(config, f.name) for f in fields(kind)}

    if config.base == "linear":
        # Logistic regression is SGC that looks at no neighbour.
        regression = SGCConfig(**own(TrainConfig), order=0)
        return fit_regression(problem, regression, run, "linear")
    kind = GCNConfig if config.base == "gcn" else MLPConfig
    with run.clock("train"):
        network = kind(**own(NetworkConfig))
        return fit_network(problem, network, run, config.base.upper())


def fit_correct_smooth(
    problem: Problem, config: CorrectSmoothConfig, run: Run
) -> Prediction:
    """Train the base model, then correct and smooth its probabilities."""
    run.reseed()
    trained, base = fit_base(problem, config, run)
    prediction = as_prediction(trained, CorrectSmoothPredictor(base, config), run)
    with run.clock("train"):
        s = graph_of(problem.data, config.direction, run.device)
        prediction.logits = correct_and_smooth(
            trained.logits, problem.train_labels, s, config
        )
    prediction.facts["base_val_accuracy"] = trained.val_accuracy
    return prediction
