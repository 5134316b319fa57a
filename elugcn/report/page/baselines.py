"""What simpler models make of the same graph: GCN, MLP and label propagation.

ELU-GCN knows the classes of a GCN and of label propagation anyway. The MLP is what a
model without edges can do: it is taken from inside the run where it has one, and
trained for a moment where not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elugcn.core.propagation import propagate_labels
from elugcn.core.utilization import definition_one
from elugcn.data.checks import CheckedGraph
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.base import BaseConfig, Predictor, make_problem
from elugcn.methods.elu_candidates import BlendPredictor
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.network_config import MLPConfig
from elugcn.methods.neural import NetworkPredictor
from elugcn.nn import MLP

ORDER = ("gcn", "mlp", "lpa")
Scores = dict[str, dict[str, float | None]]
_EPOCHS, _PATIENCE = 200, 50
# Entries of X times hidden units above which an MLP takes minutes, not seconds.
_LARGEST = 200_000_000


def baselines(
    fitted: Fitted, known: Scores | None = None, train: bool = True
) -> Scores:
    """Validation and test accuracy of the simpler models, in [0, 1].

    Args:
        fitted: The run; without its graph only what it recorded can be said.
        known: What was found out when the run was made.
        train: Whether an MLP may be trained where the run has none.
    """
    out = dict(known or {})
    use = fitted.prediction.utilization
    if use is not None:
        out.setdefault("lpa", _scores(use.lpa, fitted))
        if _is_plain_gcn(fitted.config):
            out.setdefault("gcn", _scores(use.gcn, fitted))
    if "x" in fitted.data and "edge_index" in fitted.data:
        if "lpa" not in out and fitted.method != "lpa":
            out["lpa"] = _scores(_propagated(fitted), fitted)
        if "mlp" not in out and fitted.method != "mlp" and train:
            logits = _mlp_logits(fitted)
            if logits is not None:
                out["mlp"] = _scores(logits.argmax(dim=1), fitted)
    return {name: out[name] for name in ORDER if name in out and name != fitted.method}


def _scores(classes: Tensor, fitted: Fitted) -> dict[str, float | None]:
    """A node that no label reaches (class −1) counts as wrong."""
    data = fitted.data
    out: dict[str, float | None] = {}
    for part in ("val", "test"):
        judged = data[f"{part}_mask"] & (data.y >= 0)
        right = (classes.cpu() == data.y)[judged].double()
        out[f"{part}_accuracy"] = float(right.mean()) if right.numel() else None
    return out


def _is_plain_gcn(config: BaseConfig) -> bool:
    """Whether the classes that Definition 1 judged are those of a GCN on Â."""
    if not isinstance(config, ELUGCNConfig) or config.keep_gcn:
        return True
    members = [member for _, member in config.members()]
    return all(m.rounds == 1 and m.gcn_prediction == "trained" for m in members)


def _propagated(fitted: Fitted) -> Tensor:
    problem = make_problem(fitted.data, fitted.config, torch.device("cpu"))
    lpa = propagate_labels(problem.spread, problem.train_labels, problem.num_classes)
    return definition_one(lpa, lpa).lpa


def _mlp_logits(fitted: Fitted) -> Tensor | None:
    inside = _find_mlp(fitted.prediction.predictor)
    if inside is not None:
        return inside.logits(fitted.data)
    given: dict[str, Any] = {
        "feature_norm": fitted.config.feature_norm,
        # Whoever asked for a few epochs did not ask for more of them here.
        "epochs": min(_EPOCHS, getattr(fitted.config, "epochs", _EPOCHS)),
        "patience": min(_PATIENCE, getattr(fitted.config, "patience", _PATIENCE)),
    }
    config = MLPConfig(**given)
    x = fitted.data.x
    stored = int(torch.count_nonzero(x)) if x.layout == torch.strided else x._nnz()
    if stored * config.hidden_channels > _LARGEST:
        return None
    graph = CheckedGraph(fitted.data, ())
    return fit_graph(
        graph,
        "mlp",
        config,
        seed=fitted.seed,
        device=fitted.device if torch.cuda.is_available() else "cpu",
        n_threads=fitted.threads,
    ).prediction.logits


def _find_mlp(predictor: Predictor | None) -> NetworkPredictor | None:
    """The pre-trained MLP that gave H, wherever the run keeps it."""
    if isinstance(predictor, BlendPredictor):
        found = (_find_mlp(member) for member in predictor.members)
        return next((one for one in found if one is not None), None)
    if isinstance(predictor, ELUGCNPredictor):
        return _find_mlp(predictor.source)
    if isinstance(predictor, NetworkPredictor) and isinstance(predictor.model, MLP):
        return predictor
    return None
