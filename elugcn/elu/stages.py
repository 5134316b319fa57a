"""ELU-GCN, stage by stage: the published method and Algorithm 1.

stage 0  label propagation and a plain GCN; where they agree, labels are used
         (Definition 1: ELU nodes)
stage 1  H from a pre-trained model, labels expanded by ELU nodes, S* in closed form
stage 2  one GCN with two views, Â and S*: cross-entropy + λ (contrast + entropy)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.elu.closed_form import learn_factors
from elugcn.elu.label_propagation import label_operator, propagate_labels
from elugcn.elu.low_rank_graph import ELUGraph, LowRankGraph
from elugcn.elu.objective import TwoViewObjective, mixed
from elugcn.elu.options import ELUConfig, PaperConfig
from elugcn.elu.self_training import pseudo_label_weights
from elugcn.elu.sparsify import check_mode
from elugcn.elu.trained_model import Summary, TwoViewModel, h_of
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.methods.backbone import AnyGCN, build_gcn, build_mlp, build_sampled
from elugcn.methods.contract import FitContext, FitResult, Method, Model
from elugcn.methods.network import (
    NetworkMethod,
    NetworkModel,
    Supervised,
    SupervisedRows,
    train,
)
from elugcn.methods.problem import GraphTraits, Problem, Shapes
from elugcn.methods.sampled import SampledObjective
from elugcn.models.random_propagation import SampledPropagation
from elugcn.training.loop import TrainResult


@dataclass(frozen=True)
class Source:
    """A trained model whose output serves as H or as the GCN's prediction.

    Attributes:
        logits: Of every node, n×c.
        model: For new nodes.
    """

    logits: Tensor
    model: Model


@dataclass(frozen=True)
class Pretrained:
    """What the later stages start from.

    Attributes:
        lpa: Label distribution, n×c; a zero row where no label reaches.
        gcn: The plain GCN.
        gcn_training: How its training went.
        mlp: The MLP, if the configuration uses it.
    """

    lpa: Tensor
    gcn: Source
    gcn_training: TrainResult
    mlp: Source | None = None


@dataclass(frozen=True)
class TwoViewFit:
    """A trained two-view GCN, and what it was trained from.

    Attributes:
        name: For records.
        val_accuracy: Of the output; NaN without validation nodes.
        eta: η of the output.
        training: How the training went.
        logits: The output, n×c.
        model: For new nodes.
        utilization: Definition 1 that the fit started from.
        graph: S*, as it was used.
    """

    name: str
    val_accuracy: float
    eta: float
    training: TrainResult
    logits: Tensor
    model: Model
    utilization: LabelUtilization
    graph: ELUGraph

    @property
    def diverged(self) -> bool:
        """Whether the training ended in NaN or infinity."""
        return not bool(self.logits.isfinite().all())


class ELUGCN(NetworkMethod[PaperConfig]):
    """The method of the paper."""

    name = "elu-gcn"
    summary = "the paper's method: two views, Â and the learned ELU graph"
    Config = PaperConfig

    def fit(
        self, problem: Problem, config: PaperConfig, context: FitContext
    ) -> FitResult:
        """Stages 0 to 2; the rounds of self-training, if there are several."""
        check_mode(problem.num_nodes, config.graph_mode, config.topk, config.keep)
        pretrained = pretrain(problem, config, context)
        fits = fit_rounds(problem, "two-view", config, context, pretrained)
        best = max(fits, key=lambda fit: (not fit.diverged, fit.val_accuracy))
        return as_result(best, fits, pretrained, context)

    def build(self, config: PaperConfig, shapes: Shapes) -> nn.Module:
        """The GCN of stage 2."""
        return build_network(config, shapes)

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Any:
        """Rebuild a saved model; without an ELU view it is a plain network."""
        network = super().restore(description, tensors)
        if "summary" not in description:
            return network
        return TwoViewModel.restore(network, description, tensors)

    def space(self, trial: Any, traits: GraphTraits) -> dict[str, Any]:
        """Backbone, η, τ and λ."""
        values: dict[str, list[Any]] = {
            "hidden_channels": [8, 32, 64, 256],
            "dropout": [0.5, 0.6, 0.8],
            "lr": [0.005, 0.01, 0.02],
            "weight_decay": [0.0, 5e-4, 2e-3, 5e-3],
            "eta": [0.1, 0.3, 0.5],
            "tau": [0.2, 0.8],
            "lambda_con": [0.1, 0.3, 1.0],
        }
        if traits.directed:
            values["direction"] = ["out", "both"]
        if traits.sparse_features:
            values["feature_norm"] = ["row", "none"]
            values["input_dropout"] = [0.0, 0.5]
        return {k: trial.suggest_categorical(k, v) for k, v in values.items()}

    def starting_points(self, traits: GraphTraits) -> list[dict[str, Any]]:
        """Settings close to the authors', for citation and for web graphs."""
        return [
            {"hidden_channels": 32, "lambda_con": 0.3, "eta": 0.1},
            {"hidden_channels": 8, "lambda_con": 1.0, "eta": 0.1, "lr": 0.015}
            | {"select": "loss"},
            {"hidden_channels": 256, "weight_decay": 0.0, "lr": 0.005, "eta": 0.3}
            | {"tau": 0.8, "lambda_con": 0.1},
        ]


class ELUGraphOnly(Method[ELUConfig]):
    """Stages 0 and 1: the ELU graph, and the plain GCN's output."""

    name = "elu-graph"
    summary = "the ELU graph alone; not a classifier"
    Config = ELUConfig

    def fit(
        self, problem: Problem, config: ELUConfig, context: FitContext
    ) -> FitResult:
        """Learn the graph; logits and model are those of the plain GCN."""
        check_mode(problem.num_nodes, config.graph_mode, config.topk, config.keep)
        pretrained = pretrain(problem, config, context)
        source, predicted = sources(problem, config, pretrained)
        utilization = definition_one(pretrained.lpa, predicted.logits)
        with context.clock("graph"):
            labels = expand_labels(problem, utilization, config)
            graph = learn_graph(source.logits, labels, pretrained.lpa, config)
            used = graph.scaled(config.scaling).in_mode(
                config.graph_mode, config.topk, config.keep
            )
        return FitResult(
            logits=pretrained.gcn.logits,
            epochs=pretrained.gcn_training.n_iter,
            history=pretrained.gcn_training.history,
            seconds=context.seconds,
            model=pretrained.gcn.model,
            label_utilization=utilization,
            graph=used,
            graph_mode=used.mode,
            baselines=baselines(pretrained),
        )


# Stage 0 and line 1 of Algorithm 1


def pretrain(
    problem: Problem, config: ELUConfig, context: FitContext, mlp: bool | None = None
) -> Pretrained:
    """Propagate the labels, and train the plain GCN and the MLP that give H.

    Args:
        problem: The graph.
        config: The options.
        context: Seed, device and clocks.
        mlp: Whether the MLP is needed; None: as the configuration says.
    """
    with context.clock("utilization"):
        lpa = propagate_labels(
            label_operator(problem.label_adj, config.lpa_graph),
            problem.train_labels,
            problem.num_classes,
            config.lpa_steps,
            config.lpa_alpha,
        )
    gcn, training = _train_gcn(problem, config, context)
    wanted = config.uses_mlp if mlp is None else mlp
    perceptron = _train_mlp(problem, config, context) if wanted else None
    return Pretrained(lpa, gcn, training, perceptron)


def _train_gcn(
    problem: Problem, config: ELUConfig, context: FitContext
) -> tuple[Source, TrainResult]:
    """The plain GCN of Definition 1."""
    options, shapes = config.gcn(), problem.shapes
    with context.stage("utilization") as workspace:
        network = build_gcn(options, shapes).to(context.device)
        objective = Supervised(network, problem)
        settings = options.training()
        trained = train(objective, settings, problem, workspace, context, "GCN")
    model = NetworkModel("gcn", options, shapes, network, problem.scaler)
    return Source(trained.logits, model), trained


def _train_mlp(problem: Problem, config: ELUConfig, context: FitContext) -> Source:
    """The MLP that gives H."""
    options, shapes = config.mlp(), problem.shapes
    with context.stage("pretrain", 1) as workspace:
        network = build_mlp(options, shapes).to(context.device)
        objective = SupervisedRows(network, problem)
        settings = options.training()
        trained = train(objective, settings, problem, workspace, context, "MLP")
    model = NetworkModel("mlp", options, shapes, network, problem.scaler)
    return Source(trained.logits, model)


def sources(
    problem: Problem, config: ELUConfig, pretrained: Pretrained
) -> tuple[Source, Source]:
    """The model that gives H, and the prediction that Definition 1 judges."""
    gcn, mlp = pretrained.gcn, pretrained.mlp
    if config.h_source == "gcn" and config.gcn_prediction == "trained":
        return gcn, gcn
    assert mlp is not None
    H = gcn if config.h_source == "gcn" else mlp
    if config.gcn_prediction == "trained":
        return H, gcn
    adj = problem.label_adj
    share = adj @ (adj @ F.softmax(mlp.logits, dim=1))
    # Logits whose softmax the shares are; the MLP's own where nothing arrives.
    arrives = share.any(dim=1, keepdim=True)
    logits = torch.where(arrives, share.clamp(1e-30).log(), mlp.logits)
    return H, Source(logits, mlp.model)


# Stage 1: the rest of Algorithm 1


def expand_labels(
    problem: Problem, utilization: LabelUtilization, config: ELUConfig
) -> Tensor:
    """Training labels and pseudo-labels of ELU nodes, −1 elsewhere (line 2)."""
    labels = problem.train_labels
    if not config.expand_labels:
        return labels
    pseudo = (labels < 0) & utilization.elu
    return torch.where(pseudo, utilization.gcn, labels)


def learn_graph(
    logits: Tensor, labels: Tensor, lpa: Tensor, config: ELUConfig
) -> LowRankGraph:
    """S* in factors, not yet scaled (lines 3 to 7).

    Args:
        logits: Of the model that gives H, n×c.
        labels: Labels and pseudo-labels, −1 elsewhere, (n,).
        lpa: Label distribution, n×c.
        config: The options.
    """
    return learn_factors(
        h_of(logits, config.h_output),
        labels,
        lpa,
        config.k,
        config.beta,
        config.form,
        config.init,
        config.damping,
        config.normalization,
    )


# Stage 2


def fit_rounds(
    problem: Problem,
    name: str,
    config: ELUConfig,
    context: FitContext,
    pretrained: Pretrained,
    number: int = 2,
) -> list[TwoViewFit]:
    """Stages 1 and 2; each further round starts from the output of the last.

    Args:
        problem: The graph, as this configuration sees it.
        name: For records.
        config: The options.
        context: Seed, device and clocks.
        pretrained: What stage 0 left.
        number: Of the stage, for its random numbers.

    Returns:
        A fit per round; a round that diverges is the last.
    """
    source, predicted = sources(problem, config, pretrained)
    fits: list[TwoViewFit] = []
    for i in range(config.rounds):
        utilization = definition_one(pretrained.lpa, predicted.logits)
        with context.clock("graph"):
            labels = expand_labels(problem, utilization, config)
            graph = learn_graph(source.logits, labels, pretrained.lpa, config)
        title = name if config.rounds == 1 else f"{name}, round {i + 1}"
        stage = number + _STAGES_PER_ROUND * i
        fits.append(
            train_two_views(
                problem, title, config, context, graph, utilization, source,
                predicted.logits, stage,
            )
        )  # fmt: skip
        if fits[-1].diverged:
            break
        predicted = source = Source(fits[-1].logits, fits[-1].model)
    return fits


# More stages than a configuration has members.
_STAGES_PER_ROUND = 1000


def train_two_views(
    problem: Problem,
    name: str,
    config: ELUConfig,
    context: FitContext,
    graph: LowRankGraph,
    utilization: LabelUtilization,
    source: Source,
    predicted: Tensor,
    stage: int = 2,
) -> TwoViewFit:
    """Train the GCN on Â and S*, then choose η if the options say so.

    Args:
        problem: The graph.
        name: For records.
        config: The options.
        context: Seed, device and clocks.
        graph: S* in factors, before scaling.
        utilization: Definition 1.
        source: The model that gave H.
        predicted: Logits that give pseudo-labels their confidence, n×c.
        stage: Number of the stage, for its random numbers.
    """
    with context.clock("graph"):
        used = graph.scaled(config.scaling).in_mode(
            config.graph_mode, config.topk, config.keep
        )
    val = problem.val_index
    pseudo = pseudo_label_weights(
        predicted, utilization, problem.train_mask, config.pseudo_weight
    )
    with context.stage("train", stage) as workspace:
        network = build_network(config, problem.shapes).to(context.device)
        objective: SampledObjective | TwoViewObjective
        if isinstance(network, SampledPropagation):
            objective = SampledObjective(
                network, problem, config, pseudo, utilization.gcn, config.warmup
            )
        else:
            # With η = 0 and no contrast the ELU view would be computed for nothing.
            s = used if config.uses_elu_view else None
            objective = TwoViewObjective(
                network, problem, config, s, utilization, pseudo
            )
        settings = config.training()
        trained = train(objective, settings, problem, workspace, context, name)
        eta, logits = config.eta, trained.logits
        refit = config.refit_eta and config.uses_elu_view and val.numel() > 0
        if refit and isinstance(objective, TwoViewObjective):
            with torch.no_grad():
                views = objective.views()
            eta = choose_eta(problem, views, config.eta)
            logits = mixed(views, eta)
    shapes, scaler = problem.shapes, problem.scaler
    plain = NetworkModel(ELUGCN.name, config, shapes, network, scaler)
    model: Model = plain
    if eta and not isinstance(network, SampledPropagation):
        summary = Summary.of(graph, network, problem, config.scaling, config.h_output)
        model = TwoViewModel(plain, eta, summary, source.model)
    right = (logits[val].argmax(dim=1) == problem.y[val]).double()
    return TwoViewFit(
        name, float(right.mean()), eta, trained, logits, model, utilization, used
    )


ETA_GRID = tuple(i / 20 for i in range(21))


def choose_eta(problem: Problem, views: list[Tensor], trained_with: float) -> float:
    """The η with the best validation accuracy; nothing is trained again.

    Ties go to the η nearest to the one that the weights were trained with.
    """
    val = problem.val_index
    target = problem.y[val]
    val_views = [z[val] for z in views]

    def score(eta: float) -> tuple[int, float]:
        right = int((mixed(val_views, eta).argmax(dim=1) == target).sum())
        return right, -abs(eta - trained_with)

    return max((*ETA_GRID, trained_with), key=score)


def build_network(config: ELUConfig, shapes: Shapes) -> AnyGCN | SampledPropagation:
    """The network of stage 2."""
    return build_sampled(config, shapes) if config.sample else build_gcn(config, shapes)


# Results


def as_result(
    chosen: TwoViewFit,
    fits: list[TwoViewFit],
    pretrained: Pretrained,
    context: FitContext,
) -> FitResult:
    """The chosen fit, with a record of all of them."""
    metadata: dict[str, Any] = {
        "chosen": chosen.name,
        "eta": chosen.eta,
        "best_epoch": chosen.training.epoch,
        "candidates": {fit.name: fit.val_accuracy for fit in fits},
        "etas": {fit.name: fit.eta for fit in fits},
    }
    if diverged := [fit.name for fit in fits if fit.diverged]:
        metadata["diverged"] = diverged
    return FitResult(
        logits=chosen.logits,
        epochs=chosen.training.n_iter,
        history=chosen.training.history,
        seconds=context.seconds,
        model=chosen.model,
        label_utilization=chosen.utilization,
        graph=chosen.graph,
        graph_mode=chosen.graph.mode,
        baselines=baselines(pretrained),
        metadata=metadata,
    )


def baselines(pretrained: Pretrained) -> dict[str, Tensor]:
    """What the models of stage 0 predict; classes for label propagation."""
    lpa = definition_one(pretrained.lpa, pretrained.gcn.logits).lpa
    out = {"gcn": pretrained.gcn.logits, "lpa": lpa}
    if pretrained.mlp is not None:
        out["mlp"] = pretrained.mlp.logits
    return out
