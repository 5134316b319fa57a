"""Means of members: against numpy, scikit-learn, and by hand."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss

from elugcn.data.validation import CheckedGraph
from elugcn.methods.calibration import TEMPERATURES, UNCALIBRATED, calibrate
from elugcn.methods.registry import get_method
from elugcn.recipe.ensemble import (
    MIN_GAIN,
    Blend,
    class_bias,
    greedy_weights,
    mean_logits,
)
from tests.elu.conftest import fit

Array = np.ndarray
SEEDS = st.integers(0, 2**32 - 1)


def weights_of(*p_true: list[float], counts: list[float] | None = None) -> list[float]:
    p = torch.tensor(p_true)
    each = torch.tensor(counts) if counts else torch.ones(p.shape[1])
    found: list[float] = greedy_weights(p, each).tolist()
    return found


# --- greedy selection --------------------------------------------------------------


def test_two_members_by_hand() -> None:
    # Alone: 1.20. Half of each: 0.69. Two thirds of one: 0.73.
    assert weights_of([0.9, 0.1], [0.1, 0.9]) == [0.5, 0.5]
    # Nothing that the second adds is better.
    assert weights_of([0.9, 0.8], [0.5, 0.5]) == [1.0, 0.0]
    # Nothing tells equals apart.
    assert weights_of([0.6, 0.6], [0.6, 0.6]) == [0.5, 0.5]
    # Never right with any probability: still a finite loss.
    assert weights_of([0.0, 0.0], [0.0, 0.0]) == [0.5, 0.5]


def test_the_weight_of_a_class_matters() -> None:
    right_on_many, right_on_few = [0.8, 0.8, 0.8, 0.3], [0.5, 0.5, 0.5, 0.9]
    assert weights_of(right_on_many, right_on_few)[0] > 0.5
    found = weights_of(right_on_many, right_on_few, counts=[0.1, 0.1, 0.1, 9.7])
    assert found == [0.0, 1.0]


def greedily(proba: Array, y: Array, weight: Array, steps: int) -> Array:
    """The same from whole probabilities and scikit-learn's log-loss."""
    chosen: list[int] = []
    least = math.inf
    for _ in range(steps):
        losses = [
            log_loss(
                y, proba[[*chosen, i]].mean(axis=0), sample_weight=weight,
                labels=range(proba.shape[2]),
            )
            for i in range(len(proba))
        ]  # fmt: skip
        if min(losses) > least - MIN_GAIN:
            break
        least = min(losses)
        chosen.append(int(np.argmin(losses)))
    return np.bincount(chosen, minlength=len(proba)) / len(chosen)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_selection_is_that_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members, m, c = int(rng.integers(2, 7)), int(rng.integers(10, 60)), 3
    y = rng.integers(0, c, m)
    scores = 2 * rng.normal(size=(members, m, c)) + 2 * np.eye(c)[y]
    proba = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    weight = np.array([1.0, 0.5, 3.0])[y] if seed % 2 else np.ones(m)
    p_true = torch.from_numpy(proba[:, np.arange(m), y])
    found = greedy_weights(p_true, torch.from_numpy(weight), steps=12).numpy()
    np.testing.assert_allclose(found, greedily(proba, y, weight, 12))


@given(SEEDS, st.integers(1, 6), st.integers(1, 30))
def test_weights_sum_to_one_and_the_mean_is_no_worse(
    seed: int, members: int, m: int
) -> None:
    rng = np.random.default_rng(seed)
    p = rng.uniform(1e-3, 1.0, (members, m))
    found = greedy_weights(torch.from_numpy(p), torch.ones(m)).numpy()
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1.0)
    alone = -np.log(p).mean(axis=1)
    assert -np.log(found @ p).mean() <= alone.min() + 1e-9


# --- the mean ----------------------------------------------------------------------


def test_a_mean_is_one_of_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b, c = (5 * torch.randn(20, 4, generator=generator) for _ in range(3))
    weights = [0.2, 1.0, 3.0]  # they need not sum to 1
    p = sum(w * z.double().softmax(1) for w, z in zip(weights, (a, b, c), strict=True))
    expected = (p / sum(weights)).log().float()  # type: ignore[union-attr]
    torch.testing.assert_close(mean_logits([a, b, c], weights), expected)
    # Large logits do not overflow.
    far = torch.tensor([[1e4, 0.0], [0.0, 1e4]])
    halves = mean_logits([far, far.flip(1)], [1.0, 1.0]).softmax(dim=1)
    torch.testing.assert_close(halves, torch.full((2, 2), 0.5))


def uneven_scores() -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy log-probabilities of two classes, nine nodes of one for each other."""
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=2000) < 0.1).astype(int)
    x = rng.normal(size=2000) + 1.5 * y
    odds = 1.5 * x - 1.125 + np.log(0.1 / 0.9)  # exactly those of this draw
    logits = np.stack([np.zeros(2000), odds], axis=1)
    return torch.from_numpy(logits).float(), torch.from_numpy(y)


@pytest.mark.parametrize(
    ("metric", "truth"),
    [
        ("balanced_accuracy", balanced_accuracy_score),
        ("f1_macro", lambda y, p: f1_score(y, p, average="macro")),
    ],
)
def test_a_bias_for_metrics_that_count_classes_alike(
    metric: str, truth: Callable[[Array, Array], float]
) -> None:
    logits, y = uneven_scores()
    bias = class_bias(metric, logits, y, 2)
    assert bias is not None
    assert bias[1] > bias[0]  # towards the rare class
    plain, better = (
        truth(y.numpy(), z.argmax(1).numpy()) for z in (logits, logits + bias)
    )
    assert better > plain + 0.05
    if metric == "balanced_accuracy":
        # The best decision of all is that by likelihoods: γ = 1.
        share = np.bincount(y.numpy()) / len(y)
        np.testing.assert_allclose(bias.numpy(), -np.log(share), rtol=0.3)


def test_no_bias() -> None:
    logits, y = uneven_scores()
    for metric in ("accuracy", "roc_auc"):
        assert class_bias(metric, logits, y, 2) is None
    assert class_bias("balanced_accuracy", logits[:0], y[:0], 2) is None
    perfect = 9 * torch.eye(2)[y]
    assert class_bias("balanced_accuracy", perfect, y, 2) is None
    # A class that no judged node has: nothing infinite.
    bias = class_bias("balanced_accuracy", torch.cat([logits, logits[:, :1]], 1), y, 3)
    assert bias is None or bool(bias.isfinite().all())


def test_a_blend_is_rebuilt_from_its_description(
    checked: Callable[..., CheckedGraph],
) -> None:
    graph, other = checked(0), checked(1).data
    methods = {"linear": {}, "gcn": {"epochs": 3}, "elu-gcn": {"epochs": 3, "eta": 0.4}}
    models = [fit(graph, name, **options).model for name, options in methods.items()]
    members = [model for model in models if model is not None]
    assert len(members) == 3
    blend = Blend(members, [0.5, 0.3, 0.2], [2.0, 0.5, 1.0], [0.0, 0.7, -0.3])
    description = json.loads(json.dumps(blend.description()))
    again = get_method("auto").restore(description, blend.tensors())
    assert isinstance(again, Blend)
    assert (again.temperatures, again.bias) == (blend.temperatures, blend.bias)
    assert torch.equal(again.logits(other), blend.logits(other))
    # softmax(b + log Σ w softmax(t z))
    p = sum(
        w * (t * m.logits(other)).softmax(dim=1)
        for m, w, t in zip(members, blend.weights, blend.temperatures, strict=True)
    )
    expected = p * torch.tensor(blend.bias).exp()  # type: ignore[operator]
    expected = expected / expected.sum(dim=1, keepdim=True)
    torch.testing.assert_close(blend.logits(other).softmax(dim=1), expected)


# --- calibration -------------------------------------------------------------------


@given(
    seed=SEEDS,
    signal=st.floats(0.0, 3.0),
    size=st.floats(0.05, 20.0),
    start=st.sampled_from(TEMPERATURES),
    uneven=st.booleans(),
)
def test_calibration_finds_what_a_scan_finds(
    seed: int, signal: float, size: float, start: float, uneven: bool
) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 30)
    scores = size * (rng.normal(size=(30, 3)) + signal * np.eye(3)[y])
    of_class = np.array([1.0, 4.0, 0.3]) if uneven else np.ones(3)
    z = np.array(TEMPERATURES)[:, None, None] * scores
    top = z.max(axis=2, keepdims=True)
    log_p = z - top - np.log(np.exp(z - top).sum(axis=2, keepdims=True))
    each = -log_p[:, np.arange(30), y] * of_class[y]
    losses = each.sum(axis=1) / of_class[y].sum()
    weight = torch.tensor(of_class).float() if uneven else None
    given_scores = torch.from_numpy(scores).float()
    t, loss = calibrate(given_scores, torch.from_numpy(y), weight, start)
    assert loss == pytest.approx(losses.min(), abs=2e-6)
    # A tie in single precision may go to either.
    first, second = np.sort(losses)[:2]
    if second - first > 2e-6:
        assert t == pytest.approx(TEMPERATURES[int(losses.argmin())])


def test_nothing_to_calibrate_on() -> None:
    t, loss = calibrate(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    assert t == UNCALIBRATED
    assert math.isnan(loss)
