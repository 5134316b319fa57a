"""Methods by name, and their tuned options."""

import pytest

from elugcn.errors import InputError
from elugcn.methods import presets
from elugcn.methods.contract import Method
from elugcn.methods.options import MethodConfig
from elugcn.methods.registry import (
    GRAPH_ONLY,
    METHOD_NAMES,
    config_for,
    get_method,
)


@pytest.mark.parametrize("name", [*METHOD_NAMES, GRAPH_ONLY])
def test_a_method_is_what_its_name_says(name: str) -> None:
    method = get_method(name)
    assert isinstance(method, Method)
    assert method.name == name
    assert get_method(name) is method
    assert issubclass(method.Config, MethodConfig)
    assert isinstance(config_for(name, {}), method.Config)
    assert len(method.summary) < 70


def test_names_of_0_1_still_work() -> None:
    assert get_method("elu-gcn-paper").name == "elu-gcn"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gnc", "unknown method 'gnc'; did you mean 'sgc' or 'gcn'"),
        ("svm-9", "unknown method 'svm-9'; known: auto, elu-gcn, gcn, mlp, lpa"),
        (3, "method must be a name; got 3"),
    ],
    ids=["near", "far", "number"],
)
def test_refusals(name: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        get_method(name)
    assert str(refused.value).startswith(message)


def test_tuned_options(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = {"common": {"lr": 0.2, "self_loops": False}, "mlp": {"dropout": 0.1}}
    monkeypatch.setattr(presets, "all_presets", lambda: {"toy": toy})
    assert presets.preset("lpa", "toy") == {"self_loops": False}
    assert presets.preset("mlp", "toy") == {
        "lr": 0.2,
        "self_loops": False,
        "dropout": 0.1,
    }
    assert presets.preset("mlp", "other") == {}
    mine = presets.tuned_options("mlp", "toy", {"lr": 0.3})
    assert mine == {"lr": 0.3, "self_loops": False, "dropout": 0.1}
    assert presets.tuned_options("mlp", None, {"lr": 0.3}) == {"lr": 0.3}
