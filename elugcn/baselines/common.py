"""What the baselines share: options, training, search, and what Â gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import CSR, GraphInputs
from elugcn.methods.contract import FitContext
from elugcn.methods.network import NetworkMethod, Supervised
from elugcn.methods.options import MAX_COUNT, NetworkConfig, Probability, TrainConfig
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.training.loop import Objective

# Options that a search tries first.
Starts = list[dict[str, Any]]
ConfigT = TypeVar("ConfigT", bound=TrainConfig)
NetworkT = TypeVar("NetworkT", bound=nn.Module)
Derived = TypeVar("Derived")


class BaselineConfig(NetworkConfig):
    """A network of which all parameters decay alike."""

    decay: Literal["all"] = "all"


class InputDropoutConfig(BaselineConfig):
    """A network that may drop entries of X with a probability of their own."""

    input_dropout: Probability | None = None  # Dropout of X; None: as ``dropout``

    @property
    def first_dropout(self) -> float:
        """Dropout of X."""
        return self.dropout if self.input_dropout is None else self.input_dropout


class BaselineObjective(Supervised, Generic[NetworkT, ConfigT]):
    """Cross-entropy on the training nodes; subclasses add terms that options weigh."""

    def __init__(self, model: NetworkT, problem: Problem, config: ConfigT) -> None:
        super().__init__(model, problem)
        self.model = model
        self.config = config


class Baseline(NetworkMethod[ConfigT], Generic[ConfigT]):
    """A method given by the classes of its options, network and objective."""

    Network: ClassVar[Callable[..., nn.Module]]
    Objective: ClassVar[Callable[..., Objective]] = BaselineObjective

    def build(self, config: ConfigT, shapes: Shapes) -> nn.Module:
        """The network, with initial weights."""
        return self.Network(config, shapes)

    def objective(
        self, network: nn.Module, problem: Problem, config: ConfigT, context: FitContext
    ) -> Any:
        """What is minimised."""
        return self.Objective(network, problem, config)


def adjacency(inputs: GraphInputs) -> CSR:
    """Â as a matrix: these methods read its entries, or all its powers."""
    assert isinstance(inputs.adj, CSR)
    return inputs.adj


def pattern_of(counts: Tensor, col: Tensor) -> CSR:
    """n×n, of ones, from the number of entries of each row and their columns."""
    n = counts.numel()
    dtype = torch.int32 if max(col.numel(), n) < MAX_COUNT else torch.int64
    crow = F.pad(counts.cumsum(0), (1, 0)).to(dtype)
    return CSR(crow, col.to(dtype), torch.ones(col.numel(), device=col.device), n)


class PerGraph(Generic[Derived]):
    """A function of Â that keeps its value until it is called for another graph."""

    def __init__(self, derive: Callable[[CSR], Derived]) -> None:
        self._derive = derive
        self._last: tuple[CSR, Derived] | None = None

    def __call__(self, inputs: GraphInputs) -> Derived:
        """The value for the Â of these inputs."""
        adj = adjacency(inputs)
        if self._last is None or self._last[0] is not adj:
            self._last = adj, self._derive(adj)
        return self._last[1]


def choices(trial: Any, values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """One of the given values for each option."""
    return {k: trial.suggest_categorical(k, list(v)) for k, v in values.items()}


def suggest(trial: Any, traits: GraphTraits, **values: Sequence[Any]) -> dict[str, Any]:
    """How the graph is read, and one of the given values for each option."""
    reading: dict[str, Sequence[Any]] = {}
    if traits.directed:
        reading["direction"] = ("out", "both")
    if traits.keeps_features:
        reading["feature_norm"] = ("row", "none")
    return choices(trial, reading | values)


def suggest_learned(
    trial: Any, traits: GraphTraits, **values: Sequence[Any]
) -> dict[str, Any]:
    """The same for methods that learn a graph, with dropout of X and decay."""
    shared: dict[str, Sequence[Any]] = {}
    if traits.keeps_features:
        shared["input_dropout"] = (None, 0.0, 0.5)
    decays = (0.0, 5e-4, 1e-3, 5e-3) if traits.is_dense else (5e-4, 1e-3)
    return suggest(trial, traits, **shared, weight_decay=decays, **values)
