"""Options from YAML, JSON and Python; what is wrong is said in one line."""

from typing import Any

import numpy as np
import pytest
import yaml

from elugcn.errors import InputError
from elugcn.methods.backbone import GCNConfig, MLPConfig, RandomPropagationConfig
from elugcn.methods.options import MAX_COUNT, make_config


def made(**options: Any) -> GCNConfig:
    return make_config(GCNConfig, options, "method gcn")


def test_values_of_yaml_numpy_and_python() -> None:
    given = yaml.safe_load("{lr: 5e-4, dropout: 0, epochs: 7, residual: true}")
    assert given["lr"] == "5e-4"  # YAML wants 5.0e-4
    config = made(**given)
    assert (config.lr, config.dropout, config.epochs) == (5e-4, 0.0, 7)
    assert type(config.dropout) is float
    assert config.residual is True
    for text, number in {"1.5E+1": 15, "0.5": 0.5, ".5": 0.5, "2e3": 2000}.items():
        assert made(lr=text).lr == number
    assert made(lr=np.float32(0.5), epochs=np.int64(3)) == made(lr=0.5, epochs=3)
    assert made(input_dropout="1e-1").input_dropout == 0.1
    assert made(input_dropout=None).input_dropout is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": "fast"}, "lr must be a number; got 'fast'"),
        ({"lr": None}, "lr must be a number; got None"),
        ({"lr": float("nan")}, "lr must be a finite number; got nan"),
        ({"lr": 0.0}, "lr must be greater than 0; got 0.0"),
        ({"epochs": 1.5}, "epochs must be a whole number; got 1.5"),
        ({"epochs": "7"}, "epochs must be a whole number; got '7'"),
        ({"epochs": 10**22}, f"epochs must be at most {MAX_COUNT}; got 1000"),
        ({"residual": 1}, "residual must be true or false; got 1"),
        ({"norm": 3}, "norm must be 'none', 'layer', 'batch' or 'l2'; got 3"),
        ({"num_layers": 1}, "num_layers must be at least 2; got 1"),
        ({"drop_node": 1.0}, "drop_node must be below 1; got 1.0"),
        ({"dropout": -0.1}, "dropout must be at least 0; got -0.1"),
        ({"order": 2, "direction": "apart"}, "direction='apart' cannot be combined"),
        ({"epocs": 1}, "unknown option 'epocs' of method gcn; did you mean 'epochs'?"),
        ({3: 1}, "unknown option '3' of method gcn; known: feature_norm, self_loops"),
    ],
    ids=[f"refusal{i}" for i in range(15)],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        make_config(GCNConfig, options, "method gcn")
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 5}, "sample needs a propagation of order 1 or more"),
        ({"sample": 5, "order": 2, "norm": "layer"}, "norm='layer' cannot be combined"),
    ],
    ids=["order", "norm"],
)
def test_refusals_of_a_sample(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_config(RandomPropagationConfig, options, "method grand")


def test_a_few_bytes_of_yaml_are_not_gigabytes_of_message() -> None:
    text = "&a [x,x,x,x,x,x,x,x,x]"
    for name in "bcdefghi":
        before = chr(ord(name) - 1)
        text = f"&{name} [{text}, {', '.join(['*' + before] * 8)}]"
    with pytest.raises(InputError, match="epochs must be a whole number") as refused:
        made(epochs=yaml.safe_load(text))
    assert len(str(refused.value)) < 2_000


def test_what_configurations_have_in_common() -> None:
    config = made(lr=0.5, num_layers=3, hidden_channels=9)
    shared = config.shared_with(MLPConfig)
    assert shared["lr"] == 0.5
    assert shared["hidden_channels"] == 9
    assert "num_layers" not in shared
    assert "activation" not in shared
    assert config.networks(100) == [config]
