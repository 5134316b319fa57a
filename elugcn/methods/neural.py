"""GCN and MLP: the plain models, and how any trained network is kept and reused.

    GCN   Z = Â σ(Â X W₁) W₂    Kipf and Welling, ICLR 2017
    MLP   Z = σ(X W₁) W₂

with dropout before each layer and biases, trained by cross-entropy on the training
nodes. An epoch of the GCN costs O(nnz(X)·h + nnz(Â)·h), of the MLP O(nnz(X)·h + n·h·c).
Differences from Kipf's: weights decay in all layers unless ``decay="first"``, and
validation accuracy selects the epoch. Further options (depth, residuals, normalisation,
direction of edges, jumping knowledge) are off; the network is ``elugcn.nn.gcn``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from elugcn.core.sparse import CSR, rows_of
from elugcn.methods.base import (
    GraphView,
    Prediction,
    Predictor,
    Problem,
    Run,
    inputs,
)
from elugcn.methods.network_config import (
    GCNConfig,
    MLPConfig,
    NetworkConfig,
    TrainConfig,
)
from elugcn.methods.scaling import FeatureScaler
from elugcn.nn import GCN, MLP
from elugcn.nn.field import Operator, field_of
from elugcn.nn.layers import Features
from elugcn.nn.propagated_mlp import PropagatedMLP
from elugcn.training.loop import Trained, train


class NetworkPredictor(Predictor):
    """A trained network with the scaling of its features.

    Attributes:
        kinds: The networks it can hold, by the name a file gives them; a method with
            a network of its own derives a class that names it.
    """

    kinds: ClassVar[Mapping[str, type[nn.Module]]] = {
        "GCN": GCN,
        "MLP": MLP,
        "PropagatedMLP": PropagatedMLP,
    }

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
        if isinstance(config, MLPConfig):
            facts["linear"] = config.activation == "none"
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
    every: int = 1,
    by_row: tuple[Callable[[Features], Tensor], Features] | None = None,
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
        every: Epochs between validations.
        by_row: Where a node's output depends on one row of features only, the map of
            rows and the rows of all nodes: training and validation read their own.
    """
    nodes = problem.train_index
    target = problem.y[nodes]
    if forward is None and isinstance(model, MLP):
        by_row = model, problem.x

    def predict() -> Tensor:
        if forward is not None:
            return forward()
        if by_row is not None:
            output, rows = by_row
            return output(rows)
        return network_logits(model, problem.x, problem.adj)

    def supervised(epoch: int) -> Tensor:
        # Its gradient is added up in place, where that of indexing is copied.
        return F.cross_entropy(predict().index_select(0, nodes), target)

    validate = None
    if forward is None and isinstance(model, GCN):
        validate = validation(problem, model)
    if by_row is not None:
        output, rows = by_row
        own = rows_of(rows, nodes)
        decide = rows_of(rows, problem.val_mask.nonzero().squeeze(1))
        loss = loss or (lambda epoch: F.cross_entropy(output(own), target))
        validate = lambda: output(decide)  # noqa: E731
    steps: AbstractContextManager[None] = nullcontext()
    if forward is None and loss is None and isinstance(model, GCN):
        steps = model.one_step_at_a_time()
    with steps:
        return train(
            model,
            loss or supervised,
            predict,
            problem.y,
            problem.val_mask,
            config.fit(),
            validate=validate,
            extra=extra,
            every=every,
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
