"""The method ``auto``: members of several kinds, judged on validation, in a mean.

    try_linear       rung 0: linear members and label propagation, in closed form
    try_elu_targets  ELU nodes of their mean become targets of the best of them
    try_networks     rung 1: networks that start from what rung 0 found
    answer           the mean that greedy selection finds, over both rungs

Nothing is chosen per dataset. ``portfolio.py`` lists the members.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor

from elugcn.elu.options import PaperConfig
from elugcn.elu.stages import expand_labels, learn_graph
from elugcn.elu.utilization import definition_one
from elugcn.methods.contract import FitContext, FitResult, Known, Method
from elugcn.methods.network import below
from elugcn.methods.options import Count, MethodConfig, Positive
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method
from elugcn.recipe.ensemble import Blend, class_bias
from elugcn.recipe.judging import Judging
from elugcn.recipe.portfolio import (
    LINEAR,
    NETWORKS,
    TARGET_WEIGHTS,
    Member,
    suited,
)
from elugcn.recipe.trials import Chosen, Search, Trial

Effort = Literal["quick", "normal", "thorough"]

BEST = 3  # members that are solved again with ELU targets
ROUNDS = 3  # of ELU targets, while they help
MIN_GAIN = 1e-3  # of log-loss, for another round
# Epochs after which the networks are compared, and how many go on.
HALVING = {"normal": ((60, 4), (200, 2)), "thorough": ((100, 8), (300, 4))}
# Seconds that all members together may take by their estimated costs, where no time
# limit is set.
BUDGET = {"quick": 60.0, "normal": 900.0, "thorough": 7200.0}
MAX_ENTRIES = 10_000_000  # of Â, with which the cheapest network exceeds the budget


class AutoConfig(MethodConfig):
    """Options of the default.

    ``feature_norm`` and ``direction``, if they are set, hold for every member.
    ``self_loops`` is that of label propagation.
    """

    effort: Effort = "normal"  # "quick": rung 0 only
    time_limit: Positive | None = None  # seconds; what is done by then is the answer
    elu: bool = True  # whether members may use ELU nodes and the ELU graph
    # Whether validation nodes train the answer, too; None: if no split was given.
    refit: bool | None = None
    # Folds of cross-validation over the labelled nodes; None: 5 where validation nodes
    # are few, else none.
    folds: Annotated[int, Field(ge=2)] | None = None
    epochs: Count = 1000  # at most, of the networks that go on to the end

    def networks(self, entries: int) -> Sequence[MethodConfig]:
        """The configurations of the members that are networks, if there are any."""
        if self.effort == "quick" or entries > MAX_ENTRIES:
            return [self]
        members = [one.scaled("auto") for one in NETWORKS]
        return [config_for(one.method, one.options) for one in members]


class Auto(Method[AutoConfig]):
    """The adaptive default."""

    name = "auto"
    summary = "the adaptive default: many members, judged on validation"
    Config = AutoConfig

    def fit(
        self, problem: Problem, config: AutoConfig, context: FitContext
    ) -> FitResult:
        """Try the members and mix those that validation chooses."""
        refit = config.refit
        if refit is None:
            refit = bool(getattr(problem.data, "split_made", False))
        judging = Judging.of(problem, context.seed, refit, config.folds)
        budget = BUDGET[config.effort]
        if config.time_limit is not None:
            # Members that are trained again for the answer take some of the time.
            again = judging.has_folds or judging.refit
            budget = config.time_limit * (0.8 if again else 0.95)
            context.deadline = time.monotonic() + budget
        search = Search(problem, config, judging, context, budget)
        known = search.known(try_linear(search))
        if config.elu:
            try_elu_targets(search, known)
        if config.effort != "quick" and not context.is_over:
            try_networks(search, config)
        return answer(search, known[-1])

    def restore(
        self, description: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Blend:
        """Rebuild a saved mean of models."""
        models = [
            get_method(one["method"]).restore(one, below(f"{i}.", tensors))
            for i, one in enumerate(description["members"])
        ]
        return Blend(models, **Blend.numbers(description))


def try_linear(search: Search) -> Chosen:
    """Rung 0; the members that are best together, and their weights."""
    members = search.affordable(suited(LINEAR, search.traits))
    with search.context.progress.stage("linear members", len(members)) as advance:
        for member in members:
            trial = search.judge(search.begin(member))
            advance(search.record(trial))
            if search.context.is_over:
                break
    return search.weights(search.trials)


def try_elu_targets(search: Search, known: Sequence[Known]) -> None:
    """The best linear members again, with ELU nodes as targets, while that helps."""
    able = [t for t in search.trials if "pseudo_weight" in type(t.config).model_fields]
    best = sorted(able, key=lambda trial: trial.loss)[:BEST]
    least = min((trial.loss for trial in best), default=0.0)
    for number in range(1, ROUNDS + 1):
        again = search.affordable([
            Member(
                f"{trial.member.name}, ELU targets ×{weight:g}, round {number}",
                trial.member.method,
                {**trial.member.options, "pseudo_weight": weight},
                elu=True,
            )
            for trial in best
            for weight in TARGET_WEIGHTS
        ])  # fmt: skip
        losses = [least]
        with search.context.progress.stage("ELU targets", len(again)) as advance:
            for member in again:
                if search.context.is_over:
                    return
                trial = search.judge(search.begin(member, known))
                losses.append(trial.loss)
                advance(search.record(trial))
        if min(losses) > least - MIN_GAIN:
            return
        least = min(losses)
        known = search.known(search.weights(search.trials))


def try_networks(search: Search, config: AutoConfig) -> None:
    """Rung 1: all for a short time, the better ones for longer."""
    known = search.known(search.weights(search.trials))
    scaling = search.best_scaling()
    members = suited(NETWORKS, search.traits)
    members = [
        m
        for m in members
        if (config.elu or not m.elu) and (not m.thorough or config.effort == "thorough")
    ]
    rungs = (*HALVING[config.effort], (config.epochs, 0))
    members = [m.scaled(scaling) for m in members]
    # A time limit ends the training of those that it has room to begin with.
    limit = {} if config.time_limit is None else {"epochs": rungs[0][0]}
    members = search.affordable(members, **limit)
    running: list[Trial] = []
    for epochs, keep in rungs:
        title = f"networks, {min(epochs, config.epochs)} epochs"
        names = members if not running else [trial.member for trial in running]
        with search.context.progress.stage(title, len(names)) as advance:
            for i, member in enumerate(names):
                if search.context.is_over:
                    break
                if len(running) <= i:
                    running.append(search.begin(member, known, epochs=config.epochs))
                search.run(running[i], min(epochs, config.epochs))
                advance(search.record(running[i]))
        running.sort(key=lambda trial: trial.so_far, reverse=True)
        for trial in running[keep:]:
            search.judge(trial)
        running = running[:keep]


def answer(search: Search, known: Known) -> FitResult:
    """The mean over both rungs, and all that a fit leaves."""
    problem, judging, trials = search.problem, search.judging, search.trials
    chosen = search.weights(trials)
    result = search.blend(chosen)
    if result.model is None:
        # Some members know this graph only. New nodes need the others.
        able = [t for t in trials if t.results[0].model is not None]
        result.model = search.blend(search.weights(able)).model if able else None
    judged = search.judge_mean(chosen)
    bias = class_bias(problem.metric, judged, search.truth, problem.num_classes)
    if bias is not None:
        judged, result.logits = judged + bias, result.logits + bias
        if isinstance(result.model, Blend):
            result.model.bias = bias.tolist()
    if judging.has_folds or judging.refit:
        result.held_out = judging.index.cpu(), judged.float().cpu()
    utilization = definition_one(known.lpa, known.fitted.logits)
    final = replace(problem, train_mask=judging.final.train)
    paper = config_for("elu-gcn", {})
    assert isinstance(paper, PaperConfig)
    labels = expand_labels(final, utilization, paper)
    result.graph = learn_graph(known.fitted.logits, labels, known.lpa, paper)
    result.graph_mode = result.graph.mode
    result.label_utilization = utilization
    result.baselines = {"lpa": utilization.lpa}
    result.seconds = search.context.seconds
    longest = max((t for t, _ in chosen), key=lambda trial: trial.results[0].epochs)
    result.history = longest.results[0].history
    result.epochs = longest.results[0].epochs
    result.metadata = longest.results[0].metadata | record(search, chosen)
    return result


def record(search: Search, chosen: Chosen) -> dict[str, Any]:
    """What was tried, what carries the answer, and what the ELU idea adds to it."""
    weights = {id(trial): weight for trial, weight in chosen}
    plain = [trial for trial in search.trials if not trial.member.elu]
    without = search.weights(plain)
    return {
        "chosen": " + ".join(trial.member.name for trial, _ in chosen),
        "judged_on": str(search.judging),
        "refit": search.judging.refit,
        "elu": {
            "weight": sum(w for trial, w in chosen if trial.member.elu),
            **search.judgement(chosen),
            **{f"{k}_without": v for k, v in search.judgement(without).items()},
        },
        "left_out": search.left_out,
        "trials": [
            {
                "name": trial.member.name,
                "method": trial.member.method,
                "options": dict(trial.member.options),
                "elu": trial.member.elu,
                "score": trial.score,
                "loss": trial.loss,
                "epochs": trial.results[0].epochs,
                "seconds": round(trial.seconds, 4),
                "weight": weights.get(id(trial), 0.0),
            }
            for trial in search.trials
        ],
    }
