"""The configuration of ELU-GCN, under the paper's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

import torch.nn.functional as F
from torch import Tensor

from elugcn.core.direction import LabelGraph
from elugcn.core.elu_graph import Form, Init, Normalization, check_choice
from elugcn.core.operators import Scaling
from elugcn.errors import InputError
from elugcn.methods.network_config import (
    ACTIVATIONS,
    GCNConfig,
    MLPConfig,
    NetworkConfig,
    RandomPropagationConfig,
    check_least,
    check_probability,
)

# What an unknown graph gets: members of the family that each win somewhere. The first
# trains on the ELU nodes' pseudo-labels too, under random propagation, and is the
# strongest where edges join alike nodes and labels are few; the second is the paper's
# two-view objective.
DEFAULT_VARIANTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "random propagation",
        "order": 8,
        "drop_node": 0.5,
        "dropout": 0.5,
        "draws": 2,
        "lambda_cons": 1.0,
        "lambda_con": 0.0,
        "warmup": 100,
        "eta": 0.0,
        "pseudo_weight": 0.5,
        "rounds": 2,
    },
    {"name": "two views", "eta": 0.3, "lambda_con": 0.3},
)
# Multiplications of the first layer's propagation in an epoch, above which a member of
# the default is left out: with 1e9 an epoch takes seconds. Several hundred thousand
# edges are below it.
AFFORDABLE = 1e9


@dataclass(frozen=True, kw_only=True)
class ELUGCNConfig(GCNConfig, RandomPropagationConfig):
    """Every option of the method.

    The fields inherited from the GCN describe the backbone of both the plain GCN that
    Definition 1 needs and, unless a variant says otherwise, of the two-view GCN.
    """

    # Stage 0: what the labels reach
    lpa_steps: int = 50
    lpa_alpha: float = 0.9
    lpa_graph: LabelGraph = "edges"  # edges | coupled (nodes with the same neighbours)
    gcn_prediction: str = "trained"  # trained | propagated (Â²H, the public code)
    # Stage 1: the ELU graph
    h_source: str = "gcn"  # gcn | mlp (the paper)
    h_output: str = "probabilities"  # probabilities | logits (the paper's text)
    mlp_hidden_channels: int = 64
    mlp_activation: str = "relu"  # relu | none (the paper's text)
    mlp_dropout: float = 0.6
    mlp_lr: float = 0.01
    mlp_weight_decay: float = 5e-4
    expand_labels: bool = True
    form: Form = "paper"
    init: Init = "lpa"
    k: int = 2
    beta: float = 1.0
    damping: float = 0.0
    normalization: Normalization = "l2"
    scaling: Scaling = "row"
    graph_mode: str = "implicit"  # implicit | topk | paper
    topk: int = 20
    keep: float = 0.1
    # Stage 2: two views
    eta: float = 0.3
    tau: float = 0.2
    lambda_con: float = 0.1
    contrast_weight: float = 1.0
    entropy_weight: float = 1.0
    contrast: str = "similarity"  # similarity | distance (the public code)
    warmup: int = 0  # epochs until contrast, entropy and consistency count fully
    # Beyond the paper
    pseudo_weight: float = 0.0  # ELU nodes as training targets
    rounds: int = 1
    # What is kept
    refit_eta: bool = True
    keep_gcn: bool = True
    ensemble: bool = True  # a mean of candidates, by their validation accuracy
    variants: tuple[Mapping[str, Any], ...] = DEFAULT_VARIANTS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gcn_prediction", self.gcn_prediction, ("trained", "propagated"))
        check_choice("h_source", self.h_source, ("gcn", "mlp"))
        check_choice("h_output", self.h_output, ("probabilities", "logits"))
        check_choice("form", self.form, get_args(Form))
        check_choice("init", self.init, get_args(Init))
        check_choice("normalization", self.normalization, get_args(Normalization))
        check_choice("scaling", self.scaling, get_args(Scaling))
        check_choice("graph_mode", self.graph_mode, ("implicit", "topk", "paper"))
        check_choice("lpa_graph", self.lpa_graph, get_args(LabelGraph))
        check_choice("contrast", self.contrast, ("similarity", "distance"))
        check_range("eta", self.eta, 0.0, 1.0)
        check_range("lpa_alpha", self.lpa_alpha, 0.0, 1.0)
        check_range("keep", self.keep, 0.0, 1.0)
        check_least(self, 0, "k", "warmup", "lambda_con")
        check_least(self, 0, "contrast_weight", "entropy_weight", "pseudo_weight")
        check_least(self, 0, "mlp_weight_decay")
        check_choice("mlp_activation", self.mlp_activation, ACTIVATIONS)
        check_probability(self, "damping")
        check_probability(self, "mlp_dropout")
        check_positive(self, "keep")
        check_positive(self, "tau", "beta", "lpa_steps", "topk", "rounds")
        check_positive(self, "mlp_hidden_channels", "mlp_lr")
        if self.sample and self.uses_elu_view:
            raise InputError("sample has one view only: set eta and lambda_con to 0")
        for variant in self.variants:
            _check_variant(variant)
        names = [name for name, _ in self.members()] if self.variants else []
        if len({*names, "gcn"}) <= len(names):
            given = ", ".join(names)
            raise InputError(
                f"variants need names of their own, not 'gcn'; got {given}"
            )

    def members(self) -> list[tuple[str, ELUGCNConfig]]:
        """The settings to try, named; this one alone if no variants are listed."""
        if not self.variants:
            return [("two-view", self)]
        plain = replace(self, variants=())
        members: list[tuple[str, ELUGCNConfig]] = []
        for variant in self.variants:
            options = dict(variant)
            name = str(options.pop("name", f"variant {len(members) + 1}"))
            if self.direction == "apart" and options.get("order", self.order):
                # A propagation of several steps needs a square matrix.
                options.setdefault("direction", "both")
            members.append((name, replace(plain, **options)))
        return members

    def affordable(
        self, entries: int
    ) -> tuple[list[tuple[str, ELUGCNConfig]], list[str]]:
        """The members to train on a graph of this size, and the names left out.

        Only the default is thinned: variants that someone lists are all trained.

        Args:
            entries: Stored entries of Â.
        """
        members = self.members()
        if self.variants != DEFAULT_VARIANTS:
            return members, []
        cost = [entries * m.order * m.draws * m.hidden_channels for _, m in members]
        # The cheapest is trained in any case: an `order` outside is every member's.
        most = max(AFFORDABLE, min(cost))
        kept = [m for m, c in zip(members, cost, strict=True) if c <= most]
        return kept, [name for name, _ in members if name not in dict(kept)]

    def ramp(self, epoch: int) -> float:
        """How much of contrast, entropy and consistency counts in an epoch."""
        return 1.0 if not self.warmup else min(1.0, epoch / self.warmup)

    @property
    def needs_mlp(self) -> bool:
        """Whether this setting uses the pre-trained MLP at all."""
        return self.h_source == "mlp" or self.gcn_prediction == "propagated"

    @property
    def uses_elu_view(self) -> bool:
        """Whether the ELU view enters the output or the loss."""
        contrast = self.lambda_con > 0 and self.contrast_weight > 0
        return self.eta > 0 or contrast

    def gcn(self) -> GCNConfig:
        """The plain GCN of Definition 1: this backbone, nothing else."""
        return GCNConfig(**{f.name: getattr(self, f.name) for f in fields(GCNConfig)})

    def mlp(self) -> MLPConfig:
        """The MLP that gives H."""
        shared = {f.name: getattr(self, f.name) for f in fields(NetworkConfig)}
        shared |= {
            "hidden_channels": self.mlp_hidden_channels,
            "dropout": self.mlp_dropout,
            "activation": self.mlp_activation,
            "lr": self.mlp_lr,
            "weight_decay": self.mlp_weight_decay,
        }
        return MLPConfig(**shared)


@dataclass(frozen=True, kw_only=True)
class PaperConfig(ELUGCNConfig):
    """The method as published, and nothing chosen among: one two-view model.

    H from an MLP, three steps of label propagation, contrast and entropy from the
    first epoch, a fixed η. Where the text leaves a dead fixed point (see
    ``solve_influence``) the authors' public code decides: the transposed form with its
    β, damping and rows of length 1, and an MLP with a ReLU that gives probabilities.

    What is ours in it: rows of S* divided by their sum (``scaling``), rows without a
    label that start from label propagation (``init``; zeros in the code), 10 updates
    for the code's 200, each normalised before it is damped and not after, no cut-off at
    0.2, S* in factors instead of its largest 10 % (``graph_mode``), selection by
    accuracy before loss. The ablation has a row without each of the three that are
    named here, and one for ``THE_TEXT``, the text to the letter.
    """

    lpa_steps: int = 3
    h_source: str = "mlp"
    mlp_hidden_channels: int = 128
    mlp_lr: float = 0.005
    form: Form = "transposed"
    beta: float = 1000.0
    k: int = 10
    damping: float = 0.3
    dropout: float = 0.6
    eta: float = 0.1
    lambda_con: float = 0.3
    refit_eta: bool = False
    keep_gcn: bool = False
    ensemble: bool = False
    variants: tuple[Mapping[str, Any], ...] = ()


# The method as printed, for ``PaperConfig``: nothing of the public code, all of n².
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


def h_from(scores: Tensor, h_output: str) -> Tensor:
    """H from a model's output: probabilities, or the raw scores."""
    return F.softmax(scores, dim=1) if h_output == "probabilities" else scores


def check_range(option: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside [low, high]."""
    if not low <= value <= high:
        raise InputError(f"{option} must be between {low:g} and {high:g}; got {value}")


def check_positive(config: object, *options: str) -> None:
    """Refuse numbers that are not positive."""
    for option in options:
        value = cast(float, getattr(config, option))
        if not value > 0:
            raise InputError(f"{option} must be positive; got {value}")


# What a variant can't have of its own: what is done with all of them, and the label
# propagation and the MLP that they share.
SHARED_KEYS = frozenset(
    {"variants", "keep_gcn", "ensemble", "lpa_steps", "lpa_alpha", "lpa_graph"}
    | {"mlp_hidden_channels", "mlp_activation", "mlp_dropout", "mlp_lr"}
    | {"mlp_weight_decay"}
)
VARIANT_KEYS = frozenset(f.name for f in fields(ELUGCNConfig)) - SHARED_KEYS


def _check_variant(variant: Mapping[str, Any]) -> None:
    for key in variant:
        if key in SHARED_KEYS:
            raise InputError(
                f"{key} is shared by the variants of elu-gcn: set it outside"
            )
        if key not in VARIANT_KEYS | {"name"}:
            raise InputError(f"unknown option {key!r} in variants of elu-gcn")
