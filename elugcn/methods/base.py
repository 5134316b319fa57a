"""What a method gets and what it gives back.

A method is one configuration dataclass and one function ``fit(problem, config, run)``
that returns a ``Prediction``. Adding one touches its own file and one registry line.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from elugcn.core.direction import directed_adjacency
from elugcn.core.elu_graph import check_choice
from elugcn.core.operators import ELUGraph
from elugcn.core.sparse import CSR, features
from elugcn.core.utilization import LabelUtilization
from elugcn.methods.scaling import KINDS, FeatureScaler
from elugcn.training.progress import SILENT, Progress


@dataclass(frozen=True)
class GraphView:
    """How edges become Â: with or without self-loops, in which direction.

    A graph may hold both directions of every edge in ``edge_index`` and still know,
    in ``links``, which of the two was published.
    """

    self_loops: bool = True
    direction: str = "given"

    def adjacency(self, data: Data) -> CSR:
        """Â of a graph; n×2n where in- and out-neighbours are kept apart."""
        edges, weight = data.edge_index, getattr(data, "edge_weight", None)
        links = getattr(data, "links", None)
        if links is not None and self.direction not in ("given", "both"):
            edges, weight = links, None
        return directed_adjacency(
            edges,
            data.num_nodes,
            weight,
            self.self_loops,
            self.direction,
        )


@dataclass(frozen=True, kw_only=True)
class BaseConfig:
    """Options that decide what any method sees of the graph."""

    feature_norm: str = "auto"  # auto | row | standard | none
    self_loops: bool = True
    direction: str = "given"  # given | both | in | out (gcn, elu-gcn: apart too)

    def __post_init__(self) -> None:
        check_choice("feature_norm", self.feature_norm, KINDS)
        check_choice("direction", self.direction, self.directions())

    @classmethod
    def directions(cls) -> tuple[str, ...]:
        """The ways of reading edges with a direction that the method can use."""
        return ("given", "both", "in", "out")

    @property
    def view(self) -> GraphView:
        """How the edges are read, for this graph and any later one."""
        return GraphView(self.self_loops, self.direction)


Config = TypeVar("Config", bound=BaseConfig)


@dataclass(frozen=True)
class Problem:
    """A graph as the methods see it: X, Â, labels and masks as tensors.

    ``train_labels`` is −1 outside the training set: what a method may learn from.
    ``y`` holds every known label; methods use it on validation nodes only. ``adj`` is
    what networks propagate by and ``spread`` what labels travel by: the same matrix,
    unless in- and out-neighbours are kept apart.
    """

    x: CSR | Tensor
    adj: CSR
    spread: CSR
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    num_classes: int
    in_channels: int
    scaler: FeatureScaler
    data: Data

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.y.numel()

    @property
    def train_index(self) -> Tensor:
        """Training nodes."""
        return self.train_mask.nonzero().squeeze(1)

    @property
    def train_labels(self) -> Tensor:
        """Class of each training node, −1 elsewhere."""
        return torch.where(self.train_mask, self.y, -1)


def make_problem(data: Data, config: BaseConfig, device: torch.device) -> Problem:
    """Scale the features and build Â, once, for a checked graph."""
    scaler = FeatureScaler.fit(data.x, config.feature_norm)
    x, adj = inputs(data, scaler, config.view, device)
    spread = adj
    if config.direction == "apart":
        spread = replace(config.view, direction="both").adjacency(data).to(device)
    labelled = data.y[data.y >= 0]
    names = getattr(data, "class_names", None)
    num_classes = len(names) if names else int(labelled.max()) + 1
    return Problem(
        x=x,
        adj=adj,
        spread=spread,
        y=data.y.to(device),
        train_mask=data.train_mask.to(device),
        val_mask=data.val_mask.to(device),
        num_classes=num_classes,
        in_channels=data.x.size(1),
        scaler=scaler,
        data=data,
    )


def inputs(
    data: Data, scaler: FeatureScaler, view: GraphView, device: torch.device
) -> tuple[CSR | Tensor, CSR]:
    """X (scaled, in its faster layout) and Â of any graph with the same features."""
    x = features(scaler(data.x)).to(device)
    return x, view.adjacency(data).to(device)


class Predictor(ABC):
    """A trained model that can be saved and can predict for any graph."""

    @abstractmethod
    def logits(self, data: Data) -> Tensor:
        """Scores n×c for a graph with the same features; no refit."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts that rebuild this predictor."""

    @classmethod
    @abstractmethod
    def restore(cls, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Predictor:
        """The inverse of ``state``."""


@dataclass
class Prediction:
    """What a method returns.

    Attributes:
        logits: Scores of every node, n×c; rows of ``-inf``-free numbers.
        epochs: Epochs trained in the main stage.
        history: One record per epoch of the main stage.
        seconds: Time per stage.
        predictor: Predicts for other graphs; None where that has no meaning.
        utilization: Definition 1, where the method computes it.
        graph: The ELU graph, where the method learns one.
        graph_mode: ``implicit``, ``topk``, ``paper`` or ``none``.
        facts: Anything else worth recording (the chosen η, the chosen variant).
    """

    logits: Tensor
    epochs: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    predictor: Predictor | None = None
    utilization: LabelUtilization | None = None
    graph: ELUGraph | None = None
    graph_mode: str = "none"
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def proba(self) -> Tensor:
        """Class probabilities, n×c."""
        return F.softmax(self.logits, dim=1)


@dataclass
class Run:
    """The circumstances of one fit: seed, device, progress, stage clock."""

    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    progress: Progress = SILENT
    seconds: dict[str, float] = field(default_factory=dict)

    def reseed(self, stage: int = 0) -> None:
        """Start a stage from its own seed, so stages do not disturb each other.

        Only generators that the fit gives back: torch.manual_seed takes all there are.
        """
        seed = 1_000_003 * stage + self.seed
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)

    @contextmanager
    def clock(self, stage: str) -> Iterator[None]:
        """Add the time of the block to ``seconds[stage]``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent


@dataclass(frozen=True)
class Method(Generic[Config]):
    """A registry entry."""

    name: str
    config: type[Config]
    fit: Callable[[Problem, Config, Run], Prediction]
    summary: str
