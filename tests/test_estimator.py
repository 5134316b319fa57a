"""The classifiers: two ways to fit, scikit-learn's habits, other graphs, saving."""

import pickle
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator
from torch_geometric.data import Batch, Data, HeteroData

from elugcn import ELUGCNClassifier, InputError, NodeClassifier
from elugcn.training.progress import SILENT, Progress

Draw = Callable[..., Data]
Array = np.ndarray[Any, Any]


def quick(method: str = "gcn", **options: Any) -> NodeClassifier:
    short = {} if method == "lpa" else {"epochs": 4}
    return NodeClassifier(method, **({"random_state": 0} | short | options))


def adjacency_of(data: Data) -> sp.csr_array:
    n = data.num_nodes
    ones = np.ones(data.edge_index.shape[1])
    return sp.csr_array((ones, tuple(data.edge_index.numpy())), shape=(n, n))


def change(data: Data, **attributes: Any) -> Data:
    out = data.clone()
    for name, value in attributes.items():
        out[name] = value
    return out


@pytest.fixture(scope="module")
def data(sbm: Draw) -> Data:
    return sbm(0)


@pytest.fixture(scope="module")
def arrays(data: Data) -> tuple[Array, Array, sp.csr_array]:
    return data.x.numpy(), data.y.numpy(), adjacency_of(data)


@pytest.fixture(scope="module")
def fitted(data: Data) -> ELUGCNClassifier:
    return ELUGCNClassifier(epochs=8, eta=0.4, random_state=1).fit(data)


# What a fit leaves


def test_scores(arrays: tuple[Array, Array, sp.csr_array], data: Data) -> None:
    X, y, A = arrays
    clf = quick().fit(data)
    predicted = clf.predict()
    for mask in (data.test_mask, data.val_mask):
        expected = (predicted == y)[mask.numpy()].mean()
        assert clf.score(mask) == pytest.approx(expected)
        assert clf.score(mask.numpy()) == pytest.approx(expected)
        assert clf.score(mask.tolist()) == pytest.approx(expected)
    assert clf.score() == clf.score(data.test_mask)
    assert clf.score(data) == pytest.approx((clf.predict(data) == y).mean())
    everywhere = (clf.predict(X, adjacency=A) == y).mean()
    assert clf.score(X, y, adjacency=A) == pytest.approx(everywhere)
    # A node without a label can neither be right nor wrong.
    some = np.where(np.arange(150) < 100, y, -1)
    first = (clf.predict(X, adjacency=A) == y)[:100].mean()
    assert clf.score(X, some, adjacency=A) == pytest.approx(first)


def test_scores_by_a_metric(data: Data, tmp_path: Path) -> None:
    names, mask = np.array(["a", "b", "c"]), data.test_mask.numpy()
    y, X = names[data.y.numpy()], data.x.numpy()
    known = np.where(data.train_mask.numpy(), y, "")
    clf = quick("sgc", metric="roc_auc", class_weight={"b": 2}, epochs=30)
    clf.fit(X, known, adjacency=adjacency_of(data))

    def truth(proba: Array, of: Array) -> Any:
        return pytest.approx(roc_auc_score(of, proba, multi_class="ovr"), abs=1e-6)

    proba = clf.predict_proba(X, adjacency=adjacency_of(data))
    assert clf.score(X, y, adjacency=adjacency_of(data)) == truth(proba, y)
    assert clf.score(data) == truth(proba, y)
    some = np.where(mask, y, "")
    found = clf.score(X, some, adjacency=adjacency_of(data))
    assert found == truth(proba[mask], y[mask])
    with pytest.raises(InputError, match="requires nodes of at least two classes"):
        clf.score(X, np.where(y == "a", y, ""), adjacency=adjacency_of(data))
    clf.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    weights = {"a": 1.0, "b": 2.0, "c": 1.0}
    assert (loaded.metric, loaded.class_weight) == ("roc_auc", weights)
    # A class that the model does not know is never predicted.
    other = clf.set_params(metric="accuracy").score(X, np.where(mask, "z", y))
    assert other < (~mask).mean()


@pytest.mark.parametrize(
    ("names", "unknown", "kind"),
    [
        ([10, 20, 30], -1, "i"),
        (["cat", "dog", "<b>"], "", "U"),
        (["cat", "dog", "ü\n"], np.nan, "U"),
        ([1.0, 2.0, 5.0], np.nan, "f"),
        ([4, 7, 8], None, "i"),
        ([False, True], None, "b"),
    ],
    ids=["-1", "empty", "NaN", "floats", "None", "bools"],
)
def test_classes_are_those_of_the_user(
    names: list[Any],
    unknown: Any,
    kind: str,
    arrays: tuple[Array, Array, sp.csr_array],
    tmp_path: Path,
) -> None:
    X, y, A = arrays
    labels = [names[c % len(names)] if i % 3 else unknown for i, c in enumerate(y)]
    clf = quick().fit(X, labels, adjacency=A)
    assert clf.classes_.dtype.kind == kind
    assert clf.classes_.tolist() == sorted(names)
    assert set(clf.predict().tolist()) <= set(names)
    true = np.asarray(names)[y % len(names)]
    expected = (clf.predict(X, adjacency=A) == true).mean()
    assert clf.score(X, true, adjacency=A) == pytest.approx(expected)
    clf.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    assert loaded.classes_.dtype == clf.classes_.dtype
    assert loaded.predict().tolist() == clf.predict().tolist()


# Forms of input


def test_forms_of_input_agree(
    arrays: tuple[Array, Array, sp.csr_array], data: Data
) -> None:
    X, y, A = arrays
    expected = quick().fit(X, y, adjacency=A).predict_proba()
    # Without masks both forms make the same split, so everything after it is the same.
    bare = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    assert (quick().fit(bare).predict_proba() == expected).all()
    for adjacency in (A.toarray(), data.edge_index, nx.from_scipy_sparse_array(A)):
        got = quick().fit(X.tolist(), y.tolist(), adjacency=adjacency).predict_proba()
        np.testing.assert_allclose(got, expected, atol=1e-6)
    got = quick().fit(sp.csr_matrix(X), y, adjacency=A).predict_proba()
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_no_adjacency_joins_neighbours(
    arrays: tuple[Array, Array, sp.csr_array],
) -> None:
    X, y, _ = arrays
    clf = quick(n_neighbors=4).fit(X, y)
    edges = clf.fitted_.data.edge_index
    # Each node chose four, and is chosen by others.
    assert torch.bincount(edges[0]).min() >= 4
    assert edges.shape[1] < 2 * 4 * 150
    assert clf.predict(X[:20]).shape == (20,)
    # Three new nodes have two neighbours each, not four.
    assert clf.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("features", ["identity", "degree"])
def test_graphs_without_features(
    features: str, data: Data, sbm: Draw, tmp_path: Path
) -> None:
    bare, other = data.clone(), sbm(1)
    del bare.x, other.x
    with pytest.raises(InputError, match='features="identity" or features="degree"'):
        quick().fit(bare)
    clf = quick(features=features).fit(bare)
    assert clf.n_features_in_ == (150 if features == "identity" else 1)
    clf.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    assert (loaded.predict_proba(other) == clf.predict_proba(other)).all()


def test_directed_edges(arrays: tuple[Array, Array, sp.csr_array], data: Data) -> None:
    X, y, A = arrays
    upper = sp.csr_array(sp.triu(A))
    clf = quick(directed=True).fit(X, y, adjacency=upper)
    assert clf.fitted_.data.edge_index.size(1) == upper.nnz
    # Other graphs are read as the fitted one, whatever they say.
    expected = clf.predict_proba(X, adjacency=upper)
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    for flag in (None, True, False):
        other = Data(x=data.x, edge_index=one_way, directed=flag)
        np.testing.assert_array_equal(clf.predict_proba(other), expected)
    assert np.abs(clf.predict_proba(X, adjacency=A) - expected).max() > 1e-3


def test_columns_of_a_frame_are_compared_by_name(data: Data, tmp_path: Path) -> None:
    frame = pd.DataFrame(data.x[:, :4].numpy(), columns=list("abcd"))
    labels = torch.where(data.train_mask, data.y, -1).numpy()
    clf = quick().fit(frame, labels)
    assert clf.feature_names_in_.tolist() == list("abcd")
    clf.save(tmp_path / "m")
    for one in (clf, NodeClassifier.load(tmp_path / "m")):
        with pytest.raises(InputError, match=r"'d' where .* 'a'; the order .* differs"):
            one.predict(frame[list("dcba")])
        with pytest.raises(InputError, match="'z' where the model was fitted with 'b'"):
            one.predict(frame.rename(columns={"b": "z"}))
        one.predict(frame)
        one.predict(frame.to_numpy())  # without names, as in scikit-learn
    clf.fit(frame.to_numpy(), labels)
    assert not hasattr(clf, "feature_names_in_")
    clf.predict(frame[list("dcba")])


# Other graphs


def test_the_fitted_graph_given_again_is_predicted_alike(
    fitted: ELUGCNClassifier, data: Data
) -> None:
    """The row of S* a new node gets from its own H is the row the graph has."""
    again = fitted.predict_proba(data)
    np.testing.assert_allclose(again, fitted.predict_proba(), atol=2e-5)
    bare = Data(x=data.x, edge_index=data.edge_index)
    assert (fitted.predict_proba(bare) == again).all()
    # Labels and splits of another graph are not read, whatever they are.
    bare.y, bare.train_mask = torch.rand(150, 4), torch.ones(150, 3, dtype=torch.bool)
    assert (fitted.predict_proba(bare) == again).all()


def test_what_the_caller_changes_later_changes_no_answer(data: Data) -> None:
    mine = data.clone()
    clf = quick().fit(mine)
    score, answers = clf.score(), clf.predict()
    mine.y[:] = 0
    mine.test_mask[:] = False
    clf.predict_proba()[:] = 0
    assert clf.score() == score
    assert (clf.predict() == answers).all()


# Scikit-learn's habits

# Checks that do not hold, and why.
KNOWN = {
    "check_class_weight_classifiers": "the metric selects, whatever the weights",
    "check_methods_sample_order_invariance": "rounding depends on the order of edges",
    "check_methods_subset_invariance": "nodes are predicted from their neighbours",
    "check_classifiers_classes": "the label -1 is unknown",
    "check_supervised_y_2d": "a column of labels needs no warning",
    "check_do_not_raise_errors_in_init_or_set_params": "options depend on the method",
    "check_n_features_in_after_fitting": "message",
    "check_complex_data": "message",
    "check_dtype_object": "message",
    "check_estimators_empty_data_messages": "message",
    "check_fit2d_1sample": "message",
    "check_fit2d_predict1d": "message",
    "check_requires_y_none": "message",
}


def test_scikit_learns_own_checks() -> None:
    clf = quick("sgc", epochs=100, lr=0.2, n_neighbors=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            clf, expected_failed_checks=KNOWN, on_skip=None, on_fail=None
        )
    of = {status: [] for status in ("passed", "failed", "xfail", "skipped")}
    for result in results:
        of[result["status"]].append((result["check_name"], result["exception"]))
    assert not of["failed"]
    assert len(of["passed"]) > 35


@pytest.mark.parametrize("kind", [NodeClassifier, ELUGCNClassifier])
def test_parameters_round_trip(kind: type[NodeClassifier], data: Data) -> None:
    method = {"method": "elu-gcn"} if kind is NodeClassifier else {}
    make = partial(kind, **method)
    clf = make(eta=0.2, k=2, epochs=2, random_state=5, features="degree")
    twin = clone(clf)
    assert type(twin) is kind
    assert twin.get_params() == clf.get_params()
    assert clf.get_params()["k"] == clf.k == 2
    assert twin.set_params(eta=0.5, n_neighbors=3) is twin
    assert (twin.eta, twin.n_neighbors, clf.eta) == (0.5, 3, 0.2)
    twin.eta = 0.7
    assert twin.get_params()["eta"] == 0.7
    assert kind(**clf.get_params()).get_params() == clf.get_params()
    with pytest.raises(ValueError, match="unknown option 'nope'"):
        clf.set_params(nope=1)
    for call in (clf.predict, clf.score, lambda: clf.save("anywhere")):
        with pytest.raises(NotFittedError):
            call()
    assert "eta=0.2" in repr(clf)
    fitted = clone(clf).fit(data)
    assert clone(fitted).get_params() == clf.get_params()
    assert not hasattr(clone(fitted), "fitted_")
    search = GridSearchCV(make(epochs=1), {"epochs": [2]}, cv=2)
    search.fit(data.x.numpy(), data.y.numpy())
    assert search.best_estimator_.n_iter_ == 2
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        clf.nothing  # noqa: B018


def test_the_two_classifiers_are_one_method(data: Data) -> None:
    one = ELUGCNClassifier(epochs=3, eta=None, k=3).fit(data)
    two = NodeClassifier("elu-gcn", random_state=0, epochs=3, k=3).fit(data)
    assert (one.predict_proba() == two.predict_proba()).all()
    assert one.fitted_.method == "elu-gcn"
    assert "method" not in one.get_params()


def test_pickling(fitted: ELUGCNClassifier, data: Data) -> None:
    twin = pickle.loads(pickle.dumps(fitted))
    assert twin.get_params() == fitted.get_params()
    assert (twin.predict_proba(data) == fitted.predict_proba(data)).all()


def test_the_seed_splits_the_labels_of_a_graph_without_masks(data: Data) -> None:
    bare = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    seeds = (1, 1, 2, None, None)
    one, again, other, *drawn = (quick("lpa", random_state=s).fit(bare) for s in seeds)
    mask = one.fitted_.data.val_mask
    assert torch.equal(mask, again.fitted_.data.val_mask)
    assert not torch.equal(mask, other.fitted_.data.val_mask)
    assert drawn[0].fitted_.seed != drawn[1].fitted_.seed
    half = quick("lpa", validation_fraction=0.5).fit(bare)
    assert int(half.fitted_.data.val_mask.sum()) == 75
    # Without test nodes all labelled ones are scored.
    assert half.score() == pytest.approx((half.predict() == data.y.numpy()).mean())
    assert any("validation" in note for note in half.notes_)


def test_presets_and_progress(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = {"cora": {"gcn": {"epochs": 2, "hidden_channels": 5}}}
    monkeypatch.setattr("elugcn.methods.presets.all_presets", lambda: tuned)
    asked: list[bool] = []

    def progress(quiet: bool) -> Progress:
        asked.append(quiet)
        return SILENT

    monkeypatch.setattr("elugcn.estimator.default_progress", progress)
    for verbose in (False, True):
        clf = quick(preset="cora", epochs=3, verbose=verbose).fit(data)
        config: Any = clf.fitted_.config
        assert (config.epochs, config.hidden_channels) == (3, 5)
    assert asked == [True, False]


# Saving


def test_a_loaded_model_describes_its_fit(data: Data, tmp_path: Path) -> None:
    clf = ELUGCNClassifier(epochs=4, eta=0.4, n_neighbors=3, random_state=np.int64(2))
    clf.fit(data).save(tmp_path / "m")
    loaded = ELUGCNClassifier.load(tmp_path / "m")
    params = {"epochs": 4, "eta": 0.4, "n_neighbors": 3, "random_state": 2}
    assert loaded.get_params().items() >= params.items()
    assert loaded.score(data.test_mask) == clf.score(data.test_mask)
    refit = clone(loaded).fit(data)
    assert (refit.predict_proba() == clf.predict_proba()).all()


def test_a_loaded_default_can_be_changed(data: Data, tmp_path: Path) -> None:
    """Effort and time limit are parameters; other options of the default are options."""
    first = quick("auto", effort="quick", time_limit=60.0, folds=3).fit(data)
    first.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    assert (loaded.effort, loaded.time_limit, loaded.folds) == ("quick", 60.0, 3)
    assert loaded.get_params() == first.get_params()
    changed = clone(loaded).set_params(feature_norm="standard", folds=4).fit(data)
    again = quick("auto", effort="quick", folds=4, feature_norm="standard").fit(data)
    assert (changed.predict_proba() == again.predict_proba()).all()
    assert changed.fitted_.result.metadata["judged_on"].endswith("in 4 folds")


def test_effort_and_time_limit_belong_to_the_default(data: Data) -> None:
    for options in ({"effort": "quick"}, {"time_limit": 5.0}):
        (name,) = options
        with pytest.raises(
            InputError, match=rf"^{name}=.* requires method='auto'; got"
        ):
            NodeClassifier("gcn", **options).fit(data)
        with pytest.raises(
            InputError, match=rf"^{name}=.* requires method='auto'; got"
        ):
            ELUGCNClassifier(**options).fit(data)
        assert name in NodeClassifier().get_params()
        assert name not in ELUGCNClassifier().get_params()
    with pytest.raises(InputError, match=r"effort must be 'quick'.*; got 'lots'"):
        NodeClassifier(effort="lots").fit(data)
    with pytest.raises(InputError, match=r"time_limit must be greater than 0; got 0"):
        NodeClassifier(time_limit=0).fit(data)


# Refusals

PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "no word": ({"method": 3}, "method must be a name; got 3"),
    "preset": ({"preset": "coraa"}, "unknown dataset 'coraa'.*'cora'"),
    "features": ({"features": "smell"}, "features.*'smell'"),
    "threads": ({"n_threads": 0}, "n_threads must be a whole number from 1; got 0"),
    "neighbours": ({"n_neighbors": 2.5}, "n_neighbors must be a whole number"),
    "fraction": ({"validation_fraction": 1.0}, "validation_fraction must be a number"),
    "metric": ({"metric": "auc"}, "metric must be one of accuracy, .*; got 'auc'"),
    "weights": ({"class_weight": "even"}, "class_weight must be 'balanced' or a map"),
    "class": ({"class_weight": {7: 1}}, "unknown class 7; known: 0, 1, 2"),
    "weight": ({"class_weight": {1: -1}}, "the weight of 1 must be a positive number"),
    "seed": ({"random_state": -1}, "random_state must be a whole number"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_that_are_refused(case: str, data: Data) -> None:
    options, message = PARAMETERS[case]
    with pytest.raises(InputError, match=message) as caught:
        quick(**options).fit(data)
    assert "\n" not in str(caught.value)


CALLS: dict[str, tuple[Callable[[NodeClassifier, Data], Any], str]] = {
    "labels twice": (lambda c, d: c.fit(d, d.y), "without y and adjacency"),
    "edges twice": (lambda c, d: c.fit(d, adjacency=d.edge_index), "without y and"),
    "graphs": (lambda c, d: c.fit([d, d]), r"list of 2 graphs.*Batch"),
    "kinds": (lambda c, d: c.fit(HeteroData()), r"HeteroData.*to_homogeneous"),
    "one class": (lambda c, d: c.fit(d.x, d.y * 0), "only one class"),
    "no y": (lambda c, d: c.fit(d.x), "label"),
    "no features": (lambda c, d: c.predict(adjacency=np.eye(150)), "requires X"),
    "other features": (lambda c, d: c.predict(d.x[:, :3]), "fitted with 8 feat.*got 3"),
    "empty mask": (lambda c, d: c.score(d.test_mask & False), "score needs a labelled"),
    "float mask": (lambda c, d: c.score(d.test_mask.float()), "score takes a mask"),
    "word mask": (lambda c, d: c.score("abc"), "score takes a mask .* got a str"),
    "unlabelled": (lambda c, d: c.score(d.x, d.y * 0 - 1), "score needs a labelled"),
    "no labels": (lambda c, d: c.score(Data(x=d.x, edge_index=d.edge_index)), "score"),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_are_refused(case: str, data: Data) -> None:
    call, message = CALLS[case]
    clf = quick("sgc", epochs=1).fit(data)
    with pytest.raises(InputError, match=message) as caught:
        call(clf, data)
    assert "\n" not in str(caught.value)


# Odd graphs


def test_one_label_per_class(data: Data) -> None:
    y = np.full(150, -1)
    for label in range(3):
        y[np.flatnonzero(data.y.numpy() == label)[0]] = label
    with pytest.warns(UserWarning, match="no validation node"):
        clf = quick("auto").fit(data.x.numpy(), y, adjacency=data.edge_index)
    assert np.isfinite(clf.predict_proba()).all()


def test_a_part_without_labels_is_reported(data: Data, sbm: Draw) -> None:
    other = sbm(3, n=90)
    for name in ("train_mask", "val_mask"):
        other[name] &= False
    clf = ELUGCNClassifier(epochs=3).fit(Batch.from_data_list([data, other]))
    assert any("no training label" in note for note in clf.notes_)
    use = clf.label_utilization_
    assert bool(use.unreachable[150:].all())
    assert not bool(use.unreachable[:150].any())
