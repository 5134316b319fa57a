"""Models that version 0.1 saved (schema 1), in the form of schema 2.

0.1 kept the architecture of every network; 0.2 rebuilds networks from options. Its
``elu-gcn`` is the method ``auto`` of today, and its ``elu-gcn-paper`` is ``elu-gcn``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from elugcn.api.config_files import renamed
from elugcn.methods.network import NetworkMethod, below, under
from elugcn.methods.problem import Shapes
from elugcn.methods.registry import config_for, get_method

SCHEMA = 1
Content = dict[str, Any]
Tensors = dict[str, Tensor]
Part = tuple[Content, Tensors]

# Stored under the same names today.
_SAME = ("elugcn", "seed", "threads", "device", "notes", "classes")
# Options of an architecture that are options of the method today.
_OPTIONS = (
    "hidden_channels", "dropout", "input_dropout", "num_layers", "norm", "residual",
    "order", "drop_node", "jump",
)  # fmt: skip


def convert(saved: Content, tensors: Tensors) -> Part:
    """The content of ``model.json`` and the tensors, as schema 2 has them."""
    method, config = renamed(str(saved["method"]), saved["config"])
    model = None
    kept = {k: v for k, v in tensors.items() if not k.startswith("predictor.")}
    if "predictor" in saved:
        kind, facts = saved["predictor_kind"], saved["predictor"]
        own = below("predictor.", tensors)
        if kind in ("blend", "elu", "cs") or method in ("auto", "elu-graph"):
            model, weights = _read(kind, facts, own)
        else:
            model, weights = _network(method, config, facts, own)
        kept |= under("model", weights)
    content = {key: saved[key] for key in _SAME} | {
        "schema": 2,
        "method": method,
        "config": config,
        "reading": saved["input"],
        "graph": saved,
        "graph_summary": saved | {"fingerprint": saved.get("digest")},
        "model": model,
        "result": saved | {"metadata": saved["facts"]},
    }
    return content, kept


def _read(kind: str, facts: Content, tensors: Tensors) -> Part:
    """A model that may hold other models, or one of theirs."""
    if kind == "network":
        method = {"MLP": "mlp", "GCN": "gcn", "PropagatedMLP": "gcn"}[facts["kind"]]
        return _network(method, _options(facts), facts, tensors)
    readers = {"blend": _blend, "elu": _two_view, "cs": _correct_smooth}
    return readers[kind](facts, tensors)


def _network(method: str, config: Content, facts: Content, tensors: Tensors) -> Part:
    """A single network with the scaling of its features."""
    sizes = facts["architecture"]
    shapes = {key: sizes[key] for key in ("in_channels", "out_channels")}
    description = {"method": method, "config": config, "shapes": shapes}
    weights = _renamed(method, config, shapes, below("model.", tensors))
    scaler = under("scaler", below("scaler.", tensors))
    return description | {"scaler": facts["scaler"]}, scaler | under("network", weights)


def _options(facts: Content) -> Content:
    """The options that rebuild a GCN or an MLP, from its architecture."""
    sizes, view = facts["architecture"], facts["view"]
    if facts["kind"] == "MLP":
        return {
            "hidden_channels": sizes["hidden_channels"],
            "dropout": sizes["dropout"],
            "activation": "none" if sizes.get("linear") else "relu",
            "self_loops": view["self_loops"],
        }
    options: Content = {key: sizes[key] for key in _OPTIONS if key in sizes} | view
    if facts["kind"] == "PropagatedMLP":
        options["sample"] = 1  # how many does not matter any more
    return options


def _two_view(facts: Content, tensors: Tensors) -> Part:
    """A two-view GCN, and the model that gives H if the ELU view has a say."""
    network = facts["network"]
    options = _options(network) | {"eta": facts["eta"]}
    if "sample" in options:
        options |= {"lambda_con": 0.0}
    description, weights = _network("elu-gcn", options, network, tensors)
    if "summary" not in facts:
        return description, weights
    kind, given = facts["source_kind"], facts["source"]
    source, own = _read(kind, given, below("source.", tensors))
    how = dict(facts["summary"])
    extra = {"eta": facts["eta"], "mean": how.pop("mean"), "source": source}
    description["config"] |= how  # scaling, h_output
    summary = under("summary", below("summary.", tensors))
    return description | extra, weights | summary | under("source", own)


def _blend(facts: Content, tensors: Tensors) -> Part:
    """A weighted mean of several models."""
    members: list[Content] = []
    own: Tensors = {}
    for i, saved in enumerate(facts["members"]):
        member, weights = _read(saved["kind"], saved["state"], below(f"{i}.", tensors))
        members.append(member)
        own |= under(str(i), weights)
    return {"method": "auto", "members": members, "weights": facts["weights"]}, own


def _correct_smooth(facts: Content, tensors: Tensors) -> Part:
    """Correct and Smooth around its base model."""
    config: Any = config_for("cs", facts["config"])
    method, options = config.base_model()
    plain = options.model_dump(mode="json")
    base, own = _network(method.name, plain, facts["base"], tensors)
    return {"method": "cs", "config": facts["config"], "base": base}, own


def _renamed(
    method: str, config: Content, shapes: Mapping[str, int], weights: Tensors
) -> Tensors:
    """Weights under the names that the network has today."""
    kind = get_method(method)
    assert isinstance(kind, NetworkMethod)
    with torch.device("meta"):
        network = kind.build(config_for(method, config), Shapes(**shapes))
    today = network.state_dict().keys()
    renamed: Tensors = {}
    for name, weight in weights.items():
        for before, now, transpose in _NAMES:
            if name == before or name.endswith(f".{before}"):
                new = name.removesuffix(before) + now
                if new in today and name not in today:
                    name, weight = new, weight.T.contiguous() if transpose else weight
                    break
        renamed[name] = weight
    return renamed


# Name in 0.1, name today, whether the weight is transposed.
_NAMES = (
    ("weights.0", "W1", False),
    ("biases.0", "b1", False),
    ("weights.1", "W2", False),
    ("biases.1", "b2", False),
    ("out.weight", "W2", True),
    ("out.bias", "b2", False),
    ("weight", "W1", False),
    ("bias", "b1", False),
)
