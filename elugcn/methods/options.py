"""Options of methods: pydantic models that are checked where they are defined."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from elugcn.errors import InputError, shown
from elugcn.training.loop import TrainSettings

Direction = Literal["given", "both", "in", "out"]
FeatureNorm = Literal["auto", "row", "standard", "none"]
# The largest whole number of an option: no count of anything is larger.
MAX_COUNT = 2**31 - 1

Steps = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class MethodConfig(BaseModel):
    """Options that decide what any method sees of the graph.

    Attributes:
        feature_norm: How X is scaled; ``"auto"`` decides by column.
        self_loops: Whether Â has self-loops.
        direction: Which edges a node listens to, where edges have a direction.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False
    )

    feature_norm: FeatureNorm = "auto"
    self_loops: bool = True
    direction: Direction = "given"

    @property
    def mean_order(self) -> int:
        """K: the first layer propagates by (I + Â + … + Âᴷ)/(K+1); 0: by Â."""
        return 0

    def with_options(self, **options: Any) -> Self:
        """The same configuration with other values, checked."""
        return type(self).model_validate(self.model_dump() | options)

    def shared_with(self, other: type[MethodConfig]) -> dict[str, Any]:
        """The values of the options that another method also has."""
        own = type(self).model_fields
        return {name: getattr(self, name) for name in other.model_fields if name in own}


class TrainConfig(MethodConfig):
    """How a model with weights is trained.

    Attributes:
        lr: Learning rate of Adam.
        weight_decay: L2 penalty.
        decay: ``"first"`` decays the first layer only, as Kipf's GCN does.
        epochs: Largest number of epochs.
        patience: Training stops after this many epochs without improvement.
        select: What validation compares first, accuracy or loss.
    """

    lr: float = Field(0.01, gt=0)
    weight_decay: float = Field(5e-4, ge=0)
    decay: Literal["all", "first"] = "all"
    epochs: int = Field(500, ge=1, le=MAX_COUNT)
    patience: int = Field(100, ge=0, le=MAX_COUNT)
    select: Literal["accuracy", "loss"] = "accuracy"

    def training(self) -> TrainSettings:
        """The part that the training loop reads."""
        return TrainSettings(
            lr=self.lr,
            weight_decay=self.weight_decay,
            decay=self.decay,
            epochs=self.epochs,
            patience=self.patience,
            select=self.select,
        )


class NetworkConfig(TrainConfig):
    """Width and dropout of a network, and how it is trained."""

    hidden_channels: int = Field(64, ge=1, le=MAX_COUNT)
    dropout: float = Field(0.8, ge=0, lt=1)


Config = TypeVar("Config", bound=MethodConfig)


def make_config(kind: type[Config], options: Mapping[str, Any], of: str) -> Config:
    """Options from YAML, JSON or Python as a checked configuration.

    Args:
        kind: The configuration class.
        options: Values by name.
        of: What the options belong to, for messages: ``"method gcn"``.

    Raises:
        InputError: An option is unknown or its value is not allowed.
    """
    known = list(kind.model_fields)
    for name in options:
        if name not in known:
            raise InputError(unknown_option(str(name), known, of))
    values = {name: _plain(value) for name, value in options.items()}
    for name, value in values.items():
        # YAML reads 5e-4 as a string, because it wants 5.0e-4. People write 5e-4.
        if isinstance(value, str) and _is_number(kind.model_fields[name].annotation):
            values[name] = _number(value)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InputError(_first_problem(error)) from None


def unknown_option(name: str, known: list[str], of: str) -> str:
    """One line that names the option and suggests the closest known one."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    return f"unknown option {name!r} of {of}; {hint}"


def _plain(value: Any) -> Any:
    """Numpy's numbers and lists as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(value) if isinstance(value, list) else value


def _is_number(annotation: Any) -> bool:
    return annotation in (float, float | None)


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


_EXPECTED = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "one of {expected}",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a word",
    "finite_number": "a finite number",
}


def _first_problem(error: ValidationError) -> str:
    """What pydantic found first, in one line."""
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"])
    template = _EXPECTED.get(problem["type"])
    if template is None:
        # A validator of ours: its message is a sentence already.
        return problem["msg"].removeprefix("Value error, ")
    expected = template.format(**problem.get("ctx", {})).replace(" or ", ", ")
    return f"{name} must be {expected}; got {shown(problem['input'])}"
