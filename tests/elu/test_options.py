"""Options of the stages: what they mean together, and what is refused."""

from typing import Any

import pytest

from elugcn.elu.options import ELUConfig
from elugcn.errors import InputError
from elugcn.methods.registry import config_for


def test_the_models_of_stage_0_have_the_options_meant_for_them() -> None:
    config = ELUConfig(
        mlp_hidden_channels=5, mlp_dropout=0.11, mlp_lr=0.022, mlp_weight_decay=0.033,
        mlp_activation="none", hidden_channels=7, dropout=0.2, lr=0.3, weight_decay=0.4,
        direction="apart", patience=9, num_layers=3, feature_norm="row",
    )  # fmt: skip
    mlp = config.mlp().model_dump()
    assert mlp == {
        "hidden_channels": 5, "dropout": 0.11, "lr": 0.022, "weight_decay": 0.033,
        "activation": "none", "patience": 9, "epochs": 500, "select": "accuracy",
        "decay": "all", "feature_norm": "row", "self_loops": True, "direction": "given",
    }  # fmt: skip
    gcn = config.gcn()
    assert (gcn.hidden_channels, gcn.lr, gcn.num_layers) == (7, 0.3, 3)
    assert gcn.direction == "apart"
    assert config.networks(10) == [gcn, config]


@pytest.mark.parametrize(
    ("options", "mlp", "elu_view", "contrast"),
    [
        ({}, False, True, True),
        ({"h_source": "mlp"}, True, True, True),
        ({"gcn_prediction": "propagated"}, True, True, True),
        ({"eta": 0.0}, False, True, True),
        ({"lambda_con": 0.0}, False, True, False),
        ({"eta": 0.0, "lambda_con": 0.0}, False, False, False),
        ({"eta": 0.0, "contrast_weight": 0.0}, False, False, False),
    ],
    ids=["default", "mlp", "propagated", "eta", "lambda", "neither", "weight"],
)
def test_what_is_computed_follows_from_the_options(
    options: dict[str, Any], mlp: bool, elu_view: bool, contrast: bool
) -> None:
    config = ELUConfig(**options)
    assert config.uses_mlp is mlp
    assert config.uses_elu_view is elu_view
    assert config.uses_contrast is contrast


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, "beta must be greater than 0; got 0"),
        ({"eta": 1.5}, "eta must be at most 1; got 1.5"),
        ({"form": "dense"}, "form must be 'paper' or 'transposed'; got 'dense'"),
        ({"topkk": 3}, "unknown option 'topkk' of method elu-gcn; did you mean 'topk'"),
        ({"sample": 5, "order": 2}, "sample has one view only: set eta and lambda_con"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        config_for("elu-gcn", options)
    assert "\n" not in str(refused.value)
