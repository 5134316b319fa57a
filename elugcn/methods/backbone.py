"""The networks that several methods build on: their options, and how they are built."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from elugcn.methods.options import (
    MAX_LAYERS,
    Count,
    Direction,
    NetworkConfig,
    NonNegative,
    Positive,
    Probability,
    Steps,
)
from elugcn.methods.problem import Shapes
from elugcn.models.flexible_gcn import FlexibleGCN
from elugcn.models.mlp import MLP
from elugcn.models.random_propagation import RandomPropagation, SampledPropagation
from elugcn.models.two_view_gcn import TwoViewGCN


class MLPConfig(NetworkConfig):
    """A two-layer perceptron on the features alone."""

    dropout: Probability = 0.6
    activation: Literal["relu", "none"] = "relu"  # the paper's text: "none"


class PropagationConfig(NetworkConfig):
    """Options of the first layer that GCNs and random propagation share."""

    norm: Literal["none", "layer", "batch", "l2"] = "none"  # of the hidden layers
    # K > 0: the first layer propagates by the mean of Â⁰ … Âᴷ, and no other layer does.
    # 0: every layer propagates by Â.
    order: Steps = 0
    drop_node: Probability = 0.0  # of dropping a node's whole row before propagation
    input_dropout: Probability | None = None  # of X; None: the same as dropout

    @property
    def mean_order(self) -> int:
        """K of the mean propagation."""
        return self.order


class GCNConfig(PropagationConfig):
    """Kipf and Welling's GCN, with the options of a modern backbone."""

    # "apart" gives in- and out-neighbours weights of their own.
    direction: Direction | Literal["apart"] = "given"  # type: ignore[assignment]
    num_layers: Annotated[int, Field(ge=2, le=MAX_LAYERS)] = 2  # that propagate
    residual: bool = False  # each layer adds a linear map of its own input
    # What a linear head reads of the hidden layers; "none": no head.
    jump: Literal["none", "last", "cat", "max"] = "none"

    @model_validator(mode="after")
    def _check_direction(self) -> Self:
        if self.order and self.direction == "apart":
            raise ValueError("direction='apart' cannot be combined with order")
        return self


class RandomPropagationConfig(PropagationConfig):
    """Draws of a random propagation that have to agree."""

    draws: Count = 1  # random propagations per epoch
    lambda_cons: NonNegative = 0.0  # weight of the consistency between them
    sharpening: Positive = 0.5  # temperature of the mean that they have to agree with
    # Nodes per epoch that have to agree, by an MLP on propagated features; 0: all.
    sample: Steps = 0
    neighbours: Count = 32  # entries kept of each row of the propagation, with sample

    @model_validator(mode="after")
    def _check_sample(self) -> Self:
        if self.sample and not self.order:
            raise ValueError("sample needs a propagation of order 1 or more")
        if self.sample and self.norm not in ("none", "batch"):
            raise ValueError(f"norm={self.norm!r} cannot be combined with sample")
        return self


def build_mlp(config: MLPConfig, shapes: Shapes) -> MLP:
    """The perceptron that a configuration describes, with initial weights."""
    linear = config.activation == "none"
    return MLP(*_sizes(config, shapes), config.dropout, linear=linear)


AnyGCN = TwoViewGCN | FlexibleGCN | RandomPropagation


def build_gcn(config: GCNConfig, shapes: Shapes) -> AnyGCN:
    """The GCN that a configuration describes, with initial weights."""
    sizes = _sizes(config, shapes)
    p, p_input = config.dropout, config.input_dropout
    plain = config.num_layers == 2 and not config.residual
    if plain and config.norm == config.jump == "none" and config.direction != "apart":
        if config.order:
            return RandomPropagation(*sizes, p, p_input, config.drop_node)
        if not config.drop_node:
            return TwoViewGCN(*sizes, p, p_input)
    return FlexibleGCN(
        *sizes,
        num_layers=config.num_layers,
        dropout=p,
        input_dropout=p_input,
        norm=config.norm,
        residual=config.residual,
        directions=2 if config.direction == "apart" else 1,
        jump=config.jump,
        first_only=config.order > 0,
        drop_node=config.drop_node,
    )


def build_sampled(config: PropagationConfig, shapes: Shapes) -> SampledPropagation:
    """The network of a random propagation that is trained on samples of nodes."""
    sizes = _sizes(config, shapes)
    return SampledPropagation(*sizes, config.dropout, config.input_dropout, config.norm)


def _sizes(config: NetworkConfig, shapes: Shapes) -> tuple[int, int, int]:
    return shapes.in_channels, config.hidden_channels, shapes.out_channels
