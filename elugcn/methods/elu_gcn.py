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

from typing import Any

from elugcn.core.direction import label_operator
from elugcn.core.propagation import propagate_labels
from elugcn.core.sparsify import check_mode
from elugcn.core.utilization import definition_one
from elugcn.methods.base import Prediction, Problem, Run
from elugcn.methods.elu_candidates import Candidate, choose
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_member import (
    Reach,
    Source,
    fit_member,
    learn_graph,
    seen_by,
    sources,
)
from elugcn.methods.neural import fit_network


def fit_elu_gcn(problem: Problem, config: ELUGCNConfig, run: Run) -> Prediction:
    """Train every member of the configuration; validation weighs them."""
    members, left_out = config.affordable(problem.adj.nnz)
    _check_memory(problem, members)
    reach = _reach(problem, config, run, any(m.needs_mlp for _, m in members))
    candidates: list[Candidate] = []
    for i, (name, member) in enumerate(members):
        run.reseed(2 + i)
        seen = seen_by(problem, config, member)
        candidates += fit_member(seen, name, member, run, reach)
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
    source, predicted = sources(seen_by(problem, config, member), member, reach)
    utilization = definition_one(reach.lpa, predicted.logits)
    with run.clock("graph"):
        _, operator = learn_graph(problem, member, source, utilization, reach.lpa)
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
        check_mode(problem.num_nodes, member.graph_mode, member.topk, member.keep)


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


def _as_prediction(
    problem: Problem, config: ELUGCNConfig, run: Run, candidates: list[Candidate]
) -> Prediction:
    chosen = choose(candidates, problem, config.ensemble)
    # Definition 1 is about the plain GCN wherever that is kept.
    judged = candidates[-1] if config.keep_gcn else chosen
    facts: dict[str, Any] = {
        "chosen": chosen.name,
        "eta": chosen.eta,
        "best_epoch": chosen.trained.epoch,
        "candidates": {c.name: c.val_accuracy for c in candidates},
        "etas": {c.name: c.eta for c in candidates},
    }
    if lost := [c.name for c in candidates if c.diverged]:
        facts["diverged"] = lost
    return Prediction(
        logits=chosen.logits,
        epochs=chosen.trained.n_iter,
        history=chosen.trained.history,
        seconds=run.seconds,
        predictor=chosen.predictor,
        utilization=judged.utilization,
        graph=chosen.graph,
        graph_mode=chosen.graph.mode,
        facts=facts,
    )
