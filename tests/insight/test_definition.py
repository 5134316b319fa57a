"""Definition 1 for any two predictions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn import label_utilization
from elugcn.api import fit
from elugcn.errors import InputError
from tests.insight.conftest import small

NODES = Data(num_nodes=6)
LPA = [0, 0, 0, 1, -1, 1]
GCN = [0, 1, 0, 1, 1, 0]
EXPECTED = ["elu", "nelu", "elu", "elu", "unreachable", "nelu"]


@pytest.mark.parametrize(
    ("gcn", "lpa"),
    [
        (torch.tensor(GCN), torch.tensor(LPA)),
        (GCN, np.array(LPA)),
        # A zero row is no class.
        (np.eye(2)[GCN], torch.eye(3)[LPA][:, :2]),
    ],
    ids=["classes", "lists and arrays", "scores"],
)
def test_by_hand(gcn: Any, lpa: Any) -> None:
    use = label_utilization(NODES, gcn, lpa)
    assert use.names() == EXPECTED
    assert use.elu_fraction == 0.5
    assert use.unreachable_fraction == pytest.approx(1 / 6)


def test_names_of_classes() -> None:
    gcn, lpa = ["b", "a", "a", "c"], np.array(["b", "c", "a", "c"])
    use = label_utilization(Data(num_nodes=4), gcn, lpa)
    assert use.names() == ["elu", "nelu", "elu", "elu"]
    assert (use.gcn.tolist(), use.lpa.tolist()) == ([1, 0, 0, 2], [1, 2, 0, 2])
    # The graph's own order of the classes, beside numbers.
    named = Data(num_nodes=4, class_names=["c", "a", "b"])
    said = label_utilization(named, gcn, [2, 0, 1, -1]).names()
    assert said == ["elu", "nelu", "elu", "unreachable"]


def test_labels_are_propagated(path_graph: Data) -> None:
    """Two steps from both ends of a row of six: the halves meet in the middle."""
    gcn = torch.tensor([0, 0, 0, 1, 1, 1])
    assert label_utilization(path_graph, gcn, lpa_steps=2).names() == ["elu"] * 6
    near = label_utilization(path_graph, gcn, lpa_steps=1)
    assert near.unreachable.tolist() == [False, False, True, True, False, False]
    assert label_utilization(path_graph, 1 - gcn, lpa_steps=2).nelu.all()
    # Node 0 has a neighbour of class 0 and one of class 1: the heavy edge counts more.
    data = small([1, 0, 1, 0], ([1, 2, 3], [0, 0, 0]), (1, 2))
    for weight, expected in (([1.0, 5.0, 1.0], 1), ([5.0, 1.0, 1.0], 0)):
        data.edge_weight = torch.tensor(weight)
        assert int(label_utilization(data, data.y, lpa_steps=1).lpa[0]) == expected


def test_options_change_label_propagation(sbm: Callable[..., Data]) -> None:
    data, gcn = sbm(homophily=0.3), torch.zeros(150).long()
    usual, *others = (
        label_utilization(data, gcn, lpa_steps=3, **options).lpa
        for options in ({}, {"lpa_alpha": 0.99}, {"self_loops": False})
    )
    assert not any(torch.equal(usual, other) for other in others)


def test_a_gcn_is_trained_if_none_is_given(sbm: Callable[..., Data]) -> None:
    use = label_utilization(sbm(), random_state=2)
    gcn = fit(sbm(), "gcn", seed=2).result.logits.argmax(dim=1)
    assert torch.equal(use.gcn, gcn)


def test_a_graph_without_features(path_graph: Data) -> None:
    del path_graph.x
    with pytest.raises(InputError, match="identity"):
        label_utilization(path_graph, [0] * 6)
    use = label_utilization(path_graph, [0, 0, 0, 1, 1, 1], features="identity")
    assert use.gcn.tolist() == [0, 0, 0, 1, 1, 1]


CLASSES = [0, 1, 0, 1, 0, 1]
ROWS = r"gcn must have one row per node \(6\)"
REFUSED = {
    "too few rows": (torch.zeros(5, 2), ROWS),
    "three axes": (torch.zeros(6, 2, 2), ROWS),
    "a number": (torch.tensor(1), ROWS),
    "negative": ([-5, 0, 0, 0, 0, 0], "classes from 0, or -1; got -5"),
    "NaN": ([[np.nan, 1.0]] * 6, "gcn must be finite"),
    "names beside numbers": (["a"] * 6, "must both name classes or both number them"),
    "names in two columns": ([["a", "b"]] * 6, "both name classes"),
}


@pytest.mark.parametrize(("wrong", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        label_utilization(NODES, wrong, CLASSES)
    with pytest.raises(InputError, match=message.replace("gcn", "lpa")):
        label_utilization(NODES, CLASSES, wrong)


def test_an_unknown_name_is_refused(path_graph: Data) -> None:
    path_graph.class_names = ["cat", "dog"]
    with pytest.raises(InputError, match=r"gcn must contain scores.*got 'cow'"):
        label_utilization(path_graph, ["cow"] * 6)
