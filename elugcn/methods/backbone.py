"""The networks that several methods build on: their options, and how they are built.

ELU-GCN, GCN and MLP share them: ELU-GCN's second stage is a GCN with two views, and
its first stage pre-trains an MLP.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from elugcn.methods.options import MAX_COUNT, Direction, NetworkConfig
from elugcn.methods.problem import Shapes
from elugcn.models.flexible_gcn import FlexibleGCN
from elugcn.models.mlp import MLP
from elugcn.models.random_propagation import RandomPropagation, SampledPropagation
from elugcn.models.two_view_gcn import TwoViewGCN

Norm = Literal["none", "layer", "batch", "l2"]


class MLPConfig(NetworkConfig):
    """A two-layer perceptron on the features alone.

    Attributes:
        activation: ``"relu"``, or ``"none"`` as in the paper's text.
    """

    dropout: float = Field(0.6, ge=0, lt=1)
    activation: Literal["relu", "none"] = "relu"


class PropagationConfig(NetworkConfig):
    """Options of the first layer that GCNs and random propagation share.

    Attributes:
        norm: Norm of the hidden layers.
        order: K > 0: the first layer propagates by the mean of Â⁰ … Âᴷ, and no other
            layer does. 0: every layer propagates by Â.
        drop_node: Probability of dropping a node's whole row before propagation.
        input_dropout: Dropout of X; None: the same as ``dropout``.
    """

    norm: Norm = "none"
    order: int = Field(0, ge=0, le=MAX_COUNT)
    drop_node: float = Field(0.0, ge=0, lt=1)
    input_dropout: float | None = Field(None, ge=0, lt=1)

    @property
    def mean_order(self) -> int:
        """K of the mean propagation."""
        return self.order


class GCNConfig(PropagationConfig):
    """Kipf and Welling's GCN, with the options of a modern backbone.

    Attributes:
        direction: As for every method; ``"apart"`` gives in- and out-neighbours
            weights of their own.
        num_layers: Layers that propagate.
        residual: Each layer adds a linear map of its own input.
        jump: What a linear head reads of the hidden layers; ``"none"``: no head.
    """

    direction: Direction | Literal["apart"] = "given"  # type: ignore[assignment]
    num_layers: int = Field(2, ge=2, le=MAX_COUNT)
    residual: bool = False
    jump: Literal["none", "last", "cat", "max"] = "none"

    @model_validator(mode="after")
    def _check_direction(self) -> Self:
        if self.order and self.direction == "apart":
            raise ValueError("direction='apart' cannot be combined with order")
        return self


class RandomPropagationConfig(PropagationConfig):
    """Draws of a random propagation that have to agree.

    Attributes:
        draws: Random propagations per epoch.
        lambda_cons: Weight of the consistency between them.
        sharpening: Temperature of the mean that they have to agree with.
        sample: Nodes per epoch that have to agree, by an MLP on propagated features;
            0: all nodes.
        neighbours: Entries kept of each row of the propagation, with ``sample``.
    """

    draws: int = Field(1, ge=1, le=MAX_COUNT)
    lambda_cons: float = Field(0.0, ge=0)
    sharpening: float = Field(0.5, gt=0)
    sample: int = Field(0, ge=0, le=MAX_COUNT)
    neighbours: int = Field(32, ge=1, le=MAX_COUNT)

    @model_validator(mode="after")
    def _check_sample(self) -> Self:
        if self.sample and not self.order:
            raise ValueError("sample needs a propagation of order 1 or more")
        if self.sample and self.norm not in ("none", "batch"):
            raise ValueError(f"norm={self.norm!r} cannot be combined with sample")
        return self


def build_mlp(config: MLPConfig, shapes: Shapes) -> MLP:
    """The perceptron that a configuration describes, with initial weights."""
    return MLP(
        shapes.in_channels,
        config.hidden_channels,
        shapes.out_channels,
        config.dropout,
        linear=config.activation == "none",
    )


AnyGCN = TwoViewGCN | FlexibleGCN | RandomPropagation


def build_gcn(config: GCNConfig, shapes: Shapes) -> AnyGCN:
    """The GCN that a configuration describes, with initial weights."""
    sizes = (shapes.in_channels, config.hidden_channels, shapes.out_channels)
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
    return SampledPropagation(
        shapes.in_channels,
        config.hidden_channels,
        shapes.out_channels,
        config.dropout,
        config.input_dropout,
        config.norm,
    )
