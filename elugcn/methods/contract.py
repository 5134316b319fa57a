"""What a method gets, what it gives back, and how it is saved.

``NetworkMethod`` (in ``network.py``) is the base of methods that train one network.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.engine import Workspace
from elugcn.methods.options import Config as ConfigT
from elugcn.methods.problem import GraphTraits, Problem
from elugcn.training.progress import SILENT, Progress

if TYPE_CHECKING:
    from elugcn.elu.low_rank_graph import ELUGraph
    from elugcn.elu.utilization import LabelUtilization


class Model(ABC):
    """A trained model: it predicts for any graph with the same features."""

    @abstractmethod
    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph, on the CPU; nothing is trained."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Everything that has to be stored as a tensor, by name."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """The rest, as JSON: ``method`` and ``config`` at least.

        ``get_method(description["method"]).restore(description, tensors)`` rebuilds
        the model.
        """


@dataclass
class FitResult:
    """What a method returns."""

    logits: Tensor  # of every node, n×c
    epochs: int = 0  # of the main training
    # One record per epoch of the main training.
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # per stage
    model: Model | None = None  # predicts for other graphs, where that is possible
    label_utilization: LabelUtilization | None = None  # Definition 1, if computed
    graph: ELUGraph | None = None  # where the method learns one
    graph_mode: str = "none"  # or "implicit", "topk", "paper"
    # The nodes that judged, (m,), and what models that did not train on them give them,
    # m×c. None: the validation nodes and their logits.
    held_out: tuple[Tensor, Tensor] | None = None
    # Logits of the validation nodes after every epoch, where the context keeps them.
    val_logits: list[Tensor] = field(default_factory=list)
    # Logits n×c of simpler models that were trained on the way, and classes by "lpa".
    baselines: dict[str, Tensor] = field(default_factory=dict)
    # Anything else worth recording (the selected epoch, the chosen η).
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def proba(self) -> Tensor:
        """Class probabilities, n×c."""
        return F.softmax(self.logits, dim=1)


@dataclass
class FitContext:
    """The circumstances of a fit: seed, device, progress and a clock per stage."""

    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    progress: Progress = SILENT
    seconds: dict[str, float] = field(default_factory=dict)
    keep_val_logits: bool = False  # of every epoch, for a choice over several splits
    # When time is up, by ``time.monotonic``; what is done by then is the answer.
    deadline: float = math.inf

    @property
    def seconds_left(self) -> float:
        """Until the deadline; infinite without one."""
        return self.deadline - time.monotonic()

    @property
    def is_limited(self) -> bool:
        """Whether there is a deadline."""
        return self.deadline < math.inf

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return self.seconds_left <= 0

    @contextmanager
    def stage(self, clock: str, number: int = 0) -> Iterator[Workspace]:
        """A stage with random numbers of its own, by the seed and its number.

        Its time is added to a clock; the workspace is for its trainer.
        """
        # torch.manual_seed would set the generators of all devices.
        seed = 1_000_003 * number + self.seed
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)
        with self.clock(clock):
            yield Workspace(self.seed, number)

    @contextmanager
    def clock(self, name: str) -> Iterator[None]:
        """Add the time of the block to ``seconds[name]``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent


# Multiplications per second on one core, for matrices that a cache holds, and others.
FAST_PRODUCTS, SLOW_PRODUCTS = 5e9, 1e9
LARGE = 200_000  # nodes of a graph that no cache holds


@dataclass(frozen=True)
class Known:
    """What simpler models know of a graph before a method is trained on it."""

    lpa: Tensor  # label distribution, n×c; a zero row where no label reaches
    fitted: FitResult  # the best of the simpler models


class Training(ABC):
    """A method in training, which can pause: ``run_until``, then ``finish``."""

    epochs: int  # at most
    title: str  # what the progress display shows

    @abstractmethod
    def run_until(self, epoch: int) -> None:
        """Train until so many epochs are done, or until the training ends itself."""

    @property
    @abstractmethod
    def best(self) -> Mapping[str, float]:
        """The record of the epoch that validation has selected so far."""

    @abstractmethod
    def finish(self) -> FitResult:
        """The selected epoch."""


class AtOnce(Training):
    """A fit without epochs between which it could pause."""

    epochs = 0

    def __init__(self, fit: Callable[[], FitResult], title: str) -> None:
        self._fit, self.title = fit, title

    def run_until(self, epoch: int) -> None:
        """Nothing: ``finish`` does everything."""

    @property
    def best(self) -> Mapping[str, float]:
        """Nothing is known before the end."""
        return {}

    def finish(self) -> FitResult:
        """Fit."""
        return self._fit()


class Method(ABC, Generic[ConfigT]):
    """A method of node classification."""

    name: ClassVar[str]  # what users type
    summary: ClassVar[str]  # a few words for lists
    Config: type[ConfigT]  # the class of its options
    weighs_classes: ClassVar[bool] = True  # False: there is no loss to weigh

    @abstractmethod
    def fit(self, problem: Problem, config: ConfigT, context: FitContext) -> FitResult:
        """Train on a graph."""

    def start(
        self,
        problem: Problem,
        config: ConfigT,
        context: FitContext,
        known: Known | None = None,
        *,
        stage: int = 0,
        title: str | None = None,
    ) -> Training:
        """Begin a training that can pause.

        Args:
            problem: The graph.
            config: Options.
            context: Seed, device, progress and clocks.
            known: What a method that starts from simpler models need not train.
            stage: Numbers the random numbers.
            title: What the progress display shows; None: the method.
        """
        return AtOnce(lambda: self.fit(problem, config, context), title or self.name)

    def cost(self, config: ConfigT, traits: GraphTraits) -> float:
        """Seconds of a fit on one core, roughly; it is known before the fit starts."""
        rate = SLOW_PRODUCTS if traits.num_nodes > LARGE else FAST_PRODUCTS
        return config.products(traits) / rate

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Model:
        """Rebuild a saved model from what ``Model`` describes."""
        raise NotImplementedError(f"{self.name} has no model to restore")

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Options that an Optuna trial suggests, for a graph with these traits."""
        return {}

    def starting_points(self, traits: GraphTraits) -> list[dict[str, Any]]:
        """Options that a search tries first: settings of the method's authors."""
        return []


AnyMethod = Method[Any]
