"""Which methods there are. Adding one: its file, and a line here."""

from __future__ import annotations

from typing import Any

from elugcn.errors import InputError
from elugcn.methods.base import Method, Predictor
from elugcn.methods.elu_config import ELUGCNConfig
from elugcn.methods.elu_gcn import fit_elu_gcn, fit_elu_graph
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.lpa import LPAConfig, fit_lpa
from elugcn.methods.neural import (
    GCNConfig,
    MLPConfig,
    NetworkPredictor,
    fit_gcn,
    fit_mlp,
)

METHODS: dict[str, Method[Any]] = {
    m.name: m
    for m in (
        Method("elu-gcn", ELUGCNConfig, fit_elu_gcn, "two graphs, one GCN"),
        Method("gcn", GCNConfig, fit_gcn, "Kipf and Welling's GCN"),
        Method("mlp", MLPConfig, fit_mlp, "features alone"),
        Method("lpa", LPAConfig, fit_lpa, "labels and edges alone"),
    )
}

# A stage of a method that is useful alone; not a classifier to compare.
GRAPH_ONLY: Method[Any] = Method(
    "elu-graph", ELUGCNConfig, fit_elu_graph, "the ELU graph without the training on it"
)

PREDICTORS: dict[str, type[Predictor]] = {
    "network": NetworkPredictor,
    "elu": ELUGCNPredictor,
}


def get_method(name: str) -> Method[Any]:
    """The method of that name."""
    if name == GRAPH_ONLY.name:
        return GRAPH_ONLY
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
