"""The classifier: two ways to fit, scikit-learn's habits, other graphs, saving."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch_geometric.data import Data

from elugcn import ELUGCNClassifier, InputError
from elugcn.config import resolve_config
from elugcn.data.checks import check_data
from elugcn.fitting import fit_graph
from elugcn.storage import save_fitted
from elugcn.training.progress import SILENT, Progress

Draw = Callable[..., Data]
# One member, whose second view has a say: what is saved and applied is not trivial.
TWO_VIEWS = {
    "variants": (),
    "keep_gcn": False,
    "refit_eta": False,
    "eta": 0.4,
    "lambda_con": 0.1,
    "form": "transposed",
    "epochs": 8,
    "rounds": 1,
}


def quick(**options: Any) -> ELUGCNClassifier:
    return ELUGCNClassifier(**({"epochs": 5} | options))


def adjacency_of(data: Data) -> sp.csr_array:
    n = data.num_nodes
    ones = np.ones(data.edge_index.shape[1])
    return sp.csr_array((ones, tuple(data.edge_index.numpy())), shape=(n, n))


@pytest.fixture(scope="module")
def data(sbm: Draw) -> Data:
    return sbm(0)


@pytest.fixture(scope="module")
def fitted(data: Data) -> ELUGCNClassifier:
    return ELUGCNClassifier(options=TWO_VIEWS, random_state=1).fit(data)


def test_what_fit_leaves(fitted: ELUGCNClassifier, data: Data) -> None:
    n = data.num_nodes
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.label_distributions_.shape == (n, 3)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1, rtol=1e-5)
    assert (fitted.transduction_ == fitted.label_distributions_.argmax(axis=1)).all()
    assert (fitted.predict() == fitted.transduction_).all()
    assert (fitted.predict_proba() == fitted.label_distributions_).all()
    assert fitted.graph_ is not None
    assert fitted.graph_.shape == (n, n)
    assert fitted.label_utilization_ is not None
    assert fitted.label_utilization_.status.shape == (n,)
    assert fitted.n_iter_ == len(fitted.history_) == 8
    assert fitted.n_features_in_ == 8
    assert fitted.fitted_.prediction.facts["eta"] == 0.4


def test_scores(fitted: ELUGCNClassifier, data: Data) -> None:
    y, predicted = data.y.numpy(), fitted.predict()
    for mask in (data.test_mask, data.val_mask):
        chosen = mask.numpy()
        expected = (predicted == y)[chosen].mean()
        assert fitted.score(mask) == pytest.approx(expected)
        assert fitted.score(chosen) == pytest.approx(expected)
    assert fitted.score() == fitted.score(data.test_mask)
    assert fitted.score(data) == pytest.approx((fitted.predict(data) == y).mean())
    X, A = data.x.numpy(), adjacency_of(data)
    everywhere = (fitted.predict(X, adjacency=A) == y).mean()
    assert fitted.score(X, y, adjacency=A) == pytest.approx(everywhere)
    assert 0.5 < everywhere < 1  # else unknown labels could not be told apart below
    # A label that is not known can neither be right nor wrong.
    some = np.where(np.arange(len(y)) < 100, y, -1)
    first = (fitted.predict(X, adjacency=A) == y)[:100].mean()
    assert fitted.score(X, some, adjacency=A) == pytest.approx(first)
    none = Data(x=data.x, edge_index=data.edge_index)
    wrong: list[tuple[Any, ...]] = [
        (torch.zeros(len(y), dtype=torch.bool),),
        (torch.ones(3, dtype=torch.bool),),
        (data.test_mask.float(),),
        (none,),
        (X, np.full(len(y), -1)),
    ]
    for arguments in wrong:
        with pytest.raises(InputError, match="score"):
            fitted.score(*arguments)


def test_the_same_graph_again_is_predicted_alike(
    fitted: ELUGCNClassifier, data: Data
) -> None:
    """The row of S* a new node gets from its own H is the row the graph has."""
    again = fitted.predict_proba(data)
    np.testing.assert_allclose(again, fitted.predict_proba(), atol=2e-5)
    bare = Data(x=data.x, edge_index=data.edge_index)
    assert (fitted.predict_proba(bare) == again).all()


def test_new_nodes_need_no_refit(
    fitted: ELUGCNClassifier, data: Data, sbm: Draw
) -> None:
    weights = [
        p.clone()
        for p in fitted.fitted_.prediction.predictor.network.model.parameters()
    ]  # type: ignore[union-attr]
    grown = Data(
        x=torch.cat([data.x, data.x[:5]]),
        edge_index=torch.cat(
            [data.edge_index, torch.tensor([[150, 151], [0, 1]])], dim=1
        ),
    )
    assert fitted.predict(grown).shape == (155,)
    other = sbm(9, n=90)
    proba = fitted.predict_proba(other)
    assert proba.shape == (90, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    kept = fitted.fitted_.prediction.predictor.network.model.parameters()  # type: ignore[union-attr]
    assert all(torch.equal(a, b) for a, b in zip(weights, kept, strict=True))
    with pytest.raises(InputError, match="fitted with 8 features; got 3"):
        fitted.predict(sbm(0, n_features=3))


def test_permuting_the_nodes_of_another_graph_permutes_its_predictions(
    fitted: ELUGCNClassifier, sbm: Draw
) -> None:
    other = sbm(4, n=90)
    order = torch.randperm(90, generator=torch.Generator().manual_seed(0))
    place = torch.empty_like(order)
    place[order] = torch.arange(90)
    shuffled = Data(x=other.x[order], edge_index=place[other.edge_index])
    np.testing.assert_allclose(
        fitted.predict_proba(shuffled),
        fitted.predict_proba(other)[order.numpy()],
        atol=1e-5,
    )


def test_same_seed_same_bits_other_seed_other_bits(data: Data) -> None:
    logits = [
        quick(random_state=seed).fit(data).fitted_.prediction.logits
        for seed in (3, 3, 4)
    ]
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_fitting_leaves_the_caller_alone(data: Data) -> None:
    before = {key: value for key, value in data.to_dict().items()}
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    quick(n_threads=threads + 1).fit(data)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    after = data.to_dict()
    assert after.keys() == before.keys()
    for key, value in before.items():
        assert after[key] is value


@pytest.mark.parametrize(
    ("names", "unknown", "kind"),
    [
        ([10, 20, 30], -1, "i"),
        (["cat", "dog", "<b>"], "", "U"),
        (["cat", "dog", "<b>"], None, "U"),
        ([1.0, 2.0, 5.0], np.nan, "f"),
        ([4, 7, 8], None, "i"),
        ([4, 7, 8], np.nan, "i"),
    ],
)
def test_classes_are_those_of_the_user(
    names: list[Any], unknown: Any, kind: str, data: Data
) -> None:
    y = [names[c] if i % 3 else unknown for i, c in enumerate(data.y.tolist())]
    clf = quick().fit(data.x.numpy(), y, adjacency=adjacency_of(data))
    assert clf.classes_.dtype.kind == kind
    assert clf.classes_.tolist() == sorted(names)
    assert set(clf.predict().tolist()) <= set(names)
    true = np.asarray(names)[data.y.numpy()]
    assert clf.score(data.x.numpy(), true, adjacency=adjacency_of(data)) > 0.5


def test_both_ways_to_fit_agree(data: Data) -> None:
    """Without masks both make the same split, so everything after it is the same."""
    bare = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    one = quick().fit(bare)
    two = quick().fit(data.x.numpy(), data.y.numpy(), adjacency=adjacency_of(data))
    assert (one.predict_proba() == two.predict_proba()).all()
    assert one.classes_.tolist() == two.classes_.tolist()


def test_forms_of_input_agree(data: Data) -> None:
    X, y, A = data.x.numpy(), data.y.numpy(), adjacency_of(data)
    graph = nx.from_scipy_sparse_array(A)
    results = [
        quick().fit(X, y, adjacency=adjacency).predict_proba()
        for adjacency in (A, A.toarray(), sp.coo_matrix(A), data.edge_index, graph)
    ]
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], atol=1e-6)
    sparse = quick().fit(sp.csr_matrix(X), y, adjacency=A).predict_proba()
    np.testing.assert_allclose(sparse, results[0], atol=1e-4)


def test_no_adjacency_joins_neighbours(data: Data) -> None:
    clf = quick(n_neighbors=4).fit(data.x.numpy(), data.y.numpy())
    edges = clf.fitted_.data.edge_index
    # Each node chose four, and is chosen by others.
    assert torch.bincount(edges[0]).min() >= 4
    assert edges.shape[1] < 2 * 4 * 150
    assert clf.predict(data.x.numpy()[:20]).shape == (20,)
    # Three new nodes have two neighbours each, not four.
    assert clf.predict(data.x.numpy()[:3]).shape == (3,)


def test_parameters_round_trip(data: Data) -> None:
    clf = quick(eta=0.2, options={"k": 2}, random_state=5, features="degree")
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert twin.set_params(eta=0.5).eta == 0.5
    assert clf.eta == 0.2
    assert ELUGCNClassifier(**clf.get_params()).get_params() == clf.get_params()
    with pytest.raises(ValueError, match="nope"):
        clf.set_params(nope=1)
    with pytest.raises(NotFittedError):
        clf.predict()
    assert clone(clf.fit(data)).get_params() == clf.get_params()
    assert not hasattr(clone(clf), "fitted_")


def test_parameters_reach_the_method(data: Data) -> None:
    clf = quick(hidden_channels=6, eta=0.7, options={"keep": 0.3}).fit(data)
    config = vars(clf.fitted_.config)
    assert (config["hidden_channels"], config["eta"], config["keep"]) == (6, 0.7, 0.3)
    assert config["epochs"] == 5
    assert "hidden_channels" in ELUGCNClassifier.default_options()
    # Every documented shortcut is an option of the method.
    assert set(ELUGCNClassifier._METHOD_OPTIONS) <= set(config)


@pytest.mark.parametrize("mode", ["implicit", "topk", "paper"])
def test_saved_models_are_the_same_in_another_process(
    mode: str, data: Data, sbm: Draw, tmp_path: Path
) -> None:
    options = TWO_VIEWS | {"graph_mode": mode, "topk": 5}
    clf = ELUGCNClassifier(options=options, random_state=2, n_neighbors=3).fit(data)
    clf.save(tmp_path / "model")
    assert {p.name for p in (tmp_path / "model").iterdir()} == {
        "model.json",
        "model.safetensors",
    }
    other = sbm(5, n=90)
    loaded = ELUGCNClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba() == clf.predict_proba()).all()
    assert (loaded.predict_proba(other) == clf.predict_proba(other)).all()
    assert loaded.score(data.test_mask) == clf.score(data.test_mask)
    assert loaded.random_state == 2
    assert loaded.n_neighbors == 3
    assert loaded.graph_ is not None
    assert clf.graph_ is not None
    assert loaded.graph_.mode == mode
    assert torch.equal(loaded.graph_.to_dense(), clf.graph_.to_dense())
    assert loaded.label_utilization_ is not None
    assert loaded.label_utilization_.names() == clf.label_utilization_.names()  # type: ignore[union-attr]
    # The parameters describe the model: the same fit gives the same bits.
    refit = clone(loaded).fit(data)
    assert (refit.predict_proba() == clf.predict_proba()).all()
    if mode != "implicit":
        return
    torch.save({"x": other.x, "edge_index": other.edge_index}, tmp_path / "other.pt")
    script = """
import sys, numpy, torch
from torch_geometric.data import Data
from elugcn import ELUGCNClassifier
clf = ELUGCNClassifier.load(sys.argv[1])
other = Data(**torch.load(sys.argv[2], weights_only=True))
numpy.savez(sys.argv[3], own=clf.predict_proba(), other=clf.predict_proba(other))
"""
    subprocess.run(
        [sys.executable, "-c", script, tmp_path / "model", tmp_path / "other.pt",
         tmp_path / "p.npz"],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
    )  # fmt: skip
    there = np.load(tmp_path / "p.npz")
    assert (there["own"] == clf.predict_proba()).all()
    assert (there["other"] == clf.predict_proba(other)).all()


def test_what_is_set_later_reaches_the_variants_of_a_loaded_model(
    data: Data, tmp_path: Path
) -> None:
    quick().fit(data).save(tmp_path / "model")
    loaded = ELUGCNClassifier.load(tmp_path / "model")
    changed = clone(loaded).set_params(dropout=0.1, lambda_con=0.7).fit(data)
    expected = quick(dropout=0.1, lambda_con=0.7).fit(data)
    assert (changed.predict_proba() == expected.predict_proba()).all()
    assert (changed.predict_proba() != loaded.predict_proba()).any()
    # Variants that are set along with it are taken as they are.
    own = {"variants": [{"name": "a", "eta": 0.1}]}
    assert quick().set_params(eta=0.4, options=own).options == own


@pytest.mark.parametrize("features", ["identity", "degree"])
def test_graphs_without_features(
    features: str, data: Data, sbm: Draw, tmp_path: Path
) -> None:
    bare = data.clone()
    del bare.x
    with pytest.raises(InputError, match='features="identity" or features="degree"'):
        quick().fit(bare)
    clf = quick(features=features).fit(bare)
    assert clf.n_features_in_ == (150 if features == "identity" else 1)
    clf.save(tmp_path / "model")
    other = sbm(1)
    del other.x
    # A loaded model still knows how its features are made.
    loaded = ELUGCNClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba(other) == clf.predict_proba(other)).all()


def test_class_names_survive_saving(data: Data, tmp_path: Path) -> None:
    for i, names in enumerate((["a b", "<i>", "ü"], [3, 5, 9], [1.0, 2.0, 4.0])):
        y = np.asarray(names)[data.y.numpy()]
        clf = quick().fit(data.x.numpy(), y, adjacency=adjacency_of(data))
        clf.save(tmp_path / str(i))
        loaded = ELUGCNClassifier.load(tmp_path / str(i))
        assert loaded.classes_.dtype == clf.classes_.dtype
        assert loaded.predict().tolist() == clf.predict().tolist()


def test_a_model_is_never_written_over(
    fitted: ELUGCNClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    with pytest.raises(InputError, match="not empty"):
        fitted.save(tmp_path / "model")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written"):
        fitted.save(tmp_path / "file/model")
    assert {p.name for p in tmp_path.iterdir()} == {"model", "file"}


def test_random_state(data: Data) -> None:
    seeds = {
        quick(random_state=None, epochs=1).fit(data).fitted_.seed for _ in range(3)
    }
    assert len(seeds) == 3
    assert quick(random_state=np.int64(4), epochs=1).fit(data).fitted_.seed == 4
    for wrong in (-1, 2**32, 1.5, "a", True):
        with pytest.raises(InputError, match="random_state"):
            quick(random_state=wrong).fit(data)


def change(**changes: Any) -> Callable[[Data], Data]:
    def apply(data: Data) -> Data:
        out = data.clone()
        for key, value in changes.items():
            out[key] = value(data) if callable(value) else value
        return out

    return apply


def with_value(key: str, value: float) -> Callable[[Data], Data]:
    def apply(data: Data) -> Data:
        out = data.clone()
        out[key] = out[key].clone()
        out[key].view(-1)[5] = value
        return out

    return apply


def with_weight(value: float) -> Callable[[Data], Data]:
    def weights(data: Data) -> torch.Tensor:
        weight = torch.ones(data.edge_index.shape[1])
        weight[3] = value
        return weight

    return change(edge_weight=weights)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (change(x=None), r"data\.x is missing"),
        (change(x=lambda d: d.x[:, :0]), r"data\.x has shape \[150, 0\]"),
        (change(x=lambda d: d.x.to(torch.cfloat)), r"data\.x has dtype"),
        (with_value("x", float("nan")), r"data\.x .* node 0, column 5"),
        (with_value("x", float("inf")), r"data\.x .* node 0, column 5"),
        (with_weight(float("nan")), r"data\.edge_weight is nan at edge 3"),
        (with_weight(float("inf")), r"data\.edge_weight is inf at edge 3"),
        (with_weight(-1.0), r"data\.edge_weight is -1.0 at edge 3"),
        (with_value("edge_index", 999), r"edge 5 is \(999"),
        (change(edge_index=lambda d: d.edge_index.float()), r"edge_index has dtype"),
        (change(edge_index=None), r"data\.edge_index is missing"),
        (change(y=None), r"data\.y is missing"),
        (change(y=lambda d: torch.full_like(d.y, -1)), r"no label at all"),
        (change(y=lambda d: torch.zeros_like(d.y)), r"only one class"),
        (change(y=lambda d: d.y + 0.5), r"data\.y is .*\.5 at node 0"),
        (change(train_mask=lambda d: d.train_mask & False), r"names no training node"),
        (change(train_mask=lambda d: d.val_mask), r"train_mask and data.val_mask overlap"),
        (change(train_mask=lambda d: d.train_mask.long()), r"train_mask has dtype"),
        (
            change(y=lambda d: torch.where(d.test_mask, d.y, -1)),
            r"train_mask names .* none has a label",
        ),
    ],
)  # fmt: skip
def test_graphs_that_are_refused(
    spoil: Callable[[Data], Data], message: str, data: Data
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        quick().fit(spoil(data))
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"nope": 1}}, "unknown option 'nope'"),
        ({"options": {"epohcs": 1}}, "did you mean 'epochs'"),
        ({"eta": 2.0}, "eta must be between 0 and 1"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"epochs": "5"}, "epochs must be a whole number"),
        ({"options": {"variants": [{"epochs": 0}]}}, "epochs must be at least 1"),
        ({"graph_mode": "dense"}, "graph_mode must be one of"),
        ({"features": "smell"}, "features is 'smell'"),
        ({"device": "abacus"}, "device must be"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number from 0"),
    ],
)
def test_parameters_that_are_refused(
    arguments: dict[str, Any], message: str, data: Data
) -> None:
    with pytest.raises(InputError, match=message):
        quick(**arguments).fit(data)


def test_a_data_object_comes_alone(data: Data) -> None:
    with pytest.raises(InputError, match="give it alone"):
        quick().fit(data, data.y)
    with pytest.raises(InputError, match="give it alone"):
        quick().fit(data, adjacency=adjacency_of(data))


def test_no_edges_warns_and_trains(sbm: Draw) -> None:
    data = sbm(feature_noise=0.5)
    alone = change(edge_index=torch.empty(2, 0, dtype=torch.long))(data)
    with pytest.warns(UserWarning, match="no edges"):
        clf = quick(epochs=60).fit(alone)
    assert clf.score() > 0.8  # the features alone are enough here
    assert clf.label_utilization_ is not None
    # Nothing travels: only the training nodes themselves are reached.
    reached = ~clf.label_utilization_.unreachable
    assert torch.equal(reached, data.train_mask)


def test_a_class_with_one_label(data: Data) -> None:
    y = np.full(150, -1)
    for label, count in ((0, 6), (1, 6), (2, 1)):
        y[np.flatnonzero(data.y.numpy() == label)[:count]] = label
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = quick().fit(data.x.numpy(), y, adjacency=adjacency_of(data))
    only = int(np.flatnonzero(y == 2)[0])
    assert bool(clf.fitted_.data.train_mask[only])
    assert clf.label_distributions_.shape[1] == 3


def test_one_label_a_class_leaves_no_validation(data: Data) -> None:
    y = np.full(150, -1)
    for label in range(3):
        y[np.flatnonzero(data.y.numpy() == label)[0]] = label
    with pytest.warns(UserWarning, match="no validation node"):
        clf = quick().fit(data.x.numpy(), y, adjacency=adjacency_of(data))
    assert np.isfinite(clf.predict_proba()).all()


def test_missing_validation_is_made_and_said(data: Data) -> None:
    bare = data.clone()
    del bare.val_mask
    clf = quick().fit(bare)
    assert any("no validation nodes were given" in note for note in clf.notes_)
    made = clf.fitted_.data.val_mask
    assert made.any()
    assert not (made & data.test_mask).any()
    assert bool((made <= data.train_mask).all())


def test_oddities_are_noted(data: Data) -> None:
    loose = data.edge_index[:, (data.edge_index != 7).all(dim=0)]
    extra = torch.tensor([[1, 2, 2], [1, 3, 3]])
    once = loose[:, loose[0] < loose[1]]
    odd = change(edge_index=torch.cat([once, extra], dim=1))(data)
    clf = quick().fit(odd)
    notes = " ".join(clf.notes_)
    for words in ("1 self-loops", "repeated", "mirrored", "isolated"):
        assert words in notes, words
    assert np.isfinite(clf.predict_proba()).all()


def test_a_part_without_labels_is_reported(data: Data, sbm: Draw) -> None:
    other = sbm(3, n=30, mean_degree=4)
    n = data.num_nodes
    none = torch.zeros(30, dtype=torch.bool)
    both = Data(
        x=torch.cat([data.x, other.x]),
        edge_index=torch.cat([data.edge_index, other.edge_index + n], dim=1),
        y=torch.cat([data.y, other.y]),
        train_mask=torch.cat([data.train_mask, none]),
        val_mask=torch.cat([data.val_mask, none]),
        test_mask=torch.cat([data.test_mask, ~none]),
    )
    clf = quick().fit(both)
    assert any("contain no training label" in note for note in clf.notes_)
    assert clf.label_utilization_ is not None
    assert clf.label_utilization_.unreachable[n:].all()
    assert not clf.label_utilization_.unreachable[:n].all()


def test_directed_edges_are_kept_when_the_graph_says_so(data: Data) -> None:
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    clf = quick().fit(change(edge_index=one_way, directed=True)(data))
    assert torch.equal(clf.fitted_.data.edge_index, one_way)
    mirrored = quick().fit(change(edge_index=one_way)(data))
    assert torch.equal(mirrored.fitted_.data.edge_index, data.edge_index)
    assert (mirrored.predict_proba() == quick().fit(data).predict_proba()).all()


def test_an_attribute_called_classes_is_no_harm(data: Data) -> None:
    """Some PyG datasets have one that is about other things."""
    clf = quick(epochs=1).fit(change(classes=["x"] * 40)(data))
    assert clf.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2}',
        '{"schema": 1}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_garbled_facts_are_refused(
    text: str, fitted: ELUGCNClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    (tmp_path / "m/model.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"model\.json"):
        ELUGCNClassifier.load(tmp_path / "m")


HUGE = {"in_channels": 10**12, "hidden_channels": 10**12, "out_channels": 3}


def nested(facts: dict[str, Any], *path: str, value: Any) -> None:
    for key in path[:-1]:
        facts = facts[key]
    facts[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("method",), "rm -rf"),
        (("method",), 3),
        (("config",), [1]),
        (("config", "epochs"), "many"),
        (("config", "nope"), 1),
        (("classes",), None),
        (("classes", "values"), ["a", "b"]),
        (("classes", "values"), ["a", "b", "c"]),
        (("classes", "dtype"), "nothing"),
        (("class_names",), ["a"]),
        (("predictor_kind",), "os.system"),
        (("predictor",), []),
        (("predictor", "network", "kind"), "Module"),
        (("predictor", "network", "architecture"), HUGE),
        (("predictor", "network", "architecture", "hidden_channels"), 7),
        (("predictor", "network", "architecture", "norm"), "loud"),
        (("predictor", "source_kind"), "x"),
        (("node_ids",), ["a"]),
        (("seconds",), None),
        (("input",), 5),
    ],
)
def test_hostile_facts_are_refused(
    path: tuple[str, ...], value: Any, fitted: ELUGCNClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    file = tmp_path / "m/model.json"
    facts = json.loads(file.read_text())
    nested(facts, *path, value=value)
    file.write_text(json.dumps(facts))
    with pytest.raises(InputError) as caught:
        ELUGCNClassifier.load(tmp_path / "m")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_named(fitted: ELUGCNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    file = tmp_path / "m/model.json"
    whole = json.loads(file.read_text())
    for key in ("method", "config", "classes", "predictor_kind", "graph_mode"):
        file.write_text(json.dumps({k: v for k, v in whole.items() if k != key}))
        with pytest.raises(InputError, match=re.escape(key)):
            ELUGCNClassifier.load(tmp_path / "m")


def test_other_methods_and_places_are_refused(data: Data, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no saved model here"):
        ELUGCNClassifier.load(tmp_path)
    config = resolve_config("gcn", options={"epochs": 1})
    save_fitted(fit_graph(check_data(data), "gcn", config), tmp_path)
    with pytest.raises(InputError, match="holds a gcn model, not elu-gcn"):
        ELUGCNClassifier.load(tmp_path)


def test_presets_are_a_starting_point(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned = {"epochs": 2, "hidden_channels": 5}
    monkeypatch.setattr("elugcn.config.preset", lambda *_: tuned)
    plain = ELUGCNClassifier(epochs=3, preset="cora").fit(data).fitted_.config
    assert (vars(plain)["epochs"], vars(plain)["hidden_channels"]) == (3, 5)


def test_validation_is_held_out_as_asked(data: Data) -> None:
    bare = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    clf = quick(validation_fraction=0.5).fit(bare)
    assert int(clf.fitted_.data.val_mask.sum()) == 75
    # No test nodes: all labelled ones are scored.
    assert clf.score() == pytest.approx((clf.predict() == data.y.numpy()).mean())


def test_progress_is_asked_for(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def progress(quiet: bool) -> Progress:
        asked.append(quiet)
        return SILENT

    monkeypatch.setattr("elugcn.estimator.default_progress", progress)
    for verbose in (False, True):
        quick(epochs=1, verbose=verbose).fit(data)
    assert asked == [True, False]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"preset": "coraa"}, "preset: unknown dataset 'coraa'.*did you mean 'cora'"),
        ({"n_threads": 0}, "n_threads must be a whole number from 1 on; got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number"),
        ({"validation_fraction": "a"}, "validation_fraction must be a number"),
        ({"options": [1]}, "options must map names to values"),
    ],
)
def test_its_own_parameters(options: dict[str, Any], says: str, data: Data) -> None:
    with pytest.raises(InputError, match=says):
        quick(**options).fit(data)


def test_numbers_of_numpy_are_numbers(data: Data) -> None:
    given = quick(epochs=np.int64(3), lr=np.float32(0.5), self_loops=np.bool_(True))
    same = quick(epochs=3, lr=0.5, self_loops=True)
    assert np.array_equal(
        given.fit(data).predict_proba(), same.fit(data).predict_proba()
    )


def test_a_loaded_model_can_be_saved(fitted: ELUGCNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "a")
    loaded = ELUGCNClassifier.load(tmp_path / "a")
    loaded.save(tmp_path / "b")
    again = ELUGCNClassifier.load(tmp_path / "b")
    assert np.array_equal(again.predict_proba(), fitted.predict_proba())
    with pytest.raises(InputError, match=r"^[^-].*exists and is not empty"):
        loaded.save(tmp_path / "b")


def test_a_list_of_rows_is_a_matrix(data: Data) -> None:
    y = np.where(data.train_mask, data.y, -1)
    rows, adjacency = data.x.tolist(), adjacency_of(data)
    one = quick().fit(rows, y, adjacency=adjacency)
    two = quick().fit(np.array(rows), y, adjacency=adjacency)
    assert np.array_equal(one.predict_proba(), two.predict_proba())
    rows[3] = rows[3][:-1]
    with pytest.raises(InputError, match="X has rows of different lengths"):
        quick().fit(rows, y, adjacency=adjacency)


def test_other_graphs_are_read_in_the_direction_of_the_fitted_one(sbm: Draw) -> None:
    data = sbm(0)
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    x, y, n = data.x.numpy(), data.y.numpy(), data.num_nodes
    a = sp.csr_array((np.ones(one_way.size(1)), tuple(one_way.numpy())), shape=(n, n))
    clf = quick(directed=True, options={"variants": (), "rounds": 1}).fit(
        x, y, adjacency=a
    )
    assert clf.fitted_.data.edge_index.shape == one_way.shape
    other = Data(x=data.x, edge_index=one_way)
    said = clf.predict_proba(x, adjacency=a)
    np.testing.assert_array_equal(clf.predict_proba(other), said)
    other.directed = True
    np.testing.assert_array_equal(clf.predict_proba(other), said)
    mirrored = clf.predict_proba(x, adjacency=a + a.T)
    assert np.abs(mirrored - said).max() > 1e-3


def test_a_loaded_model_reads_graphs_as_the_saved_one(
    sbm: Draw, tmp_path: Path
) -> None:
    data = sbm(0)
    clf = quick(validation_fraction=0.4, n_neighbors=4).fit(data.x, data.y)
    clf.save(tmp_path / "m")
    loaded = ELUGCNClassifier.load(tmp_path / "m")
    for name in ("validation_fraction", "n_neighbors", "directed", "features"):
        assert getattr(loaded, name) == getattr(clf, name)
    few = data.x[:3].numpy()  # fewer than there are neighbours
    np.testing.assert_array_equal(loaded.predict_proba(few), clf.predict_proba(few))


def test_what_is_not_asked_right(sbm: Draw) -> None:
    clf = quick().fit(sbm(0))
    with pytest.raises(InputError, match="an adjacency needs the features"):
        clf.predict(adjacency=np.eye(clf.fitted_.data.num_nodes))
    with pytest.raises(InputError, match=r"score takes a mask .* got a str"):
        clf.score("abc")
    wide = np.ones((clf.fitted_.data.num_nodes, 2))
    assert clf.graph_ is not None
    expected = clf.graph_ @ torch.ones(len(wide), 2)
    assert torch.equal(clf.graph_ @ wide, expected)
