"""Options that may be tried: single ones, and all of a method together."""

from typing import Any

import optuna
import pytest

from elugcn.config import as_plain, make_config
from elugcn.errors import InputError
from elugcn.tuning.dimensions import Choices, Range, make_dimension
from elugcn.tuning.paths import holder, put, read
from elugcn.tuning.space import Space, make_space

VIEWS = {"name": "two views", "eta": 0.3}
RANDOM = {"name": "random", "order": 8, "eta": 0.0}


def asked(space: Space, **params: Any) -> dict[str, Any]:
    """What a trial with these parameters would try."""
    fixed = {key.replace("__", "."): value for key, value in params.items()}
    return space.suggest(optuna.trial.FixedTrial(fixed))  # type: ignore[arg-type]


def test_dotted_keys() -> None:
    options = {"eta": 0.9, "variants": [dict(VIEWS), {"order": 2}]}
    assert read(options, "eta") == 0.9
    assert read(options, "variants.0.eta") == read(options, "variants.two views.eta")
    assert read(options, "variants.0.eta") == 0.3
    assert read(options, "variants.1.eta") == 0.9  # a variant inherits
    assert put(options, "variants.1.order", 5)
    assert options["variants"] == [VIEWS, {"order": 5}]
    for key in ("variants.2.eta", "variants.random.eta", "eta.0.k", "k.k"):
        assert holder(options, key) is None
        assert not put(options, key, 1)
        with pytest.raises(KeyError):
            read(options, key)


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("hidden_channels", [16, 64], Choices("hidden_channels", {"16": 16, "64": 64})),
        ("weight_decay", ["5e-4", 0],
         Choices("weight_decay", {"0.0005": 5e-4, "0.0": 0.0})),
        ("norm", ["none", "batch"], Choices("norm", {"none": "none", "batch": "batch"})),
        ("residual", [False, True], Choices("residual", {"false": False, "true": True})),
        ("epochs", 7, Choices("epochs", {"7": 7})),
        ("order", {"low": 1, "high": 9, "step": 2}, Range("order", 1, 9, 2, whole=True)),
        ("dropout", {"low": 0, "high": 0.9}, Range("dropout", 0.0, 0.9)),
        ("lr", {"low": "1e-3", "high": 1, "log": True},
         Range("lr", 1e-3, 1.0, log=True)),
        ("norm", {"options": {"plain": "none"}}, Choices("norm", {"plain": "none"})),
    ],
)  # fmt: skip
def test_lines_of_a_file(key: str, given: Any, expected: Any) -> None:
    got = make_dimension("gcn", key, given)
    assert got == expected
    assert repr(got) == repr(expected)  # 0 and 0.0 are equal, and not the same type


@pytest.mark.parametrize(
    ("key", "given", "says"),
    [
        ("hiden_channels", [1], "unknown option 'hiden_channels'.*'hidden_channels'"),
        ("zzz", [1], "unknown option 'zzz'.*known: .*dropout"),
        ("hidden_channels", [0.5], "hidden_channels must be a whole number; got 0.5"),
        ("hidden_channels", [16, 0], "at least 1; got 0"),
        ("hidden_channels", [], "expected a list of single values"),
        ("hidden_channels", [[16]], "chosen by name"),
        ("weight_decay", [0, 0.0], "weight_decay: 0.0 is there twice"),
        ("dropout", {"low": 0.1}, "dropout: expected low and high.*got low"),
        ("dropout", {}, "got nothing"),
        ("dropout", {"options": {}}, "got options"),
        ("dropout", {"low": 0.1, "high": 0.5, "stop": 1}, "got low, high, stop"),
        ("dropout", {"low": 0.5, "high": 0.1}, "low must be below high"),
        ("dropout", {"low": 0.1, "high": 1.5}, "dropout .*1.5"),
        ("dropout", {"low": 0.1, "high": 0.5, "step": 0.3}, "multiple of step 0.3"),
        ("dropout", {"low": 0.1, "high": 0.5, "step": 0}, "positive number; got 0"),
        ("order", {"low": 1, "high": 2, "step": 0.5}, "positive number; got 0.5"),
        ("order", {"low": 0, "high": 2, "log": True}, "a low above 0"),
        ("lr", {"low": 1, "high": 2, "log": True, "step": 1}, "no step"),
        ("lr", {"low": 1, "high": 2, "log": "yes"}, "log is true or false"),
        ("residual", {"low": False, "high": True}, "a range is of numbers"),
    ],
)
def test_refused_lines(key: str, given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_dimension("gcn", key, given)


def test_drawn_numbers() -> None:
    fine = Range("lr", 0.001, 0.1, log=True)
    trial = optuna.trial.FixedTrial({"lr": 0.0123456, "dropout": 0.1 + 0.2, "order": 5})
    assert fine.suggest(trial) == 0.0123  # type: ignore[arg-type]
    assert Range("dropout", 0.1, 0.9, 0.1).suggest(trial) == 0.3  # type: ignore[arg-type]
    got = Range("order", 1, 9, 2, whole=True).suggest(trial)  # type: ignore[arg-type]
    assert (got, type(got)) == (5, int)
    # Rounding does not leave the range.
    narrow = Range("lr", 0.012345, 0.02)
    low = optuna.trial.FixedTrial({"lr": 0.0123451})
    assert narrow.suggest(low) == 0.012345  # type: ignore[arg-type]


def test_which_values_lie_in_a_dimension() -> None:
    steps = Range("dropout", 0.1, 0.9, 0.1)
    assert [steps.place(v) for v in (0.3, 0.35, 1.0, True, "a")] == [
        0.3, None, None, None, None,
    ]  # fmt: skip
    flags = Choices("residual", {"true": True})
    assert [flags.place(v) for v in (True, 1, False)] == ["true", None, None]
    for dimension in (steps, Range("k", 1, 9, 2, whole=True), Range("lr", 1, 2)):
        drawn = dimension.distribution()
        assert (drawn.low, drawn.high, drawn.step) == (  # type: ignore[attr-defined]
            dimension.low, dimension.high, dimension.step,
        )  # fmt: skip


def test_a_configuration_is_base_then_fixed_then_chosen() -> None:
    values = {"epochs": 3, "dropout": [0.1, 0.2], "hidden_channels": [4, 8]}
    space = make_space("gcn", "karate", {"lr": 0.5, "epochs": 9}, values, [{}])
    expected = make_config("gcn", {"lr": 0.5, "epochs": 3, "dropout": 0.2})
    assert space.configuration({"dropout": 0.2}) == as_plain(expected)
    chosen = asked(space, dropout="0.1", hidden_channels="8")
    assert chosen == {"dropout": 0.1, "hidden_channels": 8}
    assert space.columns == ["dropout", "hidden_channels"]
    assert space.shown(chosen) == {"dropout": "0.1", "hidden_channels": "8"}
    assert space.shown({}) == {"dropout": "0.8", "hidden_channels": "64"}


def elu(**more: Any) -> Space:
    options = {"views": [VIEWS], "random": [RANDOM], "both": [RANDOM, VIEWS]}
    values: dict[str, Any] = {
        "variants.random.order": [2, 4],
        "variants.two views.eta": {"low": 0.1, "high": 0.7},
        "variants": {"options": options},
    }
    starts = [{}, {"variants": "both", "variants.random.order": 4}]
    return make_space("elu-gcn", "karate", {}, values | more, starts)  # type: ignore[arg-type]


def test_options_inside_variants_are_there_if_the_variant_is() -> None:
    space = elu()
    views = asked(space, variants="views", **{"variants.two views.eta": 0.5})
    assert views == {"variants": [VIEWS], "variants.two views.eta": 0.5}
    assert space.configuration(views)["variants"] == [VIEWS | {"eta": 0.5}]
    both = asked(space, variants="both",
                 **{"variants.two views.eta": 0.5, "variants.random.order": "2"})  # fmt: skip
    changed = [RANDOM | {"order": 2}, VIEWS | {"eta": 0.5}]
    assert space.configuration(both)["variants"] == changed
    # The list is shown by its name, though its contents were changed.
    assert space.shown(views) == {"variants": "views", "variants.two views.eta": "0.5"}
    assert space.shown(both)["variants"] == "both"
    # The choices are not spoilt by what was put into them.
    assert space.searched[0].extremes()[0] == [VIEWS]


def test_starts_name_choices() -> None:
    space = elu()
    assert space.starts[1]["variants"] == [RANDOM, VIEWS]
    made = space.configuration(space.starts[1])["variants"]
    assert made == [RANDOM | {"order": 4}, VIEWS]
    assert space.shown(space.starts[1])["variants.two views.eta"] == "0.3"


def test_a_start_may_name_the_only_choice() -> None:
    values = {"variants": {"options": {"views": [VIEWS]}}, "eta": [0.1, 0.3]}
    space = make_space("elu-gcn", "karate", {}, values, [{"variants": "views"}])
    assert space.configuration(space.starts[0])["variants"] == [VIEWS]


def test_fixed_inside_a_variant() -> None:
    space = elu(**{"variants.0.tau": 0.7})
    made = space.configuration({"variants": [VIEWS]})["variants"]
    assert made == [VIEWS | {"tau": 0.7}]
    assert space.shown({"variants": [VIEWS]})["variants"] == "views"


@pytest.mark.parametrize(
    ("values", "starts", "says"),
    [
        ({"variants.9.eta": [0.1, 0.2]}, [], "variants.9.eta: no place for 'eta'"),
        ({"variants.9.eta": 0.1}, [], "variants.9.eta: no place for 'eta'"),
        ({"variants.0.etta": [0.1, 0.2]}, [], "unknown option 'etta'"),
        ({}, [{"variants.9.eta": 0.1}], "variants.9.eta: a start has no place"),
        ({}, [{"etta": 0.1}], "unknown option 'etta'"),
        ({"variants.0.keep_gcn": [True, False]}, [], "keep_gcn is shared"),
        ({"variants": {"options": {"twice": [VIEWS, VIEWS], "one": [VIEWS]}}}, [],
         "names of their own"),
    ],
)  # fmt: skip
def test_refused_spaces(values: Any, starts: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_space("elu-gcn", "karate", {}, values, starts)
