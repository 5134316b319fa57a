"""How networks are configured: training, width, and the options of a GCN."""

from __future__ import annotations

from dataclasses import dataclass

from elugcn.core.elu_graph import check_choice
from elugcn.errors import InputError
from elugcn.methods.base import BaseConfig
from elugcn.training.loop import Fit

ACTIVATIONS = ("relu", "none")


@dataclass(frozen=True, kw_only=True)
class TrainConfig(BaseConfig):
    """How any model with weights is trained."""

    lr: float = 0.01
    weight_decay: float = 5e-4
    decay: str = "all"  # all | first (Kipf's GCN decays its first layer only)
    epochs: int = 500
    patience: int = 100
    select: str = "accuracy"  # accuracy | loss, on validation

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("decay", self.decay, ("all", "first"))
        check_choice("select", self.select, ("accuracy", "loss"))
        check_least(self, 1, "epochs")
        check_least(self, 0, "patience", "weight_decay")
        if not self.lr > 0:
            raise InputError(f"lr must be positive; got {self.lr}")

    def fit(self) -> Fit:
        """The training loop's part of it."""
        return Fit(
            self.lr,
            self.weight_decay,
            self.decay,
            self.epochs,
            self.patience,
            self.select,
        )


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(TrainConfig):
    """Width, regularisation and training of a network."""

    hidden_channels: int = 64
    dropout: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "hidden_channels")
        check_probability(self, "dropout")


@dataclass(frozen=True, kw_only=True)
class MLPConfig(NetworkConfig):
    """A two-layer perceptron on the features alone."""

    dropout: float = 0.6
    activation: str = "relu"  # relu | none (linear, the text of the paper)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("activation", self.activation, ACTIVATIONS)


@dataclass(frozen=True, kw_only=True)
class RandomPropagationConfig(NetworkConfig):
    """Features propagated over a graph whose nodes drop out, in draws that agree."""

    norm: str = "none"
    order: int = 0  # K: the mean of Â⁰…Âᴷ
    drop_node: float = 0.0
    input_dropout: float | None = None  # None: as dropout
    draws: int = 1  # random propagations per epoch
    lambda_cons: float = 0.0  # consistency between them
    sharpening: float = 0.5
    sample: int = 0  # nodes of an epoch that have to agree, by an MLP; 0: all
    neighbours: int = 32  # entries of a row of Π that a sample is propagated by

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 0, "order", "lambda_cons", "sample")
        check_least(self, 1, "draws", "neighbours")
        check_probability(self, "drop_node")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        if not self.sharpening > 0:
            raise InputError(f"sharpening must be positive; got {self.sharpening}")
        if self.sample and not self.order:
            raise InputError("sample needs a propagation of order 1 or more")
        if self.sample and self.norm not in ("none", "batch"):
            raise InputError(f"norm={self.norm} can't be combined with sample")


@dataclass(frozen=True, kw_only=True)
class GCNConfig(NetworkConfig):
    """Kipf and Welling's GCN, with the options of a modern backbone."""

    num_layers: int = 2
    norm: str = "none"  # none | layer | batch | l2
    residual: bool = False
    jump: str = "none"  # none | last | cat | max: a linear head on hidden layers
    order: int = 0  # 0: Â in every layer; K: mean of Â⁰…Âᴷ in the first only
    drop_node: float = 0.0
    input_dropout: float | None = None  # None: as dropout

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("norm", self.norm, ("none", "layer", "batch", "l2"))
        check_choice("jump", self.jump, ("none", "last", "cat", "max"))
        check_least(self, 2, "num_layers")
        check_least(self, 0, "order")
        check_probability(self, "drop_node")
        if self.input_dropout is not None:
            check_probability(self, "input_dropout")
        if self.order and self.direction == "apart":
            raise InputError("direction=apart can't be combined with order")

    @classmethod
    def directions(cls) -> tuple[str, ...]:
        """In- and out-neighbours may have weights of their own."""
        return (*super().directions(), "apart")


def check_least(config: object, least: int, *options: str) -> None:
    """Refuse numbers below ``least``."""
    for option in options:
        value = getattr(config, option)
        if not value >= least:
            raise InputError(f"{option} must be at least {least}; got {value}")


def check_probability(config: object, option: str) -> None:
    """Refuse a share that would drop everything, or more."""
    value = getattr(config, option)
    if not 0.0 <= value < 1.0:
        raise InputError(f"{option} must be at least 0 and below 1; got {value}")
