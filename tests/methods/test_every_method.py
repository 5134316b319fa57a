"""What every method owes: it learns, it repeats itself, it survives being saved.

A new method is here by being registered. Where its default is slow, or where a default
would hide that an option is not saved, it has a line in ``OPTIONS``.
"""

import math
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.registry import METHODS
from elugcn.storage import load_fitted, save_fitted

ALL = tuple(METHODS)
EPOCHS = 40
LEAST = 0.75  # of test nodes right; the largest class is a third of them
COMMON: dict[str, Any] = {"hidden_channels": 16, "input_dropout": 0.1}
OPTIONS: dict[str, dict[str, Any]] = {
    "elu-gcn": {"num_layers": 3, "norm": "layer", "rounds": 1},
    "elu-gcn-paper": {"residual": True, "k": 3},
    "gcn": {"num_layers": 3, "norm": "layer", "residual": True, "jump": "cat"},
    "gat": {"heads": 3, "out_heads": 2, "lr": 0.02},
    "appnp": {"steps": 4, "alpha": 0.3},
    "sgc": {"order": 3},
    "cs": {"smoothing_steps": 7},
    "grand": {"order": 3, "norm": "layer", "draws": 2},
    "gprgnn": {"steps": 4, "alpha": 0.3},
    "pcnet": {"order": 3, "terms": 5, "heat": 0.3, "shift": 1.2, "exponent": 0.5,
              "linear": False, "lr": 0.02, "propagation_dropout": 0.3},
    "gcn-lpa": {"num_layers": 3, "lpa_steps": 2, "dropout": 0.5},
    "nodeformer": {"draws": 2, "heads": 2, "features": 10},
    "gsr": {"pretrain_steps": 10, "structure_dim": 8},
    "bagcn": {"k": 4, "roles": 8},
    "neuralsparse": {"k": 4, "scorer_channels": 8, "dropout": 0.5},
    "ptdnet": {"lr": 0.01, "scorer_channels": 8, "lambda_cons": 1.0, "draws": 2},
    "cogsl": {"view_steps": 1, "classifier_steps": 2, "mi_steps": 1, "mi_channels": 16},
}  # fmt: skip
NO_SEED = {"lpa"}  # it has no weights
# For its own graph each of these uses what its predictor does not keep: labels (cs), the
# influence of labels (elu-gcn in the paper's form), a refined graph (gsr).
MORE_AT_HOME = {"cs", "elu-gcn", "gsr"}


@cache
def draw(split: int = 0, n: int = 200) -> CheckedGraph:
    """Three classes of equal size, which both the features and the edges tell apart."""
    return check_data(load_dataset("sbm", split=split, n=n, n_classes=3, n_features=16))


def fit(
    method: str, seed: int = 0, epochs: int = EPOCHS, graph: CheckedGraph | None = None
) -> Fitted:
    known = {f.name for f in fields(METHODS[method].config)}
    wanted = COMMON | {"epochs": epochs}
    options = {k: v for k, v in wanted.items() if k in known}
    config = resolve_config(method, options=options | OPTIONS.get(method, {}))
    return fit_graph(graph or draw(), method, config, seed=seed, n_threads=1)


@cache
def trained(method: str) -> Fitted:
    return fit(method)


def test_no_options_for_a_method_that_is_gone() -> None:
    assert set(OPTIONS) <= set(ALL)


@pytest.mark.parametrize("method", ALL)
def test_it_learns(method: str) -> None:
    data = draw().data
    counts = torch.bincount(data.y[data.test_mask])
    majority = float(counts.max() / counts.sum())
    right = trained(method).accuracy(data.test_mask)
    assert right is not None
    assert majority < 0.4
    assert right > LEAST


@pytest.mark.parametrize("method", ALL)
def test_the_seed_decides(method: str) -> None:
    one, again, other = (
        fit(method, seed, epochs=3).prediction.logits for seed in (5, 5, 6)
    )
    assert torch.isfinite(one).all()
    assert torch.equal(one, again)
    assert torch.equal(one, other) == (method in NO_SEED)


@pytest.mark.parametrize("method", ALL)
def test_a_saved_model_answers_as_before(method: str, tmp_path: Path) -> None:
    fitted = trained(method)
    save_fitted(fitted, tmp_path)
    loaded = load_fitted(tmp_path)
    assert torch.equal(loaded.prediction.logits, fitted.prediction.logits)
    before, after = fitted.prediction.predictor, loaded.prediction.predictor
    if before is None:
        assert after is None
        assert method == "lpa"  # nothing else is without a model
        return
    assert type(after) is type(before)
    here, elsewhere = draw().data, draw(split=1, n=90).data
    for data in (here, elsewhere):
        logits = before.logits(data)
        assert logits.shape == (data.num_nodes, 3)
        assert torch.equal(after.logits(data), logits)
    if method not in MORE_AT_HOME:
        proba = after.logits(here).softmax(dim=1)
        torch.testing.assert_close(proba, fitted.prediction.proba, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ALL)
def test_test_labels_may_be_anything(method: str) -> None:
    """The strongest form of 'no leak'."""
    spoilt = draw().data.clone()
    spoilt.y = torch.where(spoilt.test_mask, (spoilt.y + 1) % 3, spoilt.y)
    one = fit(method, epochs=3).prediction.logits
    two = fit(method, epochs=3, graph=check_data(spoilt)).prediction.logits
    assert torch.equal(one, two)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("self_loops", [True, False])
def test_a_graph_without_edges_is_survived(method: str, self_loops: bool) -> None:
    """Above the size up to which decompositions are dense."""
    data = draw(n=300).data.clone()
    data.edge_index = data.edge_index[:, :0]
    with pytest.warns(UserWarning, match="edge"):
        graph = check_data(data)
    known = {f.name for f in fields(METHODS[method].config)}
    wanted = COMMON | {"epochs": 2, "self_loops": self_loops}
    options = {k: v for k, v in wanted.items() if k in known}
    config = resolve_config(method, options=options | OPTIONS.get(method, {}))
    prediction = fit_graph(graph, method, config, n_threads=1).prediction
    assert torch.isfinite(prediction.logits).all()
    assert all(math.isfinite(record["loss"]) for record in prediction.history)
