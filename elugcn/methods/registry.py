"""Which methods there are, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from elugcn.errors import InputError
from elugcn.methods.contract import Method
from elugcn.methods.options import MethodConfig, make_config

# Where each method is defined, in the order of the documentation. Modules are imported
# when their method is asked for.
_DEFINED: Mapping[str, str] = {
    "auto": "elugcn.recipe.variants:Auto",
    "elu-gcn": "elugcn.elu.method:ELUGCN",
    "gcn": "elugcn.baselines.gcn:GCN",
    "mlp": "elugcn.baselines.mlp:MLP",
    "lpa": "elugcn.baselines.lpa:LPA",
    "gat": "elugcn.baselines.gat:GAT",
    "appnp": "elugcn.baselines.appnp:APPNP",
    "sgc": "elugcn.baselines.sgc:SGC",
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
_HIDDEN: Mapping[str, str] = {GRAPH_ONLY: "elugcn.elu.method:ELUGraphOnly"}

METHOD_NAMES: tuple[str, ...] = tuple(_DEFINED)
DEFAULT_METHOD = "auto"


def resolve_name(name: str) -> str:
    """The current name of a method; an unknown one is an error."""
    if not isinstance(name, str):
        raise InputError(f"method must be a name; got {name!r}")
    name = ALIASES.get(name, name)
    if name in _DEFINED or name in _HIDDEN:
        return name
    known = list(_DEFINED)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    raise InputError(f"unknown method {name!r}; {hint}")


def get_method(name: str) -> Method[Any]:
    """The method of that name."""
    return _method(resolve_name(name))


@cache
def _method(name: str) -> Method[Any]:
    module, _, attribute = ({**_DEFINED, **_HIDDEN})[name].partition(":")
    found: Method[Any] = getattr(import_module(module), attribute)()
    return found


def all_methods() -> list[Method[Any]]:
    """Every classifier, in the order of the documentation."""
    return [get_method(name) for name in METHOD_NAMES]


def config_for(name: str, options: Mapping[str, Any]) -> MethodConfig:
    """A method's configuration from plain values."""
    method = get_method(name)
    config: MethodConfig = make_config(method.Config, options, f"method {method.name}")
    return config
