"""Options of methods: pydantic models that are checked where they are defined."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from elugcn.errors import InputError, first_problem
from elugcn.training.loop import TrainSettings

if TYPE_CHECKING:
    from elugcn.methods.problem import GraphTraits

Direction = Literal["given", "both", "in", "out"]
FeatureNorm = Literal["auto", "row", "standard", "column", "tfidf", "none"]
# The largest whole number of an option: no count of anything is larger.
MAX_COUNT = 2**31 - 1
MAX_LAYERS = 1000

Steps = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Layers = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class MethodConfig(BaseModel):
    """Options that decide what any method sees of the graph."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )

    feature_norm: FeatureNorm = "auto"  # how X is scaled; "auto" decides by column
    self_loops: bool = True  # whether Â has self-loops
    direction: Direction = "given"  # which edges a node listens to, see GraphView

    @property
    def mean_order(self) -> int:
        """K: the first layer propagates by (I + Â + … + Âᴷ)/(K+1); 0: by Â."""
        return 0

    @property
    def adjacency_norm(self) -> str:
        """How Â is normalised: ``sym`` or ``row``."""
        return "sym"

    def networks(self, entries: int) -> Sequence[MethodConfig]:
        """The configurations of what is trained, for a Â with so many entries."""
        return [self]

    def products(self, traits: GraphTraits) -> float:
        """Multiplications of a fit, roughly."""
        return float(traits.num_edges * traits.num_classes)

    def of_length(self, length: int, found: Sequence[Mapping[str, Any]]) -> Self:
        """The configuration of a training without validation nodes.

        ``length`` says how many epochs or iterations it has; ``found`` is what earlier
        trainings recorded.
        """
        return self

    def shared_with(self, other: type[MethodConfig]) -> dict[str, Any]:
        """The values of the options that another method also has."""
        return {name: value for name, value in self if name in other.model_fields}


class TrainConfig(MethodConfig):
    """How a model with weights is trained."""

    lr: Positive = 0.01  # learning rate of Adam
    weight_decay: NonNegative = 5e-4  # L2 penalty
    decay: Literal["all", "first"] = "all"  # "first": the first layer only (Kipf)
    epochs: Count = 500  # at most
    patience: Steps = 100  # epochs without improvement after which training stops
    select: Literal["accuracy", "loss"] = "accuracy"  # what validation compares first

    def of_length(self, length: int, found: Sequence[Mapping[str, Any]]) -> Self:
        """So many epochs."""
        return self.model_copy(update={"epochs": length})

    def training(self) -> TrainSettings:
        """The part that the training loop reads."""
        own = TrainConfig.__annotations__
        return TrainSettings(**{name: value for name, value in self if name in own})


class NetworkConfig(TrainConfig):
    """Width and dropout of a network, and how it is trained."""

    hidden_channels: Count = 64
    dropout: Probability = 0.8

    def products(self, traits: GraphTraits) -> float:
        """Those of the features and of every propagation, forwards and backwards."""
        layers, draws = getattr(self, "num_layers", 2), getattr(self, "draws", 1)
        steps = max(layers, getattr(self, "mean_order", 0)) * draws
        # Dense products, by X or by the weights between two layers, are much faster.
        features = traits.feature_entries / (1 if traits.sparse_features else 8)
        weights = traits.num_nodes * self.hidden_channels * (layers - 2) / 8
        per_column = features + steps * traits.num_edges + weights
        return float(3 * self.epochs * self.hidden_channels * per_column)


Config = TypeVar("Config", bound=MethodConfig)


def make_config(kind: type[Config], options: Mapping[str, Any], of: str) -> Config:
    """Options from YAML, JSON or Python as a checked configuration.

    ``of`` is what they belong to, for messages: ``"method gcn"``.
    """
    known = list(kind.model_fields)
    for name in options:
        if name not in known:
            raise InputError(unknown_option(str(name), known, of))
    try:
        return kind.model_validate({key: _plain(x) for key, x in options.items()})
    except ValidationError as error:
        raise InputError(first_problem(error)) from None


def unknown_option(name: str, known: Iterable[str], of: str) -> str:
    """One line that names the option and suggests the closest known ones."""
    return f"unknown option {name!r} of {of}; {hint(name, known)}"


def hint(name: str, known: Iterable[str]) -> str:
    """The closest known names, or all of them."""
    known = list(known)
    close = " or ".join(map(repr, difflib.get_close_matches(name, known)))
    return f"did you mean {close}?" if close else f"known: {', '.join(known)}"


# YAML reads 5e-4 as a string, because it wants 5.0e-4. People write 5e-4.
_NUMBER = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=e))(e[-+]?\d+)?", re.IGNORECASE)


def _plain(value: Any) -> Any:
    """Numpy's numbers, lists and numbers written as text as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return tuple(value) if isinstance(value, list) else value
