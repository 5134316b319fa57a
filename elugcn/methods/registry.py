"""Which methods there are, by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from elugcn.errors import InputError
from elugcn.methods.contract import Method
from elugcn.methods.options import MethodConfig, hint, make_config

# Where each method is defined, in the order of the documentation. Modules are imported
# when their method is asked for.
_CLASSIFIERS: Mapping[str, str] = {
    "auto": "elugcn.recipe.auto:Auto",
    "elu-gcn": "elugcn.elu.method:ELUGCN",
    "gcn": "elugcn.baselines.gcn:GCN",
    "mlp": "elugcn.baselines.mlp:MLP",
    "lpa": "elugcn.baselines.lpa:LPA",
    "gat": "elugcn.baselines.gat:GAT",
    "appnp": "elugcn.baselines.appnp:APPNP",
    "sgc": "elugcn.baselines.sgc:SGC",
    "linear": "elugcn.baselines.linear:Linear",
    "cs": "elugcn.baselines.correct_smooth:CorrectSmooth",
    "grand": "elugcn.baselines.grand:GRAND",
    "gprgnn": "elugcn.baselines.gprgnn:GPRGNN",
    "pcnet": "elugcn.baselines.pcnet:PCNet",
    "gcn-lpa": "elugcn.baselines.gcn_lpa:GCNLPA",
    "nodeformer": "elugcn.baselines.nodeformer:NodeFormer",
    "gsr": "elugcn.baselines.gsr:GSR",
    "bagcn": "elugcn.baselines.bagcn:BAGCN",
    "neuralsparse": "elugcn.baselines.neuralsparse:NeuralSparse",
    "ptdnet": "elugcn.baselines.ptdnet:PTDNet",
    "cogsl": "elugcn.baselines.cogsl:CoGSL",
}
# Names of version 0.1 that still work.
ALIASES: Mapping[str, str] = {"elu-gcn-paper": "elu-gcn"}
# A stage of a method that is useful alone: the ELU graph. It is not a classifier.
GRAPH_ONLY = "elu-graph"
_DEFINED = {**_CLASSIFIERS, GRAPH_ONLY: "elugcn.elu.method:ELUGraphOnly"}

METHOD_NAMES: tuple[str, ...] = tuple(_CLASSIFIERS)
DEFAULT_METHOD = "auto"


def resolve_name(name: str) -> str:
    """The current name of a method; an unknown one is an error."""
    if not isinstance(name, str):
        raise InputError(f"method must be a name; got {name!r}")
    if name in ALIASES:
        warnings.warn(f"{name} is now called {ALIASES[name]}", stacklevel=2)
        name = ALIASES[name]
    if name in _DEFINED:
        return name
    raise InputError(f"unknown method {name!r}; {hint(name, METHOD_NAMES)}")


def get_method(name: str) -> Method[Any]:
    """The method of that name."""
    return _method(resolve_name(name))


@cache
def _method(name: str) -> Method[Any]:
    module, _, attribute = _DEFINED[name].partition(":")
    found: Method[Any] = getattr(import_module(module), attribute)()
    return found


def config_for(name: str, options: Mapping[str, Any]) -> MethodConfig:
    """A method's configuration from plain values."""
    method = get_method(name)
    config: MethodConfig = make_config(method.Config, options, f"method {method.name}")
    return config
