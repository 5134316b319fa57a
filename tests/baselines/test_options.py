"""Options that are refused, by one line that names the option and the value."""

from typing import Any

import pytest

from elugcn.errors import InputError
from elugcn.methods.registry import config_for

# Method, and values that are each wrong alone.
WRONG: dict[str, dict[str, list[Any]]] = {
    "lpa": {"lpa_steps": [0], "lpa_alpha": [1.1], "lpa_graph": ["near"]},
    "gat": {"heads": [0, 1.5], "out_heads": [0], "attention_dropout": [1.0]},
    "appnp": {"steps": [-1], "alpha": [1.5, -0.1], "edge_dropout": [1.0]},
    "sgc": {"order": [-1]},
    "cs": {"base": ["svm"], "correction_alpha": [1.1], "smoothing_alpha": [-0.1],
           "correction_steps": [-1], "scale": [-1.0]},
    "grand": {"order": [0], "draws": [0], "drop_node": [1.0], "sharpening": [0.0],
              "lambda_cons": [-1.0], "norm": ["l2"], "sample": [-1], "neighbours": [0]},
    "gprgnn": {"steps": [-1], "alpha": [1.5, -0.1], "propagation_dropout": [1.0],
               "input_dropout": [-0.5], "decay": ["first"]},
    "pcnet": {"order": [0], "terms": [0], "heat": [-0.1], "shift": [0.5],
              "exponent": [-0.1], "lr_out": [0.0], "lr_theta": [-1.0],
              "weight_decay_out": [-1.0], "weight_decay_theta": [-1.0],
              "propagation_dropout": [1.0], "decay": ["first"]},
    "gcn-lpa": {"num_layers": [0], "lpa_steps": [0], "lambda_lpa": [-1.0],
                "lpa_loss": ["l2"], "input_dropout": [1.0]},
    "nodeformer": {"heads": [0], "random_features": [0], "draws": [0], "links": [0],
                   "num_layers": [0], "rb_order": [-1, 33], "lambda_link": [-0.1],
                   "tau": [0.0]},
    "gsr": {"intra": [1.5], "pretrain_steps": [-1], "momentum": [1.0], "negatives": [0],
            "feature_weight": [-0.1], "add": [-0.5], "remove": [1.1], "window": [0]},
    "bagcn": {"roles": [0], "k": [0], "beta": [-1.0], "tau": [0.0], "anchors": [0],
              "refresh": [0]},
    "neuralsparse": {"k": [0], "scorer_channels": [0], "rate": [-1.0], "refresh": [0]},
    "ptdnet": {"draws": [0], "lambda_edges": [-1.0], "gamma": [0.0],
               "zeta": [1.0]},
    "cogsl": {"restart": [0.0, 1.5], "k": [0], "mu1": [-1.0], "lam": [1.1], "tau": [0.0],
              "anchors": [0], "classifier_steps": [0], "mi_steps": [-1]},
}  # fmt: skip


@pytest.mark.parametrize("method", WRONG)
def test_refusals(method: str) -> None:
    for option, values in WRONG[method].items():
        for value in values:
            with pytest.raises(InputError, match=f"^{option} must be .*; got .*$"):
                config_for(method, {option: value})


def test_combinations_that_are_refused() -> None:
    with pytest.raises(InputError, match="unknown option 'hidden_channels'"):
        config_for("sgc", {"hidden_channels": 8})
    with pytest.raises(InputError, match="cannot be combined with sample"):
        config_for("grand", {"norm": "layer", "sample": 5})
    with pytest.raises(InputError, match=r"direction='apart' cannot be .* order"):
        config_for("gcn", {"direction": "apart", "order": 2})
