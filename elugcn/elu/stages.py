"""ELU-GCN, stage by stage: Algorithm 1 and the published method.

    pretrain         stage 0: label propagation, a plain GCN, and H = MLP(X)
    expand_labels    ELU nodes (Definition 1) keep the class that the GCN gives them
    learn_graph      stage 1: S* in closed form (Algorithm 1)
    train_two_views  stage 2: one GCN with two views, Â and S*

``fit_rounds`` runs them in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.elu.closed_form import learn_elu_graph
from elugcn.elu.label_propagation import label_operator, propagate_labels
from elugcn.elu.low_rank_graph import ELUGraph, LowRankGraph
from elugcn.elu.objective import TwoViewObjective, mixed, pseudo_label_weights
from elugcn.elu.options import ELUConfig
from elugcn.elu.trained_model import TwoViewModel, h_of
from elugcn.elu.utilization import LabelUtilization, definition_one
from elugcn.methods.backbone import AnyGCN, build_gcn, build_mlp, build_sampled
from elugcn.methods.contract import FitContext, FitResult, Model, Training
from elugcn.methods.metrics import score
from elugcn.methods.network import (
    NetworkTraining,
    Supervised,
    SupervisedRows,
    fit_network,
)
from elugcn.methods.problem import Problem, Shapes
from elugcn.methods.sampled import SampledObjective
from elugcn.models.random_propagation import SampledPropagation


@dataclass(frozen=True)
class Pretrained:
    """What the later stages start from."""

    lpa: Tensor  # label distribution, n×c; a zero row where no label reaches
    models: dict[str, FitResult]  # "gcn", and "mlp" if the configuration uses it


@dataclass(kw_only=True)
class TwoViewFit(FitResult):
    """A trained two-view GCN, with the S* and the utilization that it started from."""

    name: str
    val_accuracy: float  # or what else selects, of the output; NaN without validation
    eta: float = 0.0  # η of the output

    @property
    def diverged(self) -> bool:
        """Whether the training ended in NaN or infinity."""
        return not bool(self.logits.isfinite().all())


def fit_rounds(
    problem: Problem,
    name: str,
    config: ELUConfig,
    context: FitContext,
    pretrained: Pretrained,
    stage: int = 2,
) -> list[TwoViewFit]:
    """Stages 1 and 2; each further round starts from the output of the last.

    A round that diverges is the last. ``stage`` numbers the first training, for its
    random numbers.
    """
    source = pretrained.models[config.h_source]
    prediction = gcn_prediction(problem, config, pretrained)
    fits: list[TwoViewFit] = []
    for i in range(config.rounds):
        utilization = definition_one(pretrained.lpa, prediction)
        with context.clock("graph"):
            labels = expand_labels(problem, utilization, config)
            graph = learn_graph(source.logits, labels, pretrained.lpa, config)
        title = name if config.rounds == 1 else f"{name}, round {i + 1}"
        number = stage + 1000 * i  # more stages than a method has members
        training = TwoViewTraining(
            problem, title, config, context, graph, utilization, source.model, number
        )
        fit = train_two_views(training)
        fits.append(fit)
        if fit.diverged:
            break
        source, prediction = fit, fit.logits
    return fits


# Stage 0, and line 1 of Algorithm 1


def pretrain(problem: Problem, config: ELUConfig, context: FitContext) -> Pretrained:
    """Propagate the labels; train the plain GCN, and the MLP if it is used."""
    with context.clock("utilization"):
        lpa = propagate_labels(
            label_operator(problem.label_adj, config.lpa_graph),
            problem.train_labels,
            problem.num_classes,
            config.lpa_steps,
            config.lpa_alpha,
        )
    gcn, _ = fit_network(
        "gcn", config.gcn(), problem, context, build_gcn, Supervised,
        clock="utilization", title="GCN",
    )  # fmt: skip
    models = {"gcn": gcn}
    if config.uses_mlp:
        models["mlp"], _ = fit_network(
            "mlp", config.mlp(), problem, context, build_mlp, SupervisedRows,
            clock="pretrain", stage=1, title="MLP",
        )  # fmt: skip
    return Pretrained(lpa, models)


def gcn_prediction(
    problem: Problem, config: ELUConfig, pretrained: Pretrained
) -> Tensor:
    """GCN(G) of Definition 1 as logits: the trained GCN's, or those of Â²·MLP(X)."""
    if config.gcn_prediction == "trained":
        return pretrained.models["gcn"].logits
    adj, logits = problem.label_adj, pretrained.models["mlp"].logits
    share = adj @ (adj @ F.softmax(logits, dim=1))
    # Logits whose softmax the shares are; the MLP's own where nothing arrives.
    arrives = share.any(dim=1, keepdim=True)
    return torch.where(arrives, share.clamp(1e-30).log(), logits)


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
    """S* in factors, not yet scaled (lines 3 to 7), from the logits that give H."""
    graph = learn_elu_graph(
        h_of(logits, config.h_output),
        labels,
        lpa=lpa,
        k=config.k,
        beta=config.beta,
        form=config.form,
        init=config.init,
        damping=config.damping,
        normalization=config.normalization,
    )
    assert isinstance(graph, LowRankGraph)
    return graph


def graph_in_use(graph: LowRankGraph, config: ELUConfig) -> ELUGraph:
    """S* as stage 2 multiplies by it: scaled, and sparse if the options say so."""
    scaled = graph.scaled(config.scaling)
    return scaled.in_mode(config.graph_mode, config.topk, config.keep)


# Stage 2


class TwoViewTraining(Training):
    """The GCN on Â and S* (eq. 13) in training.

    ``graph`` holds S* in factors, before scaling; ``source`` is the model that gave H.
    """

    def __init__(
        self,
        problem: Problem,
        name: str,
        config: ELUConfig,
        context: FitContext,
        graph: LowRankGraph,
        utilization: LabelUtilization,
        source: Model | None,
        stage: int = 2,
    ) -> None:
        self.problem, self.name, self.config = problem, name, config
        self.graph, self.utilization, self.source = graph, utilization, source
        with context.clock("graph"):
            used = self.used = graph_in_use(graph, config)
        pseudo = pseudo_label_weights(
            utilization, problem.train_mask, config.pseudo_weight
        )

        def objective(
            network: AnyGCN | SampledPropagation, problem: Problem
        ) -> TwoViewObjective | SampledObjective:
            if isinstance(network, SampledPropagation):
                return SampledObjective(
                    network, problem, config, pseudo, utilization.gcn, config.warmup
                )
            return TwoViewObjective(network, problem, config, used, utilization, pseudo)

        self.training = NetworkTraining(
            "elu-gcn", config, problem, context, build_network, objective,
            stage=stage, title=name,
        )  # fmt: skip
        self.epochs, self.title = config.epochs, name

    def run_until(self, epoch: int) -> None:
        """Train until so many epochs are done, or until the training ends itself."""
        self.training.run_until(epoch)

    @property
    def best(self) -> Mapping[str, float]:
        """The record of the epoch that validation has selected so far."""
        return self.training.best

    def finish(self) -> TwoViewFit:
        """The selected epoch; η is chosen now if the options say so."""
        problem, config = self.problem, self.config
        result, model = self.training.finish(), self.training.model
        result.label_utilization = self.utilization
        result.graph, result.graph_mode = self.used, self.used.mode
        eta, gcn = config.eta, model.network
        if config.uses_elu_view and isinstance(gcn, AnyGCN):
            if config.refit_eta and problem.val_index.numel():
                with torch.no_grad():
                    inputs = problem.inputs.with_elu_graph(self.used.operator)
                    views = gcn.views(inputs).tensors()
                eta = choose_eta(problem, views, config.eta)
                result.logits = mixed(views, eta)
            if eta and self.source is not None:
                result.model = TwoViewModel.of(
                    model, eta, self.graph, problem.x, self.source
                )
        accuracy = problem.val_score(result.logits)
        return TwoViewFit(
            **vars(result), name=self.name, val_accuracy=accuracy, eta=eta
        )


def train_two_views(training: TwoViewTraining) -> TwoViewFit:
    """Train the GCN on Â and S* (eq. 13) to the end."""
    training.run_until(training.epochs)
    return training.finish()


def build_network(config: ELUConfig, shapes: Shapes) -> AnyGCN | SampledPropagation:
    """The network of stage 2."""
    return build_sampled(config, shapes) if config.sample else build_gcn(config, shapes)


ETA_GRID = tuple(i / 20 for i in range(21))


def choose_eta(problem: Problem, views: list[Tensor], trained_with: float) -> float:
    """The η with the best validation score; nothing is trained again.

    Ties go to the η nearest to the one that the weights were trained with.
    """
    target, c = problem.val_target, problem.num_classes
    val_views = [z[problem.val_index] for z in views]

    def worth(eta: float) -> tuple[float, float]:
        found = score(problem.metric, mixed(val_views, eta), target, c)
        return found, -abs(eta - trained_with)

    return max((*ETA_GRID, trained_with), key=worth)
