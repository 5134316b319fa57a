"""One loop for every model: Adam, validation selection, early stopping, best state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elugcn.training.adam import Adam
from elugcn.training.progress import SILENT, Progress


@dataclass(frozen=True)
class Fit:
    """How a model is trained and when it is done.

    ``apart`` holds parameters by name, with the learning rate or decay that they do not
    share with the others: ``{"gamma": {"weight_decay": 0.0}}``.
    """

    lr: float = 0.01
    weight_decay: float = 5e-4
    decay: str = "all"  # or "first": only the first layer, as Kipf's GCN
    epochs: int = 500
    patience: int = 100
    select: str = "accuracy"  # or "loss"
    apart: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


# The record of an epoch that did not take part in the selection.
_NOT_VALIDATED = {"val_accuracy": float("nan"), "val_loss": float("nan")}


@dataclass
class Trained:
    """What training leaves: the best epoch's state and the road to it."""

    logits: Tensor
    epoch: int
    n_iter: int
    val_accuracy: float
    val_loss: float
    seconds: float
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    model: nn.Module,
    loss: Callable[[int], Tensor],
    predict: Callable[[], Tensor],
    labels: Tensor,
    val_mask: Tensor,
    fit: Fit,
    *,
    validate: Callable[[], Tensor] | None = None,
    extra: nn.Module | None = None,
    every: int = 1,
    progress: Progress = SILENT,
    stage: str = "train",
) -> Trained:
    """Minimise ``loss``, keep the state that validation likes best, restore it.

    Args:
        model: Trained in place; holds the selected state afterwards.
        loss: The training objective of an epoch, called in training mode.
        predict: Logits of all nodes, called in evaluation mode without gradients.
        labels: y, −1 where unknown.
        val_mask: Nodes that decide. If empty, the last epoch is kept.
        fit: Learning rate, decay, epochs, patience, selection.
        validate: Logits of the nodes that decide, in their order, where that is
            cheaper than those of all nodes, which are then computed once, at the end.
        extra: Parameters trained along but not selected (a projection head).
        every: Epochs between validations; those between are not selected.
        progress: Told of every epoch.
        stage: Name for the progress display.

    Accuracy decides, then loss (``select="loss"``: the other way round).
    """
    start = time.perf_counter()
    optimizer = _adam(model, extra, fit)
    nodes = val_mask.nonzero().squeeze(1)
    target = labels[nodes]
    best: Trained | None = None
    now = model.state_dict()  # it changes with the parameters
    state: dict[str, Tensor] = {}
    history = []
    with progress.stage(stage, fit.epochs) as advance:
        for epoch in range(fit.epochs):
            model.train()
            optimizer.forget()
            value = loss(epoch)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.advance()
            record = {"epoch": float(epoch), "loss": float(value.detach())}
            del value  # and with it what the step kept for its gradients
            if (epoch + 1) % every and epoch + 1 < fit.epochs:
                history.append(record | _NOT_VALIDATED)
                advance(history[-1])
                continue
            model.eval()
            with torch.no_grad():
                logits = predict() if validate is None else validate()
                chosen = logits[nodes] if validate is None else logits
            accuracy, val_loss = _validate(chosen, target)
            record |= {"val_accuracy": accuracy, "val_loss": val_loss}
            history.append(record)
            advance(record)
            if best is None or not nodes.numel() or _better(record, best, fit.select):
                best = Trained(logits, epoch, 0, accuracy, val_loss, 0.0)
                state = _copied(now, state)
            elif epoch - best.epoch >= fit.patience:
                break
    assert best is not None, "epochs must be at least 1"
    model.load_state_dict(state)
    model.eval()
    if validate is not None:
        with torch.no_grad():
            best.logits = predict()
    best.n_iter = len(history)
    best.history = history
    best.seconds = time.perf_counter() - start
    return best


def _adam(model: nn.Module, extra: nn.Module | None, fit: Fit) -> Adam:
    named = dict(model.named_parameters())
    apart = [
        {"params": [named.pop(name)], "weight_decay": fit.weight_decay} | dict(options)
        for name, options in fit.apart.items()
    ]
    decayed = list(named.values())
    groups: list[dict[str, Any]] = []
    if fit.decay == "first":
        first = {id(p) for p in model.first_layer()}  # type: ignore[operator]
        rest = [p for p in decayed if id(p) not in first]
        decayed = [p for p in decayed if id(p) in first]
        groups = [{"params": rest, "weight_decay": 0.0}]
    groups = [{"params": decayed, "weight_decay": fit.weight_decay}, *groups, *apart]
    if extra is not None:
        groups.append({"params": list(extra.parameters()), "weight_decay": 0.0})
    return Adam([group for group in groups if group["params"]], fit.lr)


def _copied(now: dict[str, Tensor], before: dict[str, Tensor]) -> dict[str, Tensor]:
    """A copy of the state, in the place of the last one if there is one."""
    if not before:
        return {name: x.detach().clone() for name, x in now.items()}
    torch._foreach_copy_(list(before.values()), list(now.values()))
    return before


def _validate(chosen: Tensor, target: Tensor) -> tuple[float, float]:
    if not target.numel():
        return float("nan"), float("nan")
    # A quotient of counts: equal results must compare equal.
    accuracy = int((chosen.argmax(dim=1) == target).sum()) / target.numel()
    # By columns: a softmax over short rows is many small loops.
    log_p = F.log_softmax(chosen.T.contiguous(), dim=0).T
    return accuracy, float(F.nll_loss(log_p, target))


def _better(record: dict[str, float], best: Trained, select: str) -> bool:
    if math.isnan(record["val_loss"]) or math.isnan(best.val_loss):
        # Scores that are no numbers: neither says anything, and nothing compares.
        return not math.isnan(record["val_loss"])
    now = (record["val_accuracy"], -record["val_loss"])
    then = (best.val_accuracy, -best.val_loss)
    return now[::-1] > then[::-1] if select == "loss" else now > then
