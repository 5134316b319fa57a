"""One member of ELU-GCN's family: its graph, its training, its η.

What all members share (label propagation, the plain GCN, the MLP) comes from outside,
as a ``Reach``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.elu_graph import in_mode, solve_influence
from elugcn.core.operators import ELUGraph, LowRankGraph
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.methods.base import Predictor, Problem, Run, make_problem
from elugcn.methods.elu_candidates import Candidate
from elugcn.methods.elu_config import ELUGCNConfig, h_from
from elugcn.methods.elu_objective import Objective, pseudo_label_weights
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.neural import NetworkPredictor, build, validation
from elugcn.methods.sampled import SampledObjective, sampled_network
from elugcn.nn import GCN
from elugcn.training.loop import Trained

ETA_GRID = tuple(i / 20 for i in range(21))


@dataclass
class Source:
    """A trained model whose output serves as GCN prediction or as H."""

    logits: Tensor
    predictor: Predictor


@dataclass
class Reach:
    """Stage 0: what the labels reach, and the models the later stages start from."""

    lpa: Tensor
    base: Trained
    gcn: Source
    mlp: Source | None

    @property
    def utilization(self) -> LabelUtilization:
        """Definition 1 for the plain GCN."""
        return definition_one(self.lpa, self.gcn.logits)


def sources(
    problem: Problem, config: ELUGCNConfig, reach: Reach
) -> tuple[Source, Source]:
    """The model that gives H, and the prediction that Definition 1 judges."""
    source = reach.gcn if config.h_source == "gcn" else reach.mlp
    assert source is not None
    if config.gcn_prediction == "trained":
        return source, reach.gcn
    assert reach.mlp is not None
    h = F.softmax(reach.mlp.logits, dim=1)
    spread = problem.spread
    share = spread @ (spread @ h)
    # Scores whose softmax they are; where nothing arrives the model's own.
    arrives = share.any(dim=1, keepdim=True)
    scores = torch.where(arrives, share.clamp(1e-30).log(), reach.mlp.logits)
    return source, Source(scores, reach.mlp.predictor)


def seen_by(problem: Problem, config: ELUGCNConfig, member: ELUGCNConfig) -> Problem:
    """The graph as a member reads it: its features scaled, its edges taken, its way.

    The same problem unless the member has a ``feature_norm``, ``self_loops`` or
    ``direction`` of its own; then X and Â once more, for as long as it trains.
    """
    if (member.feature_norm, member.view) == (config.feature_norm, config.view):
        return problem
    return make_problem(problem.data, member, problem.y.device)


def fit_member(
    problem: Problem, name: str, config: ELUGCNConfig, run: Run, reach: Reach
) -> list[Candidate]:
    """Stages 1 and 2 for one setting; ``rounds`` repeats them on their own output.

    The model of every round is a candidate.
    """
    source, predicted = sources(problem, config, reach)
    candidates = []
    for i in range(config.rounds):
        title = name if config.rounds == 1 else f"{name}, round {i + 1}"
        utilization = definition_one(reach.lpa, predicted.logits)
        with run.clock("graph"):
            graph, operator = learn_graph(
                problem, config, source, utilization, reach.lpa
            )
        with run.clock("train"):
            candidate = _train_views(
                problem, title, config, run, utilization, graph, operator, predicted,
                source,
            )  # fmt: skip
        candidates.append(candidate)
        if candidate.diverged:
            break
        predicted = source = Source(candidate.logits, candidate.predictor)
    return candidates


def learn_graph(
    problem: Problem,
    config: ELUGCNConfig,
    source: Source,
    utilization: LabelUtilization,
    lpa: Tensor,
) -> tuple[LowRankGraph, ELUGraph]:
    """Stage 1: labels expanded by ELU nodes, Algorithm 1; unscaled, and as used."""
    labels = problem.train_labels
    if config.expand_labels:
        pseudo = (labels < 0) & utilization.elu
        labels = torch.where(pseudo, utilization.gcn, labels)
    closed, q = solve_influence(
        h_from(source.logits, config.h_output),
        labels,
        lpa,
        config.k,
        config.beta,
        config.form,
        config.init,
        config.damping,
        config.normalization,
    )
    graph = LowRankGraph(*closed.factors(q, config.form))
    scaled = graph.scaled(config.scaling)
    return graph, in_mode(scaled, config.graph_mode, config.topk, config.keep)


def _train_views(
    problem: Problem,
    name: str,
    config: ELUGCNConfig,
    run: Run,
    utilization: LabelUtilization,
    graph: LowRankGraph,
    operator: ELUGraph,
    predicted: Source,
    source: Source,
) -> Candidate:
    """Stage 2: two views, one set of weights, then η chosen on validation."""
    weights = pseudo_label_weights(problem, config, utilization, predicted.logits)
    if config.sample:
        return _train_sampled(
            problem, name, config, run, utilization, operator, weights
        )
    model, facts = build(problem, config, run.device)
    assert isinstance(model, GCN)
    # With η = 0 and no contrast the ELU view would be computed for nothing.
    used = operator if config.uses_elu_view else None
    objective = Objective(problem, config, model, used, utilization, weights)
    validate = validation(
        problem, model, used, lambda views: objective.mix(views, config.eta)
    )
    trained = objective.train(validate, run.progress, name)
    with torch.no_grad():
        views = model(problem.x, problem.adj, used)
    eta, accuracy = choose_eta(problem, views, config)
    logits = objective.mix(views, eta)
    network = NetworkPredictor(model, problem.scaler, config.view, facts)
    predictor = ELUGCNPredictor.of(
        problem, network, config, graph, source.predictor, eta
    )
    return Candidate(
        name, accuracy, eta, trained, logits, predictor, utilization, operator
    )


def _train_sampled(
    problem: Problem,
    name: str,
    config: ELUGCNConfig,
    run: Run,
    utilization: LabelUtilization,
    operator: ELUGraph,
    weights: Tensor | None,
) -> Candidate:
    """Random propagation of a sample of nodes, the ELU nodes among them as targets."""
    model, facts = sampled_network(problem, config, run.device)
    pseudo = None if weights is None else (weights, utilization.gcn.clamp(min=0))
    objective = SampledObjective(problem, config, model, pseudo, config.ramp)
    trained = objective.train(run, name)
    network = NetworkPredictor(model, problem.scaler, config.view, facts)
    return Candidate(
        name, trained.val_accuracy, 0.0, trained, trained.logits,
        ELUGCNPredictor(network, 0.0), utilization, operator,
    )  # fmt: skip


def choose_eta(
    problem: Problem, views: list[Tensor], config: ELUGCNConfig
) -> tuple[float, float]:
    """η and its validation accuracy: two logits, one grid, no training.

    Ties go to the η nearest to the one the weights were trained with.
    """
    nodes = problem.val_mask.nonzero().squeeze(1)
    if len(views) == 1:
        grid: tuple[float, ...] = (0.0,)
    elif not config.refit_eta or not nodes.numel():
        grid = (config.eta,)
    else:
        grid = (*ETA_GRID, config.eta)
    if not nodes.numel():
        return grid[0], float("nan")
    target = problem.y[nodes]

    def score(eta: float) -> tuple[int, float]:
        mixed = views[0][nodes] * (1 - eta) + views[-1][nodes] * eta
        right = int((mixed.argmax(dim=1) == target).sum())
        return right, -abs(eta - config.eta)

    eta = max(grid, key=score)
    return eta, score(eta)[0] / nodes.numel()
