"""What every method owes: it learns, it repeats itself, it survives being saved.

A new method is here by being registered. Where its default is slow, or where a default
would hide that an option is not saved, it has a line in ``OPTIONS``.
"""

import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from elugcn import InputError
from elugcn.api import Fitted, estimate_memory, fit, load, predict_other, save
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.engine import CSR, GraphInputs
from elugcn.methods.network import NetworkModel
from elugcn.methods.problem import GraphTraits, GraphView
from elugcn.methods.registry import METHOD_NAMES, config_for, get_method

LEAST = 0.75  # of the test nodes right; the largest class is a third of them
COMMON: dict[str, Any] = {"hidden_channels": 16, "input_dropout": 0.1}
OPTIONS: dict[str, dict[str, Any]] = {
    "auto": {"epochs": 20, "folds": 3},
    "elu-gcn": {"k": 3},
    "gcn": {"num_layers": 3, "norm": "layer", "residual": True, "jump": "cat"},
    "lpa": {"lpa_steps": 7},
    "gat": {"heads": 3, "out_heads": 2, "lr": 0.02},
    "appnp": {"steps": 4, "alpha": 0.3},
    "sgc": {"order": 3},
    "linear": {"order": 3, "feature_norm": "column", "pseudo_weight": 1.0},
    "cs": {"smoothing_steps": 7},
    "grand": {"order": 3, "norm": "layer", "draws": 2},
    "gprgnn": {"steps": 4, "alpha": 0.3},
    "pcnet": {"order": 3, "terms": 5, "heat": 0.3, "shift": 1.2, "exponent": 0.5,
              "lr": 0.02, "propagation_dropout": 0.3},
    "gcn-lpa": {"num_layers": 3, "lpa_steps": 2, "dropout": 0.5},
    "nodeformer": {"draws": 2, "heads": 2, "random_features": 10, "jump": True},
    "gsr": {"pretrain_steps": 10, "structure_dim": 8},
    "bagcn": {"k": 4, "roles": 8},
    "neuralsparse": {"k": 4, "scorer_channels": 8, "dropout": 0.5},
    "ptdnet": {"lr": 0.01, "scorer_channels": 8, "draws": 2},
    "cogsl": {"view_steps": 1, "classifier_steps": 2, "mi_steps": 1, "mi_channels": 16},
}  # fmt: skip
# For its own graph each of these uses what its model does not keep: labels (cs), the
# influence of labels (elu-gcn and with it auto), a refined graph (gsr).
MORE_AT_HOME = {"auto", "cs", "elu-gcn", "gsr"}
EVERY = pytest.mark.parametrize("method", METHOD_NAMES)


@cache
def draw(split: int = 0, n: int = 200, degree: float = 10.0) -> CheckedGraph:
    """Three classes of equal size, which both the features and the edges tell apart."""
    sizes: dict[str, Any] = {"n": n, "n_classes": 3, "n_features": 16}
    return check_data(load_dataset("sbm", split=split, mean_degree=degree, **sizes))


def short(method: str, **options: Any) -> dict[str, Any]:
    """Options of a short fit."""
    known = get_method(method).Config.model_fields
    wanted = {key: x for key, x in (COMMON | options).items() if key in known}
    return OPTIONS.get(method, {}) | wanted


def fitted(
    method: str, seed: int = 0, graph: CheckedGraph | None = None, **options: Any
) -> Fitted:
    known = short(method, **{"epochs": 40} | options)
    return fit(graph or draw(), method, known, seed=seed, n_threads=1)


@cache
def trained(method: str) -> Fitted:
    return fitted(method)


@EVERY
def test_it_learns(method: str) -> None:
    data = draw().data
    counts = torch.bincount(data.y[data.test_mask])
    right = trained(method).accuracy(data.test_mask)
    assert float(counts.max() / counts.sum()) < 0.4
    assert right is not None
    assert right > LEAST
    history = trained(method).result.history
    assert all(math.isfinite(record["loss"]) for record in history)


@EVERY
def test_the_seed_decides(method: str) -> None:
    one, again, other = (
        fitted(method, seed, epochs=3).result.logits for seed in (5, 5, 6)
    )
    assert torch.isfinite(one).all()
    assert torch.equal(one, again)
    assert torch.equal(one, other) == (method in ("lpa", "linear"))


@EVERY
def test_a_saved_model_answers_as_before(method: str, tmp_path: Path) -> None:
    before, elsewhere = trained(method), draw(split=1, n=90).data
    save(before, tmp_path)
    after = load(tmp_path)
    assert after.config == before.config
    assert torch.equal(after.result.logits, before.result.logits)
    if before.result.model is None:
        assert method == "lpa"  # nothing else is without a model
        assert after.result.model is None
        with pytest.raises(InputError, match="can't predict for another graph"):
            predict_other(after, elsewhere)
        return
    for data in (draw().data, elsewhere):
        logits = predict_other(before, data).result.logits
        assert logits.shape == (data.num_nodes, 3)
        assert torch.equal(predict_other(after, data).result.logits, logits)
    if method not in MORE_AT_HOME:
        at_home = predict_other(after, draw().data)
        torch.testing.assert_close(at_home.proba, before.proba, rtol=1e-3, atol=1e-4)


@EVERY
def test_sparse_features_give_what_dense_ones_do(method: str) -> None:
    model = trained(method).result.model
    if not isinstance(model, NetworkModel):
        return  # its networks are those of other methods
    data = draw(split=1, n=90).data
    x = data.x * (data.x > 1.0)
    adj = GraphView.of(model.config).inputs(data, model.scaler).adj
    with torch.no_grad():
        dense = model.network(GraphInputs(x, adj))
        sparse = model.network(GraphInputs(CSR.from_tensor(x), adj))
    torch.testing.assert_close(sparse, dense, rtol=1e-3, atol=1e-4)


@EVERY
def test_test_labels_may_be_anything(method: str) -> None:
    """The strongest form of 'no leak'."""
    spoilt = draw().data.clone()
    spoilt.y = torch.where(spoilt.test_mask, (spoilt.y + 1) % 3, spoilt.y)
    one, two = (
        fitted(method, epochs=3, graph=graph).result.logits
        for graph in (draw(), check_data(spoilt))
    )
    assert torch.equal(one, two)


@EVERY
@pytest.mark.parametrize("self_loops", [True, False])
def test_a_graph_without_edges_is_survived(method: str, self_loops: bool) -> None:
    """Above the size up to which decompositions are dense."""
    data = draw(n=300).data.clone()
    data.edge_index = data.edge_index[:, :0]
    with pytest.warns(UserWarning, match="edge"):
        graph = check_data(data)
    result = fitted(method, graph=graph, epochs=2, self_loops=self_loops).result
    assert torch.isfinite(result.logits).all()
    assert all(math.isfinite(record["loss"]) for record in result.history)


@EVERY
def test_options_survive_json(method: str) -> None:
    config = config_for(method, short(method))
    assert config != config_for(method, {})
    plain = json.loads(json.dumps(config.model_dump(mode="json")))
    assert config_for(method, plain) == config


@EVERY
def test_the_estimate_of_memory_grows_with_the_graph(method: str) -> None:
    config = config_for(method, short(method))
    small, more_nodes, more_edges = (
        estimate_memory(graph.data, config)["total"]
        for graph in (draw(), draw(n=400), draw(degree=20.0))
    )
    assert 0 < small < min(more_nodes, more_edges)


# --- search spaces -----------------------------------------------------------------

# Like Cora, Pubmed, Photo, a graph of people, Chameleon; nothing known of homophily.
GRAPHS = (
    GraphTraits(2708, 10556, 1433, 7, True, False, 0.8, 140),
    GraphTraits(19717, 88648, 500, 3, True, False, 0.8, 60),
    GraphTraits(7487, 238086, 745, 8, False, False, 0.8, 160),
    GraphTraits(769, 33312, 1400, 4, True, False, 0.55, 461),
    GraphTraits(2277, 36101, 2325, 5, True, True, 0.2, 1092),
    GraphTraits(100, 300, 10, 2, False, False, float("nan"), 20),
)
# They decide themselves how a graph is read, or do not read its edges.
NO_DIRECTION = {"auto", "elu-gcn", "mlp"}


class RandomTrial:
    """Suggests what an Optuna trial may suggest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[str] = []

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        assert isinstance(choices, list)
        self.names.append(name)
        return self.random.choice(choices)

    def suggest_float(
        self,
        name: str,
        low: float,
        high: float,
        step: float | None = None,
        log: bool = False,
    ) -> float:
        assert low < high
        assert not log or (low > 0 and step is None)
        self.names.append(name)
        return self.random.uniform(low, high)

    def suggest_int(self, name: str, low: int, high: int, step: int = 1) -> int:
        self.names.append(name)
        return self.random.randrange(low, high + 1, step)


@EVERY
def test_the_search_gives_valid_options(method: str) -> None:
    for traits in GRAPHS:
        asked = []
        for seed in range(20):
            trial = RandomTrial(seed)
            options = get_method(method).space(trial, traits)
            assert len(set(trial.names)) == len(trial.names)  # Optuna refuses it
            assert {name.partition(".")[0] for name in trial.names} <= set(options)
            asked.append(tuple(trial.names))
            config_for(method, options)
        assert len(set(asked)) == 1  # the sampler learns one joint distribution
        if method not in NO_DIRECTION:
            assert ("direction" in options) == traits.directed
        for start in get_method(method).starting_points(traits):
            config_for(method, start)
    # Who has nothing to search has nowhere to start.
    assert bool(get_method(method).starting_points(GRAPHS[0])) == bool(options)
