"""What the methods that learn graphs share: options, training, search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import Field
from torch import nn

from elugcn.baselines.search import DENSE, choices, graph_choices, keeps_features
from elugcn.engine import CSR, GraphInputs
from elugcn.methods.contract import FitContext
from elugcn.methods.network import NetworkMethod, Supervised
from elugcn.methods.options import MAX_COUNT, NetworkConfig, TrainConfig
from elugcn.methods.problem import GraphTraits, Problem, Shapes

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class InputDropoutConfig(NetworkConfig):
    """A network that may drop entries of X with a probability of their own.

    Attributes:
        input_dropout: Dropout of X; None: as ``dropout``.
    """

    input_dropout: float | None = Field(None, ge=0, lt=1)

    @property
    def first_dropout(self) -> float:
        """Dropout of X."""
        return self.dropout if self.input_dropout is None else self.input_dropout


Derived = TypeVar("Derived")
ConfigT = TypeVar("ConfigT", bound=TrainConfig)
NetworkT = TypeVar("NetworkT", bound=nn.Module)


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


def adjacency(inputs: GraphInputs) -> CSR:
    """Â, of which single entries are read."""
    assert isinstance(inputs.adj, CSR)
    return inputs.adj


class LearnedGraphObjective(Supervised, Generic[NetworkT, ConfigT]):
    """An objective with further terms, which its options weigh."""

    def __init__(self, model: NetworkT, problem: Problem, config: ConfigT) -> None:
        super().__init__(model, problem)
        self.model = model
        self.config = config


class LearnedGraphMethod(NetworkMethod[ConfigT], Generic[ConfigT]):
    """A method given by the classes of its options, network and objective."""

    Network: ClassVar[Callable[..., nn.Module]]
    Objective: ClassVar[Callable[..., LearnedGraphObjective[Any, Any]]]

    def build(self, config: ConfigT, shapes: Shapes) -> nn.Module:
        """The network, with initial weights."""
        return self.Network(config, shapes)

    def objective(
        self,
        network: nn.Module,
        problem: Problem,
        config: ConfigT,
        context: FitContext,
    ) -> LearnedGraphObjective[Any, Any]:
        """What is minimised."""
        return self.Objective(network, problem, config)


def is_dense(traits: GraphTraits) -> bool:
    """Whether nodes have many neighbours."""
    return traits.num_edges > DENSE * traits.num_nodes


def is_large(traits: GraphTraits) -> bool:
    """Whether what grows with the square of n takes long."""
    return traits.num_nodes > 10_000


def common_space(trial: Any, traits: GraphTraits) -> dict[str, Any]:
    """How the graph is read, dropout of X and decay."""
    found = graph_choices(trial, traits)
    if keeps_features(traits):
        found |= choices(trial, input_dropout=(None, 0.0, 0.5))
    decays = (0.0, 5e-4, 1e-3, 5e-3) if is_dense(traits) else (5e-4, 1e-3)
    return found | choices(trial, weight_decay=decays)
