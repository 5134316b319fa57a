"""Diagnosis, explanations, suggestions and saved runs, value by value."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn import ELUGCNClassifier, label_utilization, suggest
from elugcn.config import resolve_config
from elugcn.core.utilization import LabelUtilization, definition_one
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.diagnosis.fitted import Reading
from elugcn.diagnosis.graphs import compare_graphs
from elugcn.explain import explain
from elugcn.fitting import Fitted, fit_graph
from elugcn.runs import metrics_of
from elugcn.storage import load_fitted
from elugcn.suggest import default_pool, suggest_labels
from elugcn.transforms import AddELUGraph
from tests.diagnosis.conftest import fit

Draw = Callable[..., Data]
Check = Callable[..., CheckedGraph]


@pytest.fixture(scope="module")
def fitted(checked: Check) -> Fitted:
    return fit(checked())


@pytest.fixture(scope="module")
def reading(fitted: Fitted) -> Reading:
    return Reading.of(fitted)


def star() -> Data:
    """Node 0 hears 1 (class 0) little and 2 (class 1) a lot; 3 is its neighbour too."""
    return Data(
        x=torch.eye(4),
        edge_index=torch.tensor([[1, 2, 3], [0, 0, 0]]),
        edge_weight=torch.tensor([1.0, 5.0, 1.0]),
        y=torch.tensor([1, 0, 1, 0]),
        train_mask=torch.tensor([0, 1, 1, 0], dtype=torch.bool),
        val_mask=torch.tensor([0, 0, 0, 1], dtype=torch.bool),
        test_mask=torch.tensor([1, 0, 0, 0], dtype=torch.bool),
    )


def wrong_gcn(reading: Reading, at: int) -> Reading:
    """The GCN of Definition 1 says another class of a node than the model itself."""
    gcn = reading.use.gcn.clone()
    gcn[at] = (int(reading.proba[at].argmax()) + 1) % 3
    use = reading.use
    return replace(reading, use=LabelUtilization(use.lpa, gcn, use.status))


def test_heavy_edges_are_heard_more() -> None:
    """Label propagation hears heavy edges more."""
    data = star()
    gcn = torch.tensor([1, 0, 1, 0])
    heavy = label_utilization(data, gcn, lpa_steps=1)
    assert int(heavy.lpa[0]) == 1
    data.edge_weight = torch.tensor([5.0, 1.0, 1.0])
    assert int(label_utilization(data, gcn, lpa_steps=1).lpa[0]) == 0


def test_neighbours_count_by_weight() -> None:
    """Neighbours count by weight: 5 of 7 are of node 0's class, all of 3's is not."""
    graph = check_data(star())
    said = compare_graphs(Reading.of(fit(graph, "gcn", epochs=1)).problem, None)
    # Node 0: weight 5 of 1 + 5 + 1; node 3 hears node 0 alone, of another class.
    assert said["original"]["homophily"] == pytest.approx((5 / 7 + 0) / 2)


def test_the_gcn_is_that_of_the_seed(sbm: Draw) -> None:
    data = sbm()
    for seed in (0, 2):
        graph = check_data(data, seed=seed)
        config = resolve_config("gcn")
        gcn = fit_graph(graph, "gcn", config, seed=seed).prediction.logits
        use = label_utilization(data, random_state=seed)
        assert torch.equal(use.gcn, gcn.argmax(dim=1))


def test_the_usual_alpha(sbm: Draw) -> None:
    data, gcn = sbm(homophily=0.3), torch.zeros(150).long()
    usual = label_utilization(data, gcn, lpa_steps=3).lpa
    for alpha, same in ((0.9, True), (0.99, False)):
        other = label_utilization(data, gcn, lpa_steps=3, lpa_alpha=alpha).lpa
        assert torch.equal(usual, other) is same


def test_labels_travel_as_the_method_lets_them(sbm: Draw) -> None:
    """Where labels travel between nodes that point alike, so does the diagnosis."""
    data = sbm()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    graph = check_data(data, directed=True)
    found = fit(graph, direction="given", lpa_graph="coupled", epochs=2)
    reading, use = Reading.of(found), found.prediction.utilization
    again = definition_one(reading.lpa, use.gcn)
    assert torch.equal(again.lpa, use.lpa.cpu())
    assert torch.equal(again.status, use.status.cpu())


def test_known_labels_are_not_asked_for() -> None:
    masks = torch.eye(5, dtype=torch.bool)
    data = Data(
        y=torch.tensor([0, 1, 0, 1, -1]),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
    )
    # Node 3 is in no mask, but its label is known already.
    assert default_pool(data).tolist() == [False] * 4 + [True]


def test_confidence_is_that_of_the_class_named(reading: Reading) -> None:
    at = suggest_labels(reading, 1)[0].index
    pool = torch.arange(150) == at
    (one,) = suggest_labels(wrong_gcn(reading, at), 1, pool)
    other = (int(reading.proba[at].argmax()) + 1) % 3
    assert one.gcn == str(other)
    assert one.confidence == pytest.approx(float(reading.proba[at, other]))


def test_chosen_labels_count_too(reading: Reading) -> None:
    """Labels that are chosen count like those that are there."""
    data = reading.data
    there = np.bincount(data.y[data.train_mask], minlength=3).astype(float)
    candidates = torch.arange(150)
    likely = (reading.proba + reading.lpa).argmax(dim=1).numpy()
    factor = suggest._favour(reading, candidates)
    for picked in ([], [4], [4, 5, 6, 7]):
        count = there + np.bincount(likely[picked], minlength=3)
        expected = (1 + count / count.mean())[likely] ** -0.5
        np.testing.assert_allclose(factor(picked), expected, rtol=1e-5)


def test_the_confidence_of_the_gcn(reading: Reading) -> None:
    at = int(reading.data.test_mask.nonzero()[0])
    said = explain(wrong_gcn(reading, at), at)
    other = (int(reading.proba[at].argmax()) + 1) % 3
    assert said["gcn"] == str(other)
    assert said["gcn_confidence"] == pytest.approx(float(reading.proba[at, other]))


def test_a_labelled_neighbour_has_its_label(reading: Reading) -> None:
    """A labelled neighbour has the class of its label, whatever the GCN says."""
    data = reading.data
    source, target = data.edge_index
    edge = int(data.train_mask[source].nonzero()[0])
    label, at = int(source[edge]), int(target[edge])
    gcn = reading.use.gcn.clone()
    gcn[label] = (int(data.y[label]) + 1) % 3
    use = LabelUtilization(reading.use.lpa, gcn, reading.use.status)
    said = explain(replace(reading, use=use), at, shown=150)
    (row,) = [r for r in said["before"]["neighbours"] if r["node"] == str(label)]
    assert (row["labelled"], row["class"]) == (True, str(int(data.y[label])))


def test_labels_add_up_with_the_options_of_the_run(checked: Check) -> None:
    """The labels behind a class add up to its share, with the options of the run."""
    reading = Reading.of(fit(checked(), lpa_alpha=0.3, lpa_steps=3, epochs=2))
    at = int((reading.use.status >= 0).nonzero()[-1])
    said = explain(reading, at, shown=150)
    for row in said["influence"]:
        parts = [r["share"] for r in said["labels"] if r["class"] == row["class"]]
        assert sum(parts) == pytest.approx(row["share"], rel=1e-4)


def test_twenty_neighbours_are_usual() -> None:
    assert AddELUGraph().topk == 20


def test_direction_comes_back(sbm: Draw, tmp_path: Path) -> None:
    """A model of directed edges reads other graphs with their direction, saved too."""
    data = sbm()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    data.directed = True
    clf = ELUGCNClassifier(epochs=3).fit(data)
    clf.save(tmp_path / "model")
    other = Data(x=data.x, edge_index=data.edge_index)
    expected = clf.predict_proba(other)
    again = ELUGCNClassifier.load(tmp_path / "model").predict_proba(other)
    np.testing.assert_allclose(again, expected, atol=1e-6)
    assert load_fitted(tmp_path / "model").data.directed is True


def test_fractions_of_a_run(fitted: Fitted, tmp_path: Path) -> None:
    use = fitted.prediction.utilization
    status = torch.arange(150) % 5 - 1  # 1 in 5 unreachable, NELU, ELU
    status = torch.where(status > 1, 1, status)
    prediction = replace(fitted.prediction, utilization=replace(use, status=status))
    said = metrics_of(replace(fitted, prediction=prediction), "sbm", 0, tmp_path)
    assert said["elu_fraction"] == pytest.approx(0.6)
    assert said["unreachable_fraction"] == pytest.approx(0.2)
