"""Options of ELU-GCN under the paper's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from elugcn.elu.closed_form import Form, Init, Normalization
from elugcn.elu.label_propagation import LabelGraph
from elugcn.elu.low_rank_graph import Scaling
from elugcn.elu.sparsify import GraphMode
from elugcn.methods.backbone import GCNConfig, MLPConfig, RandomPropagationConfig
from elugcn.methods.options import (
    Count,
    MethodConfig,
    NonNegative,
    Positive,
    Probability,
    Share,
    Steps,
)


class ELUConfig(GCNConfig, RandomPropagationConfig):
    """Options of the stages; the inherited ones are of both GCNs."""

    # Stage 0: what the labels reach
    lpa_steps: Count = 50  # how many hops labels travel
    lpa_alpha: Share = 0.9  # share of the neighbours in each step
    lpa_graph: LabelGraph = "edges"  # "coupled": by nodes with the same neighbours
    # What Definition 1 compares with: a trained GCN, or Â²H as in the public code.
    gcn_prediction: Literal["trained", "propagated"] = "trained"

    # Stage 1: the ELU graph
    h_source: Literal["gcn", "mlp"] = "gcn"  # the model that gives H; paper: "mlp"
    h_output: Literal["probabilities", "logits"] = "probabilities"  # text: "logits"
    mlp_hidden_channels: Count = 64
    mlp_activation: Literal["relu", "none"] = "relu"  # text: "none"
    mlp_dropout: Probability = 0.6
    mlp_lr: Positive = 0.01
    mlp_weight_decay: NonNegative = 5e-4
    expand_labels: bool = True  # ELU nodes count as labelled when S* is learned
    form: Form = "paper"  # closed form of S*; public code: "transposed"
    init: Init = "lpa"  # rows of Q⁽⁰⁾ without a label
    k: Steps = 2  # updates of Q
    beta: Positive = 1.0  # β, the ridge
    damping: Probability = 0.0  # share of the previous Q in each update
    normalization: Normalization = "l2"  # rows of Q have length 1 after each update
    scaling: Scaling = "row"  # what rows of S* are divided by
    graph_mode: GraphMode = "implicit"  # S* in factors, or explicit
    topk: Count = 20  # entries per row, for graph_mode="topk"
    keep: float = Field(0.1, gt=0, le=1)  # share of entries, for graph_mode="paper"

    # Stage 2: two views
    eta: Share = 0.3  # η, share of the ELU view in the output
    tau: Positive = 0.2  # τ, temperature of the contrast
    lambda_con: NonNegative = 0.1  # λ, weight of contrast and entropy
    contrast_weight: NonNegative = 1.0  # within λ
    entropy_weight: NonNegative = 1.0  # within λ
    contrast: Literal["similarity", "distance"] = "similarity"  # public code: distance
    warmup: Steps = 0  # epochs until contrast, entropy and consistency count fully

    # Beyond the paper
    pseudo_weight: NonNegative = 0.0  # total weight of ELU nodes as training targets
    rounds: Count = 1  # how often stages 1 and 2 are repeated on their own output
    refit_eta: bool = True  # choose η again on validation once the weights are trained

    @model_validator(mode="after")
    def _check_views(self) -> Self:
        if self.sample and self.uses_elu_view:
            raise ValueError("sample has one view only: set eta and lambda_con to 0")
        return self

    def ramp(self, epoch: int) -> float:
        """How much contrast, entropy and consistency count in an epoch."""
        return min(1.0, epoch / self.warmup) if self.warmup else 1.0

    @property
    def uses_mlp(self) -> bool:
        """Whether any stage needs the pre-trained MLP."""
        return self.h_source == "mlp" or self.gcn_prediction == "propagated"

    @property
    def uses_contrast(self) -> bool:
        """Whether the views are contrasted."""
        return self.lambda_con > 0 and self.contrast_weight > 0

    @property
    def uses_elu_view(self) -> bool:
        """Whether the ELU view enters the output or the loss."""
        return self.eta > 0 or self.uses_contrast

    def networks(self, entries: int) -> Sequence[MethodConfig]:
        """The plain GCN and the two-view GCN."""
        return [self.gcn(), self]

    def gcn(self) -> GCNConfig:
        """The plain GCN of Definition 1: this backbone and nothing else."""
        return GCNConfig.model_validate(self.shared_with(GCNConfig))

    def mlp(self) -> MLPConfig:
        """The MLP that gives H; it has no use for edges."""
        own = {k.removeprefix("mlp_"): x for k, x in self if k.startswith("mlp_")}
        shared = self.shared_with(MLPConfig) | {"direction": "given"}
        return MLPConfig.model_validate(shared | own)


class PaperConfig(ELUConfig):
    """The published method: one two-view model with a fixed η.

    Where the text leaves a dead fixed point (see ``closed_form``), the authors' public
    code decides: the transposed form with its β, damping and rows of length 1, and an
    MLP with ReLU and probabilities. It differs from the public code in these points:
    rows of S* are divided by their sum (``scaling``); rows without a label start from
    label propagation instead of zero (``init``); 10 updates instead of 200, normalised
    before damping; no cut-off of entries below 0.2; S* in factors instead of its
    largest 10 % (``graph_mode``); validation accuracy selects before loss.
    """

    lpa_steps: Count = 3
    h_source: Literal["gcn", "mlp"] = "mlp"
    mlp_hidden_channels: Count = 128
    mlp_lr: Positive = 0.005
    form: Form = "transposed"
    beta: Positive = 1000.0
    k: Steps = 10
    damping: Probability = 0.3
    dropout: Probability = 0.6
    eta: Share = 0.1
    lambda_con: NonNegative = 0.3
    refit_eta: bool = False


# The method as the text prints it, for ``PaperConfig``: nothing of the public code, and
# S* with the largest 10 % of its n² entries.
THE_TEXT: Mapping[str, Any] = {
    "form": "paper",
    "init": "zero",
    "beta": 1.0,
    "k": 2,
    "damping": 0.0,
    "normalization": "none",
    "scaling": "none",
    "mlp_activation": "none",
    "h_output": "logits",
    "graph_mode": "paper",
}
