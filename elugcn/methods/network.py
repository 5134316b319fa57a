"""Methods that train one network: build, objective, training, saving."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from elugcn.data.scaling import FeatureScaler
from elugcn.engine import Features, GraphInputs, rows_of
from elugcn.methods.contract import (
    FitContext,
    FitResult,
    Known,
    Method,
    Model,
    Training,
)
from elugcn.methods.options import TrainConfig
from elugcn.methods.problem import GraphView, Problem, Shapes
from elugcn.training.loop import Objective, Trainer, TrainSettings

TrainConfigT = TypeVar("TrainConfigT", bound=TrainConfig)
NetworkT = TypeVar("NetworkT", bound=nn.Module)


class Supervised(Objective):
    """Cross-entropy on the training nodes; the default objective.

    A network that can be restricted to some nodes has ``num_layers``, how many of its
    layers propagate, and ``keeps_own``, whether it also reads a layer's own input.
    """

    def __init__(
        self, network: nn.Module, problem: Problem, inputs: GraphInputs | None = None
    ) -> None:
        self.network = network
        self.inputs = inputs or problem.inputs
        self.train_index, self.val_index = problem.train_index, problem.val_index
        self.target = problem.train_target
        self.train_loss = problem.cross_entropy
        self.val_inputs: GraphInputs | None = None  # the whole graph
        layers = getattr(network, "num_layers", None)
        if layers is not None and self.val_index.numel():
            self.val_inputs = self.inputs.restrict(
                self.val_index,
                layers,
                keep_own=getattr(network, "keeps_own", False),
                # Without dropout of X, validation computes the next step's X W.
                whole_x=getattr(network, "input_dropout", None) == 0.0,
            )

    def output(self, inputs: GraphInputs) -> Tensor:
        """Logits of the nodes that the inputs answer for."""
        out: Tensor = self.network(inputs)
        return out

    def loss(self, epoch: int) -> Tensor:
        """CE(Ŷ, Y) over the training nodes."""
        return self.cross_entropy(self.output(self.inputs))

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """CE(Ŷ, Y) over the training nodes, of the logits of all nodes."""
        # The gradient of index_select is added up in place, that of indexing copied.
        return self.train_loss(logits.index_select(0, self.train_index))

    def logits(self) -> Tensor:
        """Logits of all nodes."""
        return self.output(self.inputs)

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes, from their receptive field if it is known."""
        if self.val_inputs is None:
            return self.logits()[self.val_index]
        return self.output(self.val_inputs)


class SupervisedRows(Objective):
    """Cross-entropy for networks whose output depends on one row of features per node.

    ``network.rows(x)`` maps rows of features (of X, or of ``rows``) to logits. Training
    and validation read only the rows of their own nodes.
    """

    def __init__(
        self, network: nn.Module, problem: Problem, rows: Features | None = None
    ) -> None:
        self.network = network
        self.rows: Callable[[Features], Tensor] = network.rows  # type: ignore[assignment]
        self.all = problem.x if rows is None else rows
        self.train = rows_of(self.all, problem.train_index)
        self.train_loss = problem.cross_entropy
        self.val = rows_of(self.all, problem.val_index)

    def loss(self, epoch: int) -> Tensor:
        """CE(Ŷ, Y) over the training nodes."""
        return self.train_loss(self.rows(self.train))

    def logits(self) -> Tensor:
        """Logits of all nodes."""
        return self.rows(self.all)

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes."""
        return self.rows(self.val)


@dataclass
class NetworkModel(Model):
    """A trained network with the scaling of its features."""

    method: str  # name of the method that can restore it
    config: TrainConfig  # what the network was built from
    shapes: Shapes  # the sizes that it was built for
    network: nn.Module  # in evaluation mode
    scaler: FeatureScaler  # how features are scaled

    @torch.no_grad()
    def logits(self, data: Data) -> Tensor:
        """Logits n×c of a graph with the same features."""
        out: Tensor = self.network.cpu().eval()(self.inputs(data))
        return out

    def inputs(self, data: Data) -> GraphInputs:
        """X, scaled as in training, and Â of any graph."""
        return GraphView.of(self.config).inputs(data, self.scaler)

    def tensors(self) -> dict[str, Tensor]:
        """The weights, and the scaling if it has numbers."""
        tensors, _ = self.scaler.state()
        return tensors | under("network", self.network.state_dict())

    def description(self) -> dict[str, Any]:
        """What rebuilds the network before its weights are loaded."""
        return {
            "method": self.method,
            "config": self.config.model_dump(mode="json"),
            "shapes": asdict(self.shapes),
            "scaler": self.scaler.state()[1],
        }


class NetworkMethod(Method[TrainConfigT], Generic[TrainConfigT]):
    """A method that trains one network; a subclass says how it is built."""

    @abstractmethod
    def build(self, config: TrainConfigT, shapes: Shapes) -> nn.Module:
        """The network, with initial weights."""

    def objective(
        self,
        network: nn.Module,
        problem: Problem,
        config: TrainConfigT,
        context: FitContext,
    ) -> Objective:
        """What is minimised."""
        return Supervised(network, problem)

    def training(self, config: TrainConfigT) -> TrainSettings:
        """Learning rate, decay, epochs and selection."""
        return config.training()

    def metadata(self, network: nn.Module) -> dict[str, Any]:
        """What is worth recording of a trained network."""
        return {}

    def fit(
        self, problem: Problem, config: TrainConfigT, context: FitContext
    ) -> FitResult:
        """Build the network, train it and keep the selected epoch."""
        training = self.start(problem, config, context)
        training.run_until(training.epochs)
        result = training.finish()
        assert isinstance(result.model, NetworkModel)
        result.metadata |= self.metadata(result.model.network)
        return result

    def start(
        self,
        problem: Problem,
        config: TrainConfigT,
        context: FitContext,
        known: Known | None = None,
        *,
        stage: int = 0,
        title: str | None = None,
    ) -> Training:
        """Build the network."""
        return NetworkTraining(
            self.name,
            config,
            problem,
            context,
            self.build,
            lambda network, _: self.objective(network, problem, config, context),
            self.training(config),
            stage=stage,
            title=title,
        )

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Model:
        """Rebuild a saved network."""
        config = self.Config.model_validate_json(json.dumps(description["config"]))
        shapes = Shapes(**description["shapes"])
        # Without storage: no size in a file is trusted before the weights have it.
        with torch.device("meta"):
            network = self.build(config, shapes)
        network.load_state_dict(below("network.", tensors), assign=True)
        scaler = FeatureScaler.restore(dict(tensors), dict(description["scaler"]))
        return NetworkModel(self.name, config, shapes, network.eval(), scaler)


class NetworkTraining(Training, Generic[NetworkT]):
    """A network in training.

    Pausing changes nothing: PyTorch's generator is put back to where it was.

    Args:
        method: The method that can restore the network.
        config: What the network is built from.
        problem: The graph.
        context: Seed, device, progress and clocks.
        build: Builds the network.
        objective: What is minimised.
        settings: How it is trained; None: as the configuration says.
        clock: The clock that its time is added to.
        stage: Numbers its random numbers.
        title: What the progress display shows; None: the method.
    """

    def __init__(
        self,
        method: str,
        config: TrainConfig,
        problem: Problem,
        context: FitContext,
        build: Callable[[Any, Shapes], NetworkT],
        objective: Callable[[NetworkT, Problem], Objective],
        settings: TrainSettings | None = None,
        *,
        clock: str = "train",
        stage: int = 0,
        title: str | None = None,
    ) -> None:
        self.context, self.clock, self.title = context, clock, title or method
        settings = settings or config.training()
        self.epochs = settings.epochs
        with context.stage(clock, stage) as workspace:
            network = build(config, problem.shapes).to(context.device)
            self.trainer = Trainer(
                objective(network, problem),
                settings,
                problem.val_target,
                workspace,
                problem.own_score,
                context.keep_val_logits,
            )
            self._generator = torch.get_rng_state()
        self.model = NetworkModel(
            method, config, problem.shapes, network, problem.scaler
        )

    def run_until(self, epoch: int) -> None:
        """Train until so many epochs are done, or until the training ends itself."""
        with self.context.clock(self.clock):
            torch.set_rng_state(self._generator)
            context = self.context
            is_over = (lambda: context.is_over) if context.is_limited else None
            self.trainer.run_until(epoch, context.progress, self.title, is_over)
            self._generator = torch.get_rng_state()

    @property
    def best(self) -> Mapping[str, float]:
        """The record of the epoch that validation has selected so far."""
        return self.trainer.best

    def finish(self) -> FitResult:
        """The selected epoch: the logits of all nodes, and the network."""
        with self.context.clock(self.clock):
            trained = self.trainer.result()
        return FitResult(
            logits=trained.logits,
            epochs=trained.n_iter,
            history=trained.history,
            seconds=self.context.seconds,
            model=self.model,
            metadata={"best_epoch": trained.epoch},
            val_logits=self.trainer.val_logits,
        )


def fit_network(
    method: str,
    config: TrainConfigT,
    problem: Problem,
    context: FitContext,
    build: Callable[[TrainConfigT, Shapes], NetworkT],
    objective: Callable[[NetworkT, Problem], Objective],
    settings: TrainSettings | None = None,
    **how: Any,
) -> tuple[FitResult, NetworkModel]:
    """Build a network, train it to the end and keep the epoch that validation selects.

    The arguments are those of ``NetworkTraining``.
    """
    training = NetworkTraining(
        method, config, problem, context, build, objective, settings, **how
    )
    training.run_until(training.epochs)
    return training.finish(), training.model


def below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names start with a prefix, without it."""
    return {
        k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)
    }


def under(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with a name and a dot before their names."""
    return {f"{name}.{key}": x for key, x in tensors.items()}
