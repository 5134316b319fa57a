"""Correct and Smooth against its equations, and what it may and may not read."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from elugcn.baselines.correct_smooth import (
    CorrectSmoothConfig,
    CorrectSmoothModel,
    correct_and_smooth,
)
from elugcn.engine import normalized_adjacency
from tests.baselines.helpers import Draw, accuracy, fit

BASES = ("mlp", "linear", "gcn")


def random_scores(n: int) -> Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("autoscale", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_equations(checked: Draw, autoscale: bool, directed: bool) -> None:
    """Two steps of each, written out; α so small that no bound is met."""
    data = checked(0, n=60).data
    if directed:
        keep = (data.edge_index[0] < data.edge_index[1]) | (data.edge_index[0] > 20)
        data.edge_index = data.edge_index[:, keep]
    config = CorrectSmoothConfig(
        autoscale=autoscale, scale=0.5, correction_steps=2, correction_alpha=0.3,
        smoothing_steps=2, smoothing_alpha=0.2,
    )  # fmt: skip
    logits, known = random_scores(60), data.train_mask.unsqueeze(1)
    z = logits.softmax(dim=1)
    s = normalized_adjacency(data.edge_index, 60, self_loops=False).to_dense()
    y = torch.eye(3)[data.y]
    start = (y - z) * known
    e = start
    for _ in range(2):
        e = 0.3 * s @ e + 0.7 * start
        e = e if autoscale else torch.where(known, start, e)
    scale = torch.full((60, 1), 0.5)
    if autoscale:
        size = e.abs().sum(dim=1, keepdim=True)
        scale = start.abs().sum() / known.sum() / size
        scale = torch.where(scale <= 1000, scale, 1.0)
    g0 = torch.where(known, y, z + scale * e)
    g = (0.2 * s @ g0 + 0.8 * g0).clamp(0, 1)
    g = (0.2 * s @ g + 0.8 * g0).clamp(1e-12, 1)
    labels = torch.where(data.train_mask, data.y, -1)
    out = correct_and_smooth(logits, labels, data, config)
    torch.testing.assert_close(out.exp(), g)


def test_a_perfect_base_and_isolated_nodes_stay_finite(checked: Draw) -> None:
    """Where there is no error or none arrives, the scale is 0/0."""
    data = checked(0, n=60).data
    data.edge_index = data.edge_index[:, (data.edge_index < 30).all(dim=0)]
    labels = torch.where(data.train_mask, data.y, -1)
    sure = 200.0 * torch.eye(3)[data.y]
    out = correct_and_smooth(sure, labels, data, CorrectSmoothConfig())
    assert torch.isfinite(out).all()
    assert torch.equal(out.argmax(dim=1), data.y)


@pytest.mark.parametrize("base", BASES)
def test_it_learns_and_beats_its_base(checked: Draw, base: str) -> None:
    graph = checked(0, n=300, n_features=16, feature_noise=4.0, label_rate=0.1)
    right = accuracy(fit(graph, "cs", base=base, epochs=60), graph)
    assert right > 0.75  # a third is the majority
    if base != "gcn":
        # The features alone are too noisy for as much.
        none = {"correction_steps": 0, "smoothing_steps": 0}
        plain = accuracy(fit(graph, "cs", base=base, epochs=60, **none), graph)
        assert right > plain + 0.1


def test_options_of_the_network_are_the_bases() -> None:
    for base, name in zip(BASES, ("mlp", "sgc", "gcn"), strict=True):
        shared = {"lr": 0.3, "epochs": 7, "direction": "both", "decay": "first"}
        config = CorrectSmoothConfig(base=base, **shared)
        method, options = config.base_model()
        assert method.name == name
        assert (options.lr, options.epochs, options.direction) == (0.3, 7, "both")
        assert base == "linear" or options.dropout == 0.5
        assert options.decay == ("all" if base == "linear" else "first")  # one layer
    assert CorrectSmoothConfig(base="linear").base_model()[1].order == 0


def test_validation_labels_select_an_epoch_and_nothing_else(checked: Draw) -> None:
    """With one epoch there is nothing to select: they must not matter at all."""
    graph = checked(0)
    other = replace(graph, data=graph.data.clone())
    hidden = ~other.data.train_mask
    other.data.y = torch.where(hidden, (other.data.y + 1) % 3, other.data.y)
    one, two = (fit(g, "cs", epochs=1).logits for g in (graph, other))
    assert torch.equal(one, two)


def test_the_model_smooths_without_any_label(checked: Draw) -> None:
    graph, data = checked(0), checked(1, n=90).data
    model = fit(graph, "cs", epochs=5, smoothing_steps=2).model
    assert isinstance(model, CorrectSmoothModel)
    z = model.base.logits(data).softmax(dim=1)
    s = normalized_adjacency(data.edge_index, 90, self_loops=False).to_dense()
    first = (0.8 * s @ z + 0.2 * z).clamp(0, 1)
    expected = (0.8 * s @ first + 0.2 * z).clamp(1e-12, 1)
    out = model.logits(data)
    torch.testing.assert_close(out.exp(), expected)
    data.y = (data.y + 1) % 3
    assert torch.equal(model.logits(data), out)
