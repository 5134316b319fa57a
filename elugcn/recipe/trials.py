"""A member in trial: trained on every split, judged on the nodes that it has not seen.

``Search`` holds what all members share: the graph as each of them reads it, and the
splits.
"""

from __future__ import annotations

import copy
import math
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from elugcn.data.features import sparse_rows
from elugcn.elu.label_propagation import propagate_labels
from elugcn.engine import CSR, SPARSE_DENSITY
from elugcn.methods.calibration import calibrate
from elugcn.methods.contract import FitContext, FitResult, Known, Training
from elugcn.methods.metrics import score
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import GraphView, Problem
from elugcn.methods.registry import config_for, get_method
from elugcn.recipe.ensemble import Blend, greedy_weights, mean_logits
from elugcn.recipe.judging import Judging, Split
from elugcn.recipe.portfolio import Member

# Scalings that are the same for dense and sparse features, and faster for sparse ones.
_ANY_LAYOUT = ("none", "row", "column", "tfidf")


@dataclass
class Trial:
    """A member on every split, and how it is judged."""

    member: Member
    config: MethodConfig
    known: Sequence[Known]  # what it starts from, on each split; may be empty
    trainings: list[Training]  # one per split that judges
    results: list[FitResult] = field(default_factory=list)  # once it is judged
    temperature: float = 1.0
    loss: float = float("nan")  # log-loss of the judged nodes
    score: float = float("nan")  # the metric that selects
    # Calibrated logits of the judged nodes, m×c.
    judged: Tensor = field(default_factory=lambda: torch.empty(0))
    seconds: float = 0.0
    length: int = 0  # epochs or iterations that are selected
    # Trained for this length without validation nodes, on a split that asks for it.
    again: dict[int, FitResult] = field(default_factory=dict)

    @property
    def so_far(self) -> tuple[float, float]:
        """The metric and minus the loss of the best epochs so far, over the splits."""
        records = [training.best for training in self.trainings]
        found = (r.get("val_score", r.get("val_accuracy", 0.0)) for r in records)
        losses = [record.get("val_loss", 0.0) for record in records]
        return fmean(found), -fmean(losses)


Chosen = list[tuple[Trial, float]]  # members of a mean, and their weights


class Search:
    """Members of a recipe on the splits of one graph."""

    def __init__(
        self,
        problem: Problem,
        shared: MethodConfig,
        judging: Judging,
        context: FitContext,
        budget: float = math.inf,
    ) -> None:
        self.problem, self.shared = problem, shared
        self.judging = judging
        self.context = replace(context, keep_val_logits=judging.has_folds)
        self.traits, self.budget = problem.traits, budget  # seconds, estimated
        self.left_out: list[str] = []  # members that cost too much
        self.splits = [*judging.splits]
        if judging.final is not judging.splits[0]:
            self.splits.append(judging.final)
        self.truth = problem.y[judging.index]
        weight = problem.class_weight
        self.node_weight = (
            torch.ones(len(self.truth)) if weight is None else weight[self.truth].cpu()
        )
        self.trials: list[Trial] = []  # that are judged
        # What was read, by scaling and view.
        given = problem.feature_norm, replace(problem.view, order=0)
        self._read: dict[tuple[str, GraphView], Problem] = {given: problem}
        self._sparse: Data | None = None

    # --- the graph as a member reads it ---------------------------------------------

    def configured(self, member: Member, **more: Any) -> MethodConfig:
        """The options of a member; what the user sets holds for all of them."""
        own = {**member.options, **more}
        if self.shared.feature_norm != "auto":
            own["feature_norm"] = self.shared.feature_norm
        if self.shared.direction != "given":
            own["direction"] = self.shared.direction
        return config_for(member.method, own)

    def seen(self, config: MethodConfig, split: Split) -> Problem:
        """The graph, scaled and normalised once for all members that read it alike."""
        view = replace(GraphView.of(config), order=0)
        key = config.feature_norm, view
        if key not in self._read:
            chosen = self.problem.metric, self.problem.class_weight
            any_layout = config.feature_norm in _ANY_LAYOUT
            data = self._with_sparse_features() if any_layout else self.problem.data
            self._read[key] = Problem.of(data, config, self.problem.y.device, *chosen)
        seen = self._read[key].seen_with(config)
        return replace(seen, train_mask=split.train, val_mask=split.val)

    def _with_sparse_features(self) -> Data:
        """The graph with sparse features where most are zero."""
        if self._sparse is None:
            data = self.problem.data
            x = data.x
            dense = x.layout == torch.strided
            if dense and int(torch.count_nonzero(x)) < SPARSE_DENSITY * x.numel():
                data, rows = copy.copy(data), CSR.from_tensor(x)
                data.x = sparse_rows(rows.crow, rows.col, rows.value, rows.n_cols)
            self._sparse = data
        return self._sparse

    def best_scaling(self) -> str:
        """The scaling of features that the best linear member has."""
        able = [t for t in self.trials if t.results[0].model is not None]
        best = min(able, key=lambda trial: trial.loss, default=None)
        return "auto" if best is None else best.config.feature_norm

    def affordable(self, members: Sequence[Member], **more: Any) -> list[Member]:
        """The members that the budget has room for, by their estimated costs.

        Where there is nothing yet, the cheapest is always tried. ``more`` are options
        that are not the members' own.
        """
        costs = [self.cost(member, **more) for member in members]
        kept: list[Member] = []
        for member, cost in zip(members, costs, strict=True):
            first = not self.trials and not kept and cost == min(costs)
            if cost <= self.budget or first:
                self.budget -= cost
                kept.append(member)
            else:
                self.left_out.append(member.name)
        return kept

    def cost(self, member: Member, **more: Any) -> float:
        """Seconds on all splits, roughly."""
        config = self.configured(member, **more)
        each = get_method(member.method).cost(config, self.traits)
        return each * len(self.splits)

    # --- trials ---------------------------------------------------------------------

    def begin(self, member: Member, known: Sequence[Known] = (), **more: Any) -> Trial:
        """A member at the start of its training on every split.

        ``known`` is what simpler models know on each split; ``more`` are options that
        are not the member's own.
        """
        start = time.perf_counter()
        trial = Trial(member, self.configured(member, **more), known, [])
        for i, split in enumerate(self.judging.splits):
            training = self._start(trial, trial.config, i, split, self.context)
            trial.trainings.append(training)
        trial.seconds = time.perf_counter() - start
        return trial

    def _start(
        self,
        trial: Trial,
        config: MethodConfig,
        number: int,
        split: Split,
        context: FitContext,
    ) -> Training:
        name = trial.member.name
        return get_method(trial.member.method).start(
            self.seen(config, split),
            config,
            context,
            trial.known[number] if trial.known else None,
            # Its random numbers follow its name, not its place in a list.
            stage=zlib.crc32(f"{name}/{number}".encode()),
            title=name,
        )

    def run(self, trial: Trial, epoch: int) -> None:
        """Train on every split until an epoch, or until time is up."""
        start = time.perf_counter()
        for training in trial.trainings:
            training.run_until(epoch)
        trial.seconds += time.perf_counter() - start

    def judge(self, trial: Trial) -> Trial:
        """Finish a trial, calibrate it and judge it; one that diverged is left out."""
        start = time.perf_counter()
        trial.results = [training.finish() for training in trial.trainings]
        logits, trial.length = self._judged(trial.results)
        problem = self.problem
        if bool(logits.isfinite().all()):
            trial.temperature, trial.loss = calibrate(
                logits, self.truth, problem.class_weight, 1.0
            )
            trial.judged = trial.temperature * logits
            trial.score = score(problem.metric, logits, self.truth, problem.num_classes)
            self.trials.append(trial)
        trial.seconds += time.perf_counter() - start
        return trial

    def _judged(self, results: Sequence[FitResult]) -> tuple[Tensor, int]:
        """Logits of the judged nodes, m×c, and how long the training is.

        Over several folds one length is chosen for all: a fold alone has too few nodes,
        and what it chose by its own nodes could not be judged by them.
        """
        steps = min(len(result.val_logits) for result in results)
        if not self.judging.has_folds or not steps:
            pairs = zip(results, self.judging.splits, strict=True)
            logits = torch.cat([result.logits[split.val] for result, split in pairs])
            return logits, results[0].metadata.get("best_epoch", 0) + 1
        best, least, temperature = 0, math.inf, 1.0
        for k in range(steps):
            pooled = torch.cat([result.val_logits[k] for result in results])
            temperature, loss = calibrate(
                pooled, self.truth, self.problem.class_weight, temperature
            )
            if loss < least:
                best, least = k, loss
        return torch.cat([result.val_logits[best] for result in results]), best + 1

    def weights(self, trials: Sequence[Trial]) -> Chosen:
        """The members that a greedy choice takes, with their weights."""
        if not self.truth.numel():
            return [(trial, 1.0) for trial in trials[:1]]
        true = self.truth[:, None]
        p_true = torch.stack([
            torch.softmax(trial.judged, dim=1).gather(1, true)[:, 0] for trial in trials
        ]).cpu()  # fmt: skip
        weights = greedy_weights(p_true, self.node_weight).tolist()
        chosen = [(t, w) for t, w in zip(trials, weights, strict=True) if w]
        return sorted(chosen, key=lambda pair: -pair[1])

    def record(self, trial: Trial) -> dict[str, float]:
        """What the progress display shows of a trial."""
        shown = trial.score if trial.results else trial.so_far[0]
        left = max(0.0, self.context.seconds_left)
        return {
            "val_score": shown,
            **({"seconds_left": left} if left < math.inf else {}),
        }

    def judgement(self, chosen: Chosen) -> dict[str, float]:
        """The metric and the log-loss of a mean of members."""
        if not chosen or not self.truth.numel():
            return {}
        logits, c = self.judge_mean(chosen), self.problem.num_classes
        return {
            "score": score(self.problem.metric, logits, self.truth, c),
            "loss": calibrate(logits, self.truth, self.problem.class_weight, 1.0)[1],
        }

    def judge_mean(self, chosen: Chosen) -> Tensor:
        """Logits of the judged nodes by a mean of members, m×c."""
        weights = [weight for _, weight in chosen]
        return mean_logits([trial.judged for trial, _ in chosen], weights)

    # --- the answer -----------------------------------------------------------------

    def result(self, trial: Trial, number: int) -> FitResult:
        """A trial on a split, trained for as long as selected."""
        split = self.splits[number]
        if split is self.judging.splits[0] and not self.judging.has_folds:
            return trial.results[0]
        if number not in trial.again:
            records = [result.metadata for result in trial.results]
            config = trial.config.of_length(trial.length, records)
            alone = Split(split.train, torch.zeros_like(split.val))
            # What is part of the answer is finished, also when time is up.
            context = replace(self.context, deadline=math.inf, keep_val_logits=False)
            training = self._start(trial, config, number, alone, context)
            training.run_until(training.epochs)
            trial.again[number] = training.finish()
        return trial.again[number]

    def blend(self, chosen: Chosen, number: int = -1) -> FitResult:
        """The mean of some members on a split, by default the final one."""
        number %= len(self.splits)
        results = [self.result(trial, number) for trial, _ in chosen]
        temperatures = [trial.temperature for trial, _ in chosen]
        weights = [weight for _, weight in chosen]
        logits = [t * r.logits for t, r in zip(temperatures, results, strict=True)]
        models = [r.model for r in results if r.model is not None]
        model = Blend(models, weights, temperatures)
        whole = len(models) == len(results)
        return FitResult(
            logits=mean_logits(logits, weights), model=model if whole else None
        )

    def known(self, chosen: Chosen) -> list[Known]:
        """What label propagation and a mean of members know, on every split."""
        found = []
        for i, split in enumerate(self.splits):
            labels = torch.where(split.train, self.problem.y, -1)
            c = self.problem.num_classes
            lpa = propagate_labels(self.problem.label_adj, labels, c)
            found.append(Known(lpa, self.blend(chosen, i)))
        return found
