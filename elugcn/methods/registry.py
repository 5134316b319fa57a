"""Which methods there are. Adding one: its file, and a line here."""

from __future__ import annotations

import difflib
from typing import Any

from elugcn.errors import InputError
from elugcn.methods.appnp import APPNPConfig, APPNPPredictor, fit_appnp
from elugcn.methods.bagcn import BAGCNConfig, BAGCNPredictor, fit_bagcn
from elugcn.methods.base import Method, Predictor
from elugcn.methods.cogsl import CoGSLConfig, CoGSLPredictor, fit_cogsl
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
from elugcn.methods.gcn_lpa import GCNLPAConfig, GCNLPAPredictor, fit_gcn_lpa
from elugcn.methods.gprgnn import GPRGNNConfig, GPRGNNPredictor, fit_gprgnn
from elugcn.methods.grand import GRANDConfig, fit_grand
from elugcn.methods.gsr import GSRConfig, fit_gsr
from elugcn.methods.lpa import LPAConfig, fit_lpa
from elugcn.methods.network_config import GCNConfig, MLPConfig
from elugcn.methods.neural import NetworkPredictor, fit_gcn, fit_mlp
from elugcn.methods.neuralsparse import (
    NeuralSparseConfig,
    NeuralSparsePredictor,
    fit_neuralsparse,
)
from elugcn.methods.nodeformer import (
    NodeFormerConfig,
    NodeFormerPredictor,
    fit_nodeformer,
)
from elugcn.methods.pcnet import PCNetConfig, PCNetPredictor, fit_pcnet
from elugcn.methods.ptdnet import PTDNetConfig, PTDNetPredictor, fit_ptdnet
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
        Method("gprgnn", GPRGNNConfig, fit_gprgnn, "an MLP spread by learned powers"),
        Method("pcnet", PCNetConfig, fit_pcnet, "low-pass steps and a heat kernel"),
        Method("gcn-lpa", GCNLPAConfig, fit_gcn_lpa, "edge weights that spread labels"),
        Method("nodeformer", NodeFormerConfig, fit_nodeformer, "all-pair attention"),
        Method("gsr", GSRConfig, fit_gsr, "edges refined by self-supervision"),
        Method("bagcn", BAGCNConfig, fit_bagcn, "BAGCN (reconstructed): shortcuts"),
        Method("neuralsparse", NeuralSparseConfig, fit_neuralsparse, "k edges a node"),
        Method("ptdnet", PTDNetConfig, fit_ptdnet, "learned gates on edges"),
        Method("cogsl", CoGSLConfig, fit_cogsl, "two fused views (sparse variant)"),
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
    "gprgnn": GPRGNNPredictor,
    "pcnet": PCNetPredictor,
    "gcn-lpa": GCNLPAPredictor,
    "nodeformer": NodeFormerPredictor,
    "bagcn": BAGCNPredictor,
    "neuralsparse": NeuralSparsePredictor,
    "ptdnet": PTDNetPredictor,
    "cogsl": CoGSLPredictor,
}


def get_method(name: str) -> Method[Any]:
    """The method of that name."""
    if name == GRAPH_ONLY.name:
        return GRAPH_ONLY
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise InputError(
            f"unknown method {name!r}; there are {', '.join(METHODS)}{hint}"
        )
    return METHODS[name]
