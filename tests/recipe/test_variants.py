"""How the default chooses among trained members, by hand and in short fits."""

import json
import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from elugcn.data.validation import CheckedGraph
from elugcn.elu.stages import TwoViewFit
from elugcn.errors import InputError
from elugcn.methods.backbone import GCNConfig
from elugcn.methods.contract import FitContext
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method
from elugcn.recipe.variants import (
    AFFORDABLE,
    DEFAULT_VARIANTS,
    AutoConfig,
    Blend,
    choose,
    mean_logits,
)
from tests.elu.conftest import fit as fit_method

Draw = Callable[..., CheckedGraph]
# Four nodes of two classes.
TARGET = torch.tensor([0, 0, 1, 1])


fit = partial(fit_method, method="auto")


def problem(n_val: int = 4) -> Problem:
    index = torch.arange(n_val)

    def val_score(logits: torch.Tensor) -> float:
        right = logits.argmax(dim=1)[index] == TARGET[index]
        return float(right.double().mean())

    return cast(Problem, SimpleNamespace(val_index=index, val_score=val_score))


def member(name: str, right: list[float], accuracy: float | None = None) -> TwoViewFit:
    """A model that gives the true class of each node this probability."""
    p = torch.tensor(right)
    rows = torch.stack([p, 1 - p], dim=1)
    rows = torch.where((TARGET == 1).unsqueeze(1), rows.flip(1), rows)
    found = float((p > 0.5).float().mean()) if accuracy is None else accuracy
    model = cast(Any, SimpleNamespace(logits=lambda _: rows.log()))
    return TwoViewFit(name=name, val_accuracy=found, logits=rows.log(), model=model)


# --- choosing ----------------------------------------------------------------------


def test_the_best_alone_and_ties_to_the_first() -> None:
    a, b, c = (
        member("a", [0.6, 0.6, 0.4, 0.4]),
        member("b", [0.9, 0.9, 0.9, 0.4]),
        member("c", [0.6, 0.6, 0.6, 0.4]),
    )
    assert choose([a, c, b], problem(), ensemble=False) is c
    # Without validation nodes nothing can be compared.
    assert choose([a, b], problem(0), ensemble=True) is a


def test_equals_are_averaged() -> None:
    a, b = member("a", [0.9, 0.9, 0.9, 0.3]), member("b", [0.2, 0.9, 0.9, 0.9])
    both = choose([a, b], problem(), ensemble=True)
    assert (both.name, both.val_accuracy) == ("a + b", 1.0)
    got = both.logits.exp()[torch.arange(4), TARGET]
    torch.testing.assert_close(got, torch.tensor([0.55, 0.9, 0.9, 0.6]))
    assert isinstance(both.model, Blend)
    assert both.model.weights == [1.0, 1.0]
    assert choose([b, a], problem(), ensemble=True).name == "b + a"


def test_weights_fall_with_the_distance_in_standard_errors() -> None:
    """With 3 of 4 right a standard error is √(3/16 / 4) = 0.2165."""
    best = member("best", [0.9, 0.9, 0.9, 0.4])
    near = member("near", [0.6] * 4, 0.75 - 0.2165)
    far = member("far", [0.6] * 4, 0.75 - 3 * 0.2165)
    blend = choose([far, near, best], problem(), ensemble=True)
    assert blend.name == "best + near"
    assert isinstance(blend.model, Blend)
    assert blend.model.weights == pytest.approx([1.0, math.exp(-1)], abs=1e-3)
    expected = (0.9 + math.exp(-1) * 0.6) / (1 + math.exp(-1))
    assert float(blend.logits[0, 0].exp()) == pytest.approx(expected, abs=1e-3)
    # It predicts what it was judged by.
    torch.testing.assert_close(blend.model.logits(cast(Any, None)), blend.logits)
    # All right: nothing that is not can be as good.
    perfect = member("perfect", [0.9] * 4)
    assert choose([best, perfect], problem(), ensemble=True) is perfect


def test_a_member_that_diverged_has_no_weight() -> None:
    good = member("good", [0.9, 0.9, 0.4, 0.4])
    lost = member("lost", [float("nan")] * 4, 1.0)
    assert lost.diverged
    assert choose([lost, good], problem(), ensemble=True) is good


# --- members -----------------------------------------------------------------------


def test_members_have_the_options_outside_and_their_own() -> None:
    config = AutoConfig(lr=0.3, variants=({"name": "a", "eta": 0.2}, {"lr": 0.1}))
    (first, a), (second, b) = config.members()
    assert (first, second) == ("a", "variant 2")
    assert (a.lr, a.eta, b.lr, b.eta) == (0.3, 0.2, 0.1, AutoConfig().eta)
    [(name, alone)] = AutoConfig(variants=(), eta=0.7).members()
    assert (name, alone.eta) == ("two-view", 0.7)
    assert not config.uses_mlp
    assert AutoConfig(variants=({"h_source": "mlp"},)).uses_mlp


def test_a_large_graph_leaves_out_the_slow_member_of_the_default() -> None:
    config = AutoConfig()
    names = [name for name, _ in config.members()]
    limit = int(AFFORDABLE / (8 * 2 * 64))  # order, draws, width of the first member
    kept, left_out = config.affordable(limit)
    assert ([name for name, _ in kept], left_out) == (names, [])
    kept, left_out = config.affordable(limit + 1)
    assert ([name for name, _ in kept], left_out) == (["two views"], names[:1])
    assert config.networks(limit + 1) == [config.gcn(), kept[0][1]]
    # What a user lists is trained, whatever it costs.
    named = AutoConfig(variants=DEFAULT_VARIANTS[:1])
    assert named.affordable(10**9) == (named.members(), [])
    # An order outside is every member's: the cheapest of them is left.
    kept, left_out = AutoConfig(order=2).affordable(10**9)
    assert ([name for name, _ in kept], left_out) == (["two views"], names[:1])


def test_an_option_that_is_set_holds_for_every_variant() -> None:
    merged = AutoConfig.merged({"lr": 0.1}, {"eta": 0.45})
    config = config_for("auto", merged)
    assert isinstance(config, AutoConfig)
    plain = AutoConfig(lr=0.1).members()
    assert {m.eta for _, m in plain} == {0.0, 0.3}
    assert {m.eta for _, m in config.members()} == {0.45}
    # Everything else of a variant stays.
    assert [(n, m.order) for n, m in config.members()] == [
        (n, m.order) for n, m in plain
    ]
    mine = AutoConfig.merged({}, {"eta": 0.45, "variants": [{"eta": 0.1}]})
    assert mine["variants"] == [{"eta": 0.1}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": [{"nope": 1}]}, "unknown option 'nope' of the variants of auto"),
        ({"variants": [{"lpa_steps": 3}]}, "lpa_steps is shared by the variants"),
        ({"variants": [{"mlp_lr": 0.1}]}, "mlp_lr is shared by the variants"),
        ({"variants": [{"eta": "x"}]}, "eta must be a number; got 'x'"),
        ({"variants": [3]}, "variants.0 must be a mapping; got 3"),
        ({"variants": "a"}, "variants must be a list; got 'a'"),
        (
            AutoConfig.merged({"variants": [3]}, {"eta": 0.1}),
            "variants.0 must be a map",
        ),
        ({"variants": [{"name": "gcn"}]}, "names of their own, not 'gcn'; got gcn"),
        ({"variants": [{"name": "a"}, {"name": "a"}]}, "names of their own.*got a, a"),
    ],
    ids=[f"refusal{i}" for i in range(9)],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        config_for("auto", options)
    assert "\n" not in str(refused.value)


# --- fits --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_as_good_as_validation_knows(seed: int, checked: Draw) -> None:
    graph = checked(seed, homophily=(0.8, 0.4, 0.1)[seed], label_rate=0.1)
    record = fit(graph, seed=seed, epochs=12).metadata
    candidates = record["candidates"]
    assert set(candidates) > {"gcn", "two views"}
    best = max(candidates.values())
    chosen = record["chosen"].split(" + ")
    # The best leads; others join it unless they are clearly worse.
    assert candidates[chosen[0]] == best
    m = int(graph.data.val_mask.sum())
    border = best - (best * (1 - best) / m * math.log(100)) ** 0.5
    assert {name for name, v in candidates.items() if v >= border} == set(chosen)


def test_the_plain_gcn_is_a_member_and_may_win(checked: Draw) -> None:
    """Members that learn nothing: the plain GCN must be the answer."""
    graph = checked(1)
    lame = [{"name": "lame", "epochs": 1, "lr": 1e-9, "pseudo_weight": 0.0}]
    options = {"epochs": 20, "variants": lame, "eta": 0.0, "refit_eta": False}
    result = fit(graph, **options)
    assert result.metadata["chosen"] == "gcn"
    config = GCNConfig(epochs=20)
    seen = Problem.of(graph.data, config, torch.device("cpu"))
    gcn = get_method("gcn").fit(seen, config, FitContext())
    assert torch.equal(result.logits, gcn.logits)
    assert result.label_utilization is not None
    assert torch.equal(result.label_utilization.gcn, gcn.logits.argmax(dim=1))
    assert result.graph is not None


@pytest.mark.parametrize(
    ("own", "around"),
    [
        ({"feature_norm": "standard"}, {"feature_norm": "none"}),
        ({"self_loops": False}, {"self_loops": True}),
        ({"direction": "out"}, {"direction": "in"}),
    ],
    ids=["features", "loops", "direction"],
)
def test_a_member_may_read_the_graph_its_own_way(
    own: dict[str, Any], around: dict[str, Any], checked: Draw
) -> None:
    """With η = 0 and no targets a member asks nothing of the others."""
    graph = checked(0)
    data = graph.data.clone()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    graph = CheckedGraph(data, ())
    alone = {"name": "alone", "eta": 0.0, "lambda_con": 0.0, "pseudo_weight": 0.0}
    same: dict[str, Any] = {"epochs": 6, "keep_gcn": False}
    ours = fit(graph, variants=[alone | own], **same, **around)
    twin = fit(graph, variants=[alone], **same, **own)
    other = fit(graph, variants=[alone], **same, **around)
    assert torch.equal(ours.logits, twin.logits)
    assert not torch.equal(ours.logits, other.logits)
    assert ours.model is not None
    again = ours.model.logits(data)
    torch.testing.assert_close(again, ours.logits, rtol=1e-4, atol=1e-4)


def test_members_have_seeds_of_their_own(
    checked: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TwoViewFit] = []

    def first(fits: list[TwoViewFit], *_: Any) -> TwoViewFit:
        seen.extend(fits)
        return fits[0]

    monkeypatch.setattr("elugcn.recipe.variants.choose", first)
    fit(checked(0), epochs=3, variants=[{"name": "a"}, {"name": "b"}])
    assert [one.name for one in seen] == ["a", "b", "gcn"]
    assert not torch.equal(seen[0].logits, seen[1].logits)


def test_members_that_mix_orders_forget_directions_kept_apart(checked: Draw) -> None:
    config = AutoConfig(direction="apart")
    directions = {name: member.direction for name, member in config.members()}
    assert directions == {"random propagation": "both", "two views": "apart"}
    record = fit(checked(0), epochs=3, direction="apart").metadata
    assert set(record["candidates"]) >= {"two views", "gcn"}


def test_what_is_left_out_and_what_diverged_is_recorded(
    checked: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elugcn.recipe.variants.AFFORDABLE", 1.0)
    record = fit(checked(0), epochs=2).metadata
    assert record["left_out"] == ["random propagation"]
    assert set(record["candidates"]) == {"two views", "gcn"}
    wild = {"name": "wild", "lr": 1e30, "eta": 0.0, "lambda_con": 0.0}
    graph = checked(0, feature_noise=30.0, homophily=0.34)
    record = fit(graph, epochs=8, variants=[wild]).metadata
    assert (record["chosen"], record["diverged"]) == ("gcn", ["wild"])


def test_a_blend_is_rebuilt_from_its_description(checked: Draw) -> None:
    sampled = {"name": "s", "order": 2, "sample": 20, "eta": 0.0, "lambda_con": 0.0}
    two_views = {"name": "t", "eta": 0.4, "refit_eta": False}
    result = fit(checked(0), epochs=4, variants=[sampled, two_views, {"name": "u"}])
    model = result.model
    assert isinstance(model, Blend)
    assert len(model.members) > 1
    description = json.loads(json.dumps(model.description()))
    again = get_method("auto").restore(description, model.tensors())
    other = checked(1).data
    assert torch.equal(again.logits(other), model.logits(other))
    torch.testing.assert_close(
        again.logits(other),
        mean_logits([m.logits(other) for m in model.members], model.weights),
    )
