"""One fit: its seed, its time, its classes, its device."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.config import resolve_config
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.errors import InputError
from elugcn.fitting import accuracy, choose_device, class_labels, fit_graph

Draw = Callable[..., CheckedGraph]


@pytest.mark.parametrize("method", ["elu-gcn", "elu-graph", "gcn", "mlp"])
def test_same_seed_same_bits(method: str, checked: Draw) -> None:
    config = resolve_config(method, options={"epochs": 4})
    torch.manual_seed(99)
    one = fit_graph(checked(), method, config, seed=5).prediction.logits
    torch.manual_seed(1)  # what the caller draws is no part of it
    two = fit_graph(checked(), method, config, seed=5).prediction.logits
    other = fit_graph(checked(), method, config, seed=6).prediction.logits
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("method", ["elu-gcn", "gcn", "mlp", "lpa"])
def test_probabilities_sum_to_one(method: str, checked: Draw) -> None:
    options = {} if method == "lpa" else {"epochs": 4}
    config = resolve_config(method, options=options)
    fitted = fit_graph(checked(), method, config)
    proba = fitted.prediction.proba
    assert torch.isfinite(fitted.prediction.logits).all()
    torch.testing.assert_close(proba.sum(dim=1), torch.ones(150))
    assert fitted.prediction.seconds["total"] >= fitted.prediction.seconds["train"] > 0


def test_accuracy_counts_labelled_nodes_of_the_mask() -> None:
    logits = torch.eye(3)[[0, 1, 2, 0]]
    y = torch.tensor([0, 1, 0, -1])
    every = torch.ones(4, dtype=torch.bool)
    assert accuracy(logits, y, every) == pytest.approx(2 / 3)
    assert accuracy(logits, y, torch.tensor([False, False, True, True])) == 0.0
    assert accuracy(logits, y, torch.tensor([False, False, False, True])) is None


def test_class_labels() -> None:
    assert class_labels(Data(), 3).tolist() == [0, 1, 2]
    own = Data(classes=np.array(["a", "b"]))
    assert class_labels(own, 2).tolist() == ["a", "b"]
    assert class_labels(own, 3).tolist() == [0, 1, 2]
    table = Data(table_schema={}, class_names=["x", "y"])
    assert class_labels(table, 2).tolist() == ["x", "y"]


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(InputError, match="finds no CUDA"):
        choose_device("cuda")
    for wrong in ("tpu", "meta", "", None):
        with pytest.raises(InputError, match="auto, cpu or cuda"):
            choose_device(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto").type == "cuda"


def test_labels_of_other_nodes_are_never_seen(checked: Draw) -> None:
    """What is recorded besides the logits, too; tests/methods has every method."""
    graph = checked()
    spoilt = graph.data.clone()
    spoilt.y = torch.where(spoilt.test_mask, (spoilt.y + 1) % 3, spoilt.y)
    config = resolve_config("elu-gcn", options={"epochs": 4})
    one = fit_graph(graph, "elu-gcn", config).prediction
    two = fit_graph(check_data(spoilt), "elu-gcn", config).prediction
    assert torch.equal(one.logits, two.logits)
    assert one.facts == two.facts
