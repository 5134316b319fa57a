"""Which methods there are. Adding one: its file, and a line here."""

from __future__ import annotations

from typing import Any

from elugcn.errors import InputError
from elugcn.methods.appnp import APPNPConfig, APPNPPredictor, fit_appnp
from elugcn.methods.base import Method, Predictor
from elugcn.methods.correct_smooth import (
    CorrectSmoothConfig,
    CorrectSmoothPredictor,
    fit_correct_smooth,
)
from elugcn.methods.elu_candidates import BlendPredictor
from elugcn.methods.elu_config import ELUGCNConfig, PaperConfig
from elugcn.methods.elu_gcn import fit_elu_gcn, fit_elu_graph
from elugcn.methods.elu_predictor import ELUGCNPredictor
from elugcn.methods.gat import GATConfig, GATPredictor, fit_gat
from elugcn.methods.grand import GRANDConfig, fit_grand
from elugcn.methods.lpa import LPAConfig, fit_lpa
from elugcn.methods.neural import (
    GCNConfig,
    MLPConfig,
    NetworkPredictor,
    fit_gcn,
    fit_mlp,
)
from elugcn.methods.sgc import SGCConfig, SGCPredictor, fit_sgc

METHODS: dict[str, Method[Any]] = {
    m.name: m
    for m in (
        Method("elu-gcn", ELUGCNConfig, fit_elu_gcn, "two graphs, one GCN"),
        Method("elu-gcn-paper", PaperConfig, fit_elu_gcn, "ELU-GCN as published"),
        Method("gcn", GCNConfig, fit_gcn, "Kipf and Welling's GCN"),
        Method("mlp", MLPConfig, fit_mlp, "features alone"),
        Method("lpa", LPAConfig, fit_lpa, "labels and edges alone"),
        Method("gat", GATConfig, fit_gat, "attention over neighbours"),
        Method("appnp", APPNPConfig, fit_appnp, "an MLP spread by PageRank"),
        Method("sgc", SGCConfig, fit_sgc, "regression on smoothed features"),
        Method("cs", CorrectSmoothConfig, fit_correct_smooth, "Correct and Smooth"),
        Method("grand", GRANDConfig, fit_grand, "random propagation, consistency"),
    )
}

# A stage of a method that is useful alone; not a classifier to compare.
GRAPH_ONLY: Method[Any] = Method(
    "elu-graph", ELUGCNConfig, fit_elu_graph, "the ELU graph without the training on it"
)

PREDICTORS: dict[str, type[Predictor]] = {
    "network": NetworkPredictor,
    "elu": ELUGCNPredictor,
    "blend": BlendPredictor,
    "gat": GATPredictor,
    "appnp": APPNPPredictor,
    "sgc": SGCPredictor,
    "cs": CorrectSmoothPredictor,
}


def get_method(name: str) -> Method[Any]:
    """The method of that name."""
    if name == GRAPH_ONLY.name:
        return GRAPH_ONLY
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]
