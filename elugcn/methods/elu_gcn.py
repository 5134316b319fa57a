"""ELU-GCN: find the nodes labels do not help, learn a graph that does, train on both.

Stage 0  a GCN and label propagation; where they agree the labels are used (ELU nodes)
Stage 1  H from a pre-trained model, labels expanded by ELU nodes, S* in closed form
Stage 2  one GCN, two views (Â and S*), cross-entropy + λ (contrast + entropy)

The method as published is one point in a family, and no point wins everywhere: a
configuration may list ``variants``, which are trained in turn and judged on
validation. The GCN of stage 0 stays a candidate, η is chosen again once the weights are
trained, and the answer is a mean of the candidates that validation finds good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from elugcn.core.direction import label_operator
from elugcn.core.elu_graph import in_mode, solve_influence
from elugcn.core.operators import ELUGraph, LowRankGraph
from elugcn.core.propagation import propagate_labels
from elugcn.core.sparsify import check_memory
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.methods.base import Prediction, Predictor, Problem, Run
from elugcn.methods.elu_candidates import Candidate, choose
from elugcn.methods.elu_config import ELUGCNConfig, h_from
from elugcn.methods.elu_objective import Objective, pseudo_label_weights
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.neural import NetworkPredictor, build, fit_network, validation
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


def fit_elu_gcn(problem: Problem, config: ELUGCNConfig, run: Run) -> Prediction:
    """Train every member of the configuration; validation weighs them."""
    members, left_out = config.affordable(problem.adj.nnz)
    _check_memory(problem, members)
    reach = _reach(problem, config, run, any(m.needs_mlp for _, m in members))
    candidates: list[Candidate] = []
    for i, (name, member) in enumerate(members):
        run.reseed(2 + i)
        candidates += _fit_member(problem, name, member, run, reach)
    if config.keep_gcn:
        candidates.append(
            Candidate("gcn", reach.base.val_accuracy, 0.0, reach.base, reach.gcn.logits,
                      reach.gcn.predictor, reach.utilization, candidates[0].graph)
        )  # fmt: skip
    prediction = _as_prediction(problem, config, run, candidates)
    if left_out:
        prediction.facts["left_out"] = left_out
    return prediction


def fit_elu_graph(problem: Problem, config: ELUGCNConfig, run: Run) -> Prediction:
    """Stages 0 and 1 of the first member: the graph, and the plain GCN's output."""
    members = config.members()[:1]
    _check_memory(problem, members)
    member = members[0][1]
    reach = _reach(problem, config, run, member.needs_mlp)
    source, predicted = _sources(problem, member, reach)
    utilization = definition_one(reach.lpa, predicted.logits)
    with run.clock("graph"):
        _, operator = _learn_graph(problem, member, source, utilization, reach.lpa)
    return Prediction(
        logits=reach.gcn.logits,
        epochs=reach.base.n_iter,
        history=reach.base.history,
        seconds=run.seconds,
        predictor=reach.gcn.predictor,
        utilization=utilization,
        graph=operator,
        graph_mode=member.graph_mode,
    )


def _check_memory(problem: Problem, members: list[tuple[str, ELUGCNConfig]]) -> None:
    """Refuse an explicit graph that can't fit before anything is trained for it."""
    for _, member in members:
        if member.graph_mode == "paper":
            check_memory(problem.num_nodes, member.keep)


def _reach(problem: Problem, config: ELUGCNConfig, run: Run, needs_mlp: bool) -> Reach:
    with run.clock("utilization"):
        lpa = propagate_labels(
            label_operator(problem.spread, config.lpa_graph),
            problem.train_labels,
            problem.num_classes,
            config.lpa_steps,
            config.lpa_alpha,
        )
        run.reseed()
        base, predictor = fit_network(problem, config.gcn(), run, "GCN")
    gcn, mlp = Source(base.logits, predictor), None
    if needs_mlp:
        with run.clock("pretrain"):
            run.reseed(1)
            trained, predictor = fit_network(problem, config.mlp(), run, "MLP")
            mlp = Source(trained.logits, predictor)
    return Reach(lpa, base, gcn, mlp)


def _sources(
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
    return source, Source(spread @ (spread @ h), reach.mlp.predictor)


def _fit_member(
    problem: Problem, name: str, config: ELUGCNConfig, run: Run, reach: Reach
) -> list[Candidate]:
    """Stages 1 and 2 for one setting; ``rounds`` repeats them on their own output.

    The model of every round is a candidate.
    """
    source, predicted = _sources(problem, config, reach)
    if config.order:
        # The same matrix, unless in- and out-neighbours are kept apart.
        problem = replace(problem, adj=problem.spread)
    candidates = []
    for i in range(config.rounds):
        title = name if config.rounds == 1 else f"{name}, round {i + 1}"
        utilization = definition_one(reach.lpa, predicted.logits)
        with run.clock("graph"):
            graph, operator = _learn_graph(
                problem, config, source, utilization, reach.lpa
            )
        with run.clock("train"):
            candidate = _train_views(
                problem, title, config, run, utilization, graph, operator, predicted,
                source,
            )  # fmt: skip
        candidates.append(candidate)
        predicted = source = Source(candidate.logits, candidate.predictor)
    return candidates


def _learn_graph(
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


def _as_prediction(
    problem: Problem, config: ELUGCNConfig, run: Run, candidates: list[Candidate]
) -> Prediction:
    chosen = choose(candidates, problem, config.ensemble)
    # Definition 1 is about the plain GCN wherever that is kept.
    judged = candidates[-1] if config.keep_gcn else chosen
    facts = {
        "chosen": chosen.name,
        "eta": chosen.eta,
        "best_epoch": chosen.trained.epoch,
        "candidates": {c.name: c.val_accuracy for c in candidates},
    }
    return Prediction(
        logits=chosen.logits,
        epochs=chosen.trained.n_iter,
        history=chosen.trained.history,
        seconds=run.seconds,
        predictor=chosen.predictor,
        utilization=judged.utilization,
        graph=chosen.graph,
        graph_mode=config.graph_mode,
        facts=facts,
    )
