"""Correct and Smooth against PyG's, and what it may and may not read."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor

from elugcn.config import resolve_config
from elugcn.core.sparse import normalized_adjacency
from elugcn.data.checks import CheckedGraph, check_data
from elugcn.data.datasets import load_dataset
from elugcn.errors import InputError
from elugcn.fitting import Fitted, fit_graph
from elugcn.methods.correct_smooth import (
    CorrectSmoothConfig,
    CorrectSmoothPredictor,
    correct,
    correct_and_smooth,
    graph_of,
    smooth,
)

BASES = ("mlp", "linear", "gcn")


def draw(split: int = 0, n: int = 300, **options: Any) -> CheckedGraph:
    small = {"n_classes": 3, "n_features": 16} | options
    return check_data(load_dataset("sbm", split=split, n=n, **small))


def fit(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    return fit_graph(graph, "cs", resolve_config("cs", options=options), seed=seed)


def scores(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"correction_alpha": 1.0, "smoothing_alpha": 0.5},
        {"correction_steps": 1, "smoothing_steps": 2},
        {"correction_steps": 0, "smoothing_steps": 0},
        {"autoscale": False},
        {"autoscale": False, "scale": 20.0, "correction_alpha": 1.0},
    ],
)
def test_both_steps_are_pygs(options: dict[str, Any]) -> None:
    data = draw(n=120).data
    config = CorrectSmoothConfig(**options)
    twin = pyg.CorrectAndSmooth(
        config.correction_steps,
        config.correction_alpha,
        config.smoothing_steps,
        config.smoothing_alpha,
        config.autoscale,
        config.scale,
    )
    z, known = scores(120).softmax(dim=1), data.train_mask
    labels = torch.where(known, data.y, -1)
    s = graph_of(data, "given", torch.device("cpu"))
    corrected = correct(z, labels, s, config)
    expected = twin.correct(z, data.y[known], known, data.edge_index)
    torch.testing.assert_close(corrected, expected)
    smoothed = smooth(corrected, labels, s, config)
    expected = twin.smooth(expected, data.y[known], known, data.edge_index)
    torch.testing.assert_close(smoothed, expected)


def test_equations_without_scaling_or_bounds() -> None:
    """Two steps of each, written out; α so small that no bound is met."""
    data = draw(n=60).data
    config = CorrectSmoothConfig(
        autoscale=False, scale=0.5, correction_steps=2, correction_alpha=0.3,
        smoothing_steps=2, smoothing_alpha=0.2,
    )  # fmt: skip
    z, known = scores(60).softmax(dim=1), data.train_mask.unsqueeze(1)
    s = normalized_adjacency(data.edge_index, 60, self_loops=False).to_dense()
    y = torch.eye(3)[data.y]
    start = (y - z) * known
    e = start
    for _ in range(2):
        e = torch.where(known, start, 0.3 * s @ e + 0.7 * start)
    g0 = torch.where(known, y, z + 0.5 * e)
    g = 0.2 * s @ (0.2 * s @ g0 + 0.8 * g0) + 0.8 * g0
    assert g.min() > 0.0
    assert g.max() < 1.0
    labels = torch.where(data.train_mask, data.y, -1)
    csr = graph_of(data, "given", torch.device("cpu"))
    out = correct_and_smooth(z.log(), labels, csr, config)
    torch.testing.assert_close(out.exp(), g)


def test_a_perfect_base_and_isolated_nodes_stay_finite() -> None:
    """Where no error is or none arrives, 0/0 must not be an answer."""
    data = draw(n=60).data
    data.edge_index = data.edge_index[:, (data.edge_index < 30).all(dim=0)]
    labels = torch.where(data.train_mask, data.y, -1)
    s = graph_of(data, "given", torch.device("cpu"))
    sure = 200.0 * torch.eye(3)[data.y]
    out = correct_and_smooth(sure, labels, s, CorrectSmoothConfig())
    assert torch.isfinite(out).all()
    assert torch.equal(out.argmax(dim=1), data.y)


@pytest.mark.parametrize("base", BASES)
def test_it_learns_and_beats_its_base(base: str) -> None:
    graph = draw(feature_noise=4.0, label_rate=0.1)
    test = graph.data.test_mask
    fitted = fit(graph, base=base, epochs=60)
    right = fitted.accuracy(test)
    assert right is not None
    assert right > 0.75  # a third is the majority
    if base != "gcn":
        # The features alone are too noisy for as much.
        plain = fit(graph, base=base, epochs=60, correction_steps=0, smoothing_steps=0)
        base_right = plain.accuracy(test)
        assert base_right is not None
        assert right > base_right + 0.1


def test_validation_labels_choose_an_epoch_and_nothing_else() -> None:
    """With one epoch there is nothing to choose: they must not matter at all."""
    graph = draw()
    other = replace(graph, data=graph.data.clone())
    hidden = ~other.data.train_mask
    other.data.y = torch.where(hidden, (other.data.y + 1) % 3, other.data.y)
    one, two = (fit(g, epochs=1).prediction.logits for g in (graph, other))
    assert torch.equal(one, two)


@pytest.mark.parametrize("base", BASES[1:])
def test_the_same_seed_gives_the_same_logits(base: str) -> None:
    graph = draw()
    one, two = (fit(graph, 5, base=base, epochs=5).prediction for _ in range(2))
    assert torch.equal(one.logits, two.logits)
    other = fit(graph, 6, base=base, epochs=5).prediction.logits
    assert not torch.equal(one.logits, other)


@pytest.mark.parametrize("base", BASES[1:])
def test_predictor_survives_saving(base: str) -> None:
    graph, other = draw(), draw(split=1, n=90)
    predictor = fit(graph, base=base, epochs=5, smoothing_steps=7).prediction.predictor
    assert isinstance(predictor, CorrectSmoothPredictor)
    again = CorrectSmoothPredictor.restore(*predictor.state())
    assert torch.equal(again.logits(other.data), predictor.logits(other.data))


def test_predictor_smooths_without_any_label() -> None:
    graph, other = draw(), draw(split=1, n=90)
    predictor = fit(graph, epochs=5, smoothing_steps=2).prediction.predictor
    assert isinstance(predictor, CorrectSmoothPredictor)
    z = predictor.base.logits(other.data).softmax(dim=1)
    s = normalized_adjacency(other.data.edge_index, 90, self_loops=False).to_dense()
    first = (0.8 * s @ z + 0.2 * z).clamp(0, 1)
    expected = (0.8 * s @ first + 0.2 * z).clamp(0, 1)
    out = predictor.logits(other.data)
    torch.testing.assert_close(out.exp(), expected)
    other.data.y = (other.data.y + 1) % 3
    assert torch.equal(predictor.logits(other.data), out)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": "svm"},
        {"correction_alpha": 1.1},
        {"smoothing_alpha": -0.1},
        {"correction_steps": -1},
        {"scale": -1.0},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        CorrectSmoothConfig(**wrong)
