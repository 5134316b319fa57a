"""Options of ELU-GCN under the paper's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from elugcn.elu.closed_form import Form, Init, Normalization
from elugcn.elu.label_propagation import LabelGraph
from elugcn.elu.low_rank_graph import GraphMode, Scaling
from elugcn.methods.backbone import GCNConfig, MLPConfig, RandomPropagationConfig
from elugcn.methods.options import MAX_COUNT, MethodConfig


class ELUConfig(GCNConfig, RandomPropagationConfig):
    """Options of the stages.

    The inherited ones describe the backbone: of the plain GCN that Definition 1 needs,
    and of the two-view GCN.

    Attributes:
        lpa_steps: How many hops labels travel.
        lpa_alpha: Share of the neighbours in each step.
        lpa_graph: What labels travel by: ``"edges"``, or ``"coupled"``: nodes with
            the same neighbours.
        gcn_prediction: What Definition 1 compares with: a ``"trained"`` GCN, or
            ``"propagated"``: Â²H, as in the public code.
        h_source: The model that gives H; the paper: ``"mlp"``.
        h_output: H holds ``"probabilities"``, or ``"logits"`` as in the paper's text.
        mlp_hidden_channels: Width of the MLP.
        mlp_activation: ``"relu"``, or ``"none"`` as in the paper's text.
        mlp_dropout: Dropout of the MLP.
        mlp_lr: Learning rate of the MLP.
        mlp_weight_decay: Weight decay of the MLP.
        expand_labels: ELU nodes count as labelled when S* is learned.
        form: Closed form of S*: ``"paper"``, or ``"transposed"`` as in the public code.
        init: Rows of Q⁽⁰⁾ without a label.
        k: Updates of Q.
        beta: Ridge β.
        damping: Share of the previous Q in each update.
        normalization: ``"l2"`` scales rows of Q to length 1 after each update.
        scaling: What rows of S* are divided by.
        graph_mode: How S* is stored: factors, ``topk`` per row, or the paper's share.
        topk: Entries per row, for ``graph_mode="topk"``.
        keep: Share of all entries, for ``graph_mode="paper"``.
        eta: η, the share of the ELU view in the output.
        tau: τ, temperature of the contrast.
        lambda_con: λ, weight of contrast and entropy.
        contrast_weight: Weight of the contrast within λ.
        entropy_weight: Weight of the entropy within λ.
        contrast: ``"similarity"``, or ``"distance"`` as in the public code.
        warmup: Epochs until contrast, entropy and consistency count fully.
        pseudo_weight: Total weight of ELU nodes as training targets.
        rounds: How often stages 1 and 2 are repeated on their own output.
        refit_eta: Choose η again on validation once the weights are trained.
    """

    # Stage 0: what the labels reach
    lpa_steps: int = Field(50, ge=1, le=MAX_COUNT)
    lpa_alpha: float = Field(0.9, ge=0, le=1)
    lpa_graph: LabelGraph = "edges"
    gcn_prediction: Literal["trained", "propagated"] = "trained"
    # Stage 1: the ELU graph
    h_source: Literal["gcn", "mlp"] = "gcn"
    h_output: Literal["probabilities", "logits"] = "probabilities"
    mlp_hidden_channels: int = Field(64, ge=1, le=MAX_COUNT)
    mlp_activation: Literal["relu", "none"] = "relu"
    mlp_dropout: float = Field(0.6, ge=0, lt=1)
    mlp_lr: float = Field(0.01, gt=0)
    mlp_weight_decay: float = Field(5e-4, ge=0)
    expand_labels: bool = True
    form: Form = "paper"
    init: Init = "lpa"
    k: int = Field(2, ge=0, le=MAX_COUNT)
    beta: float = Field(1.0, gt=0)
    damping: float = Field(0.0, ge=0, lt=1)
    normalization: Normalization = "l2"
    scaling: Scaling = "row"
    graph_mode: GraphMode = "implicit"
    topk: int = Field(20, ge=1, le=MAX_COUNT)
    keep: float = Field(0.1, gt=0, le=1)
    # Stage 2: two views
    eta: float = Field(0.3, ge=0, le=1)
    tau: float = Field(0.2, gt=0)
    lambda_con: float = Field(0.1, ge=0)
    contrast_weight: float = Field(1.0, ge=0)
    entropy_weight: float = Field(1.0, ge=0)
    contrast: Literal["similarity", "distance"] = "similarity"
    warmup: int = Field(0, ge=0, le=MAX_COUNT)
    # Beyond the paper
    pseudo_weight: float = Field(0.0, ge=0)
    rounds: int = Field(1, ge=1, le=MAX_COUNT)
    refit_eta: bool = True

    @model_validator(mode="after")
    def _check_views(self) -> Self:
        if self.sample and self.uses_elu_view:
            raise ValueError("sample has one view only: set eta and lambda_con to 0")
        return self

    def ramp(self, epoch: int) -> float:
        """How much of contrast, entropy and consistency counts in an epoch."""
        return 1.0 if not self.warmup else min(1.0, epoch / self.warmup)

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

    def gcn(self) -> GCNConfig:
        """The plain GCN of Definition 1: this backbone and nothing else."""
        return GCNConfig(**_shared(self, GCNConfig))

    def mlp(self) -> MLPConfig:
        """The MLP that gives H."""
        return MLPConfig(
            **_shared(self, MLPConfig)
            | {
                "direction": "given",  # it has no use for edges
                "hidden_channels": self.mlp_hidden_channels,
                "activation": self.mlp_activation,
                "dropout": self.mlp_dropout,
                "lr": self.mlp_lr,
                "weight_decay": self.mlp_weight_decay,
            }
        )


class PaperConfig(ELUConfig):
    """The published method: one two-view model with a fixed η.

    H comes from an MLP, labels are propagated three steps, contrast and entropy count
    from the first epoch. Where the text leaves a dead fixed point (see
    ``closed_form``), the authors' public code decides: the transposed form with its β,
    damping and rows of length 1, and an MLP with ReLU and probabilities.

    It differs from the public code in these points: rows of S* are divided by their
    sum (``scaling``); rows without a label start from label propagation instead of
    zero (``init``); 10 updates instead of 200, normalised before damping; no cut-off
    of entries below 0.2; S* in factors instead of its largest 10 % (``graph_mode``);
    validation accuracy selects before loss.
    """

    lpa_steps: int = Field(3, ge=1, le=MAX_COUNT)
    h_source: Literal["gcn", "mlp"] = "mlp"
    mlp_hidden_channels: int = Field(128, ge=1, le=MAX_COUNT)
    mlp_lr: float = Field(0.005, gt=0)
    form: Form = "transposed"
    beta: float = Field(1000.0, gt=0)
    k: int = Field(10, ge=0, le=MAX_COUNT)
    damping: float = Field(0.3, ge=0, lt=1)
    dropout: float = Field(0.6, ge=0, lt=1)
    eta: float = Field(0.1, ge=0, le=1)
    lambda_con: float = Field(0.3, ge=0)
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


def _shared(config: MethodConfig, kind: type[MethodConfig]) -> dict[str, Any]:
    """The options that another configuration also has."""
    own = type(config).model_fields
    return {k: getattr(config, k) for k in kind.model_fields if k in own}
