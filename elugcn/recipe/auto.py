"""The method ``auto``: members of several kinds, judged on validation, in a mean.

    rung 0   linear members and label propagation, in closed form
             ELU nodes of their mean become targets of the best of them
    rung 1   networks that start from what rung 0 found; the worse half stops early
    answer   the mean that greedy selection finds, over both rungs

Nothing is chosen per dataset. ``portfolio.py`` lists the members.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from elugcn.elu.closed_form import learn_elu_graph
from elugcn.elu.utilization import definition_one
from elugcn.methods.contract import FitContext, FitResult, Known, Method, Model
from elugcn.methods.metrics import score
from elugcn.methods.network import below
from elugcn.methods.options import Count, MethodConfig, Positive
from elugcn.methods.problem import GraphTraits, Problem
from elugcn.methods.registry import get_method
from elugcn.recipe.ensemble import Blend
from elugcn.recipe.judging import Judging
from elugcn.recipe.portfolio import LINEAR, NETWORKS, TARGET_WEIGHTS, Member
from elugcn.recipe.trials import Search, Trial

Effort = Literal["quick", "normal", "thorough"]
BEST = 3  # linear members that are solved again with ELU targets
ROUNDS = 3  # of ELU targets, while they help
# Epochs after which the networks are compared, and how many go on.
HALVING = ((30, 4), (100, 2))
STEP = 10  # epochs between two looks at the clock


class AutoConfig(MethodConfig):
    """Options of the default.

    ``feature_norm`` and ``direction``, if they are set, hold for every member.
    """

    effort: Effort = "normal"  # "quick": rung 0 only
    time_limit: Positive | None = None  # seconds; what is done by then is the answer
    elu: bool = True  # whether members may use ELU nodes and the ELU graph
    # Whether validation nodes train the answer, too; None: if no split was given.
    refit: bool | None = None
    # Folds of cross-validation over the labelled nodes; None: 5 where validation nodes
    # are few, else none.
    folds: Annotated[int, Field(ge=2)] | None = None
    epochs: Count = 500  # at most, of the networks that go on to the end


class Auto(Method[AutoConfig]):
    """The adaptive default."""

    name = "auto"
    summary = "the adaptive default: many members, judged on validation"
    Config = AutoConfig

    def fit(
        self, problem: Problem, config: AutoConfig, context: FitContext
    ) -> FitResult:
        """Try the members and mix those that validation chooses."""
        if config.time_limit is not None:
            context.deadline = time.monotonic() + config.time_limit
        refit = config.refit
        if refit is None:
            refit = bool(getattr(problem.data, "split_made", False))
        judging = Judging.of(problem, context.seed, refit, config.folds)
        search = Search(problem, config, judging, context)
        plain = try_linear(search)
        known = search.known(plain)
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


def try_linear(search: Search) -> list[tuple[Trial, float]]:
    """Rung 0; the members that are best together, and their weights."""
    context = search.context
    with context.progress.stage("linear members", len(LINEAR)) as advance:
        for member in LINEAR:
            trial = search.judge(search.begin(member))
            advance({"val_score": trial.score})
            if context.is_over:
                break
    return search.weights(search.trials)


def try_elu_targets(search: Search, known: Sequence[Known]) -> None:
    """The best linear members again, with ELU nodes as targets, while that helps."""
    linear = [t for t in search.trials if "pseudo_weight" in type(t.config).model_fields]
    best = sorted(linear, key=lambda trial: trial.loss)[:BEST]
    least = math.inf
    for number in range(1, ROUNDS + 1):
        before = len(search.trials)
        for trial in best:
            for weight in TARGET_WEIGHTS:
                if search.context.is_over:
                    return
                name = f"{trial.member.name}, ELU targets ×{weight:g}, round {number}"
                member = Member(
                    name, "linear", {**trial.member.options, "pseudo_weight": weight}, True
                )
                search.judge(search.begin(member, known))
        loss = min((t.loss for t in search.trials[before:]), default=math.inf)
        if loss >= least:
            return
        least = loss
        known = search.known(search.weights(search.trials))


def try_networks(search: Search, config: AutoConfig) -> None:
    """Rung 1: all for a short time, the better ones for longer."""
    known = search.known(search.weights(search.trials))
    running = [search.begin(member, known) for member in NETWORKS]
    for epochs, keep in (*HALVING, (config.epochs, 0)):
        for trial in running:
            train(search, trial, min(epochs, config.epochs))
        ranked = sorted(running, key=lambda trial: trial.so_far, reverse=True)
        for trial in ranked[keep:]:
            search.judge(trial)
        running = ranked[:keep]
    for trial in running:
        search.judge(trial)


def train(search: Search, trial: Trial, epoch: int) -> None:
    """Train until an epoch; look at the clock on the way."""
    done = 0
    while done < epoch and (not search.context.is_over or not done):
        done = min(epoch, done + STEP)
        search.run(trial, done)


def answer(search: Search, known: Known) -> FitResult:
    """The mean over both rungs, and what the fit leaves."""
    problem, judging = search.problem, search.judging
    chosen = search.weights(search.trials)
    result = search.blend(chosen)
    if result.model is None:
        able = [t for t in search.trials if t.results[0].model is not None]
        if able:
            result.model = search.blend(search.weights(able)).model
    utilization = definition_one(known.lpa, known.fitted.logits)
    result.label_utilization = utilization
    result.seconds = search.context.seconds
    weights = {id(trial): weight for trial, weight in chosen}
    result.metadata = {
        "chosen": " + ".join(trial.member.name for trial, _ in chosen),
        "judged_on": str(judging),
        "refit": judging.refit,
        "trials": [
            {
                "name": trial.member.name,
                "method": trial.member.method,
                "options": dict(trial.member.options),
                "score": trial.score,
                "loss": trial.loss,
                "seconds": round(trial.seconds, 4),
                "weight": weights.get(id(trial), 0.0),
            }
            for trial in search.trials
        ],
    }
    return result
