"""One fit: what it gives, what it refuses, and that it leaves the caller alone."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from torch_geometric.data import Data

from elugcn import InputError
from elugcn.api import MAX_SEED, Fitted, fit, predict_other, resolve_config
from elugcn.api.fitting import accuracy
from elugcn.data.validation import check_data
from elugcn.elu.label_propagation import propagate_labels
from elugcn.engine import normalized_adjacency
from elugcn.errors import CollapseWarning

Fit = Callable[..., Fitted]
Draw = Callable[..., Data]


def test_the_seed_decides_and_no_generator_of_the_caller(data: Data) -> None:
    torch.manual_seed(99)
    one = fit(data, "auto", {"epochs": 3}, seed=5).result.logits
    torch.manual_seed(1)
    two = fit(check_data(data), "auto", {"epochs": 3}, seed=5).result.logits
    assert torch.equal(one, two)


def test_what_a_fit_leaves(quick_fit: Fit, data: Data) -> None:
    fitted = quick_fit("elu-gcn")
    assert (fitted.method, fitted.seed, fitted.threads) == ("elu-gcn", 0, 1)
    assert fitted.config == resolve_config("elu-gcn", options={"epochs": 4})
    torch.testing.assert_close(fitted.proba.sum(dim=1), torch.ones(150))
    predicted = fitted.proba.argmax(dim=1)
    right = (predicted == data.y)[data.test_mask].double().mean()
    assert fitted.accuracy(data.test_mask) == pytest.approx(float(right))
    assert fitted.accuracy(data.test_mask & False) is None
    some = torch.where(torch.arange(150) < 10, predicted, -1)
    some[:5] = (predicted[:5] + 1) % 3
    everywhere = torch.ones(150, dtype=torch.bool)
    assert accuracy(predicted, some, everywhere) == 0.5
    facts = fitted.graph_summary
    assert (facts.num_features, facts.num_edges) == (8, data.edge_index.size(1))
    assert fitted.classes.tolist() == [0, 1, 2]
    seconds = fitted.result.seconds
    assert seconds["total"] >= seconds["train"] > 0


def test_what_is_recorded_does_not_depend_on_held_out_labels(
    data: Data, quick_fit: Fit
) -> None:
    spoiled = data.clone()
    spoiled.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    one = quick_fit("elu-gcn").result
    two = fit(spoiled, "elu-gcn", {"epochs": 4}, n_threads=1).result
    assert one.metadata == two.metadata


@pytest.mark.parametrize("method", ["auto", "elu-gcn", "gcn", "mlp", "lpa"])
def test_simple_models_beside_the_method(
    method: str, data: Data, quick_fit: Fit
) -> None:
    """A method is not its own baseline, and what it trained is not trained again."""
    options = {} if method == "lpa" else {"epochs": 4}
    fitted = fit(data, method, options, n_threads=1, with_baselines=True)
    assert fitted.baselines.keys() == {"gcn", "mlp", "lpa"} - {method}
    assert torch.equal(fitted.result.logits, quick_fit(method).result.logits)
    known = quick_fit(method).baselines
    assert ("lpa" in known) == (method in ("auto", "elu-gcn"))
    assert ("gcn" in known) == (method == "elu-gcn")
    for name, classes in known.items():
        assert torch.equal(fitted.baselines[name], classes)
    if method in ("gcn", "mlp"):
        adj = normalized_adjacency(data.edge_index, 150)
        labels = torch.where(data.train_mask, data.y, -1)
        share = propagate_labels(adj, labels, 3)
        expected = torch.where(share.any(dim=1), share.argmax(dim=1), -1)
        assert torch.equal(fitted.baselines["lpa"], expected)


def test_a_simple_model_that_takes_minutes_is_left_out(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.api.baselines._MAX_PRODUCTS", 1000)
    fitted = fit(data, "sgc", {"epochs": 2}, with_baselines=True)
    assert fitted.baselines.keys() == {"lpa"}


def test_validation_is_what_judged(data: Data) -> None:
    """With folds or a refit the validation nodes train the answer, too."""
    plain = fit(data, "elu-gcn", {"epochs": 4}, n_threads=1)
    nodes, logits = plain.validation()
    assert torch.equal(nodes, data.val_mask.nonzero()[:, 0])
    assert torch.equal(logits, plain.result.logits[nodes])
    assert plain.val_score() == plain.accuracy(data.val_mask)
    folds = fit(data, "auto", {"effort": "quick", "folds": 3}, n_threads=1)
    nodes, logits = folds.validation()
    known = data.train_mask | data.val_mask
    assert torch.equal(nodes.sort().values, known.nonzero()[:, 0])
    right = (logits.argmax(dim=1) == data.y[nodes]).double().mean()
    assert folds.val_score() == pytest.approx(float(right))
    truth = balanced_accuracy_score(data.y[nodes], logits.argmax(dim=1))
    assert folds.val_score("balanced_accuracy") == pytest.approx(truth)


# The caller's surroundings


def test_the_state_of_torch_is_the_callers_again(data: Data) -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    before = dict(data.to_dict())
    expected = fit(data, "elu-gcn", {"epochs": 2}).result.logits
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            again = fit(data.clone(), "elu-gcn", {"epochs": 2}, n_threads=threads + 1)
            assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert again.threads == threads + 1
    torch.testing.assert_close(again.result.logits, expected)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert data.to_dict().keys() == before.keys()
    assert all(data[name] is value for name, value in before.items())


def test_fits_in_threads_come_out_as_one_after_the_other(data: Data) -> None:
    def logits(seed: int) -> torch.Tensor:
        return fit(data, "elu-gcn", {"epochs": 3}, seed=seed).result.logits

    serial = [logits(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        parallel = list(pool.map(logits, range(3)))
    assert all(map(torch.equal, serial, parallel))


# Metrics and uneven classes


@pytest.mark.parametrize("method", ["gcn", "elu-gcn"])
def test_balanced_weights_find_the_rare_class(method: str, uneven: Data) -> None:
    with pytest.warns(CollapseWarning) as warned:
        plain = fit(uneven, method, {"epochs": 60}, n_threads=1)
    expected = (
        "no node is predicted as rare, though there are labels; "
        "try class_weight='balanced' and metric='balanced_accuracy'"
    )
    assert str(warned[0].message) == plain.notes[-1] == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        weighted = fit(
            uneven, method, {"epochs": 60}, n_threads=1,
            metric="balanced_accuracy", class_weight="balanced",
        )  # fmt: skip
    test = uneven.test_mask
    for one in (plain, weighted):
        predicted = one.result.logits[test].argmax(dim=1)
        expected_score = balanced_accuracy_score(uneven.y[test], predicted)
        found = one.score(test, "balanced_accuracy")
        assert found == pytest.approx(expected_score)
    assert plain.score(test) == plain.accuracy(test)  # its own metric
    assert (weighted.score(test) or 0.0) > expected_score - 1e-9 > 0.7
    assert all("val_score" in record for record in weighted.result.history)


def test_a_ranking_of_one_class_is_refused(uneven: Data, data: Data) -> None:
    one = uneven.clone()
    one.val_mask &= one.y == 0
    with pytest.raises(InputError, match=r"^metric='roc_auc' requires validation nod"):
        fit(one, "gcn", metric="roc_auc")
    ranked = fit(uneven, "gcn", {"epochs": 5}, metric="roc_auc")
    assert ranked.score(uneven.test_mask & (uneven.y == 0)) is None
    with pytest.raises(InputError, match=r"^class_weight: method 'lpa' has no loss"):
        fit(data, "lpa", class_weight="balanced")


def test_class_weights_by_name(uneven: Data) -> None:
    balanced = compute_class_weight("balanced", classes=np.arange(2),
                                    y=uneven.y[uneven.train_mask].numpy())  # fmt: skip
    short = {"epochs": 3}
    one = fit(uneven, "gcn", short, class_weight="balanced")
    two = fit(uneven, "gcn", short, class_weight=dict(enumerate(balanced)))
    torch.testing.assert_close(one.result.logits, two.result.logits)
    rare = fit(uneven, "gcn", short, class_weight={1: 2}).class_weight
    assert rare == [1.0, 2.0]


# Classes, devices, refusals


def test_classes(data: Data) -> None:
    names = np.array(["a", "b", "c"])
    # Some PyG datasets use this name for other things.
    for given in (None, names, names[:2], ["x"] * 40):
        mine = data.clone()
        mine.classes = given
        expected = ["a", "b", "c"] if given is names else [0, 1, 2]
        assert fit(mine, "lpa").classes.tolist() == expected


def test_devices(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("auto", "cpu"):
        assert fit(data, "lpa", device=name).device == "cpu"
    with pytest.raises(InputError, match="'cuda' was requested, but CUDA is not av"):
        fit(data, "lpa", device="cuda")
    for wrong in ("tpu", "meta", None):
        says = f"device must be auto, cpu or cuda; got {wrong!r}"
        with pytest.raises(InputError, match=says):
            fit(data, "lpa", device=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, True, 1.0])
def test_seeds_that_are_refused(seed: Any, data: Data) -> None:
    says = f"seed must be a whole number from 0 to {MAX_SEED}; got {seed!r}"
    with pytest.raises(InputError, match=says):
        fit(data, "lpa", seed=seed)


# Other graphs


def test_another_graph_may_have_labels_for_comparison(
    quick_fit: Fit, sbm: Draw
) -> None:
    fitted, other = quick_fit("gcn"), sbm(9, n=90)
    predicted = predict_other(fitted, other)
    assert predicted.result.model is fitted.result.model
    assert torch.equal(predicted.data.y, other.y)
    assert predicted.graph_summary.num_edges == other.edge_index.size(1)
    assert predicted.num_features == 8
    share = (predicted.proba.argmax(dim=1) == other.y).double().mean()
    everywhere = torch.ones(90, dtype=torch.bool)
    assert predicted.accuracy(everywhere) == pytest.approx(float(share))
    # Labels of other classes say nothing about these predictions.
    other.class_names = ["x", "y", "z"]
    predicted = predict_other(fitted, other)
    assert predicted.accuracy(everywhere) is None
    assert predicted.data.class_names == fitted.data.class_names


def test_other_graphs_that_are_refused(quick_fit: Fit, sbm: Draw) -> None:
    other = sbm(9, n=90)
    with pytest.raises(InputError, match="fitted with 8 features; got 3"):
        predict_other(quick_fit("gcn"), sbm(9, n=90, n_features=3))
    other.x = other.x.sign() * 3e38
    with pytest.raises(InputError, match=r"not finite; .* on the scale"):
        predict_other(quick_fit("gcn", feature_norm="none"), other)


def test_features_are_made_as_for_the_fitted_graph(sbm: Draw) -> None:
    data, other = sbm(0), sbm(1)
    del data.x, other.x
    graph = check_data(data, features="degree")
    fitted = fit(graph, "gcn", {"epochs": 2}, metadata={"features": "degree"})
    predicted = predict_other(fitted, other)
    expected = check_data(other, features="degree").data.x
    assert torch.equal(predicted.data.x, expected)
