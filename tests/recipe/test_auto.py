"""The default: what it tries, what it answers, and what it never reads."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from elugcn.api import Fitted, fit
from elugcn.data.datasets import load_dataset
from elugcn.data.validation import CheckedGraph, check_data
from elugcn.elu.label_propagation import propagate_labels
from elugcn.errors import InputError
from elugcn.methods.calibration import TEMPERATURES
from elugcn.methods.contract import FitContext, FitResult
from elugcn.methods.problem import Problem
from elugcn.methods.registry import config_for, get_method
from elugcn.recipe.auto import BUDGET, MAX_ENTRIES, AutoConfig
from elugcn.recipe.portfolio import LINEAR, NETWORKS
from tests.contracts.test_every_method import LEAST

CPU = torch.device("cpu")
QUICK = {"effort": "quick"}
SHORT = {"epochs": 20, "folds": 3}
HARD = {"feature_noise": 4.0, "homophily": 0.6}  # several members are needed


def draw(seed: int = 0, **options: Any) -> CheckedGraph:
    """Three classes; 600 nodes, of which 200 judge and 200 are for testing."""
    given: dict[str, Any] = {"n": 600, "n_classes": 3, "n_features": 16}
    data = load_dataset("sbm", **(given | {"mean_degree": 8.0} | options))
    place = torch.randperm(600, generator=torch.Generator().manual_seed(seed))
    data.train_mask, data.val_mask = place < 60, (place >= 60) & (place < 260)
    data.test_mask = place >= 400
    return check_data(data)


def auto(graph: CheckedGraph, seed: int = 0, **options: Any) -> Fitted:
    return fit(graph, "auto", options, seed=seed, n_threads=1)


def names(fitted: Fitted) -> list[str]:
    return [trial["name"] for trial in fitted.result.metadata["trials"]]


def right(logits: torch.Tensor, data: Data) -> float:
    return float((logits.argmax(dim=1) == data.y)[data.test_mask].double().mean())


@pytest.fixture(scope="module")
def short() -> Fitted:
    return auto(draw(**HARD), **SHORT)


# --- what it answers ----------------------------------------------------------------


def test_it_learns(short: Fitted) -> None:
    easy, hard = draw(), draw(**HARD)
    assert right(auto(easy, **QUICK).result.logits, easy.data) > LEAST
    assert right(auto(easy, **SHORT).result.logits, easy.data) > LEAST
    assert right(short.result.logits, hard.data) > LEAST


def test_the_seed_decides(short: Fitted) -> None:
    again = auto(draw(**HARD), **SHORT)
    assert torch.equal(again.result.logits, short.result.logits)
    plain = [without_seconds(one) for one in (short, again)]
    assert plain[0] == plain[1]
    other = auto(draw(**HARD), seed=1, **SHORT)
    assert not torch.equal(other.result.logits, short.result.logits)


def without_seconds(fitted: Fitted) -> list[dict[str, Any]]:
    trials = fitted.result.metadata["trials"]
    return [{k: v for k, v in trial.items() if k != "seconds"} for trial in trials]


@pytest.mark.parametrize(
    "options",
    [QUICK, QUICK | {"folds": 4}, QUICK | {"refit": True}, SHORT | {"refit": True}],
    ids=["split", "folds", "refit", "networks"],
)
def test_test_labels_may_be_anything(options: dict[str, Any]) -> None:
    graph = draw()
    spoilt = graph.data.clone()
    spoilt.y = torch.where(spoilt.test_mask, (spoilt.y + 1) % 3, spoilt.y)
    one, two = (auto(g, **options) for g in (graph, check_data(spoilt)))
    assert torch.equal(one.result.logits, two.result.logits)
    assert without_seconds(one) == without_seconds(two)
    for mine, other in zip(one.validation(), two.validation(), strict=True):
        assert torch.equal(mine, other)


def test_every_trial_is_recorded_with_its_weight(short: Fitted) -> None:
    record = short.result.metadata
    trials = record["trials"]
    assert len(names(short)) == len(set(names(short))) > len(LINEAR)
    weights = [trial["weight"] for trial in trials]
    assert min(weights) >= 0
    assert sum(weights) == pytest.approx(1.0)
    leading = sorted((t for t in trials if t["weight"]), key=lambda t: -t["weight"])
    assert set(record["chosen"].split(" + ")) == {t["name"] for t in leading}
    assert record["chosen"].startswith(leading[0]["name"])
    assert record["judged_on"] == "260 labelled nodes, in 3 folds"
    elu = sum(t["weight"] for t in trials if t["elu"])
    assert record["elu"]["weight"] == pytest.approx(elu)
    # The mean is no worse than its members and, judged on the same nodes, no worse
    # than without the ELU idea by more than a greedy step may lose.
    assert record["elu"]["loss"] <= min(t["loss"] for t in trials) + 1e-3
    for trial in trials:
        config_for(trial["method"], trial["options"])
        assert trial["seconds"] >= 0


@pytest.mark.parametrize("refit", [False, True])
def test_the_answer_is_the_mean_that_is_recorded(refit: bool) -> None:
    """Every member again on its own; temperatures by a scan of the grid."""
    graph = draw(**HARD)
    data = graph.data
    fitted = auto(graph, refit=refit, elu=False, **QUICK)
    val, total = data.val_mask, torch.zeros(600, 3, dtype=torch.float64)
    judged_total = total[val]
    for trial in fitted.result.metadata["trials"]:
        config = config_for(trial["method"], trial["options"])
        problem = Problem.of(data, config, CPU)
        method = get_method(trial["method"])
        alone = method.fit(problem, config, FitContext())
        z, y = alone.logits[val].double(), data.y[val]
        losses = [
            float(torch.nn.functional.cross_entropy(t * z, y)) for t in TEMPERATURES
        ]
        assert min(losses) == pytest.approx(trial["loss"], abs=1e-4)
        t = TEMPERATURES[int(np.argmin(losses))]
        judged_total += trial["weight"] * (t * z).softmax(dim=1)
        if refit and trial["method"] == "linear" and trial["weight"]:
            # Trained again on validation nodes, too, for as long as they selected.
            length, found = alone.metadata["best_epoch"] + 1, [alone.metadata]
            again = config.of_length(length, found)
            more = data.clone()
            more.train_mask, more.val_mask = data.train_mask | val, val & False
            alone = method.fit(Problem.of(more, again, CPU), again, FitContext())
        elif refit and trial["method"] == "lpa":
            alone = method.fit(
                Problem.of(refitted(data), config, CPU), config, FitContext()
            )
        total += trial["weight"] * (t * alone.logits.double()).softmax(dim=1)
    found = fitted.result.proba.double()
    torch.testing.assert_close(found, total, rtol=1e-3, atol=2e-3)
    # Validation is what judged, not the answer that these nodes trained.
    nodes, logits = fitted.validation()
    assert torch.equal(nodes, val.nonzero()[:, 0])
    judged = logits.double().softmax(dim=1)
    torch.testing.assert_close(judged, judged_total, rtol=1e-3, atol=2e-3)
    assert fitted.result.metadata["refit"] == refit


def refitted(data: Data) -> Data:
    """The graph with its validation nodes as training nodes."""
    more = data.clone()
    more.train_mask, more.val_mask = (
        data.train_mask | data.val_mask,
        data.val_mask & False,
    )
    return more


def test_the_model_gives_what_the_fit_gave() -> None:
    """Where members that know this graph only have no say, it is the same."""
    graph = draw(homophily=1 / 3, feature_noise=2.0)
    fitted = auto(graph, **QUICK)
    assert fitted.result.model is not None
    chosen = [t for t in fitted.result.metadata["trials"] if t["weight"]]
    again = fitted.result.model.logits(graph.data)
    agree = (again.argmax(1) == fitted.result.logits.argmax(1)).double().mean()
    assert agree > 0.9
    if all(t["options"].get("inputs", "features") == "features" for t in chosen):
        torch.testing.assert_close(again, fitted.result.logits, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("folds", [None, 4])
def test_a_rare_class_and_its_metric(uneven: Data, folds: int | None) -> None:
    data, options = check_data(uneven), QUICK | {"folds": folds}
    plain = fit(data, "auto", options, n_threads=1)
    tuned = fit(data, "auto", options, n_threads=1, metric="balanced_accuracy")
    test = data.data.test_mask
    one, two = (f.score(test, "balanced_accuracy") for f in (plain, tuned))
    assert one is not None
    assert two is not None
    assert two > one
    val = [f.val_score("balanced_accuracy") or 0.0 for f in (plain, tuned)]
    assert val[1] > val[0]


# --- held out -----------------------------------------------------------------------


@pytest.mark.parametrize("options", [QUICK, {"epochs": 30}], ids=["quick", "networks"])
def test_random_labels_are_judged_as_chance(options: dict[str, Any]) -> None:
    """Whoever judged nodes that it trained on would find nearly all of them right."""
    graph = draw(n_features=200)
    data, order = graph.data.clone(), torch.Generator().manual_seed(0)
    data.y = data.y[torch.randperm(600, generator=order)]
    fitted = auto(check_data(data), folds=4, refit=True, **options)
    known = data.train_mask | data.val_mask
    nodes, logits = fitted.validation()
    assert torch.equal(nodes.sort().values, known.nonzero()[:, 0])
    found = float((logits.argmax(dim=1) == data.y[nodes]).double().mean())
    # A third of 260 nodes, and three standard errors.
    assert found < 1 / 3 + 3 * (2 / 9 / 260) ** 0.5 + 0.02
    assert fitted.val_score() == pytest.approx(found)


@pytest.mark.parametrize("per_class", [5, 30])
def test_a_member_is_judged_as_chance_by_few_random_labels(per_class: int) -> None:
    """Two classes, and neither the features nor the edges know anything of them.

    A temperature that is fitted to m judged nodes gains 1 / 2m on average.
    """
    losses, m = [], 2 * per_class
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        y = torch.full((400,), -1)
        y[:m] = torch.arange(m) % 2
        x = torch.randn(400, 20, generator=generator)
        edges = torch.randint(0, 400, (2, 1200), generator=generator)
        data = Data(x=x, edge_index=edges, y=y)
        result = fit(
            data, "auto", QUICK | {"elu": False}, seed=seed, n_threads=1
        ).result
        trials = result.metadata["trials"]
        losses += [t["loss"] for t in trials if t["method"] == "linear"]
    assert np.mean(losses) > np.log(2) - 1 / m


# --- effort, time and options ---------------------------------------------------------


def methods(fitted: Fitted) -> set[str]:
    return {trial["method"] for trial in fitted.result.metadata["trials"]}


def test_a_quick_fit_trains_no_network(
    short: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert methods(short) >= {"linear", "lpa", "elu-gcn", "mlp"}
    monkeypatch.setattr("elugcn.methods.network.NetworkTraining.__init__", pytest.fail)
    assert methods(auto(draw(), **QUICK)) == {"linear", "lpa"}


@pytest.mark.slow
def test_a_thorough_fit_tries_more(short: Fitted) -> None:
    thorough = auto(draw(**HARD), effort="thorough", **SHORT)
    more = set(names(thorough)) - set(names(short))
    assert more == {member.name for member in NETWORKS if member.thorough}


def test_time_is_up() -> None:
    start = time.perf_counter()
    fitted = auto(draw(), time_limit=0.05, epochs=100_000)
    assert time.perf_counter() - start < 10
    assert methods(fitted) <= {"linear", "lpa"}
    assert 1 <= len(names(fitted)) <= len(LINEAR)
    assert bool(fitted.result.logits.isfinite().all())
    assert sum(t["weight"] for t in fitted.result.metadata["trials"]) == pytest.approx(
        1
    )


@pytest.mark.slow
def test_networks_stop_when_time_is_up() -> None:
    start = time.perf_counter()
    fitted = auto(draw(), time_limit=4.0, epochs=10**6, effort="thorough")
    assert time.perf_counter() - start < 20
    assert bool(fitted.result.logits.isfinite().all())


def test_without_the_elu_idea() -> None:
    with_elu, without = (
        auto(draw(), epochs=5, folds=2, elu=elu).result.metadata
        for elu in (True, False)
    )
    assert any(trial["elu"] for trial in with_elu["trials"])
    assert not any(trial["elu"] for trial in without["trials"])
    assert without["elu"]["weight"] == 0
    assert without["elu"]["loss"] == without["elu"]["loss_without"]
    assert with_elu["elu"]["loss"] <= without["elu"]["loss"] + 1e-3
    pseudo = [t for t in without["trials"] if t["options"].get("pseudo_weight")]
    assert pseudo == []


def test_what_costs_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = auto(draw(), **QUICK).result.metadata
    assert everything["left_out"] == []
    monkeypatch.setitem(BUDGET, "normal", 1e-12)
    fitted = auto(draw(), epochs=5)
    assert names(fitted) == ["label propagation"]  # the cheapest
    left_out = fitted.result.metadata["left_out"]
    undirected = {member.name for member in LINEAR[:-1] if not member.directed}
    assert undirected <= set(left_out)
    assert {"far propagation", "two views"} <= set(left_out)
    traits = Problem.of(draw().data, AutoConfig(), CPU).traits
    monkeypatch.setitem(BUDGET, "normal", sum(costs(traits).values()) / 2)
    some = auto(draw(), epochs=5)
    assert "label propagation" in names(some)
    assert set(some.result.metadata["left_out"]).isdisjoint(names(some))
    assert some.result.metadata["left_out"]


def costs(traits: Any) -> dict[str, float]:
    """Estimated seconds of every member of rung 0."""
    return {
        m.name: get_method(m.method).cost(config_for(m.method, m.options), traits)
        for m in LINEAR
    }


def test_costs_grow_with_the_graph() -> None:
    small, large = (
        Problem.of(draw(mean_degree=degree).data, AutoConfig(), CPU).traits
        for degree in (4.0, 40.0)
    )
    for name, seconds in costs(large).items():
        assert seconds >= costs(small)[name] > 0
    assert len(AutoConfig().networks(100)) == len(NETWORKS)
    assert AutoConfig().networks(MAX_ENTRIES + 1) == [AutoConfig()]
    assert AutoConfig(effort="quick").networks(100) == [AutoConfig(effort="quick")]


def test_a_members_random_numbers_follow_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = NETWORKS[:4]
    found = []
    for order in (some, some[::-1], some[1:3]):
        monkeypatch.setattr("elugcn.recipe.auto.NETWORKS", order)
        trials = auto(draw(), epochs=6).result.metadata["trials"]
        found.append({t["name"]: (t["score"], t["loss"]) for t in trials})
    first, turned, fewer = found
    assert first == turned
    assert fewer.items() < first.items()


def test_options_that_hold_for_every_member() -> None:
    directed = draw().data.clone()
    directed.edge_index = directed.edge_index[:, ::3]
    directed.directed = True
    graph = check_data(directed)
    given, out = (auto(graph, direction=d, **QUICK) for d in ("given", "out"))
    assert not torch.equal(given.result.logits, out.result.logits)
    norm = auto(draw(), feature_norm="standard", **QUICK)
    same = [t for t in norm.result.metadata["trials"] if t["name"].endswith(" X")]
    scores = {(t["score"], t["loss"]) for t in same if "PPR" not in t["name"]}
    assert len(same) > len(scores)  # "tf-idf X" and "normalised X" are now one


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"effort": "lots"},
            "effort must be 'quick', 'normal' or 'thorough'; got 'lots'",
        ),
        ({"time_limit": 0.0}, "time_limit must be greater than 0; got 0.0"),
        ({"folds": 1}, "folds must be at least 2; got 1"),
        ({"folds": 500}, "folds=500: expected 2 to "),
        ({"variants": []}, "unknown option 'variants' of method auto"),
    ],
    ids=["effort", "time_limit", "folds", "many folds", "variants"],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        auto(draw(), **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# --- graphs where one thing alone says the class ---------------------------------------


def alone(graph: CheckedGraph, method: str) -> FitResult:
    options: dict[str, Any] = {} if method == "lpa" else {"epochs": 100}
    return fit(graph, method, options, n_threads=1).result


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({"homophily": 1 / 3, "feature_noise": 1.0}, "mlp"),
        ({"homophily": 0.9, "feature_noise": 1e3}, "lpa"),
    ],
    ids=["features", "edges"],
)
def test_as_good_as_the_right_simple_method(
    options: dict[str, float], method: str, seed: int
) -> None:
    graph = draw(seed, split=seed, **options)
    simple, found = alone(graph, method).logits, auto(graph, **QUICK).result.logits
    assert right(simple, graph.data) > 0.6
    assert right(found, graph.data) >= right(simple, graph.data) - 0.02


def test_label_propagation_is_that_of_the_labels() -> None:
    data = draw().data
    result = auto(draw(), **QUICK).result
    problem = Problem.of(data, AutoConfig(), CPU)
    labels = torch.where(data.train_mask, data.y, -1)
    share = propagate_labels(problem.label_adj, labels, 3)
    reached = share.any(dim=1)
    assert torch.equal(result.baselines["lpa"][reached], share.argmax(dim=1)[reached])
    assert set(result.baselines) == {"lpa"}
    assert result.graph is not None
    assert result.graph.to_dense().shape == (600, 600)
