"""One training loop for every model: Adam, selection on validation, early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.engine import Workspace
from elugcn.training.progress import SILENT, Progress

# The record of an epoch that did not take part in the selection.
_NAN = float("nan")
_NOT_VALIDATED = {"epoch": -1.0, "loss": _NAN, "val_accuracy": _NAN, "val_loss": _NAN}


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained and when training ends."""

    lr: float = 0.01
    weight_decay: float = 5e-4  # L2 penalty
    decay: str = "all"  # "first": only the parameters of network.first_layer() decay
    epochs: int = 500  # at most
    patience: int = 100  # epochs without improvement after which training stops
    # What validation compares first: "accuracy" (or the trainer's own score), "loss";
    # "last" keeps the last epoch.
    select: str = "accuracy"
    # Options of parameters that differ, by name: {"gamma": {"weight_decay": 0.0}}.
    param_groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class Objective:
    """What training minimises and what validation looks at."""

    network: nn.Module  # trained, selected and kept
    extra: tuple[nn.Module, ...] = ()  # trained along but not selected: a head
    validate_every: int = 1  # epochs; the last epoch is always validated

    def loss(self, epoch: int) -> Tensor:
        """The objective of an epoch, called in training mode."""
        raise NotImplementedError

    def logits(self) -> Tensor:
        """Logits of all nodes, n×c, called in evaluation mode without gradients."""
        raise NotImplementedError

    def val_logits(self) -> Tensor:
        """Logits of the validation nodes, in their order."""
        raise NotImplementedError


@dataclass
class TrainResult:
    """The selected epoch, and a record of each."""

    logits: Tensor  # of all nodes, n×c
    epoch: int
    n_iter: int  # epochs that were trained
    val_accuracy: float
    val_loss: float
    history: list[dict[str, float]]


class Trainer:
    """Minimises an objective; can be paused after any epoch and go on.

    Pausing changes nothing: the state of Adam is kept, and the random bits of an epoch
    depend on its number only.

    Args:
        objective: What is minimised.
        settings: Learning rate, epochs, patience, selection.
        target: Classes of the validation nodes; if empty, the last epoch is kept.
        workspace: Buffers and random bits of the training steps.
        score: What selects in place of accuracy, from the logits and the classes of
            the validation nodes; recorded as ``val_score``.
        keep_val_logits: Keep the logits of the validation nodes of every epoch.
    """

    def __init__(
        self,
        objective: Objective,
        settings: TrainSettings,
        target: Tensor,
        workspace: Workspace,
        score: Callable[[Tensor, Tensor], float] | None = None,
        keep_val_logits: bool = False,
    ) -> None:
        self.objective = objective
        self.settings = settings
        self.target = target
        self.workspace = workspace
        self.score = score
        self.keep_val_logits = keep_val_logits
        self.val_logits: list[Tensor] = []
        self.history: list[dict[str, float]] = []
        self._optimizer = _adam(objective, settings)
        self._best: dict[str, float] | None = None
        self._state: dict[str, Tensor] = {}
        self._now = objective.network.state_dict()  # shares memory with the parameters
        self._stopped = False

    @property
    def best(self) -> Mapping[str, float]:
        """The record of the epoch that is selected so far; empty before the first."""
        return self._best or {}

    @property
    def finished(self) -> bool:
        """Whether patience or the number of epochs has ended the training."""
        return self._stopped or len(self.history) >= self.settings.epochs

    def run_until(
        self,
        epoch: int,
        progress: Progress = SILENT,
        stage: str = "train",
        is_over: Callable[[], bool] | None = None,
    ) -> None:
        """Train until so many epochs are done, or patience ends it before.

        ``is_over`` tells whether time is up, if that is limited. One epoch is always
        trained.
        """
        total, done = self.settings.epochs, len(self.history)
        with self.workspace, progress.stage(stage, total, done) as advance:
            while len(self.history) < epoch and not self.finished:
                if is_over is not None and self.history and is_over():
                    break
                advance(self._epoch(len(self.history)))

    def result(self) -> TrainResult:
        """Put the selected state into the network and compute its logits."""
        assert self._best is not None, "no epoch was trained"
        network = self.objective.network
        network.load_state_dict(self._state)
        network.eval()
        with torch.no_grad(), self.workspace:
            logits = self.objective.logits()
        return TrainResult(
            logits=logits,
            epoch=int(self._best["epoch"]),
            n_iter=len(self.history),
            val_accuracy=self._best["val_accuracy"],
            val_loss=self._best["val_loss"],
            history=self.history,
        )

    def _epoch(self, epoch: int) -> dict[str, float]:
        objective, network = self.objective, self.objective.network
        network.train()
        self.workspace.begin_step(epoch)
        self._optimizer.zero_grad(set_to_none=True)
        loss = objective.loss(epoch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        record = _NOT_VALIDATED | {"epoch": float(epoch), "loss": float(loss.detach())}
        self.history.append(record)
        del loss  # and with it what the step kept for its gradients
        every, final = objective.validate_every, epoch + 1 == self.settings.epochs
        if (epoch + 1) % every == 0 or final:
            network.eval()
            with torch.no_grad():
                val_logits = objective.val_logits()
                record |= self._judge(val_logits)
                if self.keep_val_logits:
                    self.val_logits.append(val_logits.clone())
            self._select(record)
        return record

    def _select(self, record: dict[str, float]) -> None:
        last = self.settings.select == "last" or not self.target.numel()
        if last or self._best is None or self._improves(record, self._best):
            self._best = record
            self._state = _copied(self._now, self._state)
        elif record["epoch"] - self._best["epoch"] >= self.settings.patience:
            self._stopped = True

    def _improves(self, record: dict[str, float], best: dict[str, float]) -> bool:
        """The score first, then loss; or the other way round. NaN never improves."""
        if math.isnan(record["val_loss"]) or math.isnan(best["val_loss"]):
            return not math.isnan(record["val_loss"])
        step = -1 if self.settings.select == "loss" else 1
        name = "val_accuracy" if self.score is None else "val_score"
        now, before = ((r[name], -r["val_loss"])[::step] for r in (record, best))
        return now > before

    def _judge(self, logits: Tensor) -> dict[str, float]:
        """Accuracy, cross-entropy and the own score of the validation nodes."""
        target = self.target
        if not target.numel():
            return {}
        right = int((logits.argmax(dim=1) == target).sum())
        # A softmax over short rows is slow; over columns it is one long loop.
        log_p = F.log_softmax(logits.T.contiguous(), dim=0).T
        loss = float(F.nll_loss(log_p, target))
        record = {"val_accuracy": right / target.numel(), "val_loss": loss}
        if self.score is not None:
            record["val_score"] = self.score(logits, target)
        return record


def _copied(now: dict[str, Tensor], before: dict[str, Tensor]) -> dict[str, Tensor]:
    """A copy of the state, in the memory of the previous copy if there is one."""
    if not before:
        return {name: x.detach().clone() for name, x in now.items()}
    torch._foreach_copy_(list(before.values()), list(now.values()))
    return before


def _adam(objective: Objective, settings: TrainSettings) -> torch.optim.Adam:
    """PyTorch's fused Adam, with a parameter group per set of options."""
    named = dict(objective.network.named_parameters())
    decay = settings.weight_decay
    special: list[dict[str, Any]] = [
        {"params": [named.pop(name)], "weight_decay": decay} | dict(options)
        for name, options in settings.param_groups.items()
    ]
    first: Iterable[Tensor] = named.values()
    if settings.decay == "first":
        first = objective.network.first_layer()  # type: ignore[operator]
    chosen = {id(p) for p in first}
    decayed = [p for p in named.values() if id(p) in chosen]
    free = [p for p in named.values() if id(p) not in chosen]
    free += [p for module in objective.extra for p in module.parameters()]
    groups = [
        {"params": decayed, "weight_decay": decay},
        {"params": free, "weight_decay": 0.0},
        *special,
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.Adam(groups, settings.lr, fused=True)
