"""What simpler models predict for the graph of a fit: GCN, MLP and label propagation.

A report shows them beside the fitted method. What the method has trained on the way is
not trained again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elugcn.elu.label_propagation import propagate_labels
from elugcn.engine import CSR
from elugcn.methods.contract import FitContext
from elugcn.methods.options import MethodConfig
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method

BASELINES = ("gcn", "mlp", "lpa")
# Baselines should take seconds.
_EPOCHS, _PATIENCE = 200, 50
# Stored features times hidden units above which a network takes minutes.
_MAX_PRODUCTS = 200_000_000


def all_baselines(
    method: str,
    config: MethodConfig,
    problem: Problem,
    context: FitContext,
    known: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """Class of every node by every simpler model, −1 where it predicts none.

    The fitted method is not its own baseline. Those in ``known`` are not trained. A
    network that would take minutes is left out, and all are when time is up.
    """
    out: dict[str, Tensor] = {}
    for name in BASELINES:
        if name == method:
            continue
        if name in known:
            out[name] = known[name]
        elif name == "lpa":
            labels, c = problem.train_labels, problem.num_classes
            share = propagate_labels(problem.label_adj, labels, c)
            out[name] = torch.where(share.any(dim=1), share.argmax(dim=1), -1).cpu()
        elif not context.is_over:
            simple = _configured(name, config)
            entries = problem.x.nnz if isinstance(problem.x, CSR) else problem.x.numel()
            if entries * simple.hidden_channels <= _MAX_PRODUCTS:
                own = FitContext(seed=context.seed, device=context.device)
                seen = problem.seen_with(simple)
                fitted = get_method(name).fit(seen, simple, own)
                out[name] = fitted.logits.argmax(dim=1).cpu()
    return out


def _configured(name: str, config: MethodConfig) -> Any:
    """A short training that sees the graph as the fitted method does."""
    options: dict[str, Any] = config.shared_with(MethodConfig)
    if options["direction"] not in ("given", "in", "out", "both"):
        options["direction"] = "given"
    # Whoever asked for few epochs did not ask for more of them here.
    options["epochs"] = min(_EPOCHS, getattr(config, "epochs", _EPOCHS))
    options["patience"] = min(_PATIENCE, getattr(config, "patience", _PATIENCE))
    return config_for(name, options)
