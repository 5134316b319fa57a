"""GCN and MLP: the plain models, and how any trained network is kept and reused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from elugcn.core.elu_graph import check_choice
from elugcn.core.sparse import CSR, rows_of
from elugcn.errors import InputError
from elugcn.methods.base import (
    BaseConfig,
    GraphView,
    Prediction,
    Predictor,
    Problem,
    Run,
    inputs,
)
from elugcn.methods.scaling import FeatureScaler
from elugcn.nn import GCN, MLP
from elugcn.nn.field import Operator, field_of
from elugcn.training.loop import Fit, Trained, train


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


class NetworkPredictor(Predictor):
    """A trained network with the scaling of its features.

    Attributes:
        kinds: The networks it can hold, by the name a file gives them; a method with
            a network of its own derives a class that names it.
    """

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {"GCN": GCN, "MLP": MLP}

    def __init__(
        self, model: nn.Module, scaler: FeatureScaler, view: GraphView, facts: Any
    ) -> None:
        self.model = model
        self.scaler = scaler
        self.view = view
        self.facts: dict[str, Any] = facts

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Scores n×c for a graph with the same features."""
        x, adj = inputs(data, self.scaler, self.view, torch.device("cpu"))
        return network_logits(self.model.cpu().eval(), x, adj)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weights and architecture."""
        tensors, scaler = self.scaler.state()
        tensors |= {f"model.{k}": v for k, v in self.model.state_dict().items()}
        kind = type(self.model).__name__
        facts = {"kind": kind, "scaler": scaler, "view": asdict(self.view)}
        return tensors, facts | {"architecture": self.facts}

    @classmethod
    def restore(cls, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Self:
        """The inverse of ``state``."""
        # Without storage, so that no size in a file is believed before the weights
        # are seen to have it.
        with torch.device("meta"):
            model = cls.kinds[facts["kind"]](**facts["architecture"])
        prefix = "model."
        weights = {
            k.removeprefix(prefix): v
            for k, v in tensors.items()
            if k.startswith(prefix)
        }
        model.load_state_dict(weights, assign=True)
        scaler = FeatureScaler.restore(tensors, facts["scaler"])
        view = GraphView(**facts["view"])
        return cls(model.eval(), scaler, view, facts["architecture"])


def network_logits(model: nn.Module, x: CSR | Tensor, adj: CSR) -> Tensor:
    """Scores n×c of any network: of a GCN its original view; an MLP has no graph."""
    out: Tensor
    if isinstance(model, MLP):
        out = model(x)
    else:
        out = model(x, adj)[0] if isinstance(model, GCN) else model(x, adj)
    return out


def widths(problem: Problem, config: NetworkConfig) -> dict[str, Any]:
    """The arguments that every network on this graph has."""
    return {
        "in_channels": problem.in_channels,
        "hidden_channels": config.hidden_channels,
        "out_channels": problem.num_classes,
        "dropout": config.dropout,
    }


def build(
    problem: Problem, config: NetworkConfig, device: torch.device
) -> tuple[GCN | MLP, dict[str, Any]]:
    """The network a configuration describes, and the arguments that rebuild it."""
    facts = widths(problem, config)
    model: GCN | MLP
    if isinstance(config, GCNConfig):
        facts |= {
            "num_layers": config.num_layers,
            "norm": config.norm,
            "residual": config.residual,
            "order": config.order,
            "drop_node": config.drop_node,
            "jump": config.jump,
            "directions": 2 if config.direction == "apart" else 1,
            "input_dropout": config.input_dropout,
        }
        model = GCN(**facts)
    else:
        model = MLP(**facts)
    return model.to(device), facts


def train_network(
    problem: Problem,
    config: TrainConfig,
    run: Run,
    model: nn.Module,
    stage: str,
    forward: Callable[[], Tensor] | None = None,
    loss: Callable[[int], Tensor] | None = None,
    extra: nn.Module | None = None,
) -> Trained:
    """Train any network, with cross-entropy on the training nodes if not said.

    Args:
        problem: The graph.
        config: The training part of it is read.
        run: Progress.
        model: Trained in place.
        stage: Name for the progress display.
        forward: Logits of all nodes, where there is a cheaper way to them than the
            network on X and Â.
        loss: The objective of an epoch, where it is another one.
        extra: Parameters trained along but not selected.
    """
    nodes = problem.train_index
    target = problem.y[nodes]

    def predict() -> Tensor:
        if forward is not None:
            return forward()
        return network_logits(model, problem.x, problem.adj)

    validate = None
    if forward is None and isinstance(model, GCN):
        validate = validation(problem, model)
    if forward is None and isinstance(model, MLP):
        # A node's output depends on its own features only.
        own = rows_of(problem.x, nodes)
        decide = rows_of(problem.x, problem.val_mask.nonzero().squeeze(1))
        loss = loss or (lambda epoch: F.cross_entropy(model(own), target))
        validate = lambda: model(decide)  # noqa: E731
    return train(
        model,
        loss or (lambda epoch: F.cross_entropy(predict()[nodes], target)),
        predict,
        problem.y,
        problem.val_mask,
        config.fit(),
        validate=validate,
        extra=extra,
        progress=run.progress,
        stage=stage,
    )


def validation(
    problem: Problem,
    model: GCN,
    graph: Operator | None = None,
    mix: Callable[[list[Tensor]], Tensor] = lambda views: views[0],
) -> Callable[[], Tensor] | None:
    """Logits of the validation nodes alone; None where all nodes cost no more.

    Args:
        problem: The graph.
        model: Will be asked in evaluation mode.
        graph: S*, if there is a second view.
        mix: The output, given those of the views.
    """
    nodes = problem.val_mask.nonzero().squeeze(1)
    field = field_of(model, problem.x, problem.adj, graph, nodes)
    return None if field is None else lambda: mix(model.evaluate(field))


def fit_network(
    problem: Problem, config: NetworkConfig, run: Run, stage: str
) -> tuple[Trained, NetworkPredictor]:
    """Train a GCN or an MLP with cross-entropy on the training nodes."""
    model, facts = build(problem, config, run.device)
    trained = train_network(problem, config, run, model, stage)
    return trained, NetworkPredictor(model, problem.scaler, config.view, facts)


def as_prediction(trained: Trained, predictor: Predictor, run: Run) -> Prediction:
    """A trained network as a method's answer."""
    return Prediction(
        logits=trained.logits,
        epochs=trained.n_iter,
        history=trained.history,
        seconds=run.seconds,
        predictor=predictor,
        facts={"best_epoch": trained.epoch},
    )


def fit_model(
    problem: Problem,
    config: NetworkConfig,
    run: Run,
    model_class: Callable[..., nn.Module],
    predictor_class: type[NetworkPredictor],
    **own: Any,
) -> Prediction:
    """Build, train and wrap a network on X and Â: all a plain baseline needs.

    ``own`` are the arguments of the network beyond its widths and dropout.
    """
    facts = widths(problem, config) | own
    run.reseed()
    with run.clock("train"):
        model = model_class(**facts).to(run.device)
        trained = train_network(problem, config, run, model, type(model).__name__)
    predictor = predictor_class(model, problem.scaler, config.view, facts)
    return as_prediction(trained, predictor, run)


def _fit_plain(
    problem: Problem, config: NetworkConfig, run: Run, stage: str
) -> Prediction:
    run.reseed()
    with run.clock("train"):
        trained, predictor = fit_network(problem, config, run, stage)
    return as_prediction(trained, predictor, run)


def fit_gcn(problem: Problem, config: GCNConfig, run: Run) -> Prediction:
    """Train a plain GCN."""
    return _fit_plain(problem, config, run, "GCN")


def fit_mlp(problem: Problem, config: MLPConfig, run: Run) -> Prediction:
    """Train an MLP on the features; the graph is not used."""
    return _fit_plain(problem, config, run, "MLP")
