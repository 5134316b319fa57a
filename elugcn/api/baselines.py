"""What simpler models predict for the graph of a fit: GCN, MLP and label propagation.

A report shows them beside the fitted method. What the method has trained on the way is
not trained again.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elugcn.elu.label_propagation import propagate_labels
from elugcn.engine import CSR
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method

BASELINES = ("gcn", "mlp", "lpa")
# Baselines should take seconds.
_EPOCHS, _PATIENCE = 200, 50
# Stored features times hidden units above which a network takes minutes.
_MAX_PRODUCTS = 200_000_000


def known_baselines(result: FitResult) -> dict[str, Tensor]:
    """Class of every node by the simpler models that the method trained on the way."""
    return {
        name: (x.argmax(dim=1) if x.dim() == 2 else x).cpu()
        for name, x in result.baselines.items()
    }


def train_baselines(
    method: str,
    config: MethodConfig,
    problem: Problem,
    context: FitContext,
    known: dict[str, Tensor],
) -> dict[str, Tensor]:
    """Class of every node by every simpler model, −1 where it predicts none.

    Args:
        method: The fitted method, which is not its own baseline.
        config: Its configuration.
        problem: The graph.
        context: Seed and device.
        known: Those that need not be trained.
    """
    out: dict[str, Tensor] = {}
    for name in BASELINES:
        if name == method:
            continue
        classes = known.get(name)
        if classes is None and name == "lpa":
            classes = _propagated(problem)
        elif classes is None:
            classes = _trained(name, config, problem, context)
        if classes is not None:
            out[name] = classes
    return out


def _propagated(problem: Problem) -> Tensor:
    share = propagate_labels(
        problem.label_adj, problem.train_labels, problem.num_classes
    )
    return torch.where(share.any(dim=1), share.argmax(dim=1), -1).cpu()


def _trained(
    name: str, config: MethodConfig, problem: Problem, context: FitContext
) -> Tensor | None:
    """Classes by a small network; None where it would take minutes."""
    apart = config.direction not in ("given", "in", "out", "both")
    options: dict[str, Any] = {
        "feature_norm": config.feature_norm,
        "self_loops": config.self_loops,
        "direction": "given" if apart else config.direction,
        # Whoever asked for few epochs did not ask for more of them here.
        "epochs": min(_EPOCHS, getattr(config, "epochs", _EPOCHS)),
        "patience": min(_PATIENCE, getattr(config, "patience", _PATIENCE)),
    }
    simple: Any = config_for(name, options)
    x = problem.x
    entries = x.nnz if isinstance(x, CSR) else x.numel()
    if entries * simple.hidden_channels > _MAX_PRODUCTS:
        return None
    own = FitContext(seed=context.seed, device=context.device)
    fitted = get_method(name).fit(problem.seen_with(simple), simple, own)
    return fitted.logits.argmax(dim=1).cpu()
